"""Trees: crowns on a periodic jittered lattice; every scene keeps those that grow on its land.

The topmost crown at a point is computed once for a periodic tile of the lattice, so that a pixel needs one lookup. A
crown is a dome around its centre, smooth at any resolution.

Legend: R, C: rows and columns of the lattice under an area.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from airloc.areas.synthetic import noise
from airloc.areas.synthetic.appearance import Appearance
from airloc.areas.synthetic.canvas import Bools, Canvas, Floats, Ints, floats
from airloc.areas.synthetic.plan import Plan
from airloc.areas.synthetic.regimes import Use
from airloc.seeding import stream

PITCH = 6.4
"""Metres between the sites of crowns."""
PERIOD = 64
"""Sites after which the lattice repeats."""
FINE = 13
"""Texels along the side of a site, for each of which the topmost crown is computed."""

TWIGS = floats((112, 98, 84))
"""Colour of crowns without leaves."""

WILD_M = 1.6
"""Metres per texel of the noise that decides where forest grows."""


@dataclass(frozen=True)
class Lattice:
    """One period of the lattice."""

    dx: Floats
    """Metres from the corner of a site to the centre of its crown, (PERIOD, PERIOD)."""
    dy: Floats
    radius: Floats
    top: Ints
    """Index, 0 to 8, of the neighbouring site whose crown is topmost, by texel."""


@lru_cache
def lattice() -> Lattice:
    """Make the lattice, once per process."""
    rng = stream(0, "synthetic", "crowns")
    dx, dy = rng.uniform(0.08, 0.92, (2, PERIOD, PERIOD)) * PITCH
    radius = np.clip(rng.lognormal(np.log(3.3), 0.26, (PERIOD, PERIOD)), 1.8, 6.0)
    texels = (np.arange(PERIOD * FINE) + 0.5) * (PITCH / FINE)
    place = np.arange(PERIOD * FINE) // FINE
    excess = []
    for step in range(9):
        row, col = place + step // 3 - 1, place + step % 3 - 1
        near = np.ix_(row % PERIOD, col % PERIOD)
        across = texels[None] - col[None] * PITCH - dx[near]
        down = texels[:, None] - row[:, None] * PITCH - dy[near]
        excess.append(np.hypot(across, down) - radius[near])
    return Lattice(floats(dx), floats(dy), floats(radius), np.argmin(excess, axis=0))


@dataclass(frozen=True)
class Crowns:
    """The sites of crowns in an area, each array (R, C); the radius is 0 where none grows."""

    x: Floats
    y: Floats
    radius: Floats
    height: Floats
    bare: Bools
    """True for crowns without leaves."""
    colour: Floats
    """(R, C, 3)"""
    first: tuple[int, int]
    """Row and column of the lattice that the arrays begin with."""


@dataclass(frozen=True)
class Canopy:
    """Crowns rendered from above, (H, W)."""

    cover: Floats
    """Fraction of a pixel under a crown."""
    height: Floats
    facing: Floats
    """-1 to 1: how far the crown's side is turned towards the sun."""
    crown: Ints
    """Flat index of the crown."""


