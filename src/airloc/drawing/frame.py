"""Where an area, its cells and the margin around it lie in a picture.

Legend: Pixels: uint8 RGB (H, W, 3); a frame's picture has `Frame.size` pixels.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from airloc.drawing.canvas import Pixels, Point, require_pixels
from airloc.drawing.palette import MARGIN
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid


@dataclass(frozen=True, slots=True)
class Frame:
    """A grid enlarged by `scale` with whole cells of margin on each side."""

    grid: Grid
    scale: int
    top: int = 0
    right: int = 0
    bottom: int = 0
    left: int = 0

    @classmethod
    def around(cls, grid: Grid, cells: Iterable[Cell], scale: int, margin: int | None = None) -> "Frame":
        """Make the frame that holds the grid and all cells.

        Args:
            grid: The grid.
            cells: Cells to be shown, also outside the grid.
            scale: Pixels of the picture for one of the grid.
            margin: Cells of margin on every side; by default as many as the cells need on each side, at most the
                grid's longer side. Cells beyond the margin are drawn on its rim.
        """
        if scale < 1 or (margin is not None and margin < 0):
            raise AirlocError(
                f"A scale of {scale} with a margin of {margin} cannot be drawn", "Give 1 or more, and 0 or more"
            )
        if margin is not None:
            return cls(grid, scale, margin, margin, margin, margin)
        rows, cols = [0], [0]
        for row, col in cells:
            rows.append(row)
            cols.append(col)
        over = -min(rows), max(cols) - grid.cols + 1, max(rows) - grid.rows + 1, -min(cols)
        limit = max(grid.shape)
        top, right, bottom, left = (min(max(0, side), limit) for side in over)
        return cls(grid, scale, top, right, bottom, left)

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the picture."""
        height, width = self.grid.size
        pitch = self.grid.pitch
        return (
            self.scale * (height + pitch * (self.top + self.bottom)),
            self.scale * (width + pitch * (self.left + self.right)),
        )

    @property
    def cell(self) -> int:
        """Side of a cell in the picture."""
        return self.scale * self.grid.cell

    def clamp(self, cell: Cell) -> Cell:
        """The cell itself, or the nearest one inside the frame."""
        row = min(max(cell[0], -self.top), self.grid.rows - 1 + self.bottom)
        col = min(max(cell[1], -self.left), self.grid.cols - 1 + self.right)
        return row, col

    def box(self, cell: Cell) -> tuple[int, int, int, int]:
        """Box (left, top, right, bottom) of a cell in the picture."""
        pitch, (row, col) = self.grid.pitch, self.clamp(cell)
        left, top = self.scale * pitch * (self.left + col), self.scale * pitch * (self.top + row)
        return left, top, left + self.cell, top + self.cell

    def centre(self, cell: Cell) -> Point:
        """Centre (x, y) of a cell in the picture."""
        left, top, right, bottom = self.box(cell)
        return (left + right) / 2, (top + bottom) / 2

    def part(self, cell: Cell) -> tuple[slice, slice]:
        """The cell's pixels, as an index into the picture."""
        left, top, right, bottom = self.box(cell)
        return slice(top, bottom), slice(left, right)

    @property
    def area(self) -> tuple[slice, slice]:
        """The area's pixels, as an index into the picture."""
        height, width = (self.scale * side for side in self.grid.size)
        top, left = (self.scale * self.grid.pitch * cells for cells in (self.top, self.left))
        return slice(top, top + height), slice(left, left + width)

    def backdrop(self, image: Pixels) -> Pixels:
        """The area's image, resampled into the frame, with the margin in grey."""
        picture = np.empty((*self.size, 3), dtype=np.uint8)
        picture[:] = MARGIN
        picture[self.area] = fitted(image, self.grid, self.scale)
        return picture


def fitted(image: Pixels, grid: Grid, scale: int) -> Pixels:
    """Resample an area's image to `scale` times the grid's size; its shape must be the grid's, give or take a pixel.

    Raises:
        AirlocError: When the image is no RGB picture or has another aspect than the grid.
    """
    height, width = require_pixels(image, "area").shape[:2]
    rows, cols = grid.size
    if abs(height * cols - width * rows) > max(rows, cols):
        raise AirlocError(
            f"The area is {width} x {height} px, which is not the shape of a {grid} grid ({cols} x {rows} px)",
            "Fit the area to the grid first",
        )
    size = scale * cols, scale * rows
    return np.array(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS))
