"""Streets and the blocks between them: bent grids, one for each district.

A district has its own coordinates (a, b): a turned frame in which each axis is bent along the other. Streets
run where a or b equals one of the district's lines, so they continue from block to block, turn and meet, and
the lots of a block follow its streets.

Legend: D districts, L lines a family, B = L - 1 blocks a side; family 0 holds the streets of constant a.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airloc.areas.synthetic.canvas import Floats, Ints
from airloc.areas.synthetic.curves import STEP, bend
from airloc.areas.synthetic.regimes import Regime

NO_STREET = -999.0
"""Value of `inside` where there is no roadway."""
TURNING = 8.5
"""Radius of a turning circle."""
ENDLESS = 1e5
"""End of a street without a turning circle."""


@dataclass(frozen=True)
class Place:
    """Positions of points among the streets; all arrays have the shape of the points."""

    a: Floats
    b: Floats
    block: Ints
    """Flat index into tables of shape (D, B, B)."""
    inside: Floats
    """Metres within the nearest roadway, negative outside."""
    across: Floats
    """Metres from the centre line of that street."""
    along: Floats
    """Metres along it."""
    border: Floats
    """Metres from the nearest line, with or without a street on it."""


@dataclass(frozen=True)
class Streets:
    """The street grids of all districts."""

    cos: Floats
    """(D,)"""
    sin: Floats
    """(D,)"""
    bends: Floats
    """Metres by which family 0 (1) is moved at positions along b (a), (D, 2, entries)."""
    slopes: Floats
    """Derivatives of the bends, (D, 2, entries)."""
    lines: Floats
    """Positions of the streets, ascending, (D, 2, L)."""
    numbers: Ints
    """Block that a position lies in, by whole metres, (D, 2, positions)."""
    widths: Floats
    """Width of the street on a line between two lines of the other family, 0 for none, (D, 2, L, B)."""
    ends: Floats
    """Metres from the first of those lines after which the street ends in a turning circle, (D, 2, L, B)."""

    @property
    def blocks(self) -> int:
        """Blocks on a side of a district."""
        return int(self.lines.shape[2]) - 1

    @cached_property
    def has_closes(self) -> bool:
        """True if any street ends in a turning circle."""
        return bool((self.ends < ENDLESS).any())

    def locate(self, x: Floats, y: Floats, district: Ints) -> Place:
        """Find points among the streets of their districts."""
        a0 = self.cos[district] * x + self.sin[district] * y
        b0 = self.cos[district] * y - self.sin[district] * x
        a, slope_a = self._bent(a0, b0, district, 0)
        b, slope_b = self._bent(b0, a0, district, 1)
        number_a, number_b = self._number(a, district, 0), self._number(b, district, 1)
        off_a, inside_a = self._nearest(a, slope_a, b, district, 0, number_a, number_b)
        off_b, inside_b = self._nearest(b, slope_b, a, district, 1, number_b, number_a)
        nearer_a = inside_a > inside_b
        return Place(
            a=a,
            b=b,
            block=(district * self.blocks + number_a) * self.blocks + number_b,
            inside=np.maximum(inside_a, inside_b),
            across=np.where(nearer_a, off_a, off_b),
            along=np.where(nearer_a, b, a),
            border=np.minimum(np.abs(off_a), np.abs(off_b)),
        )

    def to_xy(self, a: Floats, b: Floats, district: Ints) -> tuple[Floats, Floats]:
        """Convert coordinates of districts to (x, y); the inverse of `locate`."""
        a0, b0 = a, b
        for _ in range(5):  # A contraction: the product of two slopes is below a fifth.
            a0 = a - self.bends[district, 0, self._entry(b0)]
            b0 = b - self.bends[district, 1, self._entry(a0)]
        cos, sin = self.cos[district], self.sin[district]
        return cos * a0 - sin * b0, sin * a0 + cos * b0

    def heading(self, x: Floats, y: Floats, district: Ints, family: Ints) -> tuple[Floats, Floats]:
        """Direction (cos, sin) of the streets of a family at points."""
        cos, sin = self.cos[district], self.sin[district]
        a0, b0 = cos * x + sin * y, cos * y - sin * x
        slope = -self.slopes[district, family, self._entry(np.where(family == 0, b0, a0))]
        norm = np.sqrt(1 + slope * slope)
        da, db = np.where(family == 0, slope, 1) / norm, np.where(family == 0, 1, slope) / norm
        return (cos * da - sin * db).astype(np.float32), (sin * da + cos * db).astype(np.float32)

    def _entry(self, along: Floats) -> Ints:
        size = self.bends.shape[2]
        entry: Ints = np.clip((along * (1 / STEP)).astype(np.intp) + size // 2, 0, size - 1)
        return entry

    def _bent(self, value: Floats, along: Floats, district: Ints, family: int) -> tuple[Floats, Floats]:
        entry = (district * 2 + family) * self.bends.shape[2] + self._entry(along)
        return value + self.bends.take(entry), self.slopes.take(entry)

    def _number(self, value: Floats, district: Ints, family: int) -> Ints:
        size = self.numbers.shape[2]
        entry = np.clip((value + size // 2).astype(np.intp), 0, size - 1)
        number: Ints = self.numbers.take((district * 2 + family) * size + entry)
        return number

    def _nearest(
        self, value: Floats, slope: Floats, along: Floats, district: Ints, family: int, number: Ints, span: Ints
    ) -> tuple[Floats, Floats]:
        """Metres from the nearest line of a family, and metres within the street on it."""
        line = (district * 2 + family) * (self.blocks + 1) + number
        lines = self.lines.ravel()
        low, high = value - lines.take(line), value - lines.take(line + 1)
        upper = -high < low
        off = np.where(upper, high, low) / np.sqrt(1 + slope * slope)
        segment = (line + upper) * self.blocks + span
        width = self.widths.take(segment)
        inside = np.where(width > 0, width / 2 - np.abs(off), np.float32(NO_STREET))
        if not self.has_closes:
            return off, inside
        beyond = along - lines[(district * 2 + 1 - family) * (self.blocks + 1) + span] - self.ends.take(segment)
        circle = TURNING - np.sqrt(off * off + beyond * beyond)
        return off, np.maximum(np.where(beyond > 0, np.float32(NO_STREET), inside), circle)


def draw_streets(rng: np.random.Generator, regime: Regime, districts: int, reach: float) -> Streets:
    """Draw the grids, with a street on every segment, up to `reach` metres from the middle of the area."""
    first = rng.uniform(0, np.pi)
    # Neighbouring districts share an angle in half of the cases.
    turns = first + np.where(rng.random(districts) < 0.45, 0.0, rng.uniform(-0.9, 0.9, districts))
    steepness = rng.uniform(*regime.steepness, (districts, 2))
    bends = [[bend(rng, 1.3 * reach, float(s), (230.0, 620.0)) for s in pair] for pair in steepness]
    count = int(2.4 * reach / min(side[0] for side in regime.blocks)) + 4
    lines = np.stack([[_draw_lines(rng, side, reach, count) for side in regime.blocks] for _ in range(districts)])
    metres = np.arange(-int(reach) - 40, int(reach) + 41) + 0.5
    numbers = np.stack([[np.searchsorted(family, metres) - 1 for family in pair] for pair in lines])
    ordinary = rng.uniform(*regime.street, (districts, 1, 1, 1))
    through = rng.random((districts, 2, count, 1)) < 0.25
    widths = np.broadcast_to(np.where(through, 1.3 * ordinary, ordinary), (districts, 2, count, count - 1))
    return Streets(
        cos=np.cos(turns).astype(np.float32),
        sin=np.sin(turns).astype(np.float32),
        bends=np.stack([[one.value for one in pair] for pair in bends]),
        slopes=np.stack([[one.slope for one in pair] for pair in bends]),
        lines=lines.astype(np.float32),
        numbers=np.clip(numbers, 0, count - 2),
        widths=widths.astype(np.float32),
        ends=np.full(widths.shape, ENDLESS, dtype=np.float32),
    )


def _draw_lines(rng: np.random.Generator, spacing: tuple[float, float], reach: float, count: int) -> Floats:
    """Positions of lines from one end of the area to the other."""
    steps = rng.uniform(*spacing, count)
    lines = np.cumsum(steps) - rng.uniform(0, spacing[1]) - 1.2 * reach - 20
    return lines.astype(np.float32)