def draw_crowns(plan: Plan, appearance: Appearance, blocked: Bools, blocked_px: float) -> Crowns:
    """Decide where trees grow: not where `blocked` is True, a raster of the area with `blocked_px` metres per pixel."""
    sides = [int(np.ceil(side / 2 / PITCH)) + 3 for side in plan.ground_m]
    row, col = np.meshgrid(*(np.arange(-n, n) for n in sides), indexing="ij")
    one, rng = lattice(), plan.rng("trees")
    cell = row % PERIOD, col % PERIOD
    x, y = (col * PITCH + one.dx[cell]).astype(np.float32), (row * PITCH + one.dy[cell]).astype(np.float32)
    wild = noise.at("cloud", x, y, WILD_M, plan.shifts["wild"])
    odds = _odds(plan, x, y, wild)
    i = np.clip(y / blocked_px + blocked.shape[0] / 2, 0, blocked.shape[0] - 1).astype(np.intp)
    j = np.clip(x / blocked_px + blocked.shape[1] / 2, 0, blocked.shape[1] - 1).astype(np.intp)
    grows = (rng.random(x.shape) < odds) & ~blocked[i, j]
    stand = noise.at("cloud", x, y, 1.1, plan.shifts["land"])  # Stands of one kind and age grow together.
    bare = rng.random(x.shape) < np.clip(appearance.bare * (1 + 1.3 * stand), 0, 0.97)
    lightness = (rng.normal(1.0, 0.13, x.shape) + 0.11 * stand)[..., None].astype(np.float32)
    leaves = floats(appearance.leaves)[rng.integers(0, len(appearance.leaves), x.shape)]
    colour = np.where(bare[..., None], TWIGS, leaves) * lightness
    size = appearance.crown * np.clip(1 - 0.13 * stand, 0.7, 1.3)
    size = np.where(bare, 0.86 * size, size)
    radius = np.where(grows, one.radius[cell] * size, 0).astype(np.float32)
    height = (2.0 + 1.9 * one.radius[cell] * size * rng.uniform(0.7, 1.2, x.shape)).astype(np.float32)
    return Crowns(x, y, radius, height, bare, colour.astype(np.float32), (-sides[0], -sides[1]))


def _odds(plan: Plan, x: Floats, y: Floats, wild: Floats) -> Floats:
    """Chance of a tree at points, by the use of the block, streets, hedges and banks."""
    regime, survey = plan.regime, plan.survey(x, y)
    use = plan.uses.take(survey.place.block)
    by_use = floats([regime.trees.get(one, 0.0) for one in Use])
    odds = by_use[use] * np.clip(1.0 + 0.5 * wild, 0.3, 2.0)
    forest = np.clip(0.35 + 1.6 * (regime.forest + wild), 0.02, 0.97)
    odds = np.where(use == Use.WILD, forest, odds)
    hedged = (survey.place.block * 7 + 3 * (survey.place.b > survey.place.a)) % 5 < 3
    odds = np.where((use == Use.FIELD) & (survey.place.border < 4.5) & hedged, 0.75, odds)
    odds = np.where((survey.road > -7) & (odds > 0.1) & (use != Use.WILD), odds * 1.5, odds)
    bank = (survey.clear > 2.5) & (survey.clear < 13) & (regime.forest > 0)
    odds = np.where(bank & ("river" in plan.curves), np.maximum(odds, 0.5), odds)
    if "shore" in plan.curves:
        odds = np.where(survey.clear < 24, 0.0, odds)
    return np.where((survey.road > -2.2) | (survey.clear < 2.5), 0.0, odds)


def render_canopy(crowns: Crowns, canvas: Canvas, sun: tuple[float, float]) -> Canopy:
    """Render the crowns from above, with the sun in a direction (x, y)."""
    tx, ty = (np.floor(one.ravel() * (FINE / PITCH)).astype(np.intp) for one in (canvas.x, canvas.y))
    top = lattice().top[np.ix_(ty % (PERIOD * FINE), tx % (PERIOD * FINE))]
    cols = crowns.x.shape[1]
    base = (ty // FINE - crowns.first[0])[:, None] * cols + (tx // FINE - crowns.first[1])[None]
    steps = np.array([(step // 3 - 1) * cols + step % 3 - 1 for step in range(9)])
    crown = base + steps.take(top)
    radius = crowns.radius.take(crown)
    dx, dy = canvas.x - crowns.x.take(crown), canvas.y - crowns.y.take(crown)
    away = np.sqrt(dx * dx + dy * dy)
    grown = np.maximum(radius, np.float32(1e-3))
    cover = np.where(radius > 0, canvas.cover(radius - away), np.float32(0))
    dome = np.sqrt(np.maximum(1 - (away / grown) ** 2, 0))
    height = np.where(cover > 0.3, crowns.height.take(crown) * (0.45 + 0.55 * dome), np.float32(0))
    facing = np.clip((dx * np.float32(sun[0]) + dy * np.float32(sun[1])) / grown, -1, 1)
    return Canopy(cover, height, facing, crown)
