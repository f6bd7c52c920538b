"""Many pictures on one page, and the grid laid over an area.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from airloc.drawing.canvas import Canvas, Pixels, font, require_pixels, shorten
from airloc.drawing.frame import fitted
from airloc.drawing.palette import PAPER, SOFT, TEXT
from airloc.errors import AirlocError
from airloc.grid import Grid


def contact_sheet(
    images: Sequence[Pixels], captions: Sequence[str], *, columns: int, tile: int, title: str | None = None
) -> Pixels:
    """Lay pictures out in rows on white, each with its caption below.

    Args:
        images: Pictures of any size, their longer sides made as long as a tile; a row is as high as its highest.
        captions: One each; cut with an ellipsis where too long.
        columns: Pictures in a row.
        tile: Side of a tile in pixels, at least 16.
        title: A headline, where wanted.

    Returns:
        The sheet.
    """
    if not images or len(images) != len(captions) or columns < 1 or tile < 16:
        raise AirlocError(
            f"{len(images)} pictures with {len(captions)} captions in {columns} columns of {tile} px make no sheet",
            "Give at least one picture, one caption each, one column or more and tiles of 16 px or more",
        )
    columns = min(columns, len(images))
    size = max(9, min(16, tile // 13))
    gap, caption_height = max(6, tile // 16), round(1.9 * size)
    tiles = [_fitted_into(image, tile) for image in images]
    rows = [range(first, min(first + columns, len(tiles))) for first in range(0, len(tiles), columns)]
    tall = [max(tiles[number].height for number in row) for row in rows]
    top = (round(3.4 * size) if title else 0) + gap
    width = columns * (tile + gap) + gap
    sheet = Image.new("RGB", (width, top + sum(tall) + len(rows) * (caption_height + gap)), PAPER)
    pen = ImageDraw.Draw(sheet)
    if title:
        large = round(1.5 * size)
        pen.text((gap, top / 2), shorten(title, large, width - 2 * gap), font=font(large), fill=TEXT, anchor="lm")
    for row, height in zip(rows, tall, strict=True):
        for number in row:
            left = gap + (number - row.start) * (tile + gap)
            thumbnail = tiles[number]
            sheet.paste(thumbnail, (left + (tile - thumbnail.width) // 2, top + height - thumbnail.height))
            place = left + tile / 2, top + height + 0.55 * caption_height
            pen.text(place, shorten(captions[number], size, tile), font=font(size), fill=SOFT, anchor="mm")
        top += height + caption_height + gap
    return np.array(sheet)


def draw_grid(image: Pixels, grid: Grid, *, scale: int = 1) -> Pixels:
    """Lay the grid over an area: gaps shaded, cells outlined.

    Args:
        image: The area, of the grid's shape at any resolution.
        grid: The grid.
        scale: Pixels of the picture for one of the grid.
    """
    picture = fitted(image, grid, scale)
    shaded = (picture * 0.5).astype(np.uint8)
    height, width = picture.shape[:2]
    canvas = Canvas(width, height)
    for cell in grid.cells():
        left, top, right, bottom = (scale * side for side in grid.box(cell))
        shaded[top:bottom, left:right] = picture[top:bottom, left:right]
        canvas.box((left, top, right, bottom), outline=PAPER, width=max(1.0, 0.6 * scale), alpha=120)
    return canvas.over(shaded)


def _fitted_into(image: Pixels, tile: int) -> Image.Image:
    """Resample a picture so that its longer side is `tile` pixels."""
    height, width = require_pixels(image).shape[:2]
    share = tile / max(height, width)
    size = max(1, round(width * share)), max(1, round(height * share))
    return Image.fromarray(image).resize(size, Image.Resampling.LANCZOS)
