"""Procedural areas (`synthetic`), deterministic from a seed: no download and no licence.

Every seed gives another scene, in one of five regimes (a dense city, a suburb, farmland, a coast, a desert), at any
size and resolution, with an exact building mask. Each scene can also be rendered after a fire, a flood or a storm, on
another day and with another sun.

A scene is defined in metres. The same seed, regime and ground size give the same scene at every resolution; another
ground size gives another scene.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from airloc.areas.area import SearchArea
from airloc.areas.captions.land_cover import LandCover
from airloc.areas.dataset import Dataset
from airloc.areas.records import ImageRecord, Status
from airloc.areas.synthetic.canvas import Canvas
from airloc.areas.synthetic.cover import land_cover
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
"""Draw one of the disasters for each scene."""

CELL_M = 96.0
"""Metres on the ground under one cell of a grid: 2 m a pixel for cells of 48 px, about as in the paper."""

SCENES_PER_SEED = 1_000_000
"""Scenes per seed of a source, so that sources of different seeds share none."""

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
) -> SearchArea:
    """Generate one area, named after its regime and seed, as in `synthetic_city_000007`.

    With a disaster, its name is as in `synthetic-city-burnt_00000007_post_disaster`.

    Args:
        seed: Seed of the scene.
        size: Height and width in pixels.
        metres_per_px: Side of a pixel on the ground.
        regime: One of `REGIMES`; drawn from the seed when None.
        disaster: One of `DISASTERS`, for the same scene after it; None for before.

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
    kind = regime or _regime_of(seed)
    canvas = Canvas(*size, metres_per_px)
    image, mask = render(draw_plan(seed, kind, canvas.ground_m), canvas, disaster)
    stem = _pair_stem(seed, kind, disaster) if disaster else ""
    name = f"{stem}_post_disaster" if disaster else _area_name(seed, kind)
    return SearchArea(name, image, mask, canvas.ground_m, tile=stem)


def _regime_of(seed: int) -> str:
    """Draw the regime of a seed."""
    return REGIMES[int(stream(seed, "synthetic", "regime").integers(len(REGIMES)))]


def _disaster_of(seed: int) -> str:
    """Draw the disaster of a seed."""
    return DISASTERS[int(stream(seed, "synthetic", "disaster").integers(len(DISASTERS)))]


def _area_name(seed: int, regime: str) -> str:
    """Return the name of an area without a disaster."""
    return f"synthetic_{regime}_{seed:06d}"


def _pair_stem(seed: int, regime: str, disaster: str) -> str:
    """Return the common start of the names of a pair, after the pattern of xBD."""
    return f"synthetic-{regime}-{disaster}_{seed:08d}"


@dataclass(frozen=True, slots=True)
class _Scene(ImageRecord):
    """A record of one image of a scene."""

    seed: int = 0
    """Seed of the scene."""
    regime: str = ""
    disaster: str | None = None
    """The disaster that the image shows; None for an image before any."""


