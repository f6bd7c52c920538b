"""Antialiased shapes and text over an image, and the place of a grid's cells in a picture.

Pillow draws lines and discs with hard edges. A `Canvas` is therefore drawn `OVERSAMPLE` times larger and averaged down.
Text uses the font that comes with Pillow, so that pictures are the same on every machine.

Legend: Pixels: uint8 RGB (H, W, 3). Coordinates are (x, y) in pixels of the final picture and may be fractions.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from airloc.drawing.palette import MARGIN, Colour
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

Pixels: TypeAlias = npt.NDArray[np.uint8]
Point: TypeAlias = tuple[float, float]

OVERSAMPLE = 3


def require_pixels(image: Pixels, what: str = "picture") -> Pixels:
    """Return the image if it is a non-empty uint8 RGB array; else raise an error that names it as `what`."""
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
        raise AirlocError(
            f"The {what} has shape {image.shape} and type {image.dtype}",
            "Pass a uint8 array of shape (height, width, 3)",
        )
    return image


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font that comes with Pillow at a size in pixels."""
    return cast("ImageFont.FreeTypeFont", ImageFont.load_default(size))


def text_width(text: str, size: float) -> float:
    """Return the width of one line of text in pixels."""
    return font(100).getlength(text) * size / 100


def fit_text(text: str, size: float, width: float) -> str:
    """Put a text on one line and cut it with an ellipsis to at most `width` pixels.

    >>> fit_text("no longer than this", 10, 200), fit_text("a name far too long", 10, 50)
    ('no longer than this', 'a name fa…')
    """
    line = " ".join(text.split())
    if text_width(line, size) <= width:
        return line
    while line and text_width(line + "…", size) > width:
        line = line[:-1]
    return line.rstrip() + "…"


class Canvas:
    """A transparent layer for shapes and text, of a size in pixels, that `over` puts on an image."""

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._sheet = Image.new("RGBA", (width * OVERSAMPLE, height * OVERSAMPLE))
        self._draw = ImageDraw.Draw(self._sheet)

    def line(
        self, points: Sequence[Point], colour: Colour, width: float, *, dash: float | None = None, alpha: int = 255
    ) -> None:
        """Draw a line through points, with round ends. `dash` is the length of its dashes and gaps."""
        pieces = [points] if dash is None else dashes(points, dash)
        thick = max(1, round(width * OVERSAMPLE))
        for piece in pieces:
            large = [(x * OVERSAMPLE, y * OVERSAMPLE) for x, y in piece]
            self._draw.line([xy for point in large for xy in point], fill=(*colour, alpha), width=thick)
            for x, y in large:
                self._disc(x, y, thick / 2, (*colour, alpha))

    def disc(self, at: Point, radius: float, fill: Colour, ring: Colour | None = None, ring_width: float = 0) -> None:
        """Draw a filled circle. The radius includes the ring."""
        x, y, large = at[0] * OVERSAMPLE, at[1] * OVERSAMPLE, radius * OVERSAMPLE
        if ring is not None:
            self._disc(x, y, large, (*ring, 255))
        self._disc(x, y, large - ring_width * OVERSAMPLE, (*fill, 255))

    def box(
        self,
        box: tuple[float, float, float, float],
        *,
        fill: Colour | None = None,
        outline: Colour | None = None,
        width: float = 0,
        alpha: int = 255,
        dash: float | None = None,
    ) -> None:
        """Draw a rectangle (left, top, right, bottom). The outline lies inside it."""
        left, top, right, bottom = box
        if fill is not None:
            large = [round(side * OVERSAMPLE) for side in box]
            self._draw.rectangle((large[0], large[1], large[2] - 1, large[3] - 1), fill=(*fill, alpha))
        if outline is not None:
            half = width / 2
            left, top, right, bottom = left + half, top + half, right - half, bottom - half
            corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
            self.line(corners, outline, width, dash=dash, alpha=alpha)

    def outline(
        self,
        box: tuple[float, float, float, float],
        colour: Colour,
        width: float,
        *,
        casing: Colour,
        inset: float,
        dash: float | None = None,
    ) -> None:
        """Outline a rectangle (left, top, right, bottom) on a casing that is `inset` pixels wider on both sides."""
        left, top, right, bottom = box
        self.box(box, outline=casing, width=width + 2 * inset)
        self.box((left + inset, top + inset, right - inset, bottom - inset), outline=colour, width=width, dash=dash)

    def text(self, at: Point, text: str, size: float, colour: Colour) -> None:
        """Write one line centred on a point."""
        face = font(max(1, round(size * OVERSAMPLE)))
        capital = -face.getbbox("H", anchor="ls")[1]
        place = at[0] * OVERSAMPLE, at[1] * OVERSAMPLE + capital / 2
        self._draw.text(place, text, font=face, fill=(*colour, 255), anchor="ms")

    def over(self, image: Pixels) -> Pixels:
        """Return an image of the canvas' size with the canvas on top."""
        below = Image.fromarray(image).convert("RGBA")
        below.alpha_composite(self._sheet.resize(self._size, Image.Resampling.BOX))
        return np.array(below.convert("RGB"))

    def _disc(self, x: float, y: float, radius: float, fill: tuple[int, int, int, int]) -> None:
        self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)


