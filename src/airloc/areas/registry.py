"""All sources of search areas. A new one is a file beside this, a line here and a test."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Protocol

from airloc.areas import dubai, masa, xbd
from airloc.areas.area import SearchArea, crop_ground, fit
from airloc.areas.dataset import NAMES
from airloc.areas.dubai import Dubai
from airloc.areas.folder import INDEX as WINDOWS
from airloc.areas.folder import Folder, Window, read_area, read_windows
from airloc.areas.geotiff import GeoTiff
from airloc.areas.images import SUFFIXES, list_pictures
from airloc.areas.masa import Masa
from airloc.areas.pairs import ALL_NAMES, Names, goal_names, goal_pictures
from airloc.areas.prepared import Prepared, is_prepared, open_prepared
from airloc.areas.synthetic import Synthetic
from airloc.areas.xbd import Xbd
from airloc.errors import AirlocError
from airloc.grid import Grid


class AreaSource(Protocol):
    """Where areas come from: a frozen dataclass of options with one method."""

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Give the areas one by one, cut and fitted to the grid, so that only one is in memory at a time."""
        ...


SOURCES: dict[str, type[AreaSource]] = {
    "synthetic": Synthetic,
    "folder": Folder,
    "masa": Masa,
    "dubai": Dubai,
    "xbd": Xbd,
    "geotiff": GeoTiff,
    "prepared": Prepared,
}
"""Sources by the name they have on the command line."""


# ---------- Areas from wherever a command points to: procedural ones, a prepared cache, or a folder of pictures.
# ~


def choose_source(
    where: Path | None,
    *,
    split: str = "",
    cell_metres: float | None = None,
    only: Sequence[str] | None = None,
    names: Names = ALL_NAMES,
    count: int = 100,
    seed: int = 0,
) -> AreaSource:
    """Give the source that a place stands for.

    Args:
        where: A folder of pictures or a prepared cache; None for procedural areas.
        split: Only the areas of this split.
        cell_metres: Crop so that each cell stands for this many metres.
        only: Only the areas of these names.
        names: Only the areas whose names are wanted.
        count: How many procedural areas.
        seed: Decides the procedural areas.
    """
    _check_cell_metres(cell_metres)
    if where is None:
        if split or cell_metres is not None:
            raise AirlocError("Procedural areas have neither splits nor another ground size", "Give --areas too")
        if names:
            raise AirlocError("Procedural areas are not chosen by name", "Give --areas too, or leave out the patterns")
        return Synthetic(count=count, seed=seed)
    if is_prepared(where):
        if cell_metres is not None:
            raise _cut_already(where)
        if names:
            only = names.choose((entry["name"] for entry in open_prepared(where).entries), where)
            return Prepared(where, split=split, only=tuple(only))
        return Prepared(where, split=split)
    if names:
        only = names.choose((path.name for path in list_pictures(where)) if only is None else only, where)
    return Folder(where, split=split, cell_metres=cell_metres, only=None if only is None else tuple(only))


def load_pairs(
    areas: Path,
    goals: Path,
    grid: Grid,
    *,
    split: str = "",
    cell_metres: float | None = None,
    only: Sequence[str] | None = None,
    names: Names = ALL_NAMES,
) -> tuple[list[SearchArea], list[SearchArea]]:
    """Read areas and, for each, the picture of the same ground that its goals are taken from."""
    _check_cell_metres(cell_metres)
    if is_prepared(areas) or is_prepared(goals):
        return _prepared_pairs(areas, goals, grid, split=split, cell_metres=cell_metres, only=only, names=names)
    pictures = goal_pictures(areas, goals, only, names)
    windows = read_windows(areas)
    chosen = [name for name in pictures if split in ("", windows.get(name, Window()).split)]
    if not chosen:
        raise AirlocError(f"No picture of {areas} is in the split {split!r}", "Ask for another split")
    flown, shown = [], []
    for name in chosen:
        window, goal = windows.get(name, Window()), pictures[name]
        flown.append(_fitted(areas / name, window, grid, cell_metres))
        shown.append(_fitted(goal, replace(window, mask=None), grid, cell_metres))
    return flown, shown


def _prepared_pairs(
    areas: Path,
    goals: Path,
    grid: Grid,
    *,
    split: str,
    cell_metres: float | None,
    only: Sequence[str] | None,
    names: Names,
) -> tuple[list[SearchArea], list[SearchArea]]:
    """Pairs from prepared caches, or from one that holds both pictures of every place."""
    if not (is_prepared(areas) and is_prepared(goals)):
        cache = areas if is_prepared(areas) else goals
        raise AirlocError(f"{cache} is a prepared cache, and the other folder is not", "Prepare both, or neither")
    if cell_metres is not None:
        raise _cut_already(areas)
    here, there = ([entry["name"] for entry in open_prepared(folder).entries] for folder in (areas, goals))
    goal_of = goal_names(areas, here, goals, there, only, names)
    flown = {area.name: area for area in Prepared(areas, split=split, only=tuple(goal_of)).areas(grid)}
    shown = {area.name: area for area in Prepared(goals, only=tuple(goal_of.values())).areas(grid)}
    chosen = [name for name in goal_of if name in flown]
    return [flown[name] for name in chosen], [shown[goal_of[name]] for name in chosen]


