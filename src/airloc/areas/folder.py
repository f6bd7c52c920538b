"""The index file `windows.csv` that may accompany a folder of pictures: ground size, split and building mask.

    image,mask,side_m,split
    23129065_0_100.jpg,23129065_0_100.png,600,val

It lies beside the pictures or in the parent folder; the masks lie in `masks/` beside the index. Every column but
`image` may be absent or empty.
"""

import csv
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from airloc.areas.area import SearchArea, crop_ground, cut_pieces, fit, piece_size, tile_of
from airloc.areas.images import list_pictures, pick, read_mask, read_picture
from airloc.errors import AirlocError
from airloc.grid import Grid

INDEX = "windows.csv"
MASKS = "masks"


@dataclass(frozen=True, slots=True)
class Window:
    """What the index says about one picture."""

    mask: Path | None = None
    """File of the building mask."""
    side_m: float | None = None
    """Width on the ground in metres."""
    split: str = ""
    """`train`, `val` or `test`."""


def find_index(folder: Path) -> Path | None:
    """Find the index of a folder of pictures: in it, or in its parent."""
    places = (folder / INDEX, folder.absolute().parent / INDEX)
    return next((place for place in places if place.is_file()), None)


def read_windows(folder: Path) -> dict[str, Window]:
    """Read what the index says of the pictures of a folder, by file name; nothing where there is no index."""
    index = find_index(folder)
    if index is None:
        return {}
    try:
        with index.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if "image" not in (reader.fieldnames or ()):
                raise AirlocError(
                    f"The index {index} has no column `image`", "Give it the header image,mask,side_m,split"
                )
            return {row["image"]: _window(row, index, reader.line_num) for row in reader}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AirlocError(f"Cannot read the index {index}: {error}", "Mend the file, or take it away") from error


def _window(row: dict[str, str | None], index: Path, line: int) -> Window:
    """Read one row; short rows have None for what they lack."""
    mask, side, split = (row.get(column) or "" for column in ("mask", "side_m", "split"))
    try:
        side_m = float(side) if side else None
    except ValueError:
        side_m = -1.0
    if not row["image"] or (side_m is not None and not 0 < side_m < float("inf")):
        raise AirlocError(
            f"Line {line} of {index} is broken",
            "Write image,mask,side_m,split with a name and a positive number of metres",
        )
    return Window(index.parent / MASKS / mask if mask else None, side_m, split)


# ---------- Any folder of pictures: each one is an area, or is cut into areas.
# ~
# ~ JPEG, PNG, TIFF, WebP and BMP are read; grey, RGBA, palette, CMYK and 16-bit pictures are converted. The folder is
# ~ not searched recursively, and files that are no pictures are ignored. An index file (`airloc.areas.folder`) may
# ~ tell ground sizes, splits and building masks.

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Folder:
    """A folder of pictures."""

    path: Path
    """The folder; its subfolders are not read."""
    cut: int | None = None
    """Cut each picture into pieces, edge to edge: squares of this many pixels, or for a grid that is not square
    pieces of its aspect with a longer side of this many pixels. Without it a picture is one area."""
    split: str = ""
    """Only the areas that the index windows.csv puts into this split (train, val or test)."""
    cell_metres: float | None = None
    """Crop the centre so that each cell stands for this many metres: with 100, 500 x 500 m for a 5 x 5 grid.
    Areas that are smaller are left out; ground sizes come from the index windows.csv."""
    only: tuple[str, ...] | None = None
    """Only these pictures, by file name; the others are not read."""

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Read the areas one by one, fitted to the grid."""
        windows = read_windows(self.path)
        given, left_out = 0, 0
        for path in self._pictures(windows):
            for area in self._cut(read_area(path, windows.get(path.name)), grid):
                if area is None:
                    left_out += 1
                else:
                    given += 1
                    yield fit(area, grid)
        self._report(given, left_out, grid)

    def _pictures(self, windows: dict[str, Window]) -> list[Path]:
        """The pictures that are asked for."""
        found = pick(list_pictures(self.path), self.only, self.path)
        if not self.split:
            return found
        inside = [path for path in found if windows.get(path.name, Window()).split == self.split]
        if not inside:
            raise AirlocError(
                f"No picture of {self.path} is in the split {self.split!r}",
                f"Ask for another split, or name the splits in {INDEX} beside the pictures",
            )
        return inside

    def _cut(self, area: SearchArea, grid: Grid) -> Iterator[SearchArea | None]:
        """The pieces of one picture; None for each that is too small."""
        if self.cut is not None and self.cut < 1:
            raise AirlocError(f"Cannot cut pieces of {self.cut} px", "Give a cut of 1 px or more")
        pieces = [area] if self.cut is None else cut_pieces(area, piece_size(self.cut, grid))
        count = 0
        for count, piece in enumerate(pieces, start=1):  # noqa: B007
            if self.cell_metres is None:
                yield piece
            else:
                yield crop_ground(piece, (grid.rows * self.cell_metres, grid.cols * self.cell_metres))
        if count == 0:
            yield None

    def _report(self, given: int, left_out: int, grid: Grid) -> None:
        """Say what was left out; an empty result is an error."""
        wanted = []
        if self.cut is not None:
            wanted.append("{1} x {0} px".format(*piece_size(self.cut, grid)))
        if self.cell_metres is not None:
            wanted.append(f"{grid.cols * self.cell_metres:g} x {grid.rows * self.cell_metres:g} m")
        needed = " and ".join(wanted)
        if given == 0:
            raise AirlocError(
                f"No picture of {self.path} is known to have the {needed} asked for",
                f"Ask for less, or give the ground size (side_m) in {INDEX} beside the pictures",
            )
        if left_out:
            log.warning("%d of %s left out: not known to have %s", left_out, self.path, needed)


def read_area(path: Path, window: Window | None = None) -> SearchArea:
    """Read one picture as an area at its own size, with what the index says about it."""
    # Only an index says that the pictures are windows of tiles; other names may end in two numbers by chance.
    tile = "" if window is None else tile_of(path.name)
    window = window or Window()
    area = SearchArea(path.name, read_picture(path), tile=tile, split=window.split)
    if window.side_m is not None:
        height, width = area.image.shape[:2]
        area = replace(area, ground_m=(window.side_m * height / width, window.side_m))
    return area if window.mask is None else replace(area, mask=read_mask(window.mask))
