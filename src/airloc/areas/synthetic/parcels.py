"""The content of blocks without rows of houses: large buildings, car parks, sports grounds.

Legend: m: blocks; n: boxes. Sizes along b are lengths, sizes along a are widths.
"""

from dataclasses import dataclass, replace

import numpy as np

from airloc.areas.synthetic.boxes import Boxes, Kind, beside, box, join, no_boxes
from airloc.areas.synthetic.canvas import Floats, Ints, enumerate_items, floats
from airloc.areas.synthetic.lots import stands_free
from airloc.areas.synthetic.plan import Plan
from airloc.areas.synthetic.regimes import Use

LARGE_ROOFS = floats(
    [(150, 150, 150), (178, 176, 172), (120, 120, 122), (206, 204, 200), (92, 92, 96), (166, 152, 138), (136, 128, 122),
     (112, 100, 94), (190, 182, 170), (146, 108, 92)]
)  # fmt: skip
ASPHALT = floats([106, 104, 101])
CAR_PAINT = floats(
    [(225, 226, 228), (205, 206, 208), (60, 60, 64), (36, 37, 40), (120, 122, 126), (150, 40, 38), (48, 66, 110),
     (170, 168, 160)]
)  # fmt: skip


@dataclass(frozen=True)
class Parcels:
    """Rectangles in the coordinates of their districts, each array (m,)."""

    district: Ints
    a: Floats
    b: Floats
    width: Floats
    length: Floats

    def __len__(self) -> int:
        return len(self.a)


def parcels(plan: Plan, use: Use) -> Parcels:
    """Return the blocks of a use that lie in their own district, without their streets and pavements."""
    streets = plan.streets
    district, i, j = np.nonzero(plan.uses == use)
    lines, widths = streets.lines, streets.widths
    low_a = lines[district, 0, i] + widths[district, 0, i, j] / 2
    high_a = lines[district, 0, i + 1] - widths[district, 0, i + 1, j] / 2
    low_b = lines[district, 1, j] + widths[district, 1, j, i] / 2
    high_b = lines[district, 1, j + 1] - widths[district, 1, j + 1, i] / 2
    return Parcels(district, (low_a + high_a) / 2, (low_b + high_b) / 2, high_a - low_a - 5, high_b - low_b - 5)


def draw_parcels(plan: Plan) -> tuple[Boxes, Boxes]:
    """Draw large buildings and the objects on the ground beside them."""
    rng = plan.rng("parcels")
    towers = _towers(plan, rng, parcels(plan, Use.TOWERS))
    halls, lots, cars = _commerce(plan, rng, parcels(plan, Use.COMMERCE))
    buildings = join([towers, halls])
    return join([buildings, _roof_units(rng, buildings)]), join([lots, cars, _sports(plan, rng)])


def place(
    plan: Plan, on: Parcels, height: Floats | float, kind: Ints | int, colour: Floats, margin: float = 1.5
) -> Boxes:
    """Put a box on every parcel; shrink it where it overlaps something, and omit it where that does not help."""
    if not len(on):
        return no_boxes()
    x, y = plan.streets.to_xy(on.a, on.b, on.district)
    cos, sin = plan.streets.heading(x, y, on.district, np.zeros(len(on), dtype=np.intp))
    boxes = box(x, y, cos, sin, on.length, on.width, height, kind, colour)
    sizes = [replace(boxes, length=boxes.length * f, width=boxes.width * f) for f in floats([1, 0.85, 0.7, 0.5])]
    tries = join(sizes)
    free = stands_free(plan, tries, np.tile(on.district, len(sizes)), margin, points=6) & (
        np.minimum(tries.length, tries.width) > 4
    )
    free = free.reshape(len(sizes), len(boxes))
    chosen = np.argmax(free, axis=0) * len(boxes) + np.arange(len(boxes))
    return tries[chosen[free.any(axis=0)]]


def divide(rng: np.random.Generator, whole: Parcels, pitch: float) -> Parcels:
    """Cut parcels into smaller ones of about `pitch` metres."""
    rows = np.maximum(np.round(whole.width / pitch), 1).astype(np.intp)
    cols = np.maximum(np.round(whole.length / (pitch * rng.uniform(0.8, 1.4, len(whole)))), 1).astype(np.intp)
    which, number = enumerate_items(rows * cols)
    row, col = np.divmod(number, cols[which])
    width, length = (whole.width / rows)[which], (whole.length / cols)[which]
    a = whole.a[which] - whole.width[which] / 2 + (row + 0.5) * width
    b = whole.b[which] - whole.length[which] / 2 + (col + 0.5) * length
    return Parcels(whole.district[which], *(one.astype(np.float32) for one in (a, b, width, length)))


def _towers(plan: Plan, rng: np.random.Generator, whole: Parcels) -> Boxes:
    """Large buildings side by side, some stepped back above."""
    small = divide(rng, whole, 30.0)
    n = len(small)
    shape = rng.uniform(0.68, 0.96, (2, n)).astype(np.float32)
    small = replace(small, width=small.width * shape[0], length=small.length * shape[1])
    height = np.clip(rng.lognormal(2.75, 0.5, n), 7, 62)
    colour = LARGE_ROOFS[rng.integers(0, len(LARGE_ROOFS), n)] * rng.normal(1, 0.08, (n, 1)).astype(np.float32)
    base = place(plan, small, height, Kind.FLAT, colour)
    base = base[rng.random(len(base)) < 0.88]
    m = len(base)
    stepped = (base.height > 18) & (rng.random(m) < 0.6)
    shrink = rng.uniform(0.5, 0.75, m).astype(np.float32)
    above = replace(
        base,
        length=base.length * shrink,
        width=base.width * shrink,
        height=base.height * 1.35,
        colour=base.colour * 1.1,
    )
    return join([base, above[stepped]])