def dashes(points: Sequence[Point], length: float) -> list[list[Point]]:
    """Cut the line through points into dashes with gaps of the same length, also around corners."""
    pieces: list[list[Point]] = []
    walked = 0.0
    for (x0, y0), (x1, y1) in pairwise(points):
        side = math.hypot(x1 - x0, y1 - y0)
        first, last = math.floor(walked / (2 * length)), math.ceil((walked + side) / (2 * length))
        for period in range(first, last):
            start = max(0.0, 2 * length * period - walked)
            end = min(side, 2 * length * period + length - walked)
            if end > start:
                pieces.append([(x0 + (x1 - x0) * part / side, y0 + (y1 - y0) * part / side) for part in (start, end)])
        walked += side
    return pieces


@dataclass(frozen=True, slots=True)
class Frame:
    """The place of an area, its cells and a margin in a picture of `size` pixels."""

    grid: Grid
    scale: int
    """Pixels of the picture for one pixel of the grid."""
    top: int = 0
    """Cells of margin above the area; `right`, `bottom` and `left` are those on the other sides."""
    right: int = 0
    bottom: int = 0
    left: int = 0

    @classmethod
    def around(cls, grid: Grid, cells: Iterable[Cell], scale: int, margin: int | None = None) -> "Frame":
        """Return the frame that holds the grid and all cells, which may lie outside the grid.

        By default, each side has the margin that the cells need, but at most the longer side of the grid. Cells beyond
        the margin are drawn on its rim.

        Raises:
            AirlocError: If the scale is below 1 or the margin below 0.
        """
        if scale < 1 or (margin is not None and margin < 0):
            raise AirlocError(
                f"The scale is {scale} and the margin is {margin}", "Use a scale of 1 or more and a margin of 0 or more"
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
        """Height and width of the picture."""
        height, width = self.grid.size
        pitch = self.grid.pitch
        return (
            self.scale * (height + pitch * (self.top + self.bottom)),
            self.scale * (width + pitch * (self.left + self.right)),
        )

    @property
    def cell(self) -> int:
        """Side of a cell in pixels of the picture."""
        return self.scale * self.grid.cell

    def clamp(self, cell: Cell) -> Cell:
        """Return the cell itself, or the nearest one inside the frame."""
        row = min(max(cell[0], -self.top), self.grid.rows - 1 + self.bottom)
        col = min(max(cell[1], -self.left), self.grid.cols - 1 + self.right)
        return row, col

    def box(self, cell: Cell) -> tuple[int, int, int, int]:
        """Return the box (left, top, right, bottom) of a cell."""
        pitch, (row, col) = self.grid.pitch, self.clamp(cell)
        left, top = self.scale * pitch * (self.left + col), self.scale * pitch * (self.top + row)
        return left, top, left + self.cell, top + self.cell

    def centre(self, cell: Cell) -> Point:
        """Return the centre (x, y) of a cell."""
        left, top, right, bottom = self.box(cell)
        return (left + right) / 2, (top + bottom) / 2

    def at(self, place: Point) -> Point:
        """Return the point (x, y) of a fractional (row, col), which may lie outside the frame."""
        pitch, half = self.scale * self.grid.pitch, self.cell / 2
        return pitch * (self.left + place[1]) + half, pitch * (self.top + place[0]) + half

    def part(self, cell: Cell) -> tuple[slice, slice]:
        """Return the index of a cell's pixels in the picture."""
        left, top, right, bottom = self.box(cell)
        return slice(top, bottom), slice(left, right)

    @property
    def area(self) -> tuple[slice, slice]:
        """Index of the area's pixels in the picture."""
        height, width = (self.scale * side for side in self.grid.size)
        top, left = (self.scale * self.grid.pitch * cells for cells in (self.top, self.left))
        return slice(top, top + height), slice(left, left + width)

    def backdrop(self, image: Pixels) -> Pixels:
        """Return the area's image, resampled into the frame, with a grey margin."""
        picture = np.empty((*self.size, 3), dtype=np.uint8)
        picture[:] = MARGIN
        picture[self.area] = fit_to_grid(image, self.grid, self.scale)
        return picture


def fit_to_grid(image: Pixels, grid: Grid, scale: int) -> Pixels:
    """Return an area's image, resampled to `scale` times the size of the grid.

    Raises:
        AirlocError: If the image is not uint8 RGB, or if its aspect differs from the grid's by more than a pixel.
    """
    height, width = require_pixels(image, "area").shape[:2]
    rows, cols = grid.size
    if abs(height * cols - width * rows) > max(rows, cols):
        raise AirlocError(
            f"The area is {width} x {height} px, but a {grid} grid is {cols} x {rows} px",
            "Fit the area to the grid first",
        )
    size = scale * cols, scale * rows
    return np.array(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS))
