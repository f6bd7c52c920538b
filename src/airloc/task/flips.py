"""Flips of areas as augmentation: the image and its episodes turned over together.

An orientation is a number from 0 to 3: bit 0 flips left to right, bit 1 flips top to bottom.
"""

import numpy as np
import numpy.typing as npt

from airloc.areas.area import Pixels
from airloc.grid import MOVES, Grid

ORIENTATIONS = 4


def flip_image(image: Pixels, orientation: int) -> Pixels:
    """Flip an image (or a patch), (H, W, 3)."""
    return image[:: -1 if orientation & 2 else 1, :: -1 if orientation & 1 else 1]


def flip_cells(cells: npt.NDArray[np.int64], orientation: int, grid: Grid) -> npt.NDArray[np.int64]:
    """Give the cells (..., 2) where the content of `cells` lies after the flip; its own inverse."""
    last = np.array([grid.rows - 1, grid.cols - 1])
    return np.where(_flipped_axes(orientation), last - cells, cells)


def flip_moves(orientation: int) -> npt.NDArray[np.int64]:
    """Give the number of each of the eight moves after the flip, (8,)."""
    flipped = np.where(_flipped_axes(orientation), -MOVES, MOVES)
    numbers: npt.NDArray[np.int64] = (flipped[:, None] == MOVES[None]).all(axis=2).argmax(axis=1)
    return numbers


def _flipped_axes(orientation: int) -> npt.NDArray[np.bool_]:
    """Which of (rows, columns) the flip reverses."""
    return np.array([bool(orientation & 2), bool(orientation & 1)])