def _commerce(plan: Plan, rng: np.random.Generator, whole: Parcels) -> tuple[Boxes, Boxes, Boxes]:
    """A hall or two on one part of the block, a car park on the rest."""
    m = len(whole)
    share, end = rng.uniform(0.38, 0.62, m).astype(np.float32), rng.choice((-1.0, 1.0), m).astype(np.float32)
    long = whole.length > whole.width
    size = np.where(long, whole.length, whole.width)
    hall_shift, lot_shift = end * size * (1 - share) / 2, -end * size * share / 2

    def part(shift: Floats, portion: Floats, fill: float) -> Parcels:
        return Parcels(
            whole.district,
            whole.a + np.where(long, 0, shift),
            whole.b + np.where(long, shift, 0),
            np.where(long, whole.width, size * portion) * fill,
            np.where(long, size * portion, whole.length) * fill,
        )

    halls = divide(rng, part(hall_shift, share, 0.93), 52.0)
    n = len(halls)
    halls = replace(halls, width=halls.width * 0.9, length=halls.length * rng.uniform(0.8, 0.98, n).astype(np.float32))
    colour = LARGE_ROOFS[rng.integers(0, len(LARGE_ROOFS), n)] * rng.normal(1.05, 0.07, (n, 1)).astype(np.float32)
    tone = ASPHALT * rng.uniform(0.85, 1.25, (m, 1)).astype(np.float32)
    built = place(plan, halls, 0.0, Kind.FLAT, colour)
    built = replace(built, height=rng.uniform(5, 11, len(built)).astype(np.float32))
    lots = place(plan, part(lot_shift, 1 - share, 0.97), 0.0, Kind.PAVED, tone, 0.0)
    return built, lots, _parked(rng, lots)


def _parked(rng: np.random.Generator, lots: Boxes) -> Boxes:
    """Cars on the stalls of car parks: pairs of rows with an aisle between."""
    cols, rows = (lots.length / 2.9).astype(np.intp), 2 * np.maximum(lots.width / 17, 1).astype(np.intp)
    lot, number = enumerate_items(cols * rows)
    row, col = np.divmod(number, cols[lot])
    # Full near one end and empty towards the other, as people park near the door.
    fullness = rng.uniform(0.15, 0.95, len(lots))[lot] * (0.6 + 0.8 * np.abs(col / cols[lot] - 0.5))
    taken = rng.random(len(lot)) < fullness
    lot, row, col = lot[taken], row[taken], col[taken]
    u = (col + 0.5) * 2.9 - lots.length[lot] / 2
    v = ((row + 0.5) / rows[lot] - 0.5) * lots.width[lot] + np.where(row % 2 == 0, 1.6, -1.6)
    x, y = beside(lots[lot], u.astype(np.float32), v.astype(np.float32))
    paint = CAR_PAINT[rng.integers(0, len(CAR_PAINT), len(lot))]
    return box(x, y, -lots.sin[lot], lots.cos[lot], 4.6, 1.9, 1.4, Kind.CAR, paint)


def _roof_units(rng: np.random.Generator, buildings: Boxes) -> Boxes:
    """Machines on flat roofs."""
    count = np.where(buildings.length * buildings.width > 250, rng.integers(1, 6, len(buildings)), 0)
    on = buildings[np.repeat(np.arange(len(buildings)), count)]
    n = len(on)
    u, v = (rng.uniform(-0.38, 0.38, n) * on.length).astype(np.float32), rng.uniform(-0.38, 0.38, n) * on.width
    x, y = beside(on, u, v.astype(np.float32))
    tone = floats([190, 190, 192]) * rng.uniform(0.5, 1.1, (n, 1))
    return box(x, y, on.cos, on.sin, rng.uniform(2, 5, n), rng.uniform(2, 4, n), on.height + 2, Kind.FLAT, tone)


def _sports(plan: Plan, rng: np.random.Generator) -> Boxes:
    """A pitch in the middle of every sports block, courts at one end."""
    whole = parcels(plan, Use.SPORT)
    m = len(whole)
    pitch = replace(whole, b=whole.b - whole.length * 0.14, width=np.clip(whole.width * 0.8, 20, 66),
                    length=np.clip(whole.length * 0.62, 30, 104))  # fmt: skip
    court = replace(whole, b=whole.b + whole.length * 0.36, width=whole.width * 0.8, length=whole.length * 0.2)
    green = floats([106, 124, 72]) * rng.uniform(0.85, 1.1, (m, 1)).astype(np.float32)
    courts = divide(rng, court, 19.0)
    colour = floats([(94, 120, 104), (150, 88, 72), (84, 108, 140)])[rng.integers(0, 3, len(courts))]
    courts = replace(courts, width=courts.width * 0.9, length=np.minimum(courts.length, 36) * 0.94)
    built = place(plan, courts, 0.0, Kind.COURT, colour)
    return join([place(plan, pitch, 0.0, Kind.PITCH, green), built[rng.random(len(built)) < 0.45]])
