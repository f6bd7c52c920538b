"""Massachusetts Buildings (`masa`): Boston and its surroundings from the air, at 1 m per pixel.

The data: 151 tiles of 1500 x 1500 px with building labels, published in three folders with `_labels` twins
(137 `train`, 4 `val`, 10 `test`), as TIFF or as PNG; `airloc data fetch masa` writes the same layout.

    train/22678915_15.tiff      train_labels/22678915_15.tif

A folder with `windows.csv`, `images/` and `masks/` (see `airloc.areas.folder`) holds windows that are cut already; the
index gives their ground size, split and mask.

Terms: imagery by MassGIS, public domain; the dataset is free to use with citation.

Citation: V. Mnih, "Machine Learning for Aerial Image Labeling", PhD thesis, University of Toronto, 2013.

As in the paper, an area of M x N cells is a piece of 100 M x 100 N px, and pieces with 100 or more pure white pixels
(no imagery) are dropped. The paper does not say whether a white corner costs a whole tile or only its piece. Its 1188
areas are 132 tiles of 9 pieces, which would fit whole tiles. But the authors' published preparation script checks
pieces, and dropping whole images would leave 36 of Dubai's 270 pieces, far below the paper's 196. So pieces are dropped
here, and `airloc data list` shows the difference from the paper.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import quote

from airloc.areas.area import (
    MAX_WHITE,
    corners,
    image_size,
    list_images,
    paper_size,
    piece_name,
    read_image,
    white_pixels,
)
from airloc.areas.dataset import Dataset
from airloc.areas.download import Downloaded, Progress, Timeouts, fetch_files, list_links
from airloc.areas.folder import INDEX, scan_folder
from airloc.areas.records import SPLITS, ImageRecord
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.seeding import stream

MIRROR = "https://www.cs.toronto.edu/~vmnih/data/mass_buildings"
"""The author's site. It publishes no checksums, so each file's checksum is pinned when it is first downloaded."""

PAGES = {
    "train/sat": "train",
    "train/map": "train_labels",
    "valid/sat": "val",
    "valid/map": "val_labels",
    "test/sat": "test",
    "test/map": "test_labels",
}
"""Folders of the site, each with a page of links, and the folders that their files go to."""

SHARES = {"val": 0.15, "test": 0.15}
"""The paper's shares of areas; the rest (70 %) is for training."""


@dataclass(frozen=True)
class Masa(Dataset):
    """Areas of the Massachusetts Buildings dataset."""

    name = "masa"
    title = "Massachusetts"
    terms = "MassGIS imagery, public domain"
    expected: ClassVar[Mapping[str, int]] = {"train": 832, "val": 178, "test": 178}
    tiles: ClassVar[Mapping[str, int]] = {"train": 137, "val": 4, "test": 10}
    """Number of published tiles by folder."""

    root: Path | None = None
    """The folder with train, train_labels and so on, or with windows.csv. Default: $AIRLOC_DATA/masa."""
    scheme: Literal["paper", "spatial", "published"] = "paper"
    """How published tiles are split: 70/15/15 by area as in the paper, 70/15/15 with every tile in one split, or by the
    folders as published."""
    seed: int = 0
    """Random seed of the splits."""
    max_white: int = MAX_WHITE
    """Areas with this many pure white pixels or more are dropped."""

    @classmethod
    def detect(cls, path: Path) -> bool:
        """Return True for a folder with the published tiles."""
        return any((base / f"{name}_labels").is_dir() for base in _bases(path) for name in cls.tiles)

    def scan(self) -> list[ImageRecord]:
        """List the pieces of 5 x 5 areas (500 x 500 px), or the windows."""
        return self.scan_for(Grid())

    def scan_for(self, grid: Grid) -> list[ImageRecord]:
        """List the pieces of the size of a grid that have imagery, with their splits, or the windows."""
        if self._has_windows():
            return scan_folder(self.location)
        found = [piece for tile in self._scan_tiles() for piece in _pieces(tile, paper_size(grid), self.max_white)]
        if self.scheme == "paper":
            splits = split_by_area(len(found), self.seed)
        elif self.scheme == "spatial":
            splits = split_by_tile([piece.tile for piece in found], self.seed)
        else:
            splits = [piece.split for piece in found]
        return [replace(piece, split=split) for piece, split in zip(found, splits, strict=True)]

    def count_areas(self) -> dict[str, int]:
        """Return the number of 5 x 5 areas by split."""
        if self._has_windows():
            return super().count_areas()
        found = Counter(record.split for record in self.scan())
        return {split: found[split] for split in self.expected}

    def state(self) -> str:
        """Return `windows` or `published layout`."""
        return "windows" if self._has_windows() else "published layout"

    def remark(self) -> str:
        """Return the number of building masks of windows."""
        if not self._has_windows():
            return ""
        return f"{sum(record.mask is not None for record in self.scan())} with building masks"

    def download(
        self, *, mirror: str = "", timeouts: Timeouts | None = None, progress: Progress | None = None
    ) -> Downloaded:
        """Download the tiles, or what is still missing of them, from a mirror or from the author's site."""
        root, site, timeouts = self.location, (mirror or MIRROR).rstrip("/"), timeouts or Timeouts()
        urls = {
            f"{folder}/{name}": f"{site}/{page}/{quote(name)}"
            for page, folder in PAGES.items()
            for name in list_links(f"{site}/{page}/index.html", timeouts)
        }
        return fetch_files(root, urls, timeouts=timeouts, progress=progress)

    def _has_windows(self) -> bool:
        return (self.location / INDEX).is_file()

    def _scan_tiles(self) -> list[ImageRecord]:
        """List all tiles with their labels, in a fixed order; the split is the published folder."""
        root = self.require_location()
        for base in _bases(root):
            folders = [base / name for name in self.tiles if (base / name).is_dir()]
            if folders:
                return [_tile(path) for folder in folders for path in list_images(folder)]
        raise AirlocError(
            f"The folder {root} has neither {INDEX} nor the folders {', '.join(self.tiles)}",
            f"Run `airloc data fetch masa --root {root}`",
        )


