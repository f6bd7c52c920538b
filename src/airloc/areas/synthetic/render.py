"""Render a plan: ground, lines, objects, trees, shadows, camera.

Legend: intermediate images are float32 planes (3, H, W), in bytes.
"""

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.areas.area import Mask, Pixels
from airloc.areas.synthetic.appearance import Appearance, draw_appearance
from airloc.areas.synthetic.boxes import Boxes, Kind, join, stamp
from airloc.areas.synthetic.canvas import Bools, Canvas, Floats
from airloc.areas.synthetic.disasters import damage_boxes, damage_crowns, damage_ground, flood
from airloc.areas.synthetic.ground import paint_ground
from airloc.areas.synthetic.lines import blend, paint_lines
from airloc.areas.synthetic.lots import block_sides, draw_houses
from airloc.areas.synthetic.objects import FINER, Objects, paint_objects
from airloc.areas.synthetic.parcels import draw_parcels
from airloc.areas.synthetic.plan import Plan
from airloc.areas.synthetic.traffic import draw_traffic
from airloc.areas.synthetic.trees import Canopy, Crowns, draw_crowns, render_canopy

LAYOUT_PX = 2.0
"""Metres per pixel of the raster that keeps trees off buildings. It does not depend on the resolution."""

SHADE = (0.60, 0.565, 0.49)
"""Fraction of red, green and blue light that comes from the sun; the rest comes from the sky."""

UNIT = 8
"""Heights are compared in steps of 1 / UNIT metres where shadows are cast."""


def render(plan: Plan, canvas: Canvas, disaster: str | None) -> tuple[Pixels, Mask]:
    """Render the image and the exact mask of its buildings."""
    appearance = draw_appearance(plan, disaster)
    boxes = damage_boxes(plan, disaster, place_boxes(plan))
    survey = plan.survey(canvas.x, canvas.y)
    image, grain = paint_ground(plan, appearance, canvas, survey)
    paint_lines(plan, appearance, canvas, survey, image, grain)
    damage_ground(plan, disaster, canvas, survey, image, grain)
    objects = paint_objects(boxes, appearance, canvas)
    crowns = damage_crowns(plan, disaster, draw_crowns(plan, appearance, occupied(plan, boxes), LAYOUT_PX))
    canopy = render_canopy(crowns, canvas, appearance.sun)
    roof = _mean(objects.roof)
    colours, cover = objects.reduced()
    image *= 1 - cover
    image += colours
    _paint_trees(image, canopy, crowns, roof, grain)
    if disaster == "flooded":
        flood(plan, canvas, survey, image, np.maximum(canopy.height, _mean(objects.height)), grain)
    _shade(image, canopy, objects, appearance, canvas)
    return _expose(image, appearance), roof >= 0.5


def place_boxes(plan: Plan) -> Boxes:
    """Place all boxes of a plan: buildings, vehicles, car parks, gardens."""
    side = block_sides(plan)
    houses, around = draw_houses(plan, side)
    large, beside = draw_parcels(plan)
    boxes = join([around, beside, draw_traffic(plan, side), houses, large])
    return boxes[boxes.overlapping(plan.ground_m)]


def occupied(plan: Plan, boxes: Boxes) -> Bools:
    """Mark where no tree can stand (buildings, car parks, pools, pitches) on the fixed layout raster."""
    height, width = (int(np.ceil(side / LAYOUT_PX)) for side in plan.ground_m)
    layout = Canvas(height, width, LAYOUT_PX)
    occupied = np.zeros(height * width, dtype=np.bool_)
    for one in stamp(boxes[(boxes.kind != Kind.CAR) & (boxes.kind != Kind.RUBBLE)], layout):
        occupied[one.pixel] = True
    return occupied.reshape(height, width)


def _mean(fine: Floats | Bools) -> Floats:
    """Average the finer pixels of each pixel."""
    reduced = Image.fromarray(fine.view(np.uint8) * np.uint8(255) if fine.dtype == np.bool_ else fine).reduce(FINER)
    mean = np.asarray(reduced, dtype=np.float32)
    return mean * np.float32(1 / 255) if fine.dtype == np.bool_ else mean


def _paint_trees(image: Floats, canopy: Canopy, crowns: Crowns, roof: Floats, grain: Floats) -> None:
    """Paint crowns over the ground, but under the roofs; bare ones let the ground through."""
    bare = crowns.bare.take(canopy.crown)
    cover = canopy.cover * (1 - roof) * np.where(bare, np.float32(0.55), np.float32(1))
    lit = np.where(bare, np.float32(0.14), np.float32(0.27)) * canopy.facing
    tone = np.maximum(0.92 + lit + 0.15 * grain, 0.25)
    colour = crowns.colour.reshape(-1, 3)
    blend(image, cover, np.stack([colour[:, band].take(canopy.crown) * tone for band in range(3)]))


def _shade(image: Floats, canopy: Canopy, objects: Objects, appearance: Appearance, canvas: Canvas) -> None:
    """Darken what lies in shadow."""
    trees = np.repeat(np.repeat(canopy.height, FINER, axis=0), FINER, axis=1)
    height = np.where(objects.roof, objects.height, np.maximum(trees, objects.height))
    shadow = _mean(cast_shadows(height, canvas.finer(FINER), appearance.sun, appearance.tan_elevation))
    for plane, share in zip(image, SHADE, strict=True):
        plane *= 1 - np.float32(share) * shadow


def cast_shadows(height: Floats, canvas: Canvas, sun: tuple[float, float], tan_elevation: float) -> Bools:
    """Return the pixels that lie in shadow, (H, W).

    A pixel is in shadow up to the height of an object towards the sun, less the descent of the ray on the way. Each
    pass doubles the way, so that a few passes cover the longest shadow. Heights (H, W) are in metres; `sun` is the
    direction towards the sun (x, y).
    """
    ground = np.minimum(height * UNIT, 32000).astype(np.int16)
    shade = ground.copy()
    longest = float(height.max(initial=0.0)) / tan_elevation / canvas.px
    step = 1.0
    while step <= max(longest, 1.0):
        fall = np.int16(min(step * canvas.px * tan_elevation * UNIT, 32000))
        _raise_from(shade, round(step * sun[1]), round(step * sun[0]), fall)
        step *= 2
    return shade > ground + UNIT // 2


def _raise_from(shade: npt.NDArray[np.int16], down: int, right: int, fall: np.int16) -> None:
    """Raise every pixel to the shadow height at (down, right) of it, less the descent."""
    height, width = shade.shape
    to = _overlap(down, height), _overlap(right, width)
    source = _overlap(-down, height), _overlap(-right, width)
    shade[to] = np.maximum(shade[to], shade[source] - fall)


def _overlap(step: int, size: int) -> slice:
    """Return the part of an axis that has a pixel `step` further on."""
    return slice(max(0, -step), max(0, min(size, size - step)))


def _expose(image: Floats, appearance: Appearance) -> Pixels:
    """Apply the camera's gain and haze, and convert to bytes."""
    for plane, gain in zip(image, appearance.gain, strict=True):
        plane *= np.float32(gain)
        plane += np.float32(appearance.haze)
    return np.ascontiguousarray(np.clip(image, 0, 255).astype(np.uint8).transpose(1, 2, 0))
