"""The position of an area's pixels on the ground.

The scene is defined in metres, with its origin in the middle of the area, x to the east and y to the south;
only a canvas has pixels, so that a seed gives the same scene at every resolution.

Legend: H, W: height and width in pixels; n: number of points.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
"""Single precision wherever there are as many as pixels."""
Ints: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]


def enumerate_items(count: Ints) -> tuple[Ints, Ints]:
    """Return the owner of every item and its number among those of its owner, given how many items each owner has.

    >>> owner, number = enumerate_items(np.array([2, 0, 3]))
    >>> owner.tolist(), number.tolist()
    ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])
    """
    owner = np.repeat(np.arange(len(count)), count)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)


def floats(values: npt.ArrayLike) -> Floats:
    """Return an array of single precision."""
    return np.asarray(values, dtype=np.float32)


@dataclass(frozen=True)
class Canvas:
    """A raster of pixels laid on the ground."""

    height: int
    """Pixels from top to bottom."""
    width: int
    """Pixels from left to right."""
    px: float
    """Metres per pixel."""

    @property
    def ground_m(self) -> tuple[float, float]:
        """Height and width on the ground in metres."""
        return self.height * self.px, self.width * self.px

    @cached_property
    def x(self) -> Floats:
        """Metres east of the middle of every pixel's centre, (1, W)."""
        return (((np.arange(self.width) + 0.5) - self.width / 2) * self.px).astype(np.float32)[None]

    @cached_property
    def y(self) -> Floats:
        """Metres south of the middle of every pixel's centre, (H, 1)."""
        return (((np.arange(self.height) + 0.5) - self.height / 2) * self.px).astype(np.float32)[:, None]

    def finer(self, factor: int) -> "Canvas":
        """Return the same ground in pixels `factor` times smaller."""
        return Canvas(self.height * factor, self.width * factor, self.px / factor)

    def cover(self, inside: Floats) -> Floats:
        """Return the covered fraction of a pixel whose centre is `inside` metres within an edge."""
        covered: Floats = np.clip(inside / self.px + np.float32(0.5), 0.0, 1.0)
        return covered

    def line(self, distance: Floats, width: float) -> Floats:
        """Return the fraction of a pixel that a line of `width` metres at `distance` metres covers; thin lines fade."""
        return self.cover(width / 2 - np.abs(distance)) * np.float32(min(1.0, width / self.px))
