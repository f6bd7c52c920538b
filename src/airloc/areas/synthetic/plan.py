"""The plan of a scene: its streets, curves and land uses in metres, without colours.

A plan depends on the seed, the regime and the ground size, not on the resolution, the sun or a disaster, so that every
image rendered from it shows the same roads and houses.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airloc.areas.synthetic import noise
from airloc.areas.synthetic.canvas import Bools, Floats, Ints, floats
from airloc.areas.synthetic.curves import Curve, Lake, curve
from airloc.areas.synthetic.regimes import REGIMES, Regime, Use
from airloc.areas.synthetic.streets import ENDLESS, NO_STREET, Place, Streets, draw_streets
from airloc.seeding import stream

BARRIERS = ("shore", "river", "railway", "highway")
"""Curves that streets do not cross; arterial roads do."""

SEPARATORS = 3
"""Largest number of curves that separate districts; each doubles their number."""

DEVELOPMENT_M = 1.9
"""Metres per texel of the noise that decides how far the town reaches."""


@dataclass(frozen=True)
class Survey:
    """Properties of points on the plan; all arrays have the shape of the points."""

    curves: dict[str, tuple[Floats, Floats]]
    """Metres along and to the right of every curve."""
    place: Place
    clear: Floats
    """Metres to the nearest barrier's edge; negative on the barrier, and in all of the sea."""
    lake: Floats | None
    """Metres to the lake's shore, negative in the water; None where there is no lake."""
    road: Floats
    """Metres within the nearest street's or arterial's roadway, negative outside."""


@dataclass(frozen=True)
class Plan:
    """The layout of a scene."""

    seed: int
    name: str
    """Name of the regime."""
    ground_m: tuple[float, float]
    curves: dict[str, Curve]
    """By role: `shore` (the sea is on its right), `river`, `railway`, `highway`, `arterial`, `crossing`."""
    lake: Lake | None
    streets: Streets
    uses: Ints
    """Use of every block, (D, B, B)."""

    @property
    def regime(self) -> Regime:
        """Parameters of the regime."""
        return REGIMES[self.name]

    def rng(self, *names: str) -> np.random.Generator:
        """Return the random stream of a part of this scene."""
        return stream(self.seed, "synthetic", self.name, *names)

    @cached_property
    def shifts(self) -> dict[str, tuple[int, int]]:
        """Offset of this scene in the noise tiles, by purpose."""
        draws = self.rng("shifts").integers(0, noise.TILE, (6, 2)).tolist()
        return dict(zip(("town", "wild", "soil", "grain", "land", "damage"), ((r, c) for r, c in draws), strict=True))

    def district(self, located: dict[str, tuple[Floats, Floats]]) -> Ints:
        """Return the district of points, from the sides of the curves on which they lie."""
        sides = [located[role][1] > 0 for role in separators(self.curves)]
        number = np.zeros(next(iter(located.values()))[1].shape if located else (), dtype=np.intp)
        for bit, side in enumerate(sides):
            number += side.astype(np.intp) << bit
        return number

    def survey(self, x: Floats, y: Floats) -> Survey:
        """Return the properties of points."""
        located = {role: one.locate(x, y) for role, one in self.curves.items()}
        district = self.district(located)
        if not located:
            district = np.zeros(np.broadcast_shapes(x.shape, y.shape), dtype=np.intp)
        place = self.streets.locate(x, y, district)
        lake = self.lake.outside(x, y) if self.lake else None
        clear = np.full_like(place.a, 1e4) if lake is None else lake
        road = place.inside
        for role, (_, across) in located.items():
            half = np.float32(self.curves[role].width / 2)
            if role == "shore":
                clear = np.minimum(clear, -across)
            elif role in BARRIERS:
                clear = np.minimum(clear, np.abs(across) - half)
        road = np.where(clear > 7, road, np.float32(NO_STREET))
        for role in ("arterial", "crossing"):
            if role in located:
                road = np.maximum(road, np.float32(self.curves[role].width / 2) - np.abs(located[role][1]))
        return Survey(located, place, clear, lake, road)


