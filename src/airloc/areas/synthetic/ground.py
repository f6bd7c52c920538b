"""The ground: grass, soil, crops and paved lots, as a colour for every pixel.

Legend: intermediate images are float32 planes (3, H, W), in bytes.
"""

import numpy as np

from airloc.areas.synthetic import noise
from airloc.areas.synthetic.appearance import Appearance
from airloc.areas.synthetic.canvas import Canvas, Floats, Ints, floats
from airloc.areas.synthetic.lines import blend
from airloc.areas.synthetic.plan import Plan, Survey
from airloc.areas.synthetic.regimes import Use
from airloc.areas.synthetic.trees import WILD_M

PATCHES = 1021
"""Size of the table of patches, which lots and strips of fields index; a prime, so that indices mix."""

CROPS = floats(
    [(118, 128, 70), (92, 112, 58), (150, 138, 92), (172, 156, 108), (128, 104, 80), (108, 92, 74), (134, 136, 84),
     (84, 104, 60), (160, 144, 112), (112, 120, 66)]
)  # fmt: skip

COVERED = {
    Use.HOUSES: (0.12, (138, 128, 108)), Use.ROWS: (0.72, (142, 138, 132)), Use.TOWERS: (0.9, (150, 147, 142)),
    Use.COMMERCE: (0.6, (132, 130, 126)), Use.PARK: (0.55, (94, 116, 62)), Use.SPORT: (0.6, (98, 118, 64)),
    Use.FIELD: (1.0, (0, 0, 0)), Use.YARD: (0.85, (158, 142, 120)),
}  # fmt: skip
"""Fraction of a block's ground that is covered, and the colour of the cover."""

ROUGH = {Use.WILD: 0.17, Use.HOUSES: 0.13, Use.ROWS: 0.07, Use.TOWERS: 0.05, Use.COMMERCE: 0.05, Use.PARK: 0.1,
         Use.SPORT: 0.06, Use.FIELD: 0.07, Use.YARD: 0.11}  # fmt: skip
"""Standard deviation of the brightness from metre to metre."""


def paint_ground(plan: Plan, appearance: Appearance, canvas: Canvas, survey: Survey) -> tuple[Floats, Floats]:
    """Paint the ground between the roads and under the trees; return the image and its fine grain, (H, W)."""
    soil = noise.sample("cloud", canvas, 1.3, plan.shifts["soil"])
    grain = fine_grain(plan, canvas)
    wild = noise.sample("cloud", canvas, WILD_M, plan.shifts["wild"])
    image = _natural(plan, appearance, soil, wild)
    use = plan.uses.take(survey.place.block)
    patch = _patches(plan, survey)
    share, colours, tints = _tables(plan, appearance)
    mixed = share.take(use)
    # The share of lawn varies within a lot, too.
    mixed = np.where(use == Use.HOUSES, np.clip(mixed + 0.22 * soil, 0, 1), mixed)
    covered = np.where(use == Use.FIELD, PATCHES + patch, use + 2 * PATCHES)
    for plane, colour, tint in zip(image, colours, tints, strict=True):
        plane += mixed * (colour.take(covered) - plane)
        plane *= tint[np.where(use == Use.WILD, 0, patch)]
    rough = floats([ROUGH[one] * (0.5 if plan.name == "desert" else 1.0) for one in Use])[use]
    texture = 1 + rough * grain + np.float32(0.07) * soil + _rows(plan, canvas, survey, use)
    if plan.name == "desert":
        texture += _dunes(plan, canvas, wild)
    _paint_paths(canvas, survey, image, use, soil)
    image *= np.maximum(texture, 0.3)
    return image, grain


def fine_grain(plan: Plan, canvas: Canvas) -> Floats:
    """Return grain of about a metre, and finer grain for finer pixels."""
    grain = noise.sample("grain", canvas, max(1.0, 0.4 * canvas.px), plan.shifts["grain"])
    if canvas.px < 0.8:
        grain = 0.75 * grain + 0.5 * noise.sample("grain", canvas, 0.3, plan.shifts["soil"])
    return grain


