"""The damage of a fire, a flood or a storm to a scene; roads and building footprints stay.

- `burnt`: the ground is scorched in patches, most houses there are footprints of grey ash, trees are charred.
- `flooded`: brown water covers low ground, streets and cars, but not roofs and crowns.
- `debris`: roofs are torn open, rubble lies around them, trees are felled or stripped.

Buildings keep their outlines: the mask of the area after a disaster marks the buildings before it, so that
the two areas of a pair share one mask.
"""

from dataclasses import replace

import numpy as np

from airloc.areas.synthetic import noise
from airloc.areas.synthetic.boxes import Boxes, Kind, beside, box, join
from airloc.areas.synthetic.canvas import Canvas, Floats, floats
from airloc.areas.synthetic.lines import blend
from airloc.areas.synthetic.plan import Plan, Survey
from airloc.areas.synthetic.trees import Crowns

DISASTERS = ("burnt", "flooded", "debris")
"""Names of the disasters."""

SCAR_M = 1.8
"""Metres per texel of the noise that decides where damage is heavy."""
HOUSE_M = 13.0
"""Metres within which the parts of a house are damaged alike."""
TERRAIN_M = 2.2
"""Metres per texel of the land's height."""

RUBBLE = floats([(176, 168, 152), (138, 120, 100), (206, 202, 194), (110, 100, 92), (150, 132, 108)])


def severity(plan: Plan, x: Floats, y: Floats) -> Floats:
    """Return the severity of damage at points, 0 to 1."""
    hit: Floats = np.clip(0.92 + 0.42 * noise.at("cloud", x, y, SCAR_M, plan.shifts["damage"]), 0, 1)
    return hit


def damage_boxes(plan: Plan, disaster: str | None, boxes: Boxes) -> Boxes:
    """Destroy buildings; they keep their outlines."""
    if disaster not in ("burnt", "debris"):
        return boxes
    rng = plan.rng("strike", disaster)
    luck = noise.at("grain", boxes.x, boxes.y, HOUSE_M, plan.shifts["damage"])
    hit = severity(plan, boxes.x, boxes.y) + 0.35 * luck > (0.4 if disaster == "burnt" else 0.55)
    # Towers of concrete keep their walls.
    lost = boxes.buildings & hit & (boxes.height < 14)
    kind, factor = (Kind.ASH, 0.1) if disaster == "burnt" else (Kind.WRECK, 0.6)
    damaged = replace(
        boxes,
        kind=np.where(lost, kind, boxes.kind),
        height=np.where(lost, boxes.height * np.float32(factor), boxes.height),
    )
    return join([damaged, _scatter(rng, boxes[lost], 9 if disaster == "debris" else 2)])


def _scatter(rng: np.random.Generator, wrecks: Boxes, pieces: int) -> Boxes:
    """Scatter rubble around wrecks."""
    around = wrecks[np.repeat(np.arange(len(wrecks)), pieces)]
    n = len(around)
    u, v = (rng.normal(0, 0.5, (2, n)) * (np.stack([around.length, around.width]) + 7)).astype(np.float32)
    x, y = beside(around, u, v)
    turn = rng.uniform(0, np.pi, n)
    length, width = rng.uniform(1.5, 5.0, n), rng.uniform(0.8, 2.6, n)
    colour = RUBBLE[rng.integers(0, len(RUBBLE), n)]
    return box(x, y, np.cos(turn), np.sin(turn), length, width, 0.3, Kind.RUBBLE, colour)


def damage_crowns(plan: Plan, disaster: str | None, crowns: Crowns) -> Crowns:
    """Char or fell trees."""
    if disaster not in ("burnt", "debris"):
        return crowns
    rng = plan.rng("crowns", disaster)
    hard, luck = severity(plan, crowns.x, crowns.y), rng.random(crowns.x.shape)
    hit = luck < (0.95 if disaster == "burnt" else 0.65) * hard
    if disaster == "burnt":
        charred = floats([52, 46, 42]) * rng.uniform(0.7, 1.5, (*luck.shape, 1)).astype(np.float32)
        radius = crowns.radius * np.where(hit, rng.uniform(0.45, 0.85, luck.shape), 1.0)
    else:
        charred = floats([124, 108, 84]) * rng.uniform(0.8, 1.2, (*luck.shape, 1)).astype(np.float32)
        radius = np.where(hit & (luck < 0.3), 0.0, crowns.radius * np.where(hit, 0.75, 1.0))
    return replace(
        crowns,
        radius=radius.astype(np.float32),
        bare=crowns.bare | hit,
        colour=np.where(hit[..., None], charred, crowns.colour),
    )


