"""Land cover of a procedural scene: what lies where, as the generator knows it."""

import numpy as np
import numpy.typing as npt

from airloc.areas.captions.land_cover import Buildings, Cover, LandCover
from airloc.areas.synthetic.appearance import draw_appearance
from airloc.areas.synthetic.boxes import Boxes, Kind, stamp
from airloc.areas.synthetic.canvas import Bools, Canvas, Ints
from airloc.areas.synthetic.plan import Plan, Survey
from airloc.areas.synthetic.regimes import Use
from airloc.areas.synthetic.render import LAYOUT_PX, occupied, place_boxes
from airloc.areas.synthetic.trees import draw_crowns, render_canopy

_USES = {
    Use.FIELD: Cover.FIELD,
    Use.COMMERCE: Cover.PAVED,
    Use.TOWERS: Cover.PAVED,
    Use.YARD: Cover.GROUND,
}
_OBJECTS = {
    Kind.PAVED: Cover.PAVED,
    Kind.PITCH: Cover.PITCH,
    Kind.COURT: Cover.PITCH,
    Kind.POOL: Cover.POOL,
}
_ROADS = {"railway": Cover.RAILWAY, "highway": Cover.HIGHWAY, "crossing": Cover.ROAD, "arterial": Cover.ROAD}
"""Classes of the long curves, in the order in which they pass over each other."""
SMALLEST_M2 = 30.0
"""Smaller boxes are machines on roofs and sheds, not buildings."""

KNOWN = frozenset(Cover) - {Cover.UNKNOWN}


def land_cover(plan: Plan, canvas: Canvas, cell: float) -> LandCover:
    """Return the land cover of a plan on a canvas, with cells of a side in pixels."""
    appearance, boxes = draw_appearance(plan, None), place_boxes(plan)
    survey = plan.survey(canvas.x, canvas.y)
    classes = _ground(plan, survey).ravel()
    for kind, cover in _OBJECTS.items():
        _mark(classes, boxes[boxes.kind == kind], canvas, cover)
    crowns = draw_crowns(plan, appearance, occupied(plan, boxes), LAYOUT_PX)
    canopy = render_canopy(crowns, canvas, appearance.sun).cover.ravel()
    classes[canopy > 0.5] = Cover.TREES
    buildings = boxes[boxes.buildings]
    _mark(classes, buildings, canvas, Cover.BUILDING)
    return LandCover(classes.reshape(canvas.height, canvas.width), KNOWN, _buildings(buildings, canvas, cell))


def _ground(plan: Plan, survey: Survey) -> npt.NDArray[np.uint8]:
    """Return the classes of ground, water and roads, (H, W)."""
    use: Ints = plan.uses.take(survey.place.block)
    natural = Cover.SAND if plan.name == "desert" else Cover.GRASS
    table = np.array([_USES.get(one, natural) for one in Use], dtype=np.uint8)
    classes = table[use]
    classes[survey.place.inside > 0] = Cover.ROAD
    if "shore" in plan.curves:
        across = survey.curves["shore"][1]
        classes[across > -14] = Cover.SAND
        classes[across > 0] = Cover.SEA
    if "river" in plan.curves:
        classes[np.abs(survey.curves["river"][1]) < plan.curves["river"].width / 2] = Cover.RIVER
    if survey.lake is not None:
        classes[survey.lake < 0] = Cover.LAKE
    classes[(survey.road > 0) & (survey.clear > 7)] = Cover.ROAD
    for role, cover in _ROADS.items():
        if role in plan.curves:
            classes[np.abs(survey.curves[role][1]) < plan.curves[role].width / 2] = cover
    return classes


def _mark(classes: npt.NDArray[np.uint8], boxes: Boxes, canvas: Canvas, cover: Cover) -> None:
    """Set the class of the pixels that boxes cover."""
    for one in stamp(boxes, canvas):
        classes[one.pixel] = cover


def _buildings(boxes: Boxes, canvas: Canvas, cell: float) -> Buildings:
    """Return the buildings that stand on the ground; machines and storeys on roofs are none."""
    area = boxes.length * boxes.width
    order = np.argsort(-area)[: int((area > SMALLEST_M2).sum())]
    boxes, area = boxes[order], area[order]
    dx, dy = boxes.x[:, None] - boxes.x, boxes.y[:, None] - boxes.y
    along, across = dx * boxes.cos + dy * boxes.sin, dy * boxes.cos - dx * boxes.sin
    within = (np.abs(along) < boxes.length / 2) & (np.abs(across) < boxes.width / 2)
    # A smaller box whose centre lies on a larger one belongs to it.
    own: Bools = np.logical_not(np.tril(within, -1).any(axis=1))
    boxes, area = boxes[own], area[own]
    return Buildings(
        row=(boxes.y / canvas.px + canvas.height / 2).astype(np.float64),
        col=(boxes.x / canvas.px + canvas.width / 2).astype(np.float64),
        size=(area / (cell * canvas.px) ** 2).astype(np.float64),
        colour=boxes.colour.astype(np.float64),
    )
