"""Prepared areas: a compact, memory-mapped copy of any dataset at the resolution of a grid.

Reading and cutting full-size images takes minutes, opening a prepared folder takes milliseconds. It holds

    images.npy    (N, H, W, 3) uint8, fitted to the grid
    masks.npy     (K, H, W) bool, for the K areas that have a mask; absent if none has
    index.json    version, grid, source, areas (name, tile, split, ground, row of the mask), SHA-256 of the arrays

The folder is written under another name and renamed when complete, so that an interrupted `airloc data prepare` leaves
nothing behind. Agents search prepared areas and training reads them, like those of any other dataset.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from airloc.areas.area import Mask, Pixels, SearchArea
from airloc.areas.dataset import Dataset
from airloc.areas.folder import check_partners, match_goals, place_and_day
from airloc.areas.records import ImageRecord
from airloc.errors import AirlocError, reason_of
from airloc.grid import Grid

VERSION = 1
IMAGES, MASKS, INDEX = "images.npy", "masks.npy", "index.json"


@dataclass(frozen=True, slots=True)
class _Row(ImageRecord):
    """A record of a prepared area."""

    row: int = 0
    """Row of its image in images.npy."""


@dataclass(frozen=True)
class Prepared(Dataset):
    """Areas that `airloc data prepare` has written."""

    name = "prepared"
    title = "Prepared areas"
    terms = "as of the dataset they were prepared from"
    location_option = "path"

    path: Path
    """The folder with images.npy and index.json."""
    goals: Path | None = None
    """Prepared folder with the same places on another day, for pairs. Default: this folder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cell_metres is not None:
            raise AirlocError(
                f"{self.path} holds prepared areas, which are cut already", "Give --cell-metres when preparing them"
            )

    @classmethod
    def detect(cls, path: Path) -> bool:
        """Return True for a folder that `airloc data prepare` has written."""
        return _is_prepared(path)

    def scan(self) -> list[ImageRecord]:
        """List the areas, in the order in which they were written."""
        return [_record(self.path, row, entry) for row, entry in enumerate(open_prepared(self.path).entries)]

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Yield the areas, their images mapped from the disk; the grid must be the prepared one."""
        self._check_grid(grid)
        return self.images()

    def pairs(self, grid: Grid) -> Iterator[tuple[SearchArea, SearchArea]]:
        """Yield (area, goal area) pairs; the grid must be the prepared one."""
        self._check_grid(grid)
        if self._pairs_inside():
            check_partners([record.name for record in self.scan()], self.names, self.location)
        return super().pairs(grid)

    def record_pairs(self) -> list[tuple[ImageRecord, ImageRecord]]:
        """List the pairs (area of `goals`, area of this folder), or the pairs inside this folder."""
        if self._pairs_inside():
            return super().record_pairs()
        assert self.goals is not None
        if not _is_prepared(self.goals):
            raise AirlocError(
                f"{self.path} holds prepared areas, and {self.goals} does not", "Prepare both folders, or neither"
            )
        goals = {record.name: record for record in Prepared(self.goals).scan()}
        areas = self.records()
        goal_of = match_goals([area.name for area in areas], goals, self.goals)
        return [(goals[goal_of[area.name]], area) for area in areas]

    def state(self) -> str:
        """Return `prepared`."""
        return "prepared"

    def remark(self) -> str:
        """Return the grid."""
        return f"for a grid of {open_prepared(self.path).grid}"

    def _pairs_inside(self) -> bool:
        return self.goals is None or self.goals.resolve() == self.path.resolve()

    def _check_grid(self, grid: Grid) -> None:
        prepared = open_prepared(self.path).grid
        if prepared != replace(grid, moves=prepared.moves):  # the moves do not matter for images
            raise AirlocError(
                f"{self.path} was prepared for {_describe(prepared)}, not for {_describe(grid)}",
                f"Give --grid {prepared}, or run `airloc data prepare` again with --grid {grid}",
            )

    def _read_all(self, records: Sequence[ImageRecord]) -> Iterator[SearchArea]:
        for folder, group in groupby(records, key=lambda record: record.path):
            opened = _opened(folder, (folder / INDEX).stat().st_mtime_ns)
            for record in group:
                assert isinstance(record, _Row)
                yield opened[record.row]


@lru_cache(maxsize=4)
def _opened(folder: Path, modified: int) -> "PreparedAreas":
    """Open a folder, or return it if it is open already and has not been written since."""
    del modified
    return open_prepared(folder)


def _record(folder: Path, row: int, entry: Mapping[str, Any]) -> _Row:
    place, day = place_and_day(entry["name"])
    mask = None if entry["mask"] is None else folder / MASKS
    width = None if entry["ground_m"] is None else float(entry["ground_m"][1])
    return _Row(
        entry["name"],
        folder,
        mask,
        width,
        tile=entry["tile"],
        split=entry["split"],
        place=place,
        day=day,
        row=row,
    )


@dataclass(frozen=True, eq=False)
class PreparedAreas:
    """An open prepared folder; images and masks are read from the disk when they are used."""

    grid: Grid
    images: Pixels
    """(N, H, W, 3)."""
    masks: Mask
    """(K, H, W)."""
    entries: list[dict[str, Any]]
    """Name, tile, split, ground_m and row of the mask of each area."""
    source: dict[str, Any]
    """Name and options of the dataset that it was prepared from."""

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, row: int) -> SearchArea:
        entry = self.entries[row]
        return SearchArea(
            name=entry["name"],
            image=self.images[row],
            mask=None if entry["mask"] is None else self.masks[entry["mask"]],
            ground_m=entry["ground_m"] and (entry["ground_m"][0], entry["ground_m"][1]),
            tile=entry["tile"],
            split=entry["split"],
        )


def _is_prepared(path: Path) -> bool:
    """Return True if a folder holds prepared areas."""
    return (path / INDEX).is_file()


def open_prepared(path: Path) -> PreparedAreas:
    """Open a prepared folder without reading its images."""
    if not _is_prepared(path):
        raise AirlocError(f"The folder {path} holds no prepared areas", "Write them with `airloc data prepare`")
    try:
        index = json.loads((path / INDEX).read_text(encoding="utf-8"))
        if index["version"] != VERSION:
            raise _damaged(path / INDEX, f"it is of version {index['version']}, not {VERSION}")
        grid = Grid(**index["grid"])
        entries, source = list(index["areas"]), dict(index["source"])
        masked = [entry["mask"] for entry in entries if entry["mask"] is not None]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path / INDEX, repr(error)) from error
    images = _map(path / IMAGES, (len(entries), *grid.size, 3), np.dtype(np.uint8))
    no_masks: Mask = np.zeros((0, *grid.size), dtype=np.bool_)
    masks = _map(path / MASKS, (len(masked), *grid.size), np.dtype(np.bool_)) if masked else no_masks
    return PreparedAreas(grid, images, masks, entries, source)


def write_prepared(
    areas: Iterator[SearchArea],
    grid: Grid,
    out: Path,
    *,
    source: Mapping[str, Any],
    overwrite: bool = False,
    on_area: Callable[[SearchArea], None] = lambda area: None,
) -> PreparedAreas:
    """Write areas that are fitted to a grid as a prepared folder, with one area in memory at a time.

    The index stores `source`, the name and options of the dataset. `on_area` is called after each area.
    """
    check_free(out, overwrite)
    partial, old = (out.absolute().with_name(f".{out.absolute().name}.{word}") for word in ("partial", "replaced"))
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _write(areas, grid, partial, source, on_area)
        if out.exists():
            out.rename(old)
        partial.rename(out)
    except OSError as error:
        raise AirlocError(
            f"Cannot write prepared areas to {out}: {error}", "Give a folder that can be written"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return open_prepared(out)


def check_free(out: Path, overwrite: bool) -> None:
    """Raise unless a folder is absent, empty or, with `overwrite`, holds prepared areas."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not _is_prepared(out):
        raise AirlocError(f"{out} exists and holds no prepared areas", "Give another --out")
    if not overwrite:
        raise AirlocError(f"{out} holds prepared areas", "Give another --out, or --overwrite to replace them")


