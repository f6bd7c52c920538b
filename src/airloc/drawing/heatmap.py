"""Where the goal probably is: a belief as a heat map over its area.

Cells not yet visited show the area in grey under the colour of their probability; visited cells show what the
agent saw. The colours are perceptually uniform and start at 0; a bar below says where they end.

Legend: Pixels: uint8 RGB (H, W, 3); a belief is (rows, cols), each cell's probability of being the goal.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from airloc.drawing.canvas import Canvas, Frame, Pixels, font, require_pixels, shorten, text_width
from airloc.drawing.palette import GOAL, MARGIN, OUTSIDE, PAPER, SOFT, START, TEXT, Colour, heat, text_on
from airloc.drawing.trajectory import Route, draw_routes
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

_OPACITY = 0.66
_GAP = 0.35
"""How bright the gaps, which nobody observes, are left."""


def draw_belief(
    image: Pixels,
    grid: Grid,
    belief: npt.ArrayLike,
    *,
    position: Cell | None = None,
    goal: Cell | None = None,
    visited: Collection[Cell] = (),
    path: Sequence[Cell] = (),
    top: float | None = None,
    scale: int = 3,
    margin: int | None = None,
) -> Pixels:
    """Draw a belief over its area.

    Args:
        image: The area, of the grid's shape at any resolution.
        grid: The grid.
        belief: Probabilities (rows, cols).
        position: Where the agent is; outlined, also outside the grid.
        goal: Where the goal is; outlined with a G.
        visited: Cells the agent has seen; shown as they look.
        path: Cells visited in order, the first the start: drawn with numbers and S; its last is the position.
        top: The probability from which on colours are brightest; by default the largest of the belief, at least four
            times the uniform one, so that a flat belief looks flat. Give one value to all frames of a strip.
        scale: Pixels of the picture for one of the grid.
        margin: Cells of margin on every side, for frames of one size; by default as many as are needed.

    Returns:
        The picture, with the legend below.
    """
    chances = _require_belief(belief, grid)
    at_least = top is not None and top < 1
    if top is None:
        top = min(1.0, max(float(chances.max()), 4 / grid.count))
    elif not 0 < top <= 1:
        raise AirlocError(f"A heat map cannot end at {top}", "Give a probability above 0, at most 1")
    position = path[-1] if path else position
    seen = {*visited, *path, *([] if position is None else [position])}
    frame = Frame.around(grid, [*seen, *([] if goal is None else [goal])], scale, margin)
    picture = _tinted(frame, frame.backdrop(image), chances / top, seen)
    canvas = Canvas(frame.size[1], frame.size[0])
    for cell in seen:
        if not grid.contains(frame.clamp(cell)):
            canvas.box(frame.box(cell), fill=OUTSIDE)
    _write_chances(canvas, frame, picture, chances, seen, goal)
    _outline(canvas, frame, position, START, dot=not path)
    _outline(canvas, frame, goal, GOAL, letter="" if goal in path else "G")
    if path:
        draw_routes(canvas, frame, [Route(path)], goal if goal in path else None)
    return np.concatenate([canvas.over(picture), _colour_bar(frame.size[1], scale, top, at_least)])


def belief_strip(
    frames: Sequence[Pixels], captions: Sequence[str] | None = None, *, gap: int = 16, columns: int | None = None
) -> Pixels:
    """Lay frames in a row, or in rows of `columns`, each under its caption, `gap` pixels apart.

    Raises:
        AirlocError: When there is no frame, or not one caption a frame.
    """
    columns = len(frames) if columns is None else columns
    if not frames or columns < 1 or (captions is not None and len(captions) != len(frames)):
        raise AirlocError(
            f"A strip of {len(frames)} frames in {columns} columns cannot have {len(captions or ())} captions",
            "Give at least one frame and one column, and one caption each or none",
        )
    size = max(12, max(require_pixels(frame, "frame").shape[0] for frame in frames) // 28)
    rows = [slice(first, first + columns) for first in range(0, len(frames), columns)]
    return stacked([_row(frames[row], None if captions is None else captions[row], gap, size) for row in rows], gap)


def stacked(pictures: Sequence[Pixels], gap: int = 16) -> Pixels:
    """Lay pictures below each other on white, `gap` pixels apart."""
    width = max(picture.shape[1] for picture in pictures)
    height = sum(picture.shape[0] for picture in pictures) + gap * (len(pictures) - 1)
    page = np.full((height, width, 3), 255, dtype=np.uint8)
    top = 0
    for picture in pictures:
        page[top : top + picture.shape[0], : picture.shape[1]] = picture
        top += picture.shape[0] + gap
    return page


def _row(frames: Sequence[Pixels], captions: Sequence[str] | None, gap: int, size: int) -> Pixels:
    """One row of a strip, with captions of a size in pixels."""
    head = 0 if captions is None else 2 * size
    width = sum(frame.shape[1] for frame in frames) + gap * (len(frames) - 1)
    strip = Image.new("RGB", (width, head + max(frame.shape[0] for frame in frames)), PAPER)
    pen, left = ImageDraw.Draw(strip), 0
    for number, frame in enumerate(frames):
        strip.paste(Image.fromarray(frame), (left, head))
        if captions is not None:
            caption = shorten(captions[number], size, frame.shape[1])
            pen.text((left, head / 2), caption, font=font(size), fill=TEXT, anchor="lm")
        left += frame.shape[1] + gap
    return np.array(strip)


def _require_belief(belief: npt.ArrayLike, grid: Grid) -> npt.NDArray[np.float64]:
    """The belief as an array, when it is one probability for every cell."""
    chances = np.asarray(belief, dtype=np.float64)
    if chances.shape != grid.shape:
        raise AirlocError(f"A belief of shape {chances.shape} does not fit a {grid} grid", "Give one value a cell")
    if not np.isfinite(chances).all() or chances.min() < 0 or chances.max() > 1 + 1e-6:
        raise AirlocError("The belief holds values that are no probabilities", "Give finite values from 0 to 1")
    return chances


def _tinted(frame: Frame, picture: Pixels, values: npt.NDArray[np.float64], seen: Collection[Cell]) -> Pixels:
    """Grey and dim the picture, lay the colours of values (rows, cols) over its cells and keep those seen."""
    grey = np.broadcast_to(picture.mean(axis=2, keepdims=True), picture.shape)
    tinted = picture.copy()
    tinted[frame.area] = (_GAP * grey[frame.area]).astype(np.uint8)
    for cell in frame.grid.cells():
        part = frame.part(cell)
        mixed = _OPACITY * heat(values[cell]) + (1 - _OPACITY) * grey[part]
        tinted[part] = picture[part] if cell in seen else mixed.astype(np.uint8)
    return tinted


def _write_chances(
    canvas: Canvas,
    frame: Frame,
    picture: Pixels,
    chances: npt.NDArray[np.float64],
    seen: Collection[Cell],
    goal: Cell | None,
) -> None:
    """Write each probability in percent where it fits; the goal's moves down to leave room for its letter."""
    size = frame.cell * 0.2
    if size < 7:
        return
    for cell in frame.grid.cells():
        if cell not in seen:
            red, green, blue = (int(channel) for channel in picture[frame.part(cell)].mean(axis=(0, 1)))
            x, y = frame.centre(cell)
            place = x, y + (0.24 * frame.cell if cell == goal else 0)
            canvas.text(place, percent(float(chances[cell])), size, text_on((red, green, blue)))


