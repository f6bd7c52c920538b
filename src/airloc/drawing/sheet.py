"""Many pictures on one page, and the grid laid over an area.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from airloc.drawing.canvas import Canvas, Pixels, fitted, font, require_pixels, shorten
from airloc.drawing.palette import PAPER, SOFT, TEXT
from airloc.errors import AirlocError
from airloc.files import write_atomically
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


# ---------- Animations: frames in, one GIF out.
# ~
# ~ Legend: frames are uint8 RGB (H, W, 3), all of one shape.


def save_gif(
    frames: Sequence[Pixels], path: str | os.PathLike[str], ms: int = 700, *, last_ms: int | None = None
) -> Path:
    """Write an endless animation, whole or not at all.

    All frames share one palette of 256 colours, so that what does not move does not flicker.

    Args:
        frames: At least one, all of one shape.
        path: The file.
        ms: How long each frame is shown, at least 20 milliseconds, in steps of 10.
        last_ms: How long the last one is; by default three times as long, so that one sees how it ended.

    Returns:
        The path as given.
    """
    return write_atomically(path, encode_gif(frames, ms, last_ms=last_ms))


def encode_gif(frames: Sequence[Pixels], ms: int = 700, *, last_ms: int | None = None) -> bytes:
    """The bytes of an endless animation; `save_gif` explains the arguments."""
    shapes = {require_pixels(frame, "frame").shape for frame in frames}
    if len(shapes) != 1:
        raise AirlocError(
            f"An animation of {len(frames)} frames in {len(shapes)} sizes cannot be written",
            "Give at least one frame, all of one size",
        )
    if ms < 20 or (last_ms is not None and last_ms < 20):
        raise AirlocError(f"Frames of {min(ms, last_ms or ms)} ms are too short for a GIF", "Give 20 ms or more")
    palette = _shared_palette(frames)
    first, *others = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    times = [ms] * len(others) + [3 * ms if last_ms is None else last_ms]
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=times, loop=0, optimize=False)
    return buffer.getvalue()


def _shared_palette(frames: Sequence[Pixels]) -> Image.Image:
    """The 256 colours that serve up to eight frames spread over the animation best."""
    chosen = np.linspace(0, len(frames) - 1, min(8, len(frames))).round().astype(int)
    sample = np.concatenate([frames[number][::2, ::2] for number in chosen])
    return Image.fromarray(sample).quantize(256, method=Image.Quantize.MEDIANCUT)
