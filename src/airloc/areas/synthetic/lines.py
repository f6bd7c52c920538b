"""Roads, rails and water, painted over the ground.

Legend: intermediate images are float32 planes (3, H, W), in bytes.
"""

from dataclasses import dataclass

import numpy as np

from airloc.areas.synthetic import noise
from airloc.areas.synthetic.appearance import Appearance
from airloc.areas.synthetic.canvas import Bools, Canvas, Floats, Ints, floats
from airloc.areas.synthetic.plan import Plan, Survey
from airloc.areas.synthetic.regimes import Use

WHITE = (206, 206, 202)
YELLOW = (196, 170, 96)


def blend(image: Floats, cover: Floats, colour: Floats | tuple[float, ...]) -> None:
    """Paint a colour, (3,) or (3, ...), over planes (3, ...) where `cover` (...) is above 0."""
    pixels = np.flatnonzero(cover > 0.004)
    if not len(pixels):
        return
    share = cover.take(pixels)
    for plane, new in zip(image.reshape(3, -1), colour, strict=True):
        value = new.take(pixels) if isinstance(new, np.ndarray) else np.float32(new)
        old = plane[pixels]
        plane[pixels] = old + share * (value - old)


def paint_lines(
    plan: Plan, appearance: Appearance, canvas: Canvas, survey: Survey, image: Floats, grain: Floats
) -> None:
    """Paint water, rails and roads, in the order in which they pass over each other."""
    _paint_streets(plan, canvas, survey, image, grain)
    if "shore" in plan.curves:
        _paint_sea(plan, appearance, canvas, survey, image, grain)
    if "river" in plan.curves or survey.lake is not None:
        _paint_inland_water(plan, appearance, canvas, survey, image, grain)
    if "railway" in plan.curves:
        _paint_railway(plan, canvas, survey, image, grain)
    if "highway" in plan.curves:
        _paint_highway(plan, canvas, survey, image, grain)
    for role in ("crossing", "arterial"):
        if role in plan.curves:
            _paint_arterial(plan, canvas, survey, image, grain, role)


def _textured(colour: tuple[float, ...], texture: Floats) -> Floats:
    """A colour varied by a texture around 1, (3, ...)."""
    return np.stack([np.float32(one) * texture for one in colour])


@dataclass(frozen=True)
class Strip:
    """The pixels near a line, k of them, so that nothing is computed for the others."""

    pixels: Ints
    """Flat pixel indices, (k,)."""
    colour: Floats
    """(3, k)"""
    along: Floats
    across: Floats
    grain: Floats

    def finish(self, image: Floats) -> None:
        """Write the pixels back."""
        image.reshape(3, -1)[:, self.pixels] = self.colour


def _strip(image: Floats, grain: Floats, close: Bools, along: Floats, across: Floats) -> Strip:
    pixels = np.flatnonzero(close)
    return Strip(pixels, image.reshape(3, -1)[:, pixels], *(one.take(pixels) for one in (along, across, grain)))


def _on_land(plan: Plan, survey: Survey, strip: Strip) -> Bools:
    """Return True for pixels of a strip on land; elsewhere a line is a bridge, without verges."""
    land = np.ones(len(strip.pixels), dtype=np.bool_)
    if "river" in plan.curves:
        land &= np.abs(survey.curves["river"][1].take(strip.pixels)) > plan.curves["river"].width / 2
    if survey.lake is not None:
        land &= survey.lake.take(strip.pixels) > 0
    return land


def _wheels(canvas: Canvas, across: Floats, period: float) -> Floats:
    """Return the brightness of wheel tracks; zero where pixels are too coarse to show them."""
    strength = np.float32(0.03 * np.clip(0.5 * period / canvas.px - 1, 0, 1))
    return strength * np.cos(across * np.float32(2 * np.pi / period)) if strength else np.zeros_like(across)


