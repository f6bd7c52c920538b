"""Dataset tasks: search areas for evaluations, and images for trainings.

Only these tasks read the user's datasets. All other tasks read their results, which can be sent to any machine.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from airloc.areas import Dataset, SearchArea, load_dataset
from airloc.areas.folder import INDEX, MASKS
from airloc.areas.prepared import write_prepared
from airloc.errors import AirlocError
from airloc.experiments.graph import Task, TaskContext, TaskKind
from airloc.files import save_png, write_atomically
from airloc.grid import Grid
from airloc.task.goal_texts import describe_areas, write_goal_texts

AREAS_FOLDER, GOALS_FOLDER = "areas", "goals"
"""Prepared folders in the result of an areas task. The second one exists if the goals have images of their own."""

TEXTS = "texts.csv"
"""Descriptions of the goals in the result of an areas task, if they are described in words."""

TEXTS_VERSION = 3
"""Version of the generated descriptions: a higher one has suites of goals in words played again."""

IMAGES_SET = "images"
"""Folder in the result of an images task that training reads."""

_Item = TypeVar("_Item")


def _write_areas(context: TaskContext) -> None:
    """Write the search areas of a suite, and the images of its goals if they are from another day."""
    settings, grid = context.settings, Grid.parse(context.settings["grid"])
    areas, goals = _read_areas(_load(settings, context.source), grid, pairs=settings["pairs"])
    chosen = spread(range(len(areas)), settings["limit"])
    if not chosen:
        raise AirlocError(f"The data in {context.source} holds no area of {grid} cells", "Give larger images")
    context.report(f"{len(chosen)} areas")
    if settings.get("texts"):
        rows = describe_areas(_load(settings, context.source), grid)
        described = {area for area, _, _ in rows}
        chosen = [number for number in chosen if areas[number].name in described]
        write_atomically(context.out / TEXTS, write_goal_texts(rows))
    for name, found in ((AREAS_FOLDER, areas), (GOALS_FOLDER, goals)):
        if found is not None:
            write_prepared((found[number] for number in chosen), grid, context.out / name, source=dict(settings))


def _write_images(context: TaskContext) -> None:
    """Write images to train and to validate on, with masks and an index of splits and ground sizes."""
    settings = context.settings
    parts = []
    for split, part in settings["splits"].items():
        dataset = _load({**settings, **part}, context.source)
        parts += [(area, split) for area in spread(list(_read_images(dataset, settings["side"])), part["limit"])]
    _write_set(parts, context.out / IMAGES_SET, context.report)
    for name in settings.get("more", {}):
        assert context.source is not None
        others = ((area, area.split) for area in load_dataset(context.source.parent / name).images())
        _write_set(others, context.out / name, context.report)


def _write_set(parts: Iterable[tuple[SearchArea, str]], folder: Path, report: Callable[[str], None]) -> None:
    """Write images, each with its split, as a folder with an index."""
    rows: list[tuple[str, str, str, str]] = [("image", "mask", "side_m", "split")]
    for area, split in parts:
        name = f"{len(rows) - 1:05d}.png"
        save_png(area.image, folder / "images" / name)
        if area.mask is not None:
            save_png(area.mask.astype(np.uint8) * 255, folder / MASKS / name)
        side = "" if area.ground_m is None else f"{area.ground_m[1]:g}"
        rows.append((name, name if area.mask is not None else "", side, split))
        report(f"{len(rows) - 1} images")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    (folder / INDEX).write_text(text.getvalue(), encoding="utf-8")


AREAS = TaskKind("areas", 1, _write_areas, reads_data=True)
IMAGES = TaskKind("images", 1, _write_images, reads_data=True, intermediate=True)


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
    texts: bool = False,
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
        texts: Describe the cells in words, and use only the areas that can be described.
        limit: Use at most this many areas, evenly spaced.
    """
    settings: dict[str, Any] = {
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
    if texts:  # a setting of its own, so that the keys of other areas do not change
        settings["texts"] = TEXTS_VERSION
    return Task(AREAS, name, settings, source=source)


def images_task(
    name: str,
    splits: Mapping[str, Mapping[str, Any]],
    *,
    dataset: str,
    source: Path | None = None,
    data: str = "",
    side: int | None = None,
    more: Mapping[str, str] | None = None,
) -> Task:
    """Return the task that writes images to train and to validate on.

    Args:
        name: Description of the images.
        splits: For each split, `train` and `val`: the `split` and `options` of the dataset to read, and the largest
            number of images as `limit`.
        dataset: Name of the dataset.
        source: Folder of the dataset; None for procedural areas.
        data: Digest of the content of the dataset; empty for procedural areas.
        side: Resample the images to squares of this side in pixels; None for their own size.
        more: Digests of other datasets, by the name of their folders beside the source, to write too.
    """
    settings = {"dataset": dataset, "data": data, "splits": splits, "side": side, **({"more": more} if more else {})}
    return Task(IMAGES, name, settings, source=source)


def spread(items: Sequence[_Item], limit: int | None) -> list[_Item]:
    """Return all items, or at most so many of them, evenly spaced.

    >>> spread("abcdefg", 3)
    ['a', 'd', 'g']
    """
    if limit is None or len(items) <= limit:
        return list(items)
    return [items[int(number)] for number in np.linspace(0, len(items) - 1, limit).round()]


def _load(settings: Mapping[str, Any], source: Path | None) -> Dataset:
    """Open the dataset of the settings."""
    names = ("split", "cell_metres", "only", "without")
    selection = {name: settings[name] for name in names if name in settings} | settings["options"]
    if not settings["dataset"]:
        assert source is not None
        return load_dataset(source, **selection)
    return load_dataset(settings["dataset"], root=source, **selection)


def _read_areas(dataset: Dataset, grid: Grid, *, pairs: bool) -> tuple[list[SearchArea], list[SearchArea] | None]:
    """Read the areas and, for pairs of days, the image of each area that shows the goals, under the name of the area.

    Several days may share a goal image.
    """
    if not pairs:
        return list(dataset.areas(grid)), None
    found = list(dataset.pairs(grid))
    return [area for area, _ in found], [replace(goal, name=area.name) for area, goal in found]


def _read_images(dataset: Dataset, side: int | None) -> Iterator[SearchArea]:
    return dataset.images() if side is None else dataset.areas(Grid(4, 4, side // 4, 0))
