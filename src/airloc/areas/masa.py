"""Massachusetts Buildings (`masa`): Boston and its surroundings from the air, at 1 m a pixel.

The data: 151 tiles of 1500 x 1500 px with building labels, published in three folders with `_labels` twins
(137 `train`, 4 `val`, 10 `test`), as TIFF or as PNG; `airloc data fetch masa` writes the same layout.

    train/22678915_15.tiff      train_labels/22678915_15.tif

Terms: imagery by MassGIS, public domain; the dataset is free to use with citation.

Citation: V. Mnih, "Machine Learning for Aerial Image Labeling", PhD thesis, University of Toronto, 2013.

As in the paper, an area of M x N cells is a piece of 100 M x 100 N px, and pieces with 100 or more pure white
pixels (no imagery) are dropped. The paper does not say whether a white corner costs a whole tile or only its
piece. Its 1188 areas are 132 tiles of 9, which would fit whole tiles; but the authors' published preparation
script looks at pieces, and dropping whole pictures would leave 36 of Dubai's 270 pieces, far below the paper's 196.
So pieces are dropped here, and `count` lets anybody compare with the paper.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from airloc.areas import dataset as splits
from airloc.areas.area import MAX_WHITE, SearchArea, corners, cut_piece, fit, paper_size, white_pixels
from airloc.areas.dataset import dataset_root
from airloc.areas.folder import INDEX
from airloc.areas.images import list_pictures, picture_size, read_mask, read_picture
from airloc.errors import AirlocError
from airloc.grid import Grid

TILES = {"train": 137, "val": 4, "test": 10}
"""Published tiles by folder."""

PAPER = {"train": 832, "val": 178, "test": 178}
"""Areas of 5 x 5 cells in the paper."""

METRES_PER_PIXEL = 1.0


@dataclass(frozen=True)
class Masa:
    """Areas cut from the Massachusetts Buildings tiles."""

    root: Path | None = None
    """The folder with train, train_labels and so on; $AIRLOC_DATA/masa if not given."""
    split: Literal["train", "val", "test", "all"] = "all"
    """The areas to give."""
    scheme: Literal["paper", "spatial", "published"] = "paper"
    """How areas are split: 70/15/15 by area as in the paper, 70/15/15 with every tile in one split, or by the
    folders as published."""
    seed: int = 0
    """Draws the splits."""
    max_white: int = MAX_WHITE
    """Areas with this many pure white pixels or more are dropped."""

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Read the areas one by one, fitted to the grid."""
        for path, pieces in groupby(self.pieces(grid), key=lambda piece: piece.path):
            tile = _read_tile(path)
            for piece in pieces:
                yield fit(replace(cut_piece(tile, piece.corner, paper_size(grid)), split=piece.split), grid)

    def pieces(self, grid: Grid) -> list["Piece"]:
        """Survey the tiles: the pieces that are not white, with their splits."""
        found = [
            Piece(path, corner, folder)
            for folder, path in tiles(dataset_root(self.root, "masa"))
            for corner in _clean_corners(path, paper_size(grid), self.max_white)
        ]
        if self.scheme == "paper":
            drawn = splits.by_area(len(found), self.seed)
        elif self.scheme == "spatial":
            drawn = splits.by_tile([piece.path.stem for piece in found], self.seed)
        else:
            drawn = [piece.split for piece in found]
        labelled = [piece._replace(split=split) for piece, split in zip(found, drawn, strict=True)]
        return [piece for piece in labelled if self.split in ("all", piece.split)]


class Piece(NamedTuple):
    """Where an area lies."""

    path: Path
    corner: tuple[int, int]
    split: str


def tiles(root: Path) -> list[tuple[str, Path]]:
    """Give all tiles as (published folder, file), in a fixed order."""
    for base in (root, root / "tiff", root / "png"):
        folders = [base / name for name in TILES if (base / name).is_dir()]
        if folders:
            return [(folder.name, path) for folder in folders for path in list_pictures(folder)]
    if not root.is_dir():
        raise AirlocError(f"There is no folder {root}", f"Run `airloc data fetch masa --root {root}`")
    if (root / INDEX).is_file():
        raise AirlocError(
            f"The folder {root} holds windows of Massachusetts, not the published tiles",
            f"Read them with the source folder, as in `airloc data show folder --path {root / 'images'}`",
        )
    raise AirlocError(
        f"The folder {root} has none of the folders {', '.join(TILES)}", f"Run `airloc data fetch masa --root {root}`"
    )


def count(root: Path, grid: Grid) -> dict[str, int]:
    """Count the areas by the paper's splits, for comparison with `PAPER`."""
    found = Counter(piece.split for piece in Masa(root).pieces(grid))
    return {split: found[split] for split in PAPER}


def _read_tile(path: Path) -> SearchArea:
    """Read a tile with its labels, where it has them: the file of the same stem in the `_labels` twin."""
    image = read_picture(path)
    twin = path.parent.with_name(path.parent.name + "_labels")
    labels = sorted(twin.glob(f"{path.stem}.*"))
    ground = image.shape[0] * METRES_PER_PIXEL, image.shape[1] * METRES_PER_PIXEL
    return SearchArea(path.name, image, read_mask(labels[0]) if labels else None, ground, tile=path.stem)


def _clean_corners(path: Path, size: tuple[int, int], max_white: int) -> list[tuple[int, int]]:
    """Corners of the pieces that have fewer white pixels."""
    inside = corners(picture_size(path), size)
    if not inside:
        return []
    image = read_picture(path)
    return [
        (top, left)
        for top, left in inside
        if white_pixels(image[top : top + size[0], left : left + size[1]]) < max_white
    ]
