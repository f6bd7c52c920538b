"""Paint boxes from above at twice the resolution of the image, each kind in its own way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.areas.synthetic import noise
from airloc.areas.synthetic.appearance import Appearance
from airloc.areas.synthetic.boxes import Boxes, Kind, Stamp, stamp
from airloc.areas.synthetic.canvas import Bools, Canvas, Floats, floats

FINER = 2
"""Pixels of the objects' canvas per pixel of the image, per side."""


@dataclass(frozen=True)
class Objects:
    """All boxes rendered from above, on the finer canvas."""

    colour: npt.NDArray[np.uint8]
    """RGB and 255 where there is an object, bytes (h, w, 4)."""
    height: Floats
    """Metres above the ground, (h, w)."""
    roof: Bools
    """True on buildings, (h, w)."""

    def reduced(self) -> tuple[Floats, Floats]:
        """Return the objects at the resolution of the image: colours times cover (3, H, W), and cover (H, W)."""
        height, width = self.height.shape
        # CMYK is the mode of four plain channels: nothing is weighted by the last one.
        reduced = Image.frombuffer("CMYK", (width, height), self.colour, "raw", "CMYK", 0, 1).reduce(FINER)
        planes = np.asarray(reduced).transpose(2, 0, 1).astype(np.float32)
        return planes[:3], planes[3] * np.float32(1 / 255)


def paint_objects(boxes: Boxes, appearance: Appearance, canvas: Canvas) -> Objects:
    """Paint boxes in the order of their kinds, from driveways to roofs."""
    fine = canvas.finer(FINER)
    count = fine.height * fine.width
    colour = np.zeros(count, dtype=np.uint32)
    height, roof = np.zeros(count, dtype=np.float32), np.zeros(count, dtype=np.bool_)
    for kind in Kind:
        chosen = boxes.kind == kind
        if not chosen.any():
            continue
        layer = boxes[chosen]
        for one in stamp(layer, fine):
            painted, rise, shown = PAINTERS[kind](layer, one, appearance)
            top = layer.height[one.owner] + rise
            shown &= top >= height[one.pixel]
            pixel = one.pixel[shown]
            colour[pixel] = _packed(painted[shown])
            height[pixel] = top[shown]
            if kind >= Kind.FLAT:
                roof[one.pixel] = True
    shape = fine.height, fine.width
    return Objects(colour.view(np.uint8).reshape(*shape, 4), height.reshape(shape), roof.reshape(shape))


def _packed(colour: Floats) -> npt.NDArray[np.uint32]:
    """Pack colours (k, 3) into four bytes each, the last one 255, because writing one number is faster."""
    quads = np.full((len(colour), 4), 255, dtype=np.uint8)
    quads[:, :3] = np.clip(colour, 0, 255)
    return quads.view(np.uint32).ravel()


Painted: TypeAlias = tuple[Floats, Floats, Bools]
"""Colour (k, 3), metres above the box's height (k,), and whether the pixel shows at all (k,)."""


def _speckle(on: Stamp, step: float = 0.8) -> Floats:
    """Noise that is fixed to the boxes, (k,)."""
    texels = noise.tile("grain").ravel()
    u, v = (on.u / step).astype(np.intp), (on.v / step).astype(np.intp)
    values: Floats = texels[(u * noise.TILE + v + on.owner * 7919) % len(texels)]
    return values


def _plain(boxes: Boxes, on: Stamp, factor: Floats) -> Painted:
    """The box's own colour times a factor."""
    return boxes.colour[on.owner] * factor[:, None], np.zeros_like(on.u), np.ones(on.u.shape, dtype=np.bool_)


def _edge(boxes: Boxes, on: Stamp) -> Floats:
    """Metres to the nearest side of the box, (k,)."""
    return np.minimum(boxes.length[on.owner] / 2 - np.abs(on.u), boxes.width[on.owner] / 2 - np.abs(on.v))


