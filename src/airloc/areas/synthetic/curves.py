"""Long bent lines through the whole area: shores, rivers, railways, highways and arterial roads.

A curve is a straight line with a gentle sum of waves on it. Its deviation from the line depends only on
the position along it, so that it is tabulated once, and the distance of a pixel is a table lookup.
"""

from dataclasses import dataclass

import numpy as np

from airloc.areas.synthetic.canvas import Floats, Ints

STEP = 0.5
"""Metres between the entries of a table."""


@dataclass(frozen=True)
class Bend:
    """A tabulated sum of waves."""

    value: Floats
    """Metres off the straight line, by position along it."""
    slope: Floats
    """Its derivative."""

    def entry(self, along: Floats) -> Ints:
        """The table's entry for a position; positions beyond the ends get the last one."""
        return np.clip((along * (1 / STEP)).astype(np.intp) + len(self.value) // 2, 0, len(self.value) - 1)


def bend(rng: np.random.Generator, reach: float, steepness: float, wavelengths: tuple[float, float]) -> Bend:
    """Draw a bend whose slope stays within `steepness`, for positions within `reach` metres of the middle."""
    along = (np.arange(-int(reach / STEP) - 2, int(reach / STEP) + 3) * STEP).astype(np.float32)
    number = 2 * np.pi / rng.uniform(*wavelengths, 3)
    slopes = rng.dirichlet((2.0, 2.0, 1.0)) * steepness
    phase = rng.uniform(0, 2 * np.pi, 3)
    value, slope = np.zeros_like(along), np.zeros_like(along)
    for k, peak, start in zip(number.tolist(), slopes.tolist(), phase.tolist(), strict=True):
        angle = along * k + start
        value += np.sin(angle) * (peak / k)
        slope += np.cos(angle) * peak
    return Bend(value - value[len(value) // 2], slope)


@dataclass(frozen=True)
class Curve:
    """A bent line that crosses the area."""

    cos: float
    """East component of its direction."""
    sin: float
    """South component of its direction."""
    offset: float
    """Metres from the middle of the area."""
    bend: Bend
    width: float
    """Metres across."""

    def locate(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Metres along the curve and metres to its right (negative: left) of points."""
        along = self.cos * x + self.sin * y
        across = self.cos * y - self.sin * x - self.offset
        entry = self.bend.entry(along)
        slope = self.bend.slope.take(entry)
        return along, (across - self.bend.value.take(entry)) / np.sqrt(1 + slope * slope)

    def point(self, along: Floats, right: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(x, y) of points beside the curve, and its direction (cos, sin) there."""
        entry = self.bend.entry(along)
        slope = self.bend.slope.take(entry)
        norm = np.sqrt(1 + slope * slope)
        s, t = along - right * slope / norm, self.offset + self.bend.value.take(entry) + right / norm
        cos, sin = (self.cos - self.sin * slope) / norm, (self.sin + self.cos * slope) / norm
        return self.cos * s - self.sin * t, self.sin * s + self.cos * t, cos, sin


def curve(
    rng: np.random.Generator, reach: float, angle: float, offset: float, width: float, steepness: float,
    wavelengths: tuple[float, float] = (260.0, 900.0),
) -> Curve:  # fmt: skip
    """Draw a curve in a direction (radians), `offset` metres from the middle."""
    drawn = bend(rng, 1.5 * reach, steepness, wavelengths)
    # Plain floats keep single-precision arrays single.
    return Curve(float(np.cos(angle)), float(np.sin(angle)), float(offset), drawn, float(width))


@dataclass(frozen=True)
class Lake:
    """A rounded water body with bays."""

    x: float
    y: float
    radius: float
    bays: tuple[float, float, float, float]
    """Relative amplitudes of the shore, for the cosine and sine of the double and of the triple angle."""

    def outside(self, x: Floats, y: Floats) -> Floats:
        """Return the approximate distance from the shore in metres, negative in the water."""
        dx, dy = x - np.float32(self.x), y - np.float32(self.y)
        away = np.sqrt(dx * dx + dy * dy) + np.float32(1e-3)
        cos, sin = dx / away, dy / away
        cos2, sin2 = cos * cos - sin * sin, 2 * cos * sin
        cos3, sin3 = cos2 * cos - sin2 * sin, sin2 * cos + cos2 * sin
        shore = np.ones_like(cos)
        for bay, wave in zip(self.bays, (cos2, sin2, cos3, sin3), strict=True):
            shore += np.float32(bay) * wave
        metres: Floats = away - self.radius * shore
        return metres