def _cut_already(cache: Path) -> AirlocError:
    return AirlocError(f"{cache} is a prepared cache, cut already", "Give --cell-metres when preparing it")


def _check_cell_metres(cell_metres: float | None) -> None:
    if cell_metres is not None and not 0 < cell_metres < float("inf"):
        raise AirlocError(f"Cells of {cell_metres} m do not exist", "Give --cell-metres above 0, such as 100")


def _fitted(path: Path, window: Window, grid: Grid, cell_metres: float | None) -> SearchArea:
    area = read_area(path, window)
    if cell_metres is not None:
        cropped = crop_ground(area, (grid.rows * cell_metres, grid.cols * cell_metres))
        if cropped is None:
            raise AirlocError(f"The picture {path} is not known to cover the ground asked for", "Ask for less")
        area = cropped
    return fit(area, grid)


# ---------- What data is there: where it was looked for, what was found, and how it differs from the paper.
# ~

PAPER: dict[str, Mapping[str, int]] = {"masa": masa.PAPER, "dubai": dubai.PAPER, "xbd": xbd.PAPER}
"""Areas of 5 x 5 cells in the paper, by dataset and subset."""

_COUNT: dict[str, Callable[[Path], dict[str, int]]] = {
    "masa": lambda root: masa.count(root, Grid()),
    "dubai": lambda root: dubai.count(root, Grid()),
    "xbd": xbd.count,
}


@dataclass(frozen=True)
class Found:
    """One dataset, as found."""

    name: str
    place: Path
    """Where it was looked for."""
    state: str
    """`published layout`, `windows`, `pictures`, `prepared`, `absent` or `damaged`."""
    areas: Mapping[str, int] = field(default_factory=dict)
    """Areas of 5 x 5 cells by split or subset; for pictures their number."""
    source: str = ""
    """What to give to a command to read it."""
    remark: str = ""
    """What to know or to do about it."""

    @property
    def paper(self) -> Mapping[str, int]:
        """The paper's counts; empty for what the paper does not use or is not as published."""
        return PAPER.get(self.name, {}) if self.state in ("published layout", "absent") else {}

    @property
    def differences(self) -> dict[str, int]:
        """How many areas there are more (or fewer) than in the paper, where that is not none."""
        if self.state != "published layout":
            return {}
        gaps = {split: self.areas.get(split, 0) - count for split, count in self.paper.items()}
        return {split: gap for split, gap in gaps.items() if gap}


def take_stock(root: Path) -> Iterator[Found]:
    """Look for the published datasets and for any other pictures in the folders under `root`."""
    if not root.is_dir():
        raise AirlocError(
            f"There is no folder {root}", "Set AIRLOC_DATA to the folder of your datasets, or give --root"
        )
    for name in PAPER:
        yield check(name, root / name)
    for place in sorted(path for path in root.iterdir() if path.is_dir() and path.name not in PAPER):
        yield from _others(place)


def check(name: str, place: Path) -> Found:
    """Look for one of the published datasets in a folder, and count its areas."""
    if not place.exists():
        return Found(name, place, "absent", remark=f"run `airloc data fetch {name}`")
    if (place / WINDOWS).is_file():
        return _windows(name, place)
    try:
        return Found(name, place, "published layout", _COUNT[name](place), f"{name} --root {quote(str(place))}")
    except AirlocError as error:
        return Found(name, place, "damaged", remark=str(error))


def _others(place: Path) -> Iterator[Found]:
    """What a folder of no known name holds."""
    if is_prepared(place):
        yield _prepared(place)
    elif (place / WINDOWS).is_file():
        yield _windows(place.name, place)
    elif count := sum(1 for path in place.iterdir() if path.suffix.lower() in SUFFIXES):
        yield Found(place.name, place, "pictures", {"pictures": count}, f"folder --path {quote(str(place))}")


def _windows(name: str, place: Path) -> Found:
    pictures = place / "images" if (place / "images").is_dir() else place
    try:
        windows = read_windows(pictures)
    except AirlocError as error:
        return Found(name, place, "damaged", remark=str(error))
    splits = _tally(window.split for image, window in windows.items() if (pictures / image).is_file())
    masks = sum(window.mask is not None for window in windows.values())
    source = f"folder --path {quote(str(pictures))}"
    return Found(name, place, "windows", splits, source, f"{masks} with building masks")


def _prepared(place: Path) -> Found:
    try:
        opened = open_prepared(place)
    except AirlocError as error:
        return Found(place.name, place, "damaged", remark=str(error))
    splits = _tally(entry["split"] for entry in opened.entries)
    source = f"prepared --path {quote(str(place))}"
    return Found(place.name, place, "prepared", splits, source, f"for a grid of {opened.grid}")


def _tally(splits: Iterable[str]) -> dict[str, int]:
    """Count areas by split, train first."""
    found = Counter(splits)
    known = {name: found.pop(name) for name in NAMES if name in found}
    return known | {name or "without split": count for name, count in sorted(found.items())}