def separators(curves: dict[str, Curve]) -> list[str]:
    """Return the curves that separate districts; a shore separates none."""
    return [role for role in curves if role != "shore"][:SEPARATORS]


def draw_plan(seed: int, name: str, ground_m: tuple[float, float]) -> Plan:
    """Draw the plan of the scene of a seed and a regime, for ground of a size in metres."""
    regime = REGIMES[name]
    reach = float(np.hypot(*ground_m)) / 2 + 60.0
    rng = stream(seed, "synthetic", name, "plan")
    curves = _draw_curves(rng, regime, min(ground_m), reach)
    lake = _draw_lake(rng, regime, ground_m)
    streets = draw_streets(rng, regime, 2 ** len(separators(curves)), reach)
    empty = np.zeros((len(streets.cos), streets.blocks, streets.blocks), dtype=np.intp)
    plan = Plan(seed, name, ground_m, curves, lake, streets, empty)
    uses = _draw_uses(plan, rng, reach)
    return replace(plan, uses=uses, streets=_build(rng, regime, streets, uses))


def _draw_curves(rng: np.random.Generator, regime: Regime, side: float, reach: float) -> dict[str, Curve]:
    """Draw the long curves; later ones have an angle relative to earlier ones."""
    present = {role: bool(rng.random() < regime.odds[role]) for role in BARRIERS}
    angle, turn = rng.uniform(0, 2 * np.pi), rng.uniform(-0.5, 0.5, 4)
    off = rng.uniform(-0.28, 0.28, 4) * side
    shore_at = rng.uniform(-0.12, 0.3) * side
    curves: dict[str, Curve] = {}
    if present["shore"]:
        curves["shore"] = curve(rng, reach, angle, shore_at, 0.0, rng.uniform(0.2, 0.95), (150.0, 700.0))
    if present["river"] and not (present["highway"] and present["railway"]):
        width = rng.uniform(9, 26) if rng.random() < 0.6 else rng.uniform(26, 60)
        curves["river"] = curve(rng, reach, angle + np.pi / 2 + turn[0], off[0], width, rng.uniform(0.25, 0.7))
    if present["highway"]:
        back = shore_at - 0.3 * side if present["shore"] else off[1]
        curves["highway"] = curve(rng, reach, angle + 0.3 * turn[1], back, rng.uniform(26, 32), rng.uniform(0.05, 0.2))
    elif present["railway"]:
        back = shore_at - 0.33 * side if present["shore"] else off[1]
        curves["railway"] = curve(rng, reach, angle + turn[1], back, rng.choice((8.0, 12.5)), rng.uniform(0.05, 0.2))
    count = int(rng.integers(regime.arterials[0], regime.arterials[1] + 1))
    if count > 0:
        lean = angle + np.pi / 2 + turn[2] if "highway" in curves else angle + turn[2]
        curves["arterial"] = curve(rng, reach, lean, off[2], rng.uniform(10.5, 15.5), rng.uniform(0.04, 0.3))
        if "shore" in curves:  # The coastal road runs along the shore at a distance.
            curves["arterial"] = replace(curves["shore"], offset=shore_at - rng.uniform(60, 130), width=12.0)
    if count > 1 and "highway" not in curves:
        curves["crossing"] = curve(rng, reach, angle + np.pi / 2 + turn[3], off[3], rng.uniform(11, 15), 0.15)
    return curves


def _draw_lake(rng: np.random.Generator, regime: Regime, ground_m: tuple[float, float]) -> Lake | None:
    """Draw a lake or pond, with the chance of the regime."""
    chance, x, y = rng.random(), rng.uniform(-0.45, 0.45) * ground_m[1], rng.uniform(-0.45, 0.45) * ground_m[0]
    radius, bays = np.clip(rng.lognormal(3.6, 0.5), 18, 110), rng.normal(0, (0.2, 0.2, 0.1, 0.1))
    one, two, three, four = np.clip(bays, -0.3, 0.3).tolist()
    return Lake(x, y, float(radius), (one, two, three, four)) if chance < regime.odds["lake"] else None


