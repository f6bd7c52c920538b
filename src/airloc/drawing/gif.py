"""Animations: frames in, one GIF out.

Legend: frames are uint8 RGB (H, W, 3), all of one shape.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from airloc.drawing.canvas import Pixels, require_pixels
from airloc.drawing.files import write_atomically
from airloc.errors import AirlocError


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
