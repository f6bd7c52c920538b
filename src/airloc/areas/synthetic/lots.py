"""Houses on their lots, along the streets of a block and facing them.

Legend: m: sides of blocks; k: places along a side; n: houses.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from airloc.areas.synthetic.boxes import Boxes, Columns, Kind, beside, box, join
from airloc.areas.synthetic.canvas import Bools, Floats, Ints, enumerate_items, floats
from airloc.areas.synthetic.plan import Plan
from airloc.areas.synthetic.regimes import Use

PAVEMENT = 2.0
"""Metres between a roadway and the lots."""

FARMS = 0.3
"""Fraction of field sides with a farm."""

CONCRETE = floats([168, 164, 156])


@dataclass(frozen=True)
class Side(Columns):
    """Sides of blocks with a street, each array (m,)."""

    district: Ints
    family: Ints
    """Family of the street's line."""
    line: Floats
    """Position of the street."""
    inward: Floats
    """+1 where the block lies at greater positions than its street, else -1."""
    start: Floats
    """Where along the street the lots begin and end."""
    end: Floats
    street: Floats
    """Width of the street."""
    depth: Floats
    """From this street to the opposite one."""
    use: Ints

    def place(self, plan: Plan, which: Ints, off: Floats, along: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return (x, y) of points `off` metres into the blocks, `along` their streets, and headings (cos, sin)."""
        first, district = self.family[which] == 0, self.district[which]
        position = self.line[which] + self.inward[which] * off
        a, b = np.where(first, position, along), np.where(first, along, position)
        x, y = plan.streets.to_xy(floats(a), floats(b), district)
        return x, y, *plan.streets.heading(x, y, district, self.family[which])


def block_sides(plan: Plan) -> Side:
    """Return the two long sides of every block, where a street runs along them."""
    streets, (count, blocks, _) = plan.streets, plan.uses.shape
    district, i, j = (index.ravel() for index in np.indices((count, blocks, blocks)))
    lines, widths = streets.lines, streets.widths
    sizes = lines[district, 0, i + 1] - lines[district, 0, i], lines[district, 1, j + 1] - lines[district, 1, j]
    family = (sizes[0] > sizes[1]).astype(np.intp)
    cross, own, other = 1 - family, np.where(family == 0, i, j), np.where(family == 0, j, i)
    low, high = lines[district, cross, other], lines[district, cross, other + 1]
    sides = []
    for upper in (0, 1):
        street = district, family, own + upper
        side = Side(
            district=district,
            family=family,
            line=lines[street],
            inward=np.full(len(i), 1.0 - 2 * upper, np.float32),
            start=low + widths[district, cross, other, own] / 2 + 5,
            end=np.minimum(
                low + streets.ends[(*street, other)], high - widths[district, cross, other + 1, own] / 2 - 5
            ),
            street=widths[(*street, other)],
            depth=np.where(family == 0, *sizes),
            use=plan.uses[district, i, j],
        )
        sides.append(side[side.street > 0])
    return join(sides)


def draw_houses(plan: Plan, side: Side) -> tuple[Boxes, Boxes]:
    """Draw houses with their garages, and what lies around them (drives, pools), for all lots along sides of blocks."""
    rng, regime = plan.rng("houses"), plan.regime
    rows = side.use == Use.ROWS
    lived = (side.use == Use.HOUSES) | rows
    farm = (side.use == Use.FIELD) & (side.end > side.start) & (rng.random(len(rows)) < FARMS)
    lot = np.where(rows, rng.uniform(22, 46, len(rows)), rng.uniform(*regime.lot, len(rows)))
    count = np.where(lived, np.maximum((side.end - side.start) / lot, 0), 0).astype(np.intp)
    count = np.where(farm, 1, count)
    which, slot = enumerate_items(count)
    step = (side.end - side.start)[which] / count[which]
    main, setback, front = _main_houses(plan, rng, side, which, slot, step)
    wings = _wings(rng, main, front)
    n, parts = len(which), join([main, wings])
    home = side.district[which]
    free = stands_free(plan, parts, np.tile(home, 2))
    keep = (rng.random(n) < np.where(rows[which], 0.96, 0.93)) & free[:n]
    extras = _farmyard(plan, rng, main, front, farm[which]) + _around(plan, rng, main, setback, front)
    winged = keep & (rng.random(n) < 0.5) & free[n:]
    standing = _without_overlap(parts, np.concatenate([keep, winged]), np.tile(np.arange(n), 2))
    keep, houses = standing[:n], parts[standing]
    around = join([extra[keep & chosen] for extra, chosen in extras])
    homes = np.concatenate([home[keep & chosen] for _, chosen in extras])
    return houses, around[stands_free(plan, around, homes, 0.2, points=2)]


def stands_free(plan: Plan, boxes: Boxes, district: Ints, margin: float = 1.5, points: int = 4) -> Bools:
    """Return True for boxes in the area, in their district, `margin` metres or more from streets, water and rails.

    A box is tested at `points` x `points` points; large boxes need more, so that no road is missed.
    """
    free = boxes.overlapping(plan.ground_m)
    x, y = boxes[free].points(points)
    survey = plan.survey(x, y)
    at_home = np.broadcast_to(plan.district(survey.curves) == district[free], x.shape).all(axis=0)
    free[free] = at_home & (survey.road.max(axis=0) < -margin) & (survey.clear.min(axis=0) > 8 + margin)
    return free


def _without_overlap(boxes: Boxes, standing: Bools, lot: Ints) -> Bools:
    """Return True for boxes to keep, so that no two of different lots overlap; the later of two is removed."""
    chosen = np.flatnonzero(standing)
    near = cKDTree(np.stack([boxes.x[chosen], boxes.y[chosen]], axis=1)).query_pairs(24.0, output_type="ndarray")
    first, later = chosen[near.min(axis=1)], chosen[near.max(axis=1)]
    one, other = boxes[first], boxes[later]
    dx, dy = other.x - one.x, other.y - one.y
    cos, sin = np.abs(one.cos * other.cos + one.sin * other.sin), np.abs(one.cos * other.sin - one.sin * other.cos)
    u = np.abs(dx * one.cos + dy * one.sin) - (one.length + other.length * cos + other.width * sin) / 2
    v = np.abs(dy * one.cos - dx * one.sin) - (one.width + other.width * cos + other.length * sin) / 2
    clash = (u < -0.4) & (v < -0.4) & (lot[first] != lot[later])
    apart = standing.copy()
    apart[later[clash]] = False
    # A wing is removed with its house.
    half = len(apart) // 2
    apart[half:] &= apart[:half]
    return apart


def _main_houses(
    plan: Plan, rng: np.random.Generator, side: Side, which: Ints, slot: Ints, step: Floats
) -> tuple[Boxes, Floats, Floats]:
    """The main part of every house, its setback, and +-1 for the side on which its street lies."""
    regime, n = plan.regime, len(which)
    rows = side.use[which] == Use.ROWS
    length = np.where(
        rows,
        np.minimum(step * rng.choice((0.94, 0.8), n), 46),
        np.minimum(rng.uniform(*regime.house[0], n), 0.76 * step),
    )
    depth = np.where(rows, rng.uniform(11, 15, n), rng.uniform(*regime.house[1], n))
    # One setback for a side keeps the row in line; single houses stand a little off it.
    spread = rng.uniform(*regime.setback, len(side.use))[which] + rng.uniform(0, 2.0, n)
    setback = floats(np.where(rows, 3.0, spread))
    shift = side.street[which] / 2 + PAVEMENT + setback + depth / 2
    along = side.start[which] + (slot + 0.5) * step + rng.uniform(-0.1, 0.1, n) * step * ~rows
    # Where a block is too shallow for two rows, the second one is removed.
    fits = (2 * (shift + depth / 2) + 3 < side.depth[which]) | (side.inward[which] > 0)
    x, y, cos, sin = side.place(plan, which, np.minimum(shift, 0.5 * side.depth[which]), along)
    yaw = rng.normal(0, 0.03, n) * ~rows
    cos, sin = cos * np.cos(yaw) - sin * np.sin(yaw), sin * np.cos(yaw) + cos * np.sin(yaw)
    # The street lies to the right (1) or to the left (-1) of the heading.
    front = floats(np.where(side.family[which] == 0, side.inward[which], -side.inward[which]))
    flat = np.where(rows, 0.55, 0.06 if plan.name != "desert" else 0.6)
    kind = np.where(rng.random(n) < flat, Kind.FLAT, np.where(rng.random(n) < 0.55, Kind.GABLE, Kind.HIP))
    height = np.where(rows, rng.uniform(8, 17, n), rng.uniform(4.0, 7.0, n))
    x = np.where(fits, x, 1e6)  # Outside of the area.
    return box(x, y, cos, sin, length, depth, height, kind, _roof_colours(plan, rng, which)), setback, front


def _roof_colours(plan: Plan, rng: np.random.Generator, side: Ints) -> Floats:
    """Draw roof colours; neighbours often share one."""
    palette = floats(plan.regime.roofs)
    n = len(side)
    shared = rng.integers(0, len(palette), int(side.max(initial=0)) + 1)[side]
    chosen = np.where(rng.random(n) < 0.3, shared, rng.integers(0, len(palette), n))
    tint: Floats = palette[chosen] * rng.normal(1.0, 0.09, (n, 1)).astype(np.float32)
    return tint + rng.normal(0, 4, (n, 3)).astype(np.float32)


def _wings(rng: np.random.Generator, main: Boxes, front: Floats) -> Boxes:
    """A wing or garage at one end of every house, behind or before it."""
    n = len(main)
    length, width = main.width * rng.uniform(0.7, 1.0, n), np.minimum(main.length * rng.uniform(0.32, 0.48, n), 9)
    u = (main.length - width) / 2 * rng.choice((-1, 1), n)
    v = -front * rng.choice((1, 1, -0.6), n) * main.width * 0.45
    x, y = beside(main, u.astype(np.float32), v.astype(np.float32))
    kind = np.where(main.kind == Kind.FLAT, Kind.FLAT, Kind.GABLE)
    return box(x, y, -main.sin, main.cos, length, width, main.height * 0.92, kind, main.colour * 0.97)


def _around(
    plan: Plan, rng: np.random.Generator, main: Boxes, setback: Floats, front: Floats
) -> list[tuple[Boxes, Bools]]:
    """Drives, patios, pools and sheds for every house, and which of them exist."""
    n, detached = len(main), main.height < 7.5
    u = (main.length * rng.uniform(0.2, 0.42, n) * rng.choice((-1, 1), n)).astype(np.float32)
    reach = setback + PAVEMENT - 0.5
    drive = beside(main, u, front * (main.width / 2 + reach / 2 - 0.6))
    tone = CONCRETE * rng.uniform(0.75, 1.12, (n, 1))
    drives = box(*drive, -main.sin, main.cos, reach, rng.uniform(2.6, 5.0, n), 0, Kind.PAVED, tone)
    back = (-front * (main.width / 2 + rng.uniform(4, 9, n))).astype(np.float32)
    pool = beside(main, -u * 0.8, back)
    pools = box(*pool, main.cos, main.sin, rng.uniform(7, 11, n), rng.uniform(3.8, 5.5, n), 0, Kind.POOL, CONCRETE)
    shed = beside(main, u * 1.2, back * 1.15)
    sheds = box(*shed, main.cos, main.sin, rng.uniform(3, 5, n), rng.uniform(2.5, 4, n), 2.5, Kind.GABLE, tone * 0.85)
    patio = beside(main, -u * 0.3, -front * (main.width / 2 + 1.5))
    patios = box(*patio, main.cos, main.sin, main.length * 0.5, 4.0, 0, Kind.PAVED, tone * 0.92)
    draw = rng.random((3, n))
    return [
        (patios, detached & (draw[0] < 0.35)),
        (drives, detached),
        (pools, detached & (draw[1] < plan.regime.pools)),
        (sheds, detached & (draw[2] < 0.22)),
    ]


def _farmyard(
    plan: Plan, rng: np.random.Generator, main: Boxes, front: Floats, farm: Bools
) -> list[tuple[Boxes, Bools]]:
    """A yard and two barns behind every house, and which of them exist: those of farms."""
    n, earth = len(main), floats(plan.regime.soil)
    behind = -front * (main.width / 2)
    yard = box(*beside(main, floats(np.zeros(n)), behind - 12 * front), main.cos, main.sin, 46, 44, 0, Kind.YARD, earth)
    barns = []
    for side in (-1.0, 1.0):
        along, across = floats(side * rng.uniform(11, 14, n)), behind - front * floats(rng.uniform(15, 22, n))
        tone = floats([(168, 164, 158), (134, 96, 82), (112, 112, 114)])[rng.integers(0, 3, n)]
        length, width = rng.uniform(17, 28, n), rng.uniform(9, 14, n)
        place = beside(main, along, across)
        barns.append((box(*place, -main.sin, main.cos, length, width, 6.0, Kind.GABLE, tone), farm))
    return [(yard, farm), *barns]
