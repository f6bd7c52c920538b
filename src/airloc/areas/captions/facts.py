"""Facts about the cells of an area, from its land cover.

A fact is a value for a topic, such as `("trees", "few")`. Two cells that a caption describes alike have equal facts, so
that a caption fits a cell if every fact it mentions holds there.

| topic                               | values                                                                       |
|-------------------------------------|------------------------------------------------------------------------------|
| `buildings`                         | `0` to `3`, `few` (4 to 6), `several` (to 11), `many` (to 19), `dozens`       |
| `building size`                     | `large`, `small`                                                             |
| `built`                             | how much of the cell buildings cover: `sparse`, `loose`, `dense`             |
| `open at`                           | where the largest gap between buildings is                                   |
| `hall at`                           | where the largest building is, if it is large                                |
| `roofs`                             | a colour, if most roofs have it                                              |
| `road`, `highway`, `railway`, `river` | the sides of the cell that it leaves by, such as `NS`; `none`, `inside`     |
| `water`, `trees`, `field`, `grass`, `sand` | `none`, `some`, `much`, `all`                                         |
| `water kind`                        | `sea`, `lake`, `river`                                                       |
| `pitch`, `pool`, `car park`         | `yes`                                                                        |
| TOPIC ` at`                         | where in the cell: `N`, `NE` ... `NW`, `C`                                   |
| `N`, `NE` ... `NW`                  | what covers most of the next cell in this direction, if it differs from here  |
| `far N`, `far NE` ... `far NW`      | what covers most of the cell after the next one, if it differs from both      |
| `by N`, `by NE` ... `by NW`         | something that stands out in the next cell: `hall`, `water`, `railway` ...     |
| `beyond N` ... `beyond NW`          | the same two cells away, in line, if no cell before it has it                |
| `denser`, `sparser`                 | the side with clearly more buildings than here, and the one with fewer        |

Facts that the source of the land cover does not know are missing.
"""

from collections.abc import Mapping
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from airloc.areas.area import Mask
from airloc.areas.captions.land_cover import WATER, Cover, LandCover
from airloc.grid import Cell, Grid

Facts: TypeAlias = dict[str, str]

SIDES = ("N", "E", "S", "W")
COLOURS = {
    "dark": (75, 75, 80),
    "grey": (125, 125, 125),
    "light grey": (175, 175, 175),
    "white": (222, 220, 215),
    "red": (165, 100, 80),
    "brown": (125, 105, 90),
    "beige": (190, 165, 140),
}
"""Names of roof colours, as RGB."""
LARGE, GAP = 0.1, 0.16
"""Size of a large building as a share of a cell, and radius of a gap between buildings in cells."""
AROUND = {
    "N": (-1, 0),
    "NE": (-1, 1),
    "E": (0, 1),
    "SE": (1, 1),
    "S": (1, 0),
    "SW": (1, -1),
    "W": (0, -1),
    "NW": (-1, -1),
}
LANDMARKS = ("railway", "river", "highway", "pitch", "water", "hall", "car park")
"""What stands out in a cell, the most conspicuous first."""
BUILT = {"sparse": 0.0, "loose": 0.1, "dense": 0.25}
"""How densely a cell is built, and the share from which on buildings cover it."""
_DENSER, _CLEARLY = 1.3, 0.04
"""Ratio and difference of the shares of two cells that buildings cover, from which on one is denser."""
_SHARES = {
    "water": (WATER, (0.03, 0.3, 0.8)),
    "trees": ((Cover.TREES,), (0.04, 0.18, 0.5)),
    "field": ((Cover.FIELD,), (0.1, 0.4, 0.8)),
    "grass": ((Cover.GRASS,), (0.1, 0.4, 0.7)),
    "sand": ((Cover.SAND, Cover.GROUND), (0.08, 0.4, 0.8)),
}
"""Classes of each topic, and the shares of the cell from which on it is `some`, `much` and `all`."""
_PRESENT = {"pitch": (Cover.PITCH, 0.05), "pool": (Cover.POOL, 0.001), "car park": (Cover.PAVED, 0.15)}
_LINES = {"road": Cover.ROAD, "highway": Cover.HIGHWAY, "railway": Cover.RAILWAY, "river": Cover.RIVER}


