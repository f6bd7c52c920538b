"""The colours and the light of a scene: season, water and sun, drawn once for the whole area."""

from dataclasses import dataclass

import numpy as np

from airloc.areas.synthetic.plan import Plan
from airloc.areas.synthetic.regimes import Colour


@dataclass(frozen=True)
class Appearance:
    """The appearance of an area on one day."""

    sun: tuple[float, float]
    """Direction towards the sun (x, y), of length 1."""
    tan_elevation: float
    """Tangent of the sun's elevation."""
    dry: float
    """0: everything is green; 1: everything is dried out."""
    bare: float
    """Fraction of trees without leaves."""
    crown: float
    """Size of crowns, 1 on average."""
    leaves: tuple[Colour, ...]
    shallow: Colour
    """Water near the shore."""
    deep: Colour
    sand: Colour
    gain: tuple[float, float, float]
    """Final factors of red, green and blue."""
    haze: float
    """Final offset of all channels, in bytes."""


_GREENS: tuple[tuple[Colour, ...], ...] = (
    ((62, 84, 48), (72, 92, 50), (54, 76, 46), (84, 100, 56), (66, 80, 54)),
    ((56, 74, 44), (66, 82, 46), (48, 68, 44), (90, 92, 54), (74, 84, 52)),
    ((78, 92, 52), (92, 100, 56), (60, 80, 48), (104, 98, 54), (70, 86, 50)),
)
_SEAS: tuple[tuple[Colour, Colour], ...] = (
    ((104, 138, 128), (30, 52, 66)),
    ((92, 146, 146), (24, 58, 84)),
    ((88, 106, 92), (34, 48, 46)),
    ((120, 128, 104), (44, 56, 56)),
)


def draw_appearance(plan: Plan, later: str | None) -> Appearance:
    """Draw the appearance of a scene; `later` names another day, on which sun and camera differ a little."""
    rng = plan.rng("look")
    desert = plan.name == "desert"
    azimuth, elevation = rng.uniform(0, 2 * np.pi), rng.uniform(34, 62)
    leafless = rng.random() < 0.35 and not desert
    shallow, deep = _SEAS[rng.integers(len(_SEAS))]
    dry = {"desert": 1.25, "rural": 0.45}.get(plan.name, 0.4) + rng.uniform(-0.3, 0.3)
    bare = rng.uniform(0.35, 0.8) if leafless else rng.uniform(0.0, 0.06)
    crown = rng.uniform(0.85, 1.12) * (0.7 if desert else 1.0)
    leaves = _GREENS[rng.integers(len(_GREENS))]
    gain, tint, haze = rng.uniform(0.98, 1.2), rng.normal(0, 0.02, 3), rng.uniform(0, 7)
    if later is not None:
        day = plan.rng("look", later)
        azimuth, elevation = azimuth + day.uniform(-0.8, 0.8), np.clip(elevation + day.uniform(-12, 12), 30, 66)
        gain, tint, haze = gain * day.uniform(0.88, 1.1), tint + day.normal(0, 0.02, 3), haze + day.uniform(0, 9)
        dry = dry + day.uniform(-0.12, 0.12)
    red, green, blue = (float(gain * (1 + one)) for one in tint)
    return Appearance(
        sun=(float(np.cos(azimuth)), float(np.sin(azimuth))),
        tan_elevation=float(np.tan(np.radians(elevation))),
        dry=float(dry),
        bare=float(bare),
        crown=float(crown),
        leaves=leaves,
        shallow=shallow,
        deep=deep,
        sand=(212, 192, 158) if desert else (206, 190, 158),
        gain=(red, green, blue),
        haze=float(haze),
    )