def damage_ground(
    plan: Plan, disaster: str | None, canvas: Canvas, survey: Survey, image: Floats, grain: Floats
) -> None:
    """Scorch or litter the ground; roads and water stay as they are, a little dirtier."""
    if disaster not in ("burnt", "debris"):
        return
    scar = noise.sample("cloud", canvas, SCAR_M, plan.shifts["damage"])
    open_ground = np.clip((survey.clear + 2) / 6, 0, 1) * np.where(survey.road > -0.5, np.float32(0.12), np.float32(1))
    if disaster == "burnt":
        char = np.clip(0.82 + 0.4 * scar + 0.16 * grain, 0, 0.9) * open_ground
        ash = np.clip(0.3 + 0.35 * grain - 0.2 * scar, 0, 1)
        blend(image, char, floats([62, 56, 52])[:, None, None] + floats([70, 66, 62])[:, None, None] * ash)
    else:
        mess = np.clip(0.12 + 0.25 * scar + 0.27 * grain, 0, 0.7) * open_ground
        blend(image, mess, floats([150, 136, 114])[:, None, None] * (1 + 0.2 * grain))


def flood(plan: Plan, canvas: Canvas, survey: Survey, image: Floats, height: Floats, grain: Floats) -> None:
    """Paint brown water where the land is low and objects are lower than the water is deep."""
    terrain = noise.sample("cloud", canvas, TERRAIN_M, plan.shifts["land"])
    shore, fresh = _to_water(plan, survey)
    depth = _water_level(plan) - _elevation(terrain, np.minimum(shore, fresh))
    metres = 6.0 * np.where(np.minimum(shore, fresh) < 0, 1, depth)
    wet = np.clip(metres / 0.5, 0, 1) * np.clip((metres + 1.4 - height) / 0.6, 0, 1)
    wet *= np.clip(1.3 + shore / 90, 0.15, 1)  # The mud thins out at sea.
    murk = np.clip(0.5 + 0.5 * depth, 0, 1)
    tone = 1 + 0.03 * grain + 0.03 * terrain
    brown = [(high + (low - high) * murk) * tone for high, low in ((142, 116), (124, 100), (94, 76))]
    blend(image, wet * np.float32(0.93), np.stack(brown))


def _to_water(plan: Plan, survey: Survey) -> tuple[Floats, Floats]:
    """Return metres to the sea and to the nearest river or lake, negative inside."""
    far = np.full_like(survey.clear, 160.0)
    shore = -survey.curves["shore"][1] if "shore" in plan.curves else far
    fresh = far if survey.lake is None else survey.lake
    if "river" in plan.curves:
        fresh = np.minimum(fresh, np.abs(survey.curves["river"][1]) - plan.curves["river"].width / 2)
    return shore, fresh


def _elevation(terrain: Floats, away: Floats) -> Floats:
    """Return the elevation of the land: it rises from the water and undulates."""
    return 0.8 * terrain + np.clip(away, 0, 160) * np.float32(1 / 110)


def _water_level(plan: Plan) -> float:
    """Return the 45th percentile of the elevation, on a fixed raster, so that it does not depend on the resolution."""
    coarse = Canvas(32, 32, 1.0)
    x, y = coarse.x * np.float32(plan.ground_m[1] / 32), coarse.y * np.float32(plan.ground_m[0] / 32)
    shore, fresh = _to_water(plan, plan.survey(x, y))
    terrain = noise.at("cloud", x, y, TERRAIN_M, plan.shifts["land"])
    return (
        float(np.quantile(_elevation(terrain, np.minimum(shore, fresh))[shore > 0], 0.45)) if (shore > 0).any() else 0.0
    )
