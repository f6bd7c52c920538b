"""Antialiased drawing: shapes and text laid over a picture.

Everything is drawn `OVERSAMPLE` times too large on a transparent sheet and averaged down, because Pillow's own
lines and discs have hard edges. Text uses the font that comes with Pillow, so pictures are the same everywhere.

Legend: Pixels: uint8 RGB (H, W, 3). Coordinates are (x, y) in pixels of the final picture, fractions allowed.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from airloc.drawing.palette import Colour
from airloc.errors import AirlocError

Pixels: TypeAlias = npt.NDArray[np.uint8]
Point: TypeAlias = tuple[float, float]

OVERSAMPLE = 3


def require_pixels(image: Pixels, what: str = "picture") -> Pixels:
    """Give an image back when it is RGB bytes with content.

    Raises:
        AirlocError: When its shape or type is another.
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
        raise AirlocError(
            f"The {what} has shape {image.shape} and type {image.dtype}",
            "Give RGB bytes (uint8) of shape (height, width, 3)",
        )
    return image


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow, at a size in pixels."""
    return cast("ImageFont.FreeTypeFont", ImageFont.load_default(size))


def text_width(text: str, size: float) -> float:
    """Width of one line of text in pixels."""
    return font(100).getlength(text) * size / 100


def shorten(text: str, size: float, width: float) -> str:
    """Cut a text with an ellipsis so that it is at most `width` pixels wide, on one line.

    >>> shorten("no longer than this", 10, 200), shorten("a name far too long", 10, 50)
    ('no longer than this', 'a name fa…')
    """
    line = " ".join(text.split())
    if text_width(line, size) <= width:
        return line
    while line and text_width(line + "…", size) > width:
        line = line[:-1]
    return line.rstrip() + "…"


class Canvas:
    """A transparent sheet to draw on, laid over a picture at the end."""

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._sheet = Image.new("RGBA", (width * OVERSAMPLE, height * OVERSAMPLE))
        self._draw = ImageDraw.Draw(self._sheet)

    def line(
        self, points: Sequence[Point], colour: Colour, width: float, *, dash: float | None = None, alpha: int = 255
    ) -> None:
        """Draw a line through points with round ends; `dash` is the length of its dashes."""
        pieces = [points] if dash is None else dashes(points, dash)
        thick = max(1, round(width * OVERSAMPLE))
        for piece in pieces:
            large = [(x * OVERSAMPLE, y * OVERSAMPLE) for x, y in piece]
            self._draw.line([xy for point in large for xy in point], fill=(*colour, alpha), width=thick)
            for x, y in large:
                self._disc(x, y, thick / 2, (*colour, alpha))

    def disc(self, at: Point, radius: float, fill: Colour, ring: Colour | None = None, ring_width: float = 0) -> None:
        """Draw a filled circle of a radius that includes its ring."""
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
        """Draw a rectangle (left, top, right, bottom) whose outline lies inside it."""
        left, top, right, bottom = box
        if fill is not None:
            large = [round(side * OVERSAMPLE) for side in box]
            self._draw.rectangle((large[0], large[1], large[2] - 1, large[3] - 1), fill=(*fill, alpha))
        if outline is not None:
            half = width / 2
            left, top, right, bottom = left + half, top + half, right - half, bottom - half
            corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
            self.line(corners, outline, width, dash=dash, alpha=alpha)

    def text(self, at: Point, text: str, size: float, colour: Colour, *, halo: Colour | None = None) -> None:
        """Write one line centred on a point, by the height of its capitals; a halo keeps it legible anywhere."""
        face = font(max(1, round(size * OVERSAMPLE)))
        capital = -face.getbbox("H", anchor="ls")[1]
        place = at[0] * OVERSAMPLE, at[1] * OVERSAMPLE + capital / 2
        stroke = 0 if halo is None else max(1, round(size * OVERSAMPLE * 0.11))
        self._draw.text(
            place,
            text,
            font=face,
            fill=(*colour, 255),
            anchor="ms",
            stroke_width=stroke,
            stroke_fill=None if halo is None else (*halo, 255),
        )

    def over(self, picture: Pixels) -> Pixels:
        """Lay the sheet on a picture of its size."""
        below = Image.fromarray(picture).convert("RGBA")
        below.alpha_composite(self._sheet.resize(self._size, Image.Resampling.BOX))
        return np.array(below.convert("RGB"))

    def _disc(self, x: float, y: float, radius: float, fill: tuple[int, int, int, int]) -> None:
        self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)


def dashes(points: Sequence[Point], length: float) -> list[list[Point]]:
    """Cut the line through points into dashes with gaps of the same length, carried on around corners."""
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