def _damaged(path: Path, reason: str) -> AirlocError:
    """Return the error for a file that cannot be used."""
    return AirlocError(
        f"The prepared file {path} is damaged: {reason}", "Write it again with `airloc data prepare --overwrite`"
    )


def _write(
    areas: Iterator[SearchArea],
    grid: Grid,
    folder: Path,
    source: Mapping[str, Any],
    on_area: Callable[[SearchArea], None],
) -> None:
    """Write the arrays row by row, then the index."""
    entries: dict[str, dict[str, Any]] = {}
    with (folder / IMAGES).open("wb") as image_file, (folder / MASKS).open("wb") as mask_file:
        images = _ArrayFile(image_file, (*grid.size, 3), np.dtype(np.uint8))
        masks = _ArrayFile(mask_file, grid.size, np.dtype(np.bool_))
        for area in areas:
            if area.name in entries:
                raise AirlocError(f"Two areas are called {area.name!r}", "Rename one of them")
            images.append(area.image)
            row = None if area.mask is None else masks.append(area.mask)
            about = {"tile": area.tile, "split": area.split, "ground_m": area.ground_m, "mask": row}
            entries[area.name] = {"name": area.name, **about}
            on_area(area)
        sha256 = {IMAGES: images.finish(), MASKS: masks.finish()}
    if not entries:
        raise AirlocError("The dataset gives no areas", "Give another --split or --only")
    if masks.rows == 0:
        (folder / MASKS).unlink()
        del sha256[MASKS]
    layout = {"rows": grid.rows, "cols": grid.cols, "cell": grid.cell, "gap": grid.gap}
    record = {"version": VERSION, "grid": layout, "source": dict(source), "sha256": sha256}
    text = json.dumps({**record, "areas": list(entries.values())}, indent=1, default=str)
    (folder / INDEX).write_text(text + "\n", encoding="utf-8")


