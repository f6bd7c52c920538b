"""Sunlight: shadows of everything that has a height."""

import numpy as np
import numpy.typing as npt

from airloc.areas.synthetic.canvas import Bools, Canvas, Floats

UNIT = 8
"""Heights are compared in steps of 1 / UNIT metres."""


def cast_shadows(height: Floats, canvas: Canvas, sun: tuple[float, float], tan_elevation: float) -> Bools:
    """Return the pixels that lie in shadow, (H, W).

    A pixel is in shadow up to the height of an object towards the sun, less the descent of the ray on the way. Each
    pass doubles the way, so that a few passes cover the longest shadow. Heights (H, W) are in metres; `sun` is the
    direction towards the sun (x, y).
    """
    ground = np.minimum(height * UNIT, 32000).astype(np.int16)
    shade = ground.copy()
    longest = float(height.max(initial=0.0)) / tan_elevation / canvas.px
    step = 1.0
    while step <= max(longest, 1.0):
        fall = np.int16(min(step * canvas.px * tan_elevation * UNIT, 32000))
        _raise_from(shade, round(step * sun[1]), round(step * sun[0]), fall)
        step *= 2
    return shade > ground + UNIT // 2


def _raise_from(shade: npt.NDArray[np.int16], down: int, right: int, fall: np.int16) -> None:
    """Raise every pixel to the shadow height at (down, right) of it, less the descent."""
    height, width = shade.shape
    to = _overlap(down, height), _overlap(right, width)
    source = _overlap(-down, height), _overlap(-right, width)
    shade[to] = np.maximum(shade[to], shade[source] - fall)


def _overlap(step: int, size: int) -> slice:
    """Return the part of an axis that has a pixel `step` further on."""
    return slice(max(0, -step), max(0, min(size, size - step)))