def _paint_streets(plan: Plan, canvas: Canvas, survey: Survey, image: Floats, grain: Floats) -> None:
    regime, place = plan.regime, survey.place
    strip = _strip(image, grain, (place.inside > -4) & (survey.clear > 7), place.along, place.across)
    inside = place.inside.take(strip.pixels)
    quiet = np.isin(plan.uses, (int(Use.WILD), int(Use.FIELD))).ravel()[place.block.take(strip.pixels)]
    paved = np.where(quiet, np.float32(0.25 * regime.pavement), np.float32(regime.pavement))
    blend(strip.colour, canvas.cover(inside + 2.0) * paved, (160, 156, 148))
    texture = 1 + 0.05 * strip.grain + _wheels(canvas, strip.across, 1.9)
    blend(strip.colour, canvas.cover(inside), _textured(regime.road, texture))
    lane = quiet & (inside + np.abs(strip.across) < 2.6)  # Lanes are of gravel and earth.
    earth = tuple(0.5 * (one + other) for one, other in zip(regime.soil, regime.road, strict=True))
    blend(strip.colour, canvas.cover(inside) * lane * np.float32(0.85), _textured(earth, 1 + 0.1 * strip.grain))
    dashed = np.mod(strip.along, 9.0) < 4.5
    blend(strip.colour, canvas.line(strip.across, 0.25) * (inside > 3.4) * dashed * np.float32(0.8), WHITE)
    strip.finish(image)


def _paint_arterial(plan: Plan, canvas: Canvas, survey: Survey, image: Floats, grain: Floats, role: str) -> None:
    along, across = survey.curves[role]
    half = plan.curves[role].width / 2
    strip = _strip(image, grain, np.abs(across) < half + 4 + canvas.px, along, across)
    away = np.abs(strip.across)
    paved = np.float32(0.8 * plan.regime.pavement + 0.15)
    blend(strip.colour, canvas.cover(half + 2.4 - away) * paved, (168, 163, 154))
    texture = 0.9 * (1 + 0.045 * strip.grain + _wheels(canvas, strip.across, 1.75))
    blend(strip.colour, canvas.cover(half - away), _textured(plan.regime.road, texture))
    blend(strip.colour, canvas.line(away - 0.4, 0.5), YELLOW)
    dashed = np.mod(strip.along, 12.0) < 5.0
    blend(strip.colour, canvas.line(away - half / 2, 0.25) * dashed, WHITE)
    for barrier in ("river", "highway", "railway"):
        if barrier in plan.curves:  # A bridge has parapets.
            bridge = plan.curves[barrier].width / 2 + 5 > np.abs(survey.curves[barrier][1].take(strip.pixels))
            blend(strip.colour, canvas.line(away - half - 0.8, 1.4) * bridge, (196, 192, 184))
    strip.finish(image)


def _paint_highway(plan: Plan, canvas: Canvas, survey: Survey, image: Floats, grain: Floats) -> None:
    along, across = survey.curves["highway"]
    half = plan.curves["highway"].width / 2
    strip = _strip(image, grain, np.abs(across) < half + 9 + canvas.px, along, across)
    away = np.abs(strip.across)
    verge = _textured((134, 132, 92), 1 + 0.12 * strip.grain)
    land = _on_land(plan, survey, strip) * np.float32(0.55)
    blend(strip.colour, canvas.cover(half + 8 - away) * land, verge)
    lane = (half - 3.0) / 3
    wear = 1 + 0.04 * strip.grain + _wheels(canvas, away - 2.0 - lane / 2, lane)
    blend(strip.colour, canvas.cover(half - away), _textured((136, 134, 132), wear))
    blend(strip.colour, canvas.cover(1.9 - away), verge)
    dashed = np.mod(strip.along, 14.0) < 5.0
    for number in (1, 2):
        blend(strip.colour, canvas.line(away - 2.4 - number * lane, 0.3) * dashed, WHITE)
    blend(strip.colour, canvas.line(away - 2.5, 0.3) + canvas.line(away - half + 1.2, 0.3), WHITE)
    strip.finish(image)


