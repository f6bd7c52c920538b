"""Images between their pixels, mirrored beyond their border, and patches at several turns.

This file needs NumPy alone: `airloc export` copies it into the runner of an exported agent.

Legend: H, W height and width of an image, S = 48 side of a patch, K turns.
"""

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Image = npt.NDArray[np.uint8]


def sample_mirrored(image: Image, row: Floats, col: Floats) -> Image:
    """Interpolate an image (H, W, 3) linearly at pixels (S, S), mirrored beyond its border."""
    height, width = image.shape[:2]
    row, col = _mirror(row, height), _mirror(col, width)
    top, left = np.minimum(row.astype(np.intp), height - 2), np.minimum(col.astype(np.intp), width - 2)
    below, beside = (row - top)[..., None], (col - left)[..., None]
    upper = image[top, left] * (1 - beside) + image[top, left + 1] * beside
    lower = image[top + 1, left] * (1 - beside) + image[top + 1, left + 1] * beside
    sampled: Image = (upper * (1 - below) + lower * below).round().astype(np.uint8)
    return sampled


def turn_patch(patch: Image, turns: int) -> Image:
    """Turn a patch (S, S, 3) counterclockwise in equal steps, (K, S, S, 3), mirrored beyond its border."""
    side = len(patch)
    step = np.arange(side, dtype=np.float32) - (side - 1) / 2
    turned = []
    for turn in range(turns):
        cos, sin = (np.float32(function(2 * math.pi * turn / turns)) for function in (math.cos, math.sin))
        col = np.asarray(cos * step + sin * step[:, None] + (side - 1) / 2, dtype=np.float32)
        row = np.asarray(cos * step[:, None] - sin * step + (side - 1) / 2, dtype=np.float32)
        turned.append(sample_mirrored(patch, row, col))
    return np.stack(turned)


def _mirror(place: Floats, length: int) -> Floats:
    """Mirror places into 0..length - 1."""
    period = 2 * (length - 1)
    folded = np.abs((place + length - 1) % period - (length - 1))
    return np.asarray(folded, dtype=np.float32)
