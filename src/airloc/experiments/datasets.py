"""Dataset tasks: search areas for evaluations, and images for trainings.

Only these tasks read the user's datasets. All other tasks read their results, which can be sent to any machine.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from airloc.areas.area import SearchArea
from airloc.areas.folder import INDEX, MASKS, read_area, read_windows
from airloc.areas.images import list_pictures
from airloc.areas.pairs import Names
from airloc.areas.prepared import write_prepared
from airloc.areas.registry import SOURCES, choose_source, load_pairs
from airloc.errors import AirlocError
from airloc.experiments.graph import Task, TaskContext, TaskKind
from airloc.files import save_png
from airloc.grid import Grid

AREAS_FOLDER, GOALS_FOLDER = "areas", "goals"
"""Prepared folders in the result of an areas task. The second one exists if the goals have images of their own."""

IMAGES_SET = "images"
"""Folder in the result of an images task that training reads."""

Item = TypeVar("Item")


def write_areas(context: TaskContext) -> None:
    """Write the search areas of a suite, and the images of its goals if they are from another day."""
    settings, grid = context.settings, Grid.parse(context.settings["grid"])
    areas, goals = _read_areas(context, grid)
    chosen = spread(range(len(areas)), settings["limit"])
    if not chosen:
        raise AirlocError(f"The data in {context.source} holds no area of {grid} cells", "Give larger images")
    context.report(f"{len(chosen)} areas")
    for name, found in ((AREAS_FOLDER, areas), (GOALS_FOLDER, goals)):
        if found is not None:
            write_prepared((found[number] for number in chosen), grid, context.out / name, source=dict(settings))


def write_images(context: TaskContext) -> None:
    """Write images to train and to validate on, with masks and an index of splits and ground sizes."""
    folder = context.out / IMAGES_SET
    rows: list[tuple[str, str, str, str]] = [("image", "mask", "side_m", "split")]
    for split, part in context.settings["splits"].items():
        found = spread(list(_read_images(context, {**context.settings, **part, "split": split})), part.get("limit"))
        for area in found:
            # Windows of tiles keep their names, which tell the tile.
            name = f"{Path(area.name).stem}.png" if context.settings["grid"] is None else f"{len(rows) - 1:05d}.png"
            save_png(area.image, folder / "images" / name)
            if area.mask is not None:
                save_png(area.mask.astype(np.uint8) * 255, folder / MASKS / name)
            side = "" if area.ground_m is None else f"{area.ground_m[1]:g}"
            rows.append((name, name if area.mask is not None else "", side, split))
            context.report(f"{len(rows) - 1} images")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    (folder / INDEX).write_text(text.getvalue(), encoding="utf-8")


AREAS = TaskKind("areas", 1, write_areas, reads_data=True)
IMAGES = TaskKind("images", 1, write_images, reads_data=True)


def areas_task(
    name: str,
    grid: str,
    *,
    dataset: str,
    source: Path | None = None,
    folder: str = "",
    options: Mapping[str, Any] | None = None,
    data: str = "",
    split: str = "",
    cell_metres: float | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    pairs: bool = False,
    limit: int | None = None,
) -> Task:
    """Return the task that writes search areas.

    Args:
        name: Description of the areas.
        grid: The grid that the areas are fitted to.
        dataset: Name of the dataset; empty for a folder of images.
        source: Folder of the dataset; None for procedural areas.
        folder: Path of that folder relative to the data root.
        options: Options of the dataset, such as the seed of procedural areas.
        data: Digest of the content of the dataset; empty for procedural areas.
        split: Only the areas of this split.
        cell_metres: Crop the areas so that each cell covers this many metres.
        only: Only the areas whose names match one of these patterns.
        without: Not the areas whose names match one of these patterns.
        pairs: Take the goals from the image of the same place before the disaster.
        limit: Use at most this many areas, evenly spaced.
    """
    settings = {
        "dataset": dataset,
        "folder": folder,
        "options": dict(options or {}),
        "data": data,
        "grid": grid,
        "split": split,
        "cell_metres": cell_metres,
        "only": list(only),
        "without": list(without),
        "pairs": pairs,
        "limit": limit,
    }
    return Task(AREAS, name, settings, source=source)


def images_task(
    name: str,
    splits: Mapping[str, Mapping[str, Any]],
    *,
    dataset: str,
    source: Path | None = None,
    data: str = "",
    grid: Grid | None = None,
    holdout: int = 0,
) -> Task:
    """Return the task that writes images to train and to validate on.

    Args:
        name: Description of the images.
        splits: For each split the `options` of the dataset, and with `limit` the largest number of images.
        dataset: Name of the dataset; empty for a folder of images with an index.
        source: Folder of the dataset; None for procedural areas.
        data: Digest of the content of the dataset; empty for procedural areas.
        grid: Cut images as this grid does; None for whole images.
        holdout: Validate on every image of this number, for a dataset without a validation split.
    """
    settings = {
        "dataset": dataset,
        "data": data,
        "splits": splits,
        "grid": None if grid is None else [grid.rows, grid.cols, grid.cell, grid.gap],
        "holdout": holdout,
    }
    return Task(IMAGES, name, settings, source=source)


def spread(items: Sequence[Item], limit: int | None) -> list[Item]:
    """Return all items, or at most so many of them, evenly spaced.

    >>> spread("abcdefg", 3)
    ['a', 'd', 'g']
    """
    if limit is None or len(items) <= limit:
        return list(items)
    return [items[int(number)] for number in np.linspace(0, len(items) - 1, limit).round()]


def _read_areas(context: TaskContext, grid: Grid) -> tuple[list[SearchArea], list[SearchArea] | None]:
    """Read the areas and, where the suite has pairs of days, the image of each area that shows the goals."""
    settings, where = context.settings, context.source
    names = Names(tuple(settings["only"]), tuple(settings["without"]))
    if settings["dataset"]:
        where = context.run / "cache"
        areas = _source(settings, context.source).areas(grid)
        write_prepared(areas, grid, where, source=dict(settings), overwrite=True)
    assert where is not None
    chosen: dict[str, Any] = {"split": settings["split"], "cell_metres": settings["cell_metres"], "names": names}
    if settings["pairs"]:
        return load_pairs(where, where, grid, **chosen)
    return list(choose_source(where, **chosen).areas(grid)), None


def _read_images(context: TaskContext, settings: Mapping[str, Any]) -> Iterator[SearchArea]:
    """Read the images of a split, cut under the grid of the settings if there is one."""
    split, holdout = settings["split"], settings["holdout"]
    if settings["grid"] is None:
        assert context.source is not None
        index = read_windows(context.source)
        for path in list_pictures(context.source):
            if path.name in index and index[path.name].split == split:
                yield read_area(path, index[path.name])
        return
    rows, cols, cell, gap = settings["grid"]
    areas = _source(settings, context.source).areas(Grid(rows, cols, cell, gap))
    for number, area in enumerate(areas):
        if not holdout or (number % holdout == holdout - 1) == (split == "val"):
            yield area


def _source(settings: Mapping[str, Any], folder: Path | None) -> Any:
    """Open the dataset of the settings."""
    options = dict(settings["options"])
    if folder is not None:
        options["path" if settings["dataset"] == "folder" else "root"] = folder
    if settings["dataset"] == "masa":
        options["split"] = settings["split"] or "all"
    return SOURCES[settings["dataset"]](**options)
