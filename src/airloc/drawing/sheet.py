"""Contact sheets, GIF animations, and the grid drawn on an area.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from airloc.drawing.canvas import Canvas, Pixels, fit_text, fit_to_grid, font, require_pixels
from airloc.drawing.palette import PAPER, SOFT, TEXT
from airloc.errors import AirlocError
from airloc.files import write_atomically
from airloc.grid import Grid


def contact_sheet(
    images: Sequence[Pixels], captions: Sequence[str], *, columns: int, tile: int, title: str | None = None
) -> Pixels:
    """Arrange images in rows, each with a caption below.

    Args:
        images: Images of any size. Each is resized so that its longer side is as long as a tile.
        captions: One caption for each image. Captions wider than a tile are cut.
        columns: Images in a row.
        tile: Side of a tile in pixels, at least 16.
        title: Title of the sheet.

    Raises:
        AirlocError: If there is no image, or if the number of captions, the columns or the tile are wrong.
    """
    if not images or len(images) != len(captions) or columns < 1 or tile < 16:
        raise AirlocError(
            f"A sheet has {len(images)} images, {len(captions)} captions, {columns} columns and tiles of {tile} px",
            "Use at least one image, one caption for each, at least one column and tiles of at least 16 px",
        )
    columns = min(columns, len(images))
    size = max(9, min(16, tile // 13))
    gap, caption_height = max(6, tile // 16), round(1.9 * size)
    tiles = [_fit_to_tile(image, tile) for image in images]
    rows = [range(first, min(first + columns, len(tiles))) for first in range(0, len(tiles), columns)]
    tall = [max(tiles[number].height for number in row) for row in rows]
    top = (round(3.4 * size) if title else 0) + gap
    width = columns * (tile + gap) + gap
    sheet = Image.new("RGB", (width, top + sum(tall) + len(rows) * (caption_height + gap)), PAPER)
    pen = ImageDraw.Draw(sheet)
    if title:
        large = round(1.5 * size)
        pen.text((gap, top / 2), fit_text(title, large, width - 2 * gap), font=font(large), fill=TEXT, anchor="lm")
    for row, height in zip(rows, tall, strict=True):
        for number in row:
            left = gap + (number - row.start) * (tile + gap)
            thumbnail = tiles[number]
            sheet.paste(thumbnail, (left + (tile - thumbnail.width) // 2, top + height - thumbnail.height))
            place = left + tile / 2, top + height + 0.55 * caption_height
            pen.text(place, fit_text(captions[number], size, tile), font=font(size), fill=SOFT, anchor="mm")
        top += height + caption_height + gap
    return np.array(sheet)


def draw_grid(image: Pixels, grid: Grid) -> Pixels:
    """Draw the grid on an image of an area of any resolution: gaps darkened, cells outlined."""
    picture = fit_to_grid(image, grid, scale=1)
    shaded = (picture * 0.5).astype(np.uint8)
    height, width = picture.shape[:2]
    canvas = Canvas(width, height)
    for cell in grid.cells():
        left, top, right, bottom = grid.box(cell)
        shaded[top:bottom, left:right] = picture[top:bottom, left:right]
        canvas.box((left, top, right, bottom), outline=PAPER, width=1.0, alpha=120)
    return canvas.over(shaded)


def _fit_to_tile(image: Pixels, tile: int) -> Image.Image:
    """Resize an image so that its longer side is `tile` pixels."""
    height, width = require_pixels(image).shape[:2]
    share = tile / max(height, width)
    size = max(1, round(width * share)), max(1, round(height * share))
    return Image.fromarray(image).resize(size, Image.Resampling.LANCZOS)


def save_gif(frames: Sequence[Pixels], path: str | os.PathLike[str], ms: int = 700) -> Path:
    """Write frames as an endless GIF animation, atomically.

    Args:
        frames: At least one frame. All have the same shape.
        path: The file to write.
        ms: Duration of a frame in milliseconds: at least 20, in steps of 10. The last frame lasts three times as long.

    Raises:
        AirlocError: If the frames differ in size, if the duration is too short, or if the file cannot be written.
    """
    return write_atomically(path, encode_gif(frames, ms))


def encode_gif(frames: Sequence[Pixels], ms: int = 700) -> bytes:
    """Return the bytes of a GIF animation. The arguments are those of `save_gif`.

    All frames share one palette of 256 colours, so that still parts do not flicker.
    """
    shapes = {require_pixels(frame, "frame").shape for frame in frames}
    if len(shapes) != 1:
        raise AirlocError(
            f"An animation has {len(frames)} frames of {len(shapes)} different sizes",
            "Use at least one frame, and frames of one size",
        )
    if ms < 20:
        raise AirlocError(f"A GIF cannot show a frame for {ms} ms", "Use 20 ms or more")
    palette = _shared_palette(frames)
    first, *others = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    times = [ms] * len(others) + [3 * ms]
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=times, loop=0, optimize=False)
    return buffer.getvalue()


def _shared_palette(frames: Sequence[Pixels]) -> Image.Image:
    """Return the 256 colours that fit up to eight frames, evenly spread over the animation."""
    chosen = np.linspace(0, len(frames) - 1, min(8, len(frames))).round().astype(int)
    sample = np.concatenate([frames[number][::2, ::2] for number in chosen])
    return Image.fromarray(sample).quantize(256, method=Image.Quantize.MEDIANCUT)
