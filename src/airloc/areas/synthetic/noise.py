"""Periodic noise for natural variation, generated once and sampled at any position, scale and resolution.

A tile is Gaussian noise with a power-law spectrum, shaped in the Fourier domain: it is isotropic, so that no
lattice shows, and it wraps. Sampling resizes a window of the tile, which averages detail below a pixel away.
"""

from functools import lru_cache

import numpy as np
from PIL import Image

from airloc.areas.synthetic.canvas import Canvas, Floats, Ints, floats
from airloc.seeding import stream

TILE = 1024
"""Side of a tile in texels."""

SLOPES = {"cloud": 1.75, "grain": 0.7}
"""Decay of the amplitude with frequency: `cloud` is terrain, `grain` is soil, grass and asphalt."""


@lru_cache
def tile(kind: str) -> Floats:
    """Return the tile of a kind, (TILE, TILE), with mean 0 and standard deviation 1."""
    white = stream(0, "synthetic", "noise", kind).standard_normal((TILE, TILE))
    frequency = np.hypot(np.fft.fftfreq(TILE)[:, None], np.fft.rfftfreq(TILE)[None]) * TILE
    # Limit the longest waves, so that an area has more than one slope of a hill.
    amplitude = np.maximum(frequency, 2.0) ** -SLOPES[kind]
    amplitude[0, 0] = 0.0
    field = np.fft.irfft2(np.fft.rfft2(white) * amplitude, s=(TILE, TILE))
    return floats(field / field.std())


def sample(kind: str, canvas: Canvas, texel_m: float, shift: tuple[int, int]) -> Floats:
    """Sample the noise of a kind in `SLOPES` at every pixel, (H, W).

    The finest detail is about two texels wide. The tile is shifted by rows and columns that every scene draws.
    """
    rows, top, bottom = _window(canvas.ground_m[0], texel_m, shift[0])
    cols, left, right = _window(canvas.ground_m[1], texel_m, shift[1])
    window = Image.fromarray(tile(kind).take(rows, axis=0, mode="wrap").take(cols, axis=1, mode="wrap"))
    size = canvas.width, canvas.height
    return np.array(window.resize(size, Image.Resampling.BILINEAR, box=(left, top, right, bottom)))


def at(kind: str, x: Floats, y: Floats, texel_m: float, shift: tuple[int, int]) -> Floats:
    """Sample the noise at points, from the nearest texel."""
    row = np.floor(y / texel_m).astype(np.intp) + shift[0]
    col = np.floor(x / texel_m).astype(np.intp) + shift[1]
    values: Floats = tile(kind)[row % TILE, col % TILE]
    return values


def _window(side_m: float, texel_m: float, shift: int) -> tuple[Ints, float, float]:
    """Texels under a side of the area with a margin for interpolation, and where in them the side lies."""
    start, end = -side_m / 2 / texel_m, side_m / 2 / texel_m
    first, last = int(np.floor(start)) - 3, int(np.ceil(end)) + 3
    return np.arange(first, last) + shift, start - first, end - first
