"""Areas from wherever a command points to: procedural ones, a prepared cache, or a folder of pictures."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from airloc.areas.area import SearchArea, fit
from airloc.areas.cutting import crop_ground
from airloc.areas.folder import Folder, read_area
from airloc.areas.names import ALL_NAMES, Names
from airloc.areas.pairs import goal_names, goal_pictures
from airloc.areas.pictures import list_pictures
from airloc.areas.prepared import Prepared, is_prepared, open_prepared
from airloc.areas.registry import AreaSource
from airloc.areas.synthetic import Synthetic
from airloc.areas.windows import Window, read_windows
from airloc.errors import AirlocError
from airloc.grid import Grid


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