def _bases(root: Path) -> tuple[Path, Path, Path]:
    """Return the folders that may hold train, val and test: mirrors have them below `tiff` or `png`."""
    return root, root / "tiff", root / "png"


def _tile(path: Path) -> ImageRecord:
    """Return the record of a tile; its labels have the same stem in the `_labels` twin of its folder."""
    twin = path.parent.with_name(path.parent.name + "_labels")
    labels = sorted(twin.glob(f"{path.stem}.*"))
    mask = labels[0] if labels else None
    return ImageRecord(path.name, path, mask, metres_per_pixel=1.0, tile=path.stem, split=path.parent.name)


def _pieces(tile: ImageRecord, size: tuple[int, int], max_white: int) -> list[ImageRecord]:
    """Cut a tile into pieces of a size (height, width); pieces with `max_white` white pixels or more are dropped."""
    inside = corners(image_size(tile.path), size)
    if not inside:
        return []
    image = read_image(tile.path)
    return [
        replace(tile, name=piece_name(tile.name, (top, left)), corner=(top, left), size=size)
        for top, left in inside
        if white_pixels(image[top : top + size[0], left : left + size[1]]) < max_white
    ]


def split_sizes(count: int) -> dict[str, int]:
    """Return how many of `count` areas each split holds.

    >>> split_sizes(1188)
    {'train': 832, 'val': 178, 'test': 178}
    """
    val, test = (round(share * count) for share in SHARES.values())
    return {"train": count - val - test, "val": val, "test": test}


def split_by_area(count: int, seed: int) -> list[str]:
    """Draw the split of each of `count` areas, in exactly the sizes of `split_sizes`.

    Neighbours cut from one tile fall into different splits, as in the paper; see `split_by_tile` for the alternative.
    """
    sizes = split_sizes(count)
    labels = [name for name in SPLITS for _ in range(sizes[name])]
    order = stream(seed, "split by area").permutation(count)
    split = [""] * count
    for label, area in zip(labels, order.tolist(), strict=True):
        split[area] = label
    return split


def split_by_tile(tiles: Sequence[str], seed: int) -> list[str]:
    """Draw the split of each area, given its tile, so that all areas of a tile share one split.

    Tiles, the largest first and in random order among equals, go one by one to the split that lacks most areas, so that
    no split exceeds its size by a whole tile.
    """
    sizes = Counter(tiles)
    order = stream(seed, "split by tile").permutation(sorted(sizes))
    lacking = split_sizes(len(tiles))
    split_of: dict[str, str] = {}
    for tile in sorted(order.tolist(), key=lambda tile: -sizes[tile]):
        split_of[tile] = max(SPLITS, key=lambda name: lacking[name])
        lacking[split_of[tile]] -= sizes[tile]
    return [split_of[tile] for tile in tiles]
