"""Procedural areas (`synthetic`), deterministic from a seed: no download and no licence.

Every seed is another world. Worlds have one of five regimes (a dense city, a suburb, farmland, a coast, a desert), any
size and resolution, and exact building masks. Each world can also be rendered after a fire, a flood or a storm, on
another day and with another sun.

A world is defined in metres. The same seed, regime and ground size give the same world at every resolution; another
ground size gives another world.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from airloc.areas.area import SearchArea
from airloc.areas.dataset import Dataset
from airloc.areas.records import ImageRecord, Status
from airloc.areas.synthetic.canvas import Canvas
from airloc.areas.synthetic.disasters import DISASTERS
from airloc.areas.synthetic.plan import draw_plan
from airloc.areas.synthetic.regimes import REGIMES as _REGIMES
from airloc.areas.synthetic.render import render
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.seeding import stream

REGIMES = tuple(_REGIMES)
"""The kinds of landscape: a dense city, a suburb, farmland, a coast, a desert."""

ANY = "any"
"""Draw one of the disasters for each world."""

CELL_M = 96.0
"""Metres on the ground under one cell of a grid: 2 m a pixel for cells of 48 px, about as in the paper."""

WORLDS = 1_000_000
"""Worlds per seed of a source, so that sources of different seeds share none."""

IMAGE_GRID = Grid(7, 7)
"""The grid of the images for training."""

MAX_SIDE_M = 20_000.0
"""Longest side of an area; a plan grows with the ground, not with the pixels."""


def generate(
    seed: int,
    size: tuple[int, int] = (256, 256),
    metres_per_px: float = 2.0,
    regime: str | None = None,
    disaster: str | None = None,
    name: str | None = None,
) -> SearchArea:
    """Generate one area.

    Args:
        seed: Which world.
        size: Height and width in pixels.
        metres_per_px: Side of a pixel on the ground.
        regime: One of `REGIMES`; drawn from the seed when None.
        disaster: One of `DISASTERS`, for the same world after it; None for before.
        name: Name of the area; by default after its regime and seed, as in `synthetic_city_000007`, or
            with a disaster as in `synthetic-city-burnt_00000007_post_disaster`.

    Returns:
        The area. Its mask is True where a building covers at least half of a pixel; after a disaster it is
        still the mask of the buildings as they stood before, so a pair shares one mask.

    Raises:
        AirlocError: If there is no such regime or disaster, or the size is not valid.

    >>> area = generate(7, size=(48, 96), regime="coast")
    >>> area.name, area.image.shape, area.ground_m
    ('synthetic_coast_000007', (48, 96, 3), (96.0, 192.0))
    """
    _check(size, metres_per_px, regime, disaster)
    kind = regime or regime_of(seed)
    canvas = Canvas(*size, metres_per_px)
    image, mask = render(draw_plan(seed, kind, canvas.ground_m), canvas, disaster)
    stem = pair_stem(seed, kind, disaster) if disaster else ""
    plain = f"{stem}_post_disaster" if disaster else area_name(seed, kind)
    return SearchArea(name or plain, image, mask, canvas.ground_m, tile=stem)


def regime_of(seed: int) -> str:
    """Return the regime of a seed for which none is given."""
    return REGIMES[int(stream(seed, "synthetic", "regime").integers(len(REGIMES)))]


def disaster_of(seed: int) -> str:
    """Return the disaster of a seed for which any may occur."""
    return DISASTERS[int(stream(seed, "synthetic", "disaster").integers(len(DISASTERS)))]


def area_name(seed: int, regime: str) -> str:
    """Return the name of an area without a disaster."""
    return f"synthetic_{regime}_{seed:06d}"


def pair_stem(seed: int, regime: str, disaster: str) -> str:
    """Return the common start of the names of a pair, after the pattern of xBD."""
    return f"synthetic-{regime}-{disaster}_{seed:08d}"


@dataclass(frozen=True, slots=True)
class _World(ImageRecord):
    """A record of one image of a world."""

    seed: int = 0
    """Which world."""
    regime: str = ""
    disaster: str | None = None
    """The disaster that the image shows; None for an image before any."""


@dataclass(frozen=True)
class Synthetic(Dataset):
    """Synthetic areas.

    With a disaster every world comes twice, before and after it, under names that differ in `pre_disaster` and
    `post_disaster` alone, as xBD names its pairs; both have the pair as their tile.

    >>> [area.name for area in Synthetic(count=1, seed=2, regime="rural").areas(Grid(1, 2))]
    ['synthetic_rural_2000000']
    """

    name = "synthetic"
    title = "Procedural areas"
    terms = "part of airloc"
    location_option = ""

    count: int = 20
    """Number of worlds."""
    seed: int = 0
    """Random seed of the worlds; different seeds share none."""
    regime: str | None = None
    """`city`, `suburb`, `rural`, `coast` or `desert`; a mixture when not given."""
    disaster: str | None = None
    """`burnt`, `flooded` or `debris`: every world before and after it; `any` draws one for each world; only before
    when not given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.count <= WORLDS:
            raise AirlocError(f"A dataset of {self.count} areas cannot be made", f"Give a --count of 1 to {WORLDS}")
        if self.split or self.cell_metres is not None:
            raise AirlocError(
                "Procedural areas have no splits and a fixed ground size",
                "Give --areas or --dataset too, or leave out --split and --cell-metres",
            )

    @property
    def location(self) -> Path:
        """Return an empty path: nothing is read."""
        return Path()

    def scan(self) -> list[ImageRecord]:
        """List all worlds, with a disaster before and after it."""
        return list(self._worlds())

    def images(self) -> Iterator[SearchArea]:
        """Render the selected worlds at 2 m per pixel on the ground of a 7 x 7 grid."""
        return self.areas(IMAGE_GRID)

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Render the selected worlds so that they fit the grid exactly."""
        selected = self.only or self.without or self.names is not None
        worlds: Iterable[ImageRecord] = self.records() if selected else self._worlds()
        return (_render(world, grid) for world in worlds)

    def pairs(self, grid: Grid) -> Iterator[tuple[SearchArea, SearchArea]]:
        """Render (area after a disaster, goal area before it) pairs that fit the grid exactly."""
        return ((_render(after, grid), _render(before, grid)) for before, after in self.record_pairs())

    def read(self, record: ImageRecord) -> SearchArea:
        """Render one world at 2 m per pixel on the ground of a 7 x 7 grid."""
        return _render(record, IMAGE_GRID)

    def status(self) -> Status:
        """Return the number of worlds."""
        return Status(self.name, self.location, "generated", {"worlds": self.count}, command=self.name)

    def _worlds(self) -> Iterator["_World"]:
        for seed in range(self.seed * WORLDS, self.seed * WORLDS + self.count):
            regime = self.regime or regime_of(seed)
            if self.disaster is None:
                yield _World(area_name(seed, regime), Path(), seed=seed, regime=regime)
                continue
            disaster = disaster_of(seed) if self.disaster == ANY else self.disaster
            stem = pair_stem(seed, regime, disaster)
            about: dict[str, Any] = {"tile": stem, "place": stem, "seed": seed, "regime": regime}
            yield _World(f"{stem}_pre_disaster", Path(), day=0, **about)
            yield _World(f"{stem}_post_disaster", Path(), day=1, disaster=disaster, **about)


def _render(record: ImageRecord, grid: Grid) -> SearchArea:
    assert isinstance(record, _World)
    area = generate(record.seed, grid.size, CELL_M / grid.cell, record.regime, record.disaster)
    return replace(area, name=record.name, tile=record.tile)


def _check(size: tuple[int, int], metres_per_px: float, regime: str | None, disaster: str | None) -> None:
    for kind, given, known in (("regime", regime, REGIMES), ("disaster", disaster, DISASTERS)):
        if given is not None and given not in known:
            raise AirlocError(f"There is no {kind} called {given!r}", f"Use one of {', '.join(known)}, or none")
    if len(size) != 2 or min(size) < 1:
        raise AirlocError(f"A size of {size} pixels is not valid", "Give a height and a width of 1 px or more")
    if not (math.isfinite(metres_per_px) and metres_per_px > 0):
        raise AirlocError(f"Pixels of {metres_per_px} m do not exist", "Give metres per pixel above 0, such as 2.0")
    if max(size) * metres_per_px > MAX_SIDE_M:
        raise AirlocError(
            f"An area of {size[0]} x {size[1]} px at {metres_per_px} m is longer than {MAX_SIDE_M / 1000:.0f} km",
            "Give fewer pixels, or smaller ones",
        )