def cell_facts(land: LandCover, grid: Grid, rng: np.random.Generator | None = None) -> list[Facts]:
    """Return the facts about every cell of a grid that the land cover fits exactly, in row-major order.

    With `rng`, cells at the border of the area have facts about what lies beyond it too. Without them, a description
    would tell by what it leaves out that its cell lies at the border. The ground beyond is not known, and no glimpse
    shows it: each cell there is like one as far inside the border, moved along it by chance.
    """
    scale = land.classes.shape[0] / grid.size[0]
    facts, main, built = [], {}, {}
    for row, col in grid.cells():
        left, top, right, bottom = (round(edge * scale) for edge in grid.box((row, col)))
        classes = land.classes[top:bottom, left:right]
        share = np.bincount(classes.ravel(), minlength=len(Cover)) / classes.size
        here = _cover_facts(classes, share, land.known)
        inside = (
            (land.buildings.row >= top)
            & (land.buildings.row < bottom)
            & (land.buildings.col >= left)
            & (land.buildings.col < right)
        )
        if Cover.BUILDING in land.known:
            here |= _building_facts(land, inside, classes, (top, left))
        facts.append(here)
        main[row, col] = _main_cover(share, int(inside.sum()), land.known)
        built[row, col] = float(share[Cover.BUILDING])
    marks = {cell: _landmarks(here) for cell, here in zip(grid.cells(), facts, strict=True)}
    for beyond, like in _beyond(grid, rng).items():
        main[beyond], built[beyond], marks[beyond] = main[like], built[like], marks[like]
    for cell, here in zip(grid.cells(), facts, strict=True):
        here |= _cover_around(cell, main) | _landmarks_around(cell, marks)
        if Cover.BUILDING in land.known:
            here |= _density_around(cell, built)
    return facts


def _beyond(grid: Grid, rng: np.random.Generator | None) -> dict[Cell, Cell]:
    """Map every cell up to two steps beyond the border to a similar one inside; empty without `rng`."""
    cells: dict[Cell, Cell] = {}
    if rng is None:
        return cells
    for cell in product(range(-2, grid.rows + 2), range(-2, grid.cols + 2)):
        if not grid.contains(cell):
            down, right = rng.integers(-1, 2, size=2).tolist()
            cells[cell] = _like(cell[0], grid.rows, down), _like(cell[1], grid.cols, right)
    return cells


def _like(place: int, count: int, shift: int) -> int:
    """Reflect a row or column at the border, or shift it if it is inside; the result is inside."""
    reflected = -place if place < 0 else 2 * (count - 1) - place
    return min(max(place + shift if 0 <= place < count else reflected, 0), count - 1)


def _next(cell: Cell, side: str, steps: int = 1) -> Cell:
    """Return the cell some steps away in one of the eight directions."""
    down, right = AROUND[side]
    return cell[0] + steps * down, cell[1] + steps * right


def _cover_around(cell: Cell, main: Mapping[Cell, str]) -> Facts:
    """Return what covers most of the cells one and two steps away, where it differs from here."""
    facts: Facts = {}
    for side in AROUND:
        beside, far = (main.get(_next(cell, side, steps), "") for steps in (1, 2))
        if beside and beside != main[cell]:
            facts[side] = beside
        if far and far not in (main[cell], beside):
            facts[f"far {side}"] = far
    return facts


def _landmarks(facts: Facts) -> set[str]:
    """Return what stands out in a cell with these facts."""
    marks = {name for name in ("railway", "river", "highway") if facts.get(name, "none") != "none"}
    marks |= {name for name in ("pitch", "car park") if name in facts}
    marks |= {"water"} if facts.get("water") in ("some", "much") and facts.get("river", "none") == "none" else set()
    return marks | ({"hall"} if facts.get("building size") == "large" else set())


def _landmarks_around(cell: Cell, marks: Mapping[Cell, set[str]]) -> Facts:
    """Return the most conspicuous thing in each cell one and two steps away that the cells before it do not have."""
    facts: Facts = {}
    for side in AROUND:
        new = marks.get(_next(cell, side), set()) - marks[cell]
        if new:
            facts[f"by {side}"] = min(new, key=LANDMARKS.index)
        far = marks.get(_next(cell, side, 2), set()) - marks[cell] - marks.get(_next(cell, side), set())
        if far:
            facts[f"beyond {side}"] = min(far, key=LANDMARKS.index)
    return facts


def _density_around(cell: Cell, built: Mapping[Cell, float]) -> Facts:
    """Return the side with clearly more buildings than here, and the one with clearly fewer."""
    here = built[cell]
    around = {side: built[there] for side in SIDES if (there := _next(cell, side)) in built}
    most, fewest = max(around, key=lambda side: around[side]), min(around, key=lambda side: around[side])
    facts: Facts = {}
    if around[most] > max(_DENSER * here, here + _CLEARLY):
        facts["denser"] = most
    if around[fewest] < min(here / _DENSER, here - _CLEARLY):
        facts["sparser"] = fewest
    return facts


def _cover_facts(classes: npt.NDArray[np.uint8], share: npt.NDArray[np.float64], known: frozenset[Cover]) -> Facts:
    """Return the facts that follow from the classes of a cell's pixels."""
    facts: Facts = {}
    for topic, (covers, limits) in _SHARES.items():
        if known.isdisjoint(covers):
            continue
        total = float(share[list(covers)].sum())
        facts[topic] = ("none", "some", "much", "all")[int(np.searchsorted(limits, total, side="right"))]
        if facts[topic] in ("some", "much") and (at := zone(np.isin(classes, covers))):
            facts[f"{topic} at"] = at
    if facts.get("water", "none") != "none" and {Cover.SEA, Cover.RIVER} <= known:
        facts["water kind"] = max(WATER, key=lambda cover: share[cover]).name.lower()
    for topic, (cover, limit) in _PRESENT.items():
        if cover in known and share[cover] > limit:
            facts[topic] = "yes"
    for topic, cover in _LINES.items():
        if cover in known:
            facts[topic] = _exits(classes == cover) if share[cover] > 0.01 else "none"
            if facts[topic] in ("NS", "EW", "inside"):
                facts[f"{topic} at"] = zone(classes == cover) or "C"
    return facts