def _paint_railway(plan: Plan, canvas: Canvas, survey: Survey, image: Floats, grain: Floats) -> None:
    along, across = survey.curves["railway"]
    width = plan.curves["railway"].width
    strip = _strip(image, grain, np.abs(across) < width / 2 + 6 + canvas.px, along, across)
    inside = width / 2 - np.abs(strip.across)
    land = _on_land(plan, survey, strip) * np.float32(0.5)
    blend(strip.colour, canvas.cover(inside + 5) * land, _textured((128, 122, 92), 1 + 0.2 * strip.grain))
    blend(strip.colour, canvas.cover(inside), _textured((128, 118, 110), 1 + 0.09 * strip.grain))
    off = np.abs(strip.across) - 2.2 if width > 10 else strip.across
    sleepers = (np.mod(strip.along, 0.65) < 0.28) if canvas.px < 0.4 else np.float32(0.45)
    blend(strip.colour, canvas.line(off, 2.6) * sleepers * np.float32(0.6), (84, 74, 68))
    blend(strip.colour, canvas.line(np.abs(off) - 0.75, 0.16), (190, 186, 182))
    strip.finish(image)


def _paint_inland_water(
    plan: Plan, appearance: Appearance, canvas: Canvas, survey: Survey, image: Floats, grain: Floats
) -> None:
    """Paint river and lake, with muddy banks that meander a little."""
    inside = np.full_like(grain, -1e4) if survey.lake is None else -survey.lake
    if "river" in plan.curves:
        inside = np.maximum(inside, plan.curves["river"].width / 2 - np.abs(survey.curves["river"][1]))
    inside += 2.2 * noise.sample("cloud", canvas, 0.9, plan.shifts["land"])
    if "shore" in plan.curves:  # At its mouth a river fades into the sea.
        inside -= 3 * np.maximum(survey.curves["shore"][1] + 4, 0)
    bank = appearance.sand if plan.name == "desert" else (112, 106, 76)
    blend(image, canvas.cover(inside + 4.5) * np.float32(0.6), _textured(bank, 1 + 0.14 * grain))
    water = _water(appearance, 0.4 + 0.6 * np.clip(inside / 9, 0, 1), 1 + 0.025 * grain)
    murky = floats([46, 52, 42])[:, None, None]  # Inland water is darker and greener than the sea.
    blend(image, canvas.cover(inside), np.float32(0.5) * (water + murky))


def _water(appearance: Appearance, depth: Floats, texture: Floats) -> Floats:
    """Water from shallow (0) to deep (1), (3, H, W)."""
    pairs = zip(appearance.shallow, appearance.deep, strict=True)
    return np.stack([(low + depth * np.float32(high - low)) * texture for low, high in pairs])


def _paint_sea(
    plan: Plan, appearance: Appearance, canvas: Canvas, survey: Survey, image: Floats, grain: Floats
) -> None:
    """Paint the beach, wet sand, the surf in broken lines, and water that darkens outwards."""
    _, across = survey.curves["shore"]
    land = noise.sample("cloud", canvas, 0.8, plan.shifts["land"])
    rng = plan.rng("beach")
    rocky, wide = rng.random() < 0.35, rng.uniform(0, 16)
    out = across + np.float32(9.0 if rocky else 4.0) * land + np.float32(2.0 if rocky else 0.0) * grain
    beach = 9.0 + wide * np.clip(1 + 0.6 * land, 0, 2)
    rocks = _textured((158, 148, 134), 1 + 0.24 * grain + 0.1 * land)
    blend(
        image,
        np.clip((out + beach) / 4, 0, 1),
        rocks if rocky else _textured(appearance.sand, 1 + 0.06 * grain + 0.03 * land),
    )
    blend(image, np.clip(1 - np.abs(out) / 5, 0, 1) * np.float32(0.45), (120, 108, 88))
    depth = 1 - np.exp(-np.maximum(out, 0) * np.float32(1 / 38) * np.clip(1 + 0.3 * land, 0.4, 2))
    swell = np.sin(out * np.float32(2 * np.pi / 11.0) + 3.0 * land)
    blend(image, canvas.cover(out), _water(appearance, depth, 1 + 0.05 * grain + 0.03 * swell))
    for distance, strength in ((2.0, 0.85), (11.0, 0.4), (21.0, 0.2)):
        ragged = out - distance - 2.2 * grain
        foam = np.clip(1 - np.abs(ragged) / 2.6, 0, 1) * np.clip(0.6 + 0.7 * land + 0.3 * grain, 0, 1)
        blend(image, (foam * strength * (out > 0)).astype(np.float32), (226, 230, 228))
