"""Objects with four corners, from cars to towers: arrays of rotated rectangles, and the pixels they cover.

Legend: n: number of boxes; k: number of covered pixels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Self, TypeVar

import numpy as np

from airloc.areas.synthetic.canvas import Bools, Canvas, Floats, Ints, floats


class Kind(IntEnum):
    """The kind of an object, which decides how it is painted."""

    YARD = 0
    """Trodden ground of a farm."""
    PAVED = 1
    """Driveways, patios, car parks, piers."""
    POOL = 2
    PITCH = 3
    COURT = 4
    RUBBLE = 5
    """Debris of a disaster."""
    CAR = 6
    BOAT = 7
    FLAT = 8
    """Buildings from here on: a flat roof with a parapet."""
    GABLE = 9
    HIP = 10
    ASH = 11
    """A building after a fire."""
    WRECK = 12
    """A building after a storm."""


@dataclass(frozen=True)
class Columns:
    """Base of tables of items: every field is an array whose first axis is the items."""

    def __getitem__(self, chosen: Bools | Ints) -> Self:
        return replace(self, **{column.name: getattr(self, column.name)[chosen] for column in fields(self)})


Table = TypeVar("Table", bound=Columns)


def join(parts: list[Table]) -> Table:
    """Concatenate tables."""
    names = [column.name for column in fields(parts[0])]
    return replace(parts[0], **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


@dataclass(frozen=True)
class Boxes(Columns):
    """Rotated rectangles on the ground."""

    x: Floats
    y: Floats
    cos: Floats
    """East component of the direction of the length."""
    sin: Floats
    length: Floats
    width: Floats
    height: Floats
    """Metres above the ground."""
    kind: Ints
    colour: Floats
    """(n, 3)"""

    def __len__(self) -> int:
        return len(self.x)

    @property
    def buildings(self) -> Bools:
        """True for buildings, (n,)."""
        return self.kind >= Kind.FLAT

    def overlapping(self, ground_m: tuple[float, float]) -> Bools:
        """Return True for boxes that may overlap an area of a height and width in metres."""
        reach = np.maximum(self.length, self.width)
        seen: Bools = (np.abs(self.x) < ground_m[1] / 2 + reach) & (np.abs(self.y) < ground_m[0] / 2 + reach)
        return seen

    def points(self, side: int) -> tuple[Floats, Floats]:
        """(x, y) of `side` x `side` points spread over each box, corners included, each (side * side, n)."""
        u, v = (one.reshape(-1, 1) for one in np.meshgrid(*[np.linspace(-0.5, 0.5, side, dtype=np.float32)] * 2))
        return beside(self, u * self.length, v * self.width)


def box(
    x: Floats, y: Floats, cos: Floats, sin: Floats, length: Floats | float, width: Floats | float,
    height: Floats | float, kind: Ints | int, colour: Floats,
) -> Boxes:  # fmt: skip
    """Make boxes; scalars hold for all of them."""
    n = len(x)
    seven = (np.broadcast_to(floats(one), n) for one in (x, y, cos, sin, length, width, height))
    px, py, pcos, psin, plength, pwidth, pheight = seven
    kinds = np.broadcast_to(np.asarray(kind, dtype=np.intp), n)
    return Boxes(px, py, pcos, psin, plength, pwidth, pheight, kinds, np.broadcast_to(floats(colour), (n, 3)))


def no_boxes() -> Boxes:
    """Return an empty list of boxes."""
    none = np.zeros(0, dtype=np.float32)
    return box(none, none, none, none, 0, 0, 0, Kind.PAVED, np.zeros((0, 3), dtype=np.float32))


def beside(base: Boxes, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """(x, y) of points given in the boxes' own directions, along (u) and across (v), from their centres."""
    return base.x + u * base.cos - v * base.sin, base.y + u * base.sin + v * base.cos


@dataclass(frozen=True)
class Stamp:
    """The pixels that boxes cover."""

    pixel: Ints
    """Flat pixel index, (k,)."""
    owner: Ints
    """Index of the box that covers it, (k,)."""
    u: Floats
    """Metres from the box's centre along its length, (k,)."""
    v: Floats
    """Metres from the box's centre across, (k,)."""


def stamp(boxes: Boxes, canvas: Canvas) -> Iterator[Stamp]:
    """Find the pixels whose centres lie in boxes, for boxes of similar sizes at a time.

    Every box gets a square window that holds it; sharing windows among similar sizes keeps them tight.
    """
    reach = np.ceil(np.hypot(boxes.length, boxes.width) / 2 / canvas.px).astype(np.intp)
    steps = np.ceil(1.8 * np.log2(np.maximum(reach, 1))).astype(np.intp)
    for step in np.unique(steps):
        owner = np.flatnonzero(steps == step)
        radius = int(reach[owner].max())
        # Windows of few boxes at a time, so that large areas do not need memory for all of them at once.
        batch = max(1, 400_000 // (2 * radius + 1) ** 2)
        for start in range(0, len(owner), batch):
            yield _stamp_windows(boxes, owner[start : start + batch], radius, canvas)


def _stamp_windows(boxes: Boxes, owner: Ints, radius: int, canvas: Canvas) -> Stamp:
    """Find the covered pixels within windows of (2 radius + 1) pixels a side."""
    steps = np.arange(-radius, radius + 1)
    col = np.floor(boxes.x[owner] / canvas.px + canvas.width / 2).astype(np.intp)[:, None] + steps
    row = np.floor(boxes.y[owner] / canvas.px + canvas.height / 2).astype(np.intp)[:, None] + steps
    dx = ((col + 0.5 - canvas.width / 2) * canvas.px).astype(np.float32) - boxes.x[owner, None]
    dy = ((row + 0.5 - canvas.height / 2) * canvas.px).astype(np.float32) - boxes.y[owner, None]
    cos, sin = boxes.cos[owner, None, None], boxes.sin[owner, None, None]
    u = dx[:, None, :] * cos + dy[:, :, None] * sin
    v = dy[:, :, None] * cos - dx[:, None, :] * sin
    covered = np.abs(u) <= boxes.length[owner, None, None] / 2
    covered &= np.abs(v) <= boxes.width[owner, None, None] / 2
    covered &= ((row >= 0) & (row < canvas.height))[:, :, None] & ((col >= 0) & (col < canvas.width))[:, None, :]
    flat = np.flatnonzero(covered)
    which, within = np.divmod(flat, (2 * radius + 1) ** 2)
    i, j = np.divmod(within, 2 * radius + 1)
    return Stamp(row[which, i] * canvas.width + col[which, j], owner[which], u.take(flat), v.take(flat))