@dataclass(frozen=True)
class Synthetic(Dataset):
    """Procedural areas.

    With a disaster, every scene gives two areas, before and after it. As in xBD, their names differ only in
    `pre_disaster` and `post_disaster`; both have the pair as their tile.

    >>> [area.name for area in Synthetic(count=1, seed=2, regime="rural").areas(Grid(1, 2))]
    ['synthetic_rural_2000000']
    """

    name = "synthetic"
    title = "Procedural areas"
    terms = "part of airloc"
    location_option = ""

    count: int = 20
    """Number of scenes."""
    seed: int = 0
    """Random seed of the scenes; different seeds share none."""
    regime: str | None = None
    """`city`, `suburb`, `rural`, `coast` or `desert`; by default a mixture."""
    disaster: str | None = None
    """`burnt`, `flooded` or `debris`: every scene before and after it; `any` draws one for each scene. Default:
    no disaster."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.count <= SCENES_PER_SEED:
            raise AirlocError(
                f"A dataset of {self.count} areas cannot be made", f"Give a --count of 1 to {SCENES_PER_SEED}"
            )
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
        """List all scenes; with a disaster, each before and after it."""
        return list(self._scenes())

    def images(self) -> Iterator[SearchArea]:
        """Render the selected scenes at 2 m per pixel on the ground of a 7 x 7 grid."""
        return self.areas(IMAGE_GRID)

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Render the selected scenes so that they fit the grid exactly."""
        selected = self.only or self.without or self.names is not None
        scenes: Iterable[ImageRecord] = self.records() if selected else self._scenes()
        return (_render(scene, grid) for scene in scenes)

    def pairs(self, grid: Grid) -> Iterator[tuple[SearchArea, SearchArea]]:
        """Render (area after a disaster, goal area before it) pairs that fit the grid exactly."""
        return ((_render(after, grid), _render(before, grid)) for before, after in self.record_pairs())

    def land_covers(self, grid: Grid) -> Iterator[tuple[SearchArea, LandCover]]:
        """Render the selected scenes, each with its land cover at half the resolution."""
        for scene in self.records():
            assert isinstance(scene, _Scene)
            area = _render(scene, grid)
            canvas = Canvas(grid.size[0] // 2, grid.size[1] // 2, 2 * CELL_M / grid.cell)
            plan = draw_plan(scene.seed, scene.regime, Canvas(*grid.size, CELL_M / grid.cell).ground_m)
            yield area, land_cover(plan, canvas, grid.cell / 2)

    def read(self, record: ImageRecord) -> SearchArea:
        """Render one scene at 2 m per pixel on the ground of a 7 x 7 grid."""
        return _render(record, IMAGE_GRID)

    def status(self) -> Status:
        """Return the number of scenes."""
        return Status(self.name, self.location, "generated", {"scenes": self.count}, command=self.name)

    def _scenes(self) -> Iterator["_Scene"]:
        for seed in range(self.seed * SCENES_PER_SEED, self.seed * SCENES_PER_SEED + self.count):
            regime = self.regime or _regime_of(seed)
            if self.disaster is None:
                yield _Scene(_area_name(seed, regime), Path(), seed=seed, regime=regime)
                continue
            disaster = _disaster_of(seed) if self.disaster == ANY else self.disaster
            stem = _pair_stem(seed, regime, disaster)
            about: dict[str, Any] = {"tile": stem, "place": stem, "seed": seed, "regime": regime}
            yield _Scene(f"{stem}_pre_disaster", Path(), day=0, **about)
            yield _Scene(f"{stem}_post_disaster", Path(), day=1, disaster=disaster, **about)


def _render(record: ImageRecord, grid: Grid) -> SearchArea:
    assert isinstance(record, _Scene)
    area = generate(record.seed, grid.size, CELL_M / grid.cell, record.regime, record.disaster)
    return replace(area, name=record.name, tile=record.tile)


def _check(size: tuple[int, int], metres_per_px: float, regime: str | None, disaster: str | None) -> None:
    for kind, name, known in (("regime", regime, REGIMES), ("disaster", disaster, DISASTERS)):
        if name is not None and name not in known:
            raise AirlocError(f"There is no {kind} called {name!r}", f"Use one of {', '.join(known)}, or none")
    if len(size) != 2 or min(size) < 1:
        raise AirlocError(f"A size of {size} pixels is not valid", "Give a height and a width of 1 px or more")
    if not (math.isfinite(metres_per_px) and metres_per_px > 0):
        raise AirlocError(f"Pixels of {metres_per_px} m are not valid", "Give metres per pixel above 0, such as 2.0")
    if max(size) * metres_per_px > MAX_SIDE_M:
        raise AirlocError(
            f"An area of {size[0]} x {size[1]} px at {metres_per_px} m is longer than {MAX_SIDE_M / 1000:.0f} km",
            "Give fewer pixels, or smaller ones",
        )