class _ArrayFile:
    """A .npy file that grows row by row; its header is rewritten when the number of rows is known."""

    def __init__(self, file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.file, self.shape, self.dtype = file, shape, dtype
        self.rows, self.digest = 0, hashlib.sha256()
        self._header()

    def _header(self) -> None:
        """Write the header; NumPy pads it, so that its length does not depend on the number of rows."""
        about = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.rows, *self.shape)}
        np.lib.format.write_array_header_1_0(self.file, about)

    def append(self, row: npt.NDArray[Any]) -> int:
        """Write one row and return its number."""
        if row.shape != self.shape or row.dtype != self.dtype:
            raise ValueError(f"a row of {row.shape} {row.dtype} in a file of {self.shape} {self.dtype}")
        data = np.ascontiguousarray(row).data
        self.file.write(data)
        self.digest.update(data)
        self.rows += 1
        return self.rows - 1

    def finish(self) -> str:
        """Write the final header and return the SHA-256 of the rows."""
        self.file.seek(0)
        self._header()
        return self.digest.hexdigest()


def _map(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Map an array file to memory, and check it against the index."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TypeError) as error:
        raise _damaged(path, reason_of(error)) from error
    if array.shape != shape or array.dtype != dtype:
        raise _damaged(path, f"it holds {array.shape} {array.dtype}, but the index expects {shape} {dtype}")
    plain: npt.NDArray[Any] = array.view(np.ndarray)
    return plain


def _describe(grid: Grid) -> str:
    return f"{grid} cells of {grid.cell} px, {grid.gap} px apart"