def _natural(plan: Plan, appearance: Appearance, soil: Floats, wild: Floats) -> Floats:
    """Paint grass that is dry in places, bare soil, and the forest floor."""
    regime = plan.regime
    dried = np.clip(appearance.dry + 0.33 * soil, 0, 1)
    bare = np.clip(0.45 * soil - 0.35 + 0.5 * (appearance.dry - 0.4), 0, 0.9)
    floor = 0.55 * np.clip(0.5 + 1.4 * (regime.forest + wild), 0, 1)
    image = np.empty((3, *soil.shape), dtype=np.float32)
    under = (88, 80, 60) if appearance.bare > 0.2 else (70, 74, 48)
    for plane, grass, dry, earth, shade in zip(image, regime.grass, regime.dry, regime.soil, under, strict=True):
        np.multiply(dried, dry - grass, out=plane)
        plane += grass
        plane += bare * (earth - plane)
        plane += floor * (shade - plane)
    return image


def _patches(plan: Plan, survey: Survey) -> Ints:
    """Return the index of each pixel's lot or strip in the table of patches."""
    block = survey.place.block
    rng = plan.rng("patches")
    lot = rng.uniform(*plan.regime.lot, plan.uses.size)
    strip = rng.choice((45.0, 80.0, 400.0), plan.uses.size)
    pitch = np.where(plan.uses.ravel() == Use.FIELD, strip, lot).astype(np.float32)
    along = (survey.place.a + 5000) / pitch[block]
    return (block * 61 + along.astype(np.intp) * 7) % PATCHES


def _tables(plan: Plan, appearance: Appearance) -> tuple[Floats, Floats, Floats]:
    """Return the covered fraction by use; colours (3, ...) of crops and then of uses; tints (3, PATCHES)."""
    rng = plan.rng("colours")
    crops = CROPS[rng.choice(len(CROPS), PATCHES, p=rng.dirichlet(np.full(len(CROPS), 0.8)))]
    crops = crops * rng.normal(1.0, 0.06, (PATCHES, 1)) + rng.normal(0, 3, (PATCHES, 3))
    uses = floats([COVERED.get(one, (0.0, (0, 0, 0)))[1] for one in Use])
    if plan.name == "desert":
        uses[Use.YARD] = floats(appearance.sand) * 0.94
    share = floats([COVERED.get(one, (0.0, (0, 0, 0)))[0] for one in Use])
    colours = np.concatenate([np.zeros((PATCHES, 3)), crops, uses]).astype(np.float32)
    tints = rng.normal(1.0, 0.085, (PATCHES, 1)) + rng.normal(0, 0.025, (PATCHES, 3))
    tints[0] = 1.0
    return share, np.ascontiguousarray(colours.T), np.ascontiguousarray(tints.T.astype(np.float32))


def _dunes(plan: Plan, canvas: Canvas, wild: Floats) -> Floats:
    """Return ripples of sand across the wind, bent by the terrain."""
    turn, period = plan.rng("wind").uniform((0, 14), (np.pi, 26))
    across = np.float32(np.cos(turn)) * canvas.x + np.float32(np.sin(turn)) * canvas.y + 16 * wild
    ripples: Floats = np.sin(across * np.float32(2 * np.pi / period)) * np.clip(0.03 + 0.03 * wild, 0, 0.1)
    return ripples


def _paint_paths(canvas: Canvas, survey: Survey, image: Floats, use: Ints, soil: Floats) -> None:
    """Paint winding paths through parks."""
    pixels = np.flatnonzero(use == Use.PARK)
    a, b, bend = (one.take(pixels) for one in (survey.place.a, survey.place.b, soil))
    near = np.minimum(np.abs(np.mod(a + b + 7 * bend, 62.0) - 31), np.abs(np.mod(a - b + 7 * bend, 75.0) - 30))
    cover = np.zeros(use.size, dtype=np.float32)
    cover[pixels] = canvas.line(near, 2.4) * np.float32(0.8)
    blend(image, cover, (178, 166, 140))


def _rows(plan: Plan, canvas: Canvas, survey: Survey, use: Ints) -> Floats:
    """Return rows of crops along one side of each field; they fade if they are narrower than a few pixels."""
    rows = np.zeros(use.shape, dtype=np.float32)
    pixels = np.flatnonzero(use == Use.FIELD)
    if not len(pixels):
        return rows
    block = survey.place.block.take(pixels)
    rng = plan.rng("rows")
    period = rng.choice((3.0, 5.5, 8.0, 13.0), plan.uses.size).astype(np.float32)
    strength = (rng.uniform(0.03, 0.12, plan.uses.size) * np.clip(period / canvas.px - 1.6, 0, 1)).astype(np.float32)
    turned = rng.random(plan.uses.size) < 0.5
    across = np.where(turned[block], survey.place.a.take(pixels), survey.place.b.take(pixels))
    rows.ravel()[pixels] = strength[block] * np.sin(across * (2 * np.pi / period[block]))
    return rows
