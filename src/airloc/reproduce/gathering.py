"""Tasks that gather data: pictures to train on, and areas to fly over.

They alone read the user's data; all others build on their results, which can be sent to any machine.
"""

import csv
import io
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from airloc.areas.area import SearchArea
from airloc.areas.dubai import Dubai
from airloc.areas.folder import Folder
from airloc.areas.masa import Masa
from airloc.areas.prepared import write_prepared
from airloc.areas.synthetic import Synthetic
from airloc.areas.windows import INDEX, MASKS, read_windows
from airloc.areas.xbd import Xbd
from airloc.drawing.files import save_png
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.reproduce.job import Job

PICTURES = "pictures"
"""The set, under the folder of a result, that training reads."""

CELL_METRES = 100.0

Item = TypeVar("Item")

Row: TypeAlias = tuple[str, str, str, str]
"""Picture, mask, metres of its side, split."""

RAW = {"masa": Grid(5, 5, 100, 0), "xbd": Grid(4, 4, 128, 0), "synthetic": Grid(7, 7)}
"""Grids under which areas to train on are cut: at the data's own 1 m a pixel, at 512 px, and of 672 m."""


def gather_pictures(job: Job) -> None:
    """Write pictures to train on, with masks and an index that names splits and ground sizes."""
    folder = job.out / PICTURES
    if job.settings["of"] == "windows":
        _copy_windows(_source(job), folder)
        return
    rows: list[Row] = []
    for split, part in job.settings["splits"].items():
        settings = {**job.settings, "split": split, **part}
        for area in spread(list(read_areas(settings, job.source, RAW[job.settings["of"]])), part["count"]):
            name = f"{len(rows):05d}.png"
            save_png(area.image, folder / "images" / name)
            if area.mask is not None:
                save_png(area.mask.astype(np.uint8) * 255, folder / MASKS / name)
            side = "" if area.ground_m is None else f"{area.ground_m[1]:g}"
            rows.append((name, name if area.mask is not None else "", side, split))
            job.say(f"{len(rows)} pictures")
    _write_index(folder, rows)


def gather_areas(job: Job) -> None:
    """Write areas to fly over, cut and fitted to a grid."""
    grid = Grid.parse(job.settings["grid"])
    areas = spread(list(read_areas(job.settings, job.source, grid)), job.settings["count"])
    if not areas:
        raise AirlocError(f"The data in {job.source} holds no area of {grid} cells", "Give larger pictures")
    write_prepared(iter(areas), grid, job.out, source=job.settings)


def read_areas(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    """Read the areas of a split of some data under a grid."""
    return READERS[settings["of"]](settings, source, grid)


def _synthetic(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    del source
    disaster = settings.get("disaster")
    areas = Synthetic(settings["count"], settings["seed"], settings.get("regime"), disaster).areas(grid)
    return (area for area in areas if disaster is None or area.name.endswith("post_disaster"))


def _windows(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    assert source is not None
    return Folder(_pictures_of(source), split=settings["split"], cell_metres=CELL_METRES).areas(grid)


def _xbd(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    """Pictures of xBD; of those to train on every tenth is set aside to check training on."""
    areas = Xbd(source, subset=settings["subset"]).areas(grid)
    if settings["subset"] == "disaster":
        return areas
    return (area for number, area in enumerate(areas) if (number % 10 == 9) == (settings["split"] == "val"))


READERS: dict[str, Callable[[Mapping[str, Any], Path | None, Grid], Iterator[SearchArea]]] = {
    "synthetic": _synthetic,
    "windows": _windows,
    "masa": lambda settings, source, grid: Masa(source, split=settings["split"]).areas(grid),
    "dubai": lambda settings, source, grid: Dubai(source).areas(grid),
    "xbd": _xbd,
}
"""How each kind of data is read."""


def spread(found: Sequence[Item], count: int | None) -> list[Item]:
    """All of what was found, or so many of them, evenly spread."""
    if count is None or len(found) <= count:
        return list(found)
    return [found[int(number)] for number in np.linspace(0, len(found) - 1, count).round()]


def _copy_windows(source: Path, folder: Path) -> None:
    """Copy the windows to train and to validate on, with their masks, under the names that they have."""
    pictures = _pictures_of(source)
    rows: list[Row] = []
    (folder / "images").mkdir(parents=True)
    (folder / MASKS).mkdir()
    for name, window in sorted(read_windows(pictures).items()):
        if window.split not in ("train", "val") or not (pictures / name).is_file():
            continue
        shutil.copyfile(pictures / name, folder / "images" / name)
        if window.mask is not None:
            shutil.copyfile(window.mask, folder / MASKS / window.mask.name)
        side = "" if window.side_m is None else f"{window.side_m:g}"
        rows.append((name, window.mask.name if window.mask else "", side, window.split))
    _write_index(folder, rows)


def _write_index(folder: Path, rows: list[Row]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("image", "mask", "side_m", "split"), *rows])
    (folder / INDEX).write_text(text.getvalue(), encoding="utf-8")


def _pictures_of(source: Path) -> Path:
    return source / "images" if (source / "images").is_dir() else source


def _source(job: Job) -> Path:
    assert job.source is not None
    return job.source