def percent(chance: float) -> str:
    """A probability in percent, with two digits where that says more.

    >>> percent(0.4), percent(0.0432), percent(0.0004), percent(0)
    ('40 %', '4.3 %', '<0.1 %', '0 %')
    """
    if chance == 0:
        return "0 %"
    if chance < 0.0005:
        return "<0.1 %"
    return f"{100 * chance:.1f} %" if chance < 0.0995 else f"{100 * chance:.0f} %"


def _outline(
    canvas: Canvas, frame: Frame, cell: Cell | None, colour: Colour, *, letter: str = "", dot: bool = False
) -> None:
    """Outline a cell on a casing, with a letter on a disc or a dot in it where asked for."""
    if cell is None:
        return
    width = frame.cell / 22
    left, top, right, bottom = frame.box(cell)
    inset = 0.35 * width
    canvas.box((left, top, right, bottom), outline=TEXT if colour == GOAL else PAPER, width=width + 2 * inset)
    canvas.box((left + inset, top + inset, right - inset, bottom - inset), outline=colour, width=width)
    x, y = frame.centre(cell)
    if letter:
        at, radius = (x, y - 0.14 * frame.cell), 0.19 * frame.cell
        canvas.disc(at, radius, colour, TEXT, radius * 0.11)
        canvas.text(at, letter, 1.35 * radius, text_on(colour))
    elif dot:
        canvas.disc((x, y), 0.1 * frame.cell, colour, PAPER, 0.02 * frame.cell)


def _colour_bar(width: int, scale: int, top: float, at_least: bool) -> Pixels:
    """A band with the colours from 0 to `top`, and beyond where it is the least of the last; their meaning right."""
    unit = max(1.6, scale)
    height, size, side = round(18 * unit), 7.5 * unit, 6 * unit
    name = "probability of the goal"
    if text_width(name, size) > 0.45 * width:
        name = "P(goal)"
    ends = percent(0), percent(top) + ("+" if at_least else "")
    left = round(side + text_width(ends[0], size) + 3 * unit)
    right = max(left + 1, round(width - 2 * side - text_width(ends[1] + name, size) - 3 * unit))
    box = left, round(5 * unit), right, round(13 * unit)
    band = np.full((height, width, 3), 255, dtype=np.uint8)
    colours = _OPACITY * heat(np.linspace(0, 1, right - left)) + (1 - _OPACITY) * 110
    band[box[1] : box[3], left:right] = colours[: width - left].astype(np.uint8)
    canvas = Canvas(width, height)
    canvas.box(box, outline=MARGIN, width=0.5 * unit)
    canvas.text((side + text_width(ends[0], size) / 2, height / 2), ends[0], size, TEXT)
    canvas.text((right + 3 * unit + text_width(ends[1], size) / 2, height / 2), ends[1], size, TEXT)
    canvas.text((width - side - text_width(name, size) / 2, height / 2), name, size, SOFT)
    return canvas.over(band)