def _draw_uses(plan: Plan, rng: np.random.Generator, reach: float) -> Ints:
    """Draw the use of every block, given the extent of the town and the distance to its centre."""
    regime, streets = plan.regime, plan.streets
    shape = plan.uses.shape
    middle = (streets.lines[:, :, 1:] + streets.lines[:, :, :-1]) / 2
    a, b = np.broadcast_to(middle[:, 0, :, None], shape), np.broadcast_to(middle[:, 1, None, :], shape)
    x, y = streets.to_xy(a, b, np.broadcast_to(np.arange(shape[0])[:, None, None], shape))
    centre = rng.uniform(-0.3, 0.3, 2) * reach
    town = noise.at("cloud", x, y, DEVELOPMENT_M, plan.shifts["town"])
    urbanity = np.clip(1.15 - np.hypot(x - centre[0], y - centre[1]) / (0.75 * reach) + 0.25 * town, 0, 1)
    odds = np.array([[regime.sparse.get(use, 0.0), regime.dense.get(use, 0.0)] for use in Use])
    odds /= odds.sum(axis=0)
    mixed = odds[:, 0] * (1 - urbanity[..., None]) + odds[:, 1] * urbanity[..., None]
    uses = (np.cumsum(mixed, axis=-1) < rng.random(shape)[..., None]).sum(axis=-1)
    developed = town + regime.developed + 0.8 * (urbanity - 0.5) > 0
    survey = plan.survey(x, y)
    uses = np.where(developed & (survey.clear > 10), uses, int(Use.WILD))
    return np.where(_present(plan, a, b), np.minimum(uses, len(Use) - 1), int(Use.WILD))


def _present(plan: Plan, a: Floats, b: Floats) -> Bools:
    """Return the blocks, given by their centres, that overlap the area and their own district."""
    steps = floats([(0, 0), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 1), (0, -1), (1, 0), (-1, 0)])
    step_a, step_b = steps.T[:, :, None, None, None]
    half = np.diff(plan.streets.lines, axis=2) / 2
    district = np.arange(len(a))[:, None, None]
    x, y = plan.streets.to_xy(a + step_a * half[:, 0, :, None], b + step_b * half[:, 1, None, :], district)
    seen = (np.abs(x) < plan.ground_m[1] / 2 + 15) & (np.abs(y) < plan.ground_m[0] / 2 + 15)
    seen &= plan.district({role: one.locate(x, y) for role, one in plan.curves.items()}) == district
    return np.asarray(seen.any(axis=0))


def _build(rng: np.random.Generator, regime: Regime, streets: Streets, uses: Ints) -> Streets:
    """Remove segments without houses, and some others; lines without houses may remain as lanes."""
    widths = streets.widths
    lived = ~np.isin(uses, (int(Use.WILD), int(Use.FIELD)))
    beside = np.stack([_beside_use(lived), _beside_use(lived.transpose(0, 2, 1))], axis=1)
    lane = rng.random((*widths.shape[:3], 1)) < 0.35
    through = widths > 1.15 * widths.min(axis=(1, 2, 3), keepdims=True)
    missing = beside & (rng.random(widths.shape) < regime.missing) & ~through
    close = missing & (rng.random(widths.shape) < regime.closes)
    spans = np.diff(streets.lines, axis=2)[:, ::-1, None, :]
    ends = np.where(close, spans * rng.uniform(0.4, 0.7, widths.shape), ENDLESS)
    kept = (beside & ~missing) | close
    built = np.where(kept, widths, np.where(lane, np.float32(4.2), np.float32(0.0)))
    return replace(streets, widths=built, ends=ends.astype(np.float32))


def _beside_use(lived: Bools) -> Bools:
    """Return True for segments beside a block with houses: (D, B, B) to (D, L, B)."""
    edge = np.zeros_like(lived[:, :1])
    return np.asarray(np.concatenate([edge, lived], axis=1) | np.concatenate([lived, edge], axis=1))
