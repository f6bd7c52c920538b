"""A search area: one aerial image, as an array, with what is known about it.

Legend: H, W: height and width in pixels; images are uint8 RGB (H, W, 3), masks are bool (H, W).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.errors import AirlocError
from airloc.grid import Grid

Pixels: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SearchArea:
    """One aerial image over which a search runs."""

    name: str
    """What the area is called; for files, the file name."""
    image: Pixels
    """RGB, (H, W, 3)."""
    mask: Mask | None = None
    """True on buildings, (H, W); None where nobody marked them."""
    ground_m: tuple[float, float] | None = None
    """Height and width on the ground in metres, where known."""
    tile: str = ""
    """The source image it was cut from; areas of one tile are not independent. Empty: its own tile."""
    split: str = ""
    """`train`, `val` or `test`; empty where the data has no splits."""

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != np.uint8:
            raise AirlocError(
                f"Area {self.name!r} has an image of shape {self.image.shape} and type {self.image.dtype}",
                "Give RGB bytes of shape (height, width, 3)",
            )
        if self.mask is not None and self.mask.shape != self.image.shape[:2]:
            height, width = self.image.shape[:2]
            raise AirlocError(
                f"The mask of area {self.name!r} is {self.mask.shape[1]} x {self.mask.shape[0]} px, "
                f"its image {width} x {height} px",
                "Give a mask of the size of the image, or none",
            )

    @property
    def source(self) -> str:
        """The tile, or the area itself where it has none: what a bootstrap resamples."""
        return self.tile or self.name


def fit(area: SearchArea, grid: Grid) -> SearchArea:
    """Crop an area at its centre to the grid's aspect and resample it (antialiased) to the grid's size."""
    height, width = area.image.shape[:2]
    if min(height, width) < grid.cell:
        raise AirlocError(
            f"Area {area.name!r} is {width} x {height} px, smaller than one cell of {grid.cell} px",
            "Use a larger picture, or smaller cells",
        )
    to_height, to_width = grid.size
    if (height, width) == (to_height, to_width):
        return area
    scale = min(height / to_height, width / to_width)
    crop_height, crop_width = scale * to_height, scale * to_width
    top, left = max(0.0, (height - crop_height) / 2), max(0.0, (width - crop_width) / 2)
    box = (left, top, min(float(width), left + crop_width), min(float(height), top + crop_height))
    ground = area.ground_m and (area.ground_m[0] * crop_height / height, area.ground_m[1] * crop_width / width)
    return replace(
        area,
        image=_resample(area.image, grid.size, box),
        mask=None if area.mask is None else _resample(area.mask.astype(np.uint8) * 255, grid.size, box) >= 128,
        ground_m=ground,
    )


def _resample(pixels: Pixels, size: tuple[int, int], box: tuple[float, float, float, float]) -> Pixels:
    """Resample the box (left, top, right, bottom) of an image to `size` (height, width)."""
    picture = Image.fromarray(pixels).resize(size[::-1], Image.Resampling.LANCZOS, box=box)
    return np.asarray(picture)


# ---------- Cutting large pictures into search areas, and telling which pieces came from which tile.
# ~
# ~ The paper's cells are about 100 x 100 m, which is 100 x 100 px of its sources: a 5 x 5 area is cut from
# ~ 500 x 500 px, a 7 x 7 one from 700 x 700 px. Pieces lie edge to edge from the top left corner; what is left over
# ~ at the right and at the bottom is not used.
# ~
# ~ Legend: a size is (height, width) in pixels; a corner is (top, left) in pixels.

CELL_PIXELS = 100
"""Source pixels under one cell in the paper's areas."""

MAX_WHITE = 100
"""Pieces with this many pure white pixels or more are dropped: white is where the sources have no imagery."""


def paper_size(grid: Grid) -> tuple[int, int]:
    """Size of the piece that the paper cuts for a grid.

    >>> paper_size(Grid(5, 5)), paper_size(Grid(7, 7))
    ((500, 500), (700, 700))
    """
    return grid.rows * CELL_PIXELS, grid.cols * CELL_PIXELS


def piece_size(cut: int, grid: Grid) -> tuple[int, int]:
    """Size of a piece whose longer side is `cut` and whose aspect is the grid's.

    >>> piece_size(500, Grid(5, 5)), piece_size(400, Grid(2, 4))
    ((500, 500), (196, 400))
    """
    height, width = grid.size
    longer = max(height, width)
    return max(1, round(cut * height / longer)), max(1, round(cut * width / longer))


def corners(picture: tuple[int, int], piece: tuple[int, int]) -> list[tuple[int, int]]:
    """Corners of the pieces that fit into a picture, row by row.

    >>> corners((1100, 1000), (500, 500))
    [(0, 0), (0, 500), (500, 0), (500, 500)]
    """
    tops = range(0, picture[0] - piece[0] + 1, piece[0])
    lefts = range(0, picture[1] - piece[1] + 1, piece[1])
    return [(top, left) for top in tops for left in lefts]


def cut_piece(area: SearchArea, corner: tuple[int, int], size: tuple[int, int]) -> SearchArea:
    """Cut one piece out of an area; its name gains the corner, its tile is the area's or the area itself."""
    rows, cols = slice(corner[0], corner[0] + size[0]), slice(corner[1], corner[1] + size[1])
    height, width = area.image.shape[:2]
    return replace(
        area,
        name=piece_name(area.name, corner),
        image=np.ascontiguousarray(area.image[rows, cols]),
        mask=None if area.mask is None else np.ascontiguousarray(area.mask[rows, cols]),
        ground_m=area.ground_m and (area.ground_m[0] * size[0] / height, area.ground_m[1] * size[1] / width),
        tile=area.source,
    )


def cut_pieces(area: SearchArea, size: tuple[int, int]) -> Iterator[SearchArea]:
    """Cut an area into all pieces of a size that fit into it."""
    height, width = area.image.shape[:2]
    return (cut_piece(area, corner, size) for corner in corners((height, width), size))


def crop_ground(area: SearchArea, metres: tuple[float, float]) -> SearchArea | None:
    """Crop the centre that covers (height, width) metres; None where the area is smaller or of unknown size."""
    if area.ground_m is None or area.ground_m[0] < metres[0] or area.ground_m[1] < metres[1]:
        return None
    height, width = area.image.shape[:2]
    size = round(height * metres[0] / area.ground_m[0]), round(width * metres[1] / area.ground_m[1])
    top, left = (height - size[0]) // 2, (width - size[1]) // 2
    rows, cols = slice(top, top + size[0]), slice(left, left + size[1])
    return replace(
        area,
        image=np.ascontiguousarray(area.image[rows, cols]),
        mask=None if area.mask is None else np.ascontiguousarray(area.mask[rows, cols]),
        ground_m=metres,
    )


def white_pixels(image: Pixels) -> int:
    """Count the pure white pixels of an image."""
    return int(np.count_nonzero(image[..., 0] & image[..., 1] & image[..., 2] == 255))


def piece_name(name: str, corner: tuple[int, int]) -> str:
    """Name of the piece at a corner of a picture.

    >>> piece_name("town.tiff", (0, 500))
    'town_0_500.tiff'
    """
    path = PurePath(name)
    return f"{path.stem}_{corner[0]}_{corner[1]}{path.suffix}"


def tile_of(name: str) -> str:
    """The tile that a piece's name tells of: what stands before two final integers; empty where there are none.

    >>> tile_of("23129065_0_100.jpg"), tile_of("town.jpg")
    ('23129065', '')
    """
    match = re.fullmatch(r"(.+)_\d+_\d+", PurePath(name).stem)
    return match[1] if match else ""