def _building_facts(land: LandCover, inside: Mask, classes: npt.NDArray[np.uint8], corner: tuple[int, int]) -> Facts:
    """Return the facts about the buildings whose centres lie inside a cell with a corner (top, left) in pixels."""
    count = int(inside.sum())
    if not count:
        return {"buildings": "0"}
    sizes, built = land.buildings.size[inside], classes == Cover.BUILDING
    words = ("few", "several", "many", "dozens")
    bucket = str(count) if count < 4 else words[int(np.searchsorted((6, 11, 19), count))]
    facts = {"buildings": bucket, "building size": "large" if sizes.max() > LARGE else "small"}
    if count > 3:
        facts["built"] = _density(float(built.mean()))
    if at := zone(built):
        facts["buildings at"] = at
    if at := _gap(built):
        facts["open at"] = at
    if sizes.max() > LARGE:
        largest = np.flatnonzero(inside)[int(sizes.argmax())]
        place = land.buildings.row[largest] - corner[0], land.buildings.col[largest] - corner[1]
        facts["hall at"] = _direction(place[0] / len(built) - 0.5, place[1] / built.shape[1] - 0.5) or "C"
    names = [colour_name(colour) for colour in land.buildings.colour[inside]]
    most = max(set(names), key=lambda name: (names.count(name), name))
    if names.count(most) > 0.5 * count:
        facts["roofs"] = most
    return facts


def colour_name(colour: npt.NDArray[np.float64]) -> str:
    """Return the name of a roof colour (3,). Differences between channels count more than brightness.

    >>> colour_name(np.array([160.0, 96.0, 80.0])), colour_name(np.array([70.0, 70.0, 72.0]))
    ('red', 'dark')
    """

    def distance(known: tuple[int, int, int]) -> float:
        difference = colour - known
        mean = float(difference.mean())
        return float(mean**2 + 4 * ((difference - mean) ** 2).sum())

    return min(COLOURS, key=lambda name: distance(COLOURS[name]))


def zone(mask: Mask) -> str:
    """Return where in a cell the True pixels lie: a direction, `C` for the centre, empty if they are spread."""
    rows, cols = np.nonzero(mask)
    if not len(rows):
        return ""
    if name := _direction(rows.mean() / len(mask) - 0.5, cols.mean() / mask.shape[1] - 0.5):
        return name
    spread = max(rows.std() / len(mask), cols.std() / mask.shape[1])
    return "C" if spread < 0.2 else ""


def _direction(down: float, right: float) -> str:
    """Return the direction from the middle of a cell to a point, in cells; empty if it is near the middle."""
    return ("N" if down < -0.13 else "S" if down > 0.13 else "") + (
        "W" if right < -0.13 else "E" if right > 0.13 else ""
    )


def _gap(built: Mask) -> str:
    """Return where the largest circle without buildings lies; empty if it is small."""
    away = ndimage.distance_transform_edt(~np.pad(built, 1, constant_values=True))[1:-1, 1:-1] / len(built)
    row, col = np.unravel_index(int(away.argmax()), away.shape)
    if not GAP <= away.max() < 0.4:
        return ""
    return _direction((row + 0.5) / len(built) - 0.5, (col + 0.5) / built.shape[1] - 0.5) or "C"


def _exits(line: Mask) -> str:
    """Return the sides that a line leaves the cell by, in the order N, E, S, W; `inside` if there is none."""
    depth = max(1, len(line) // 16)
    edges = {"N": line[:depth], "E": line[:, -depth:], "S": line[-depth:], "W": line[:, :depth]}
    return "".join(side for side, edge in edges.items() if edge.any(axis=0 if side in "NS" else 1).mean() > 0.06) or (
        "inside"
    )


def _density(share: float) -> str:
    """Return how densely a cell is built of which buildings cover this share."""
    return max((name for name, low in BUILT.items() if share >= low), key=lambda name: BUILT[name])


def _main_cover(share: npt.NDArray[np.float64], buildings: int, known: frozenset[Cover]) -> str:
    """Return what covers most of a cell; empty if nothing stands out."""
    if share[list(WATER)].sum() > 0.45:
        return "water"
    if share[Cover.FIELD] > 0.5:
        return "fields"
    if share[Cover.TREES] > 0.45:
        return "trees"
    if Cover.BUILDING in known and (buildings >= 5 or share[Cover.BUILDING] > 0.2):
        return _density(float(share[Cover.BUILDING]))
    if share[Cover.SAND] + share[Cover.GROUND] > 0.6:
        return "sand"
    if share[Cover.GRASS] > 0.6:
        return "open"
    return "empty" if Cover.BUILDING in known and not buildings and share[Cover.BUILDING] < 0.01 else ""
