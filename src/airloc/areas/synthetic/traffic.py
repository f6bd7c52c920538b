"""Cars on streets and highways, boats on the water, piers on the shore."""

import numpy as np

from airloc.areas.synthetic.boxes import Boxes, Kind, beside, box, join, no_boxes
from airloc.areas.synthetic.canvas import Floats, floats
from airloc.areas.synthetic.lots import Side
from airloc.areas.synthetic.parcels import CAR_PAINT
from airloc.areas.synthetic.plan import Plan


def draw_traffic(plan: Plan, side: Side) -> Boxes:
    """Draw vehicles, boats and piers."""
    rng = plan.rng("traffic")
    return join([_parked(plan, rng, side), _driving(plan, rng), _at_sea(plan, rng)])


def _paint(rng: np.random.Generator, n: int) -> Floats:
    return CAR_PAINT[rng.integers(0, len(CAR_PAINT), n)]


def _parked(plan: Plan, rng: np.random.Generator, side: Side) -> Boxes:
    """Cars along the kerbs, and some under way on the same streets."""
    metres = np.maximum(side.end - side.start, 0)
    count = rng.poisson(metres / 100 * plan.regime.cars)
    which = np.repeat(np.arange(len(count)), count)
    n = len(which)
    off = np.where(rng.random(n) < 0.8, side.street[which] / 2 - 1.1, side.street[which] / 5)
    x, y, cos, sin = side.place(plan, which, off, side.start[which] + rng.random(n) * metres[which])
    cars = box(x, y, cos, sin, rng.choice((4.4, 4.8, 5.6), n), 1.9, 1.5, Kind.CAR, _paint(rng, n))
    survey = plan.survey(x, y)
    return cars[(survey.clear > 9) & (plan.district(survey.curves) == side.district[which])]


def _driving(plan: Plan, rng: np.random.Generator) -> Boxes:
    """Cars and lorries in the lanes of arterial roads and highways."""
    reach = float(np.hypot(*plan.ground_m)) / 2
    parts = []
    for role, per_100m in (("arterial", 2.0), ("crossing", 1.6), ("highway", 4.0)):
        n = int(rng.poisson(reach / 50 * per_100m)) if role in plan.curves else 0
        lane = rng.choice((-1, 1), n) * rng.choice((0.14, 0.33), n)
        lorry = rng.random(n) < (0.2 if role == "highway" else 0.06)
        along = rng.uniform(-reach, reach, n).astype(np.float32)
        if role not in plan.curves:
            continue
        right = (lane * plan.curves[role].width).astype(np.float32)
        length, width = np.where(lorry, 13.0, 4.6), np.where(lorry, 2.6, 1.95)
        x, y, cos, sin = plan.curves[role].point(along, right)
        parts.append(box(x, y, cos, sin, length, width, np.where(lorry, 3.6, 1.5), Kind.CAR, _paint(rng, n)))
    return join([no_boxes(), *parts])


def _at_sea(plan: Plan, rng: np.random.Generator) -> Boxes:
    """Boats off the shore and at piers."""
    if "shore" not in plan.curves:
        return no_boxes()
    shore, half = plan.curves["shore"], min(plan.ground_m) / 2
    n, piers = int(rng.poisson(half / 40)), int(rng.integers(0, 3))
    x, y, _, _ = shore.point(*rng.uniform((-half, 30), (half, max(1.2 * half, 60)), (n, 2)).astype(np.float32).T)
    turn = rng.uniform(0, 2 * np.pi) + rng.normal(0, 0.5, n)
    length = rng.uniform(5, 13, n)
    white = floats([226, 226, 222]) * rng.uniform(0.8, 1.0, (n, 1))
    boats = box(x, y, np.cos(turn), np.sin(turn), length, 0.34 * length, 1.0, Kind.BOAT, white)
    out = rng.uniform(40, 95, piers).astype(np.float32)
    px, py, cos, sin = shore.point(rng.uniform(-half, half, piers).astype(np.float32), out / 2 - 8)
    wood = floats([150, 136, 118])
    pier = box(px, py, -sin, cos, out, 3.6, 0.8, Kind.PAVED, np.broadcast_to(wood, (piers, 3)))
    moored = pier[np.repeat(np.arange(piers), 8)]
    m = len(moored)
    mx, my = beside(moored, (rng.uniform(0.0, 0.48, m) * moored.length).astype(np.float32),
                    (rng.choice((-1, 1), m) * 5.0).astype(np.float32))  # fmt: skip
    fleet = box(mx, my, -moored.sin, moored.cos, rng.uniform(5, 8, m), 2.4, 1.0, Kind.BOAT, floats([230, 230, 226]))
    return join([pier, boats, fleet])
