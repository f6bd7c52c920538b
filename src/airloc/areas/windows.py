"""The index file `windows.csv` that may accompany a folder of pictures: ground size, split and building mask.

    image,mask,side_m,split
    23129065_0_100.jpg,23129065_0_100.png,600,val

It lies beside the pictures or in the parent folder; the masks lie in `masks/` beside the index. Every column but
`image` may be absent or empty.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from airloc.errors import AirlocError

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