def _paved(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """Concrete or asphalt; on car parks, white lines between the stalls."""
    factor = 1 + 0.05 * _speckle(on)
    row = np.mod(on.v, 17.0)
    marked = (np.mod(on.u, 2.9) < 0.25) & (np.abs(row - 8.5) < 5.0) & (boxes.width[on.owner] > 12)
    return _plain(boxes, on, np.where(marked, 1.45, factor))


def _yard(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """Earth with ragged edges."""
    colour, rise, shown = _plain(boxes, on, 1 + 0.09 * _speckle(on))
    return colour, rise, shown & (_edge(boxes, on) > 1.5 + 1.5 * _speckle(on, 2.0))


def _pool(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    colour, rise, shown = _plain(boxes, on, 1 + 0.04 * _speckle(on))
    return np.where((_edge(boxes, on) > 0.9)[:, None], floats([92, 178, 196]), colour), rise, shown


def _pitch(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """Mown in stripes, with white lines; large ones lie in a running track."""
    mown = 1 + 0.05 * np.sign(np.sin(on.u * (2 * np.pi / 11))) + 0.05 * _speckle(on)
    colour, rise, shown = _plain(boxes, on, mown)
    half = boxes.length[on.owner] / 2, boxes.width[on.owner] / 2
    edge = _edge(boxes, on)
    tracked = (half[0] > 42) & (half[1] > 24)
    # The ends of a track are round: distance to a stadium instead of a rectangle.
    over = np.maximum(np.abs(on.u) - (half[0] - half[1]), 0)
    oval = half[1] - np.hypot(over, on.v)
    inset = np.where(tracked, oval - 7, edge - 1.5)
    line = np.abs(inset) < 0.4
    line |= (np.abs(on.u) < 0.4) & (inset > 0)
    line |= np.abs(np.hypot(on.u, on.v) - 8) < 0.4
    colour = np.where((tracked & (oval < 6.5))[:, None], floats([158, 92, 76]), colour)
    # Some pitches have lost their lines.
    line &= (boxes.x[on.owner].astype(np.intp) % 3 > 0) | tracked
    return (
        np.where(line[:, None], 0.5 * colour + floats([105, 105, 100]), colour),
        rise,
        shown & (~tracked | (oval > 0)),
    )


def _court(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    colour, rise, shown = _plain(boxes, on, 1 + 0.03 * _speckle(on))
    edge = _edge(boxes, on)
    line = (np.abs(edge - 3) < 0.2) | ((np.abs(on.u) < 0.2) & (edge > 3))
    colour = np.where((edge < 3)[:, None], colour * floats([0.8, 0.95, 0.85]), colour)
    return np.where(line[:, None], floats([214, 214, 206]), colour), rise, shown


def _rubble(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    speckle = _speckle(on, 0.6)
    colour, rise, shown = _plain(boxes, on, 1 + 0.3 * speckle)
    return colour, rise, shown & (speckle > -0.9)


def _car(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """A body with a dark windscreen before the roof and a rear window behind it."""
    place = on.u / boxes.length[on.owner]
    glass = ((np.abs(place - 0.17) < 0.07) | (np.abs(place + 0.3) < 0.05)) & (boxes.length[on.owner] < 7)
    return _plain(boxes, on, np.where(glass, 0.4, 1.0))


def _boat(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """A hull that narrows towards the bow, with a darker cockpit."""
    place, beam = on.u / boxes.length[on.owner] + 0.5, np.abs(on.v) / (boxes.width[on.owner] / 2)
    colour, rise, shown = _plain(boxes, on, np.where((np.abs(place - 0.3) < 0.15) & (beam < 0.6), 0.6, 1.0))
    return colour, rise, shown & (beam < 1.05 - place**3)


def _shading(boxes: Boxes, on: Stamp, appearance: Appearance, out_u: Floats, out_v: Floats) -> Floats:
    """Return the brightness of a roof face relative to level ground, for its outward direction (u, v)."""
    towards_u = boxes.cos * appearance.sun[0] + boxes.sin * appearance.sun[1]
    towards_v = boxes.cos * appearance.sun[1] - boxes.sin * appearance.sun[0]
    towards = out_u * towards_u[on.owner] + out_v * towards_v[on.owner]
    return np.clip(0.93 + 0.42 * towards / appearance.tan_elevation, 0.5, 1.27)


def _flat(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """Gravel or sheet, stained, with a parapet around it."""
    parapet = (_edge(boxes, on) < 0.7) & (boxes.width[on.owner] > 6)
    stain = 1 + 0.05 * _speckle(on) + 0.05 * _speckle(on, 4.0)
    return _plain(boxes, on, np.where(parapet, 1.16, stain))


def _gable(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """Two faces that meet in a ridge along the length."""
    inward = boxes.width[on.owner] / 2 - np.abs(on.v)
    lit = _shading(boxes, on, appearance, np.zeros_like(on.u), np.sign(on.v))
    colour, _, shown = _plain(boxes, on, lit * (1 + 0.05 * _speckle(on)))
    return colour, 0.5 * inward, shown


def _hip(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """Four faces: each point slopes to its nearest side."""
    inward_u = boxes.length[on.owner] / 2 - np.abs(on.u)
    inward_v = boxes.width[on.owner] / 2 - np.abs(on.v)
    end = inward_u < inward_v
    lit = _shading(boxes, on, appearance, np.where(end, np.sign(on.u), 0), np.where(end, 0, np.sign(on.v)))
    colour, _, shown = _plain(boxes, on, lit * (1 + 0.05 * _speckle(on)))
    return colour, 0.5 * np.minimum(inward_u, inward_v), shown


def _ash(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """Grey ash between the stumps of walls."""
    speckle = _speckle(on, 1.2)
    wall = _edge(boxes, on) < 0.6
    grey = np.where(wall, 92 + 30 * speckle, 142 + 34 * speckle)
    return grey[:, None] * floats([1.0, 0.98, 0.95]), np.zeros_like(on.u), np.ones(on.u.shape, dtype=np.bool_)


def _wreck(boxes: Boxes, on: Stamp, appearance: Appearance) -> Painted:
    """A roof with holes through which the rooms show, and here and there a tarpaulin."""
    colour, rise, shown = _gable(boxes, on, appearance)
    hole = _speckle(on, 2.4) + 0.4 * _speckle(on) > 0.1
    inside = floats([134, 116, 94]) * (1 + 0.35 * _speckle(on, 0.7))[:, None]
    tarpaulin = (_speckle(on, 5.0) > 1.2) & ~hole
    colour = np.where(hole[:, None], inside, colour)
    return np.where(tarpaulin[:, None], floats([78, 116, 172]), colour), rise * ~hole, shown


PAINTERS: dict[Kind, Callable[[Boxes, Stamp, Appearance], Painted]] = {
    Kind.YARD: _yard,
    Kind.PAVED: _paved,
    Kind.POOL: _pool,
    Kind.PITCH: _pitch,
    Kind.COURT: _court,
    Kind.RUBBLE: _rubble,
    Kind.CAR: _car,
    Kind.BOAT: _boat,
    Kind.FLAT: _flat,
    Kind.GABLE: _gable,
    Kind.HIP: _hip,
    Kind.ASH: _ash,
    Kind.WRECK: _wreck,
}
"""Paint functions by kind."""
