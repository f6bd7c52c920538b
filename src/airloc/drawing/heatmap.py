"""A belief as a heat map over its area.

Unvisited cells show the area in grey under the colour of their probability. Visited cells show the image. The colours
are perceptually uniform and start at probability 0. A colour bar below the picture shows where they end.

Legend: Pixels: uint8 RGB (H, W, 3). A belief has shape (rows, cols): the probability of each cell to be the goal.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from airloc.drawing.canvas import Canvas, Frame, Pixels, fit_text, font, require_pixels, text_width
from airloc.drawing.palette import GOAL, MARGIN, OUTSIDE, PAPER, SOFT, START, TEXT, Colour, heat, text_on
from airloc.drawing.trajectory import draw_path
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

STRIP_GAP = 16
"""Pixels between the frames of a strip."""
_OPACITY = 0.66
_GAP = 0.35
"""Brightness of the gaps between cells, which no agent observes."""


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
        image: The area's image, with the aspect of the grid at any resolution.
        grid: The grid.
        belief: Probabilities of shape (rows, cols).
        position: Cell of the agent, outlined. It may lie outside the grid.
        goal: Cell of the goal, outlined and marked with a G.
        visited: Cells that the agent has observed.
        path: Cells in the order of the visits, beginning with the start. They are numbered, and the last is `position`.
        top: Probability of the brightest colour. Defaults to the largest of the belief, and to at least four times the
            uniform probability, so that a flat belief looks flat. Use one value for all frames of an animation.
        scale: Pixels of the picture for one pixel of the grid.
        margin: Cells of margin on every side, for frames of one size. Defaults to what the cells need.

    Returns:
        The picture with its colour bar.

    Raises:
        AirlocError: If the belief does not fit the grid, or if `top` is not a probability above 0.
    """
    probabilities = _require_belief(belief, grid)
    at_least = top is not None and top < 1
    if top is None:
        top = min(1.0, max(float(probabilities.max()), 4 / grid.count))
    elif not 0 < top <= 1:
        raise AirlocError(f"A heat map cannot end at {top}", "Use a probability above 0 and at most 1")
    position = path[-1] if path else position
    seen = {*visited, *path, *([] if position is None else [position])}
    frame = Frame.around(grid, [*seen, *([] if goal is None else [goal])], scale, margin)
    picture = _tint(frame, frame.backdrop(image), probabilities / top, seen)
    canvas = Canvas(frame.size[1], frame.size[0])
    for cell in seen:
        if not grid.contains(frame.clamp(cell)):
            canvas.box(frame.box(cell), fill=OUTSIDE)
    _write_probabilities(canvas, frame, picture, probabilities, seen, goal)
    _outline(canvas, frame, position, START, dot=not path)
    _outline(canvas, frame, goal, GOAL, letter="" if goal in path else "G")
    if path:
        draw_path(canvas, frame, path, goal if goal in path else None)
    return np.concatenate([canvas.over(picture), _colour_bar(frame.size[1], scale, top, at_least)])


def belief_strip(
    frames: Sequence[Pixels], captions: Sequence[str] | None = None, *, columns: int | None = None
) -> Pixels:
    """Arrange frames in rows, each below its caption.

    Args:
        frames: At least one frame.
        captions: One caption for each frame, or None.
        columns: Frames in a row. Defaults to all.

    Raises:
        AirlocError: If there is no frame, or if the number of captions or columns is wrong.
    """
    columns = len(frames) if columns is None else columns
    if not frames or columns < 1 or (captions is not None and len(captions) != len(frames)):
        raise AirlocError(
            f"A strip has {len(frames)} frames, {columns} columns and {len(captions or ())} captions",
            "Use at least one frame and one column, and one caption for each frame or none",
        )
    size = max(12, max(require_pixels(frame, "frame").shape[0] for frame in frames) // 28)
    rows = [slice(first, first + columns) for first in range(0, len(frames), columns)]
    return stack_vertically([_row(frames[row], None if captions is None else captions[row], size) for row in rows])


def stack_vertically(pictures: Sequence[Pixels], gap: int = STRIP_GAP) -> Pixels:
    """Return pictures below each other on white, `gap` pixels apart."""
    width = max(picture.shape[1] for picture in pictures)
    height = sum(picture.shape[0] for picture in pictures) + gap * (len(pictures) - 1)
    page = np.full((height, width, 3), 255, dtype=np.uint8)
    top = 0
    for picture in pictures:
        page[top : top + picture.shape[0], : picture.shape[1]] = picture
        top += picture.shape[0] + gap
    return page


def _row(frames: Sequence[Pixels], captions: Sequence[str] | None, size: int) -> Pixels:
    """Return one row of a strip, with captions of a font size in pixels."""
    head = 0 if captions is None else 2 * size
    width = sum(frame.shape[1] for frame in frames) + STRIP_GAP * (len(frames) - 1)
    strip = Image.new("RGB", (width, head + max(frame.shape[0] for frame in frames)), PAPER)
    pen, left = ImageDraw.Draw(strip), 0
    for number, frame in enumerate(frames):
        strip.paste(Image.fromarray(frame), (left, head))
        if captions is not None:
            caption = fit_text(captions[number], size, frame.shape[1])
            pen.text((left, head / 2), caption, font=font(size), fill=TEXT, anchor="lm")
        left += frame.shape[1] + STRIP_GAP
    return np.array(strip)


def _require_belief(belief: npt.ArrayLike, grid: Grid) -> npt.NDArray[np.float64]:
    """Return the belief as an array if it has one probability for every cell."""
    probabilities = np.asarray(belief, dtype=np.float64)
    if probabilities.shape != grid.shape:
        raise AirlocError(
            f"A belief of shape {probabilities.shape} does not fit a {grid} grid", "Use one value for each cell"
        )
    if not np.isfinite(probabilities).all() or probabilities.min() < 0 or probabilities.max() > 1 + 1e-6:
        raise AirlocError("The belief has values that are not probabilities", "Use finite values from 0 to 1")
    return probabilities


def _tint(frame: Frame, picture: Pixels, values: npt.NDArray[np.float64], seen: Collection[Cell]) -> Pixels:
    """Return the picture in dim grey, with the colours of values (rows, cols) on the cells that were not seen."""
    grey = np.broadcast_to(picture.mean(axis=2, keepdims=True), picture.shape)
    tinted = picture.copy()
    tinted[frame.area] = (_GAP * grey[frame.area]).astype(np.uint8)
    for cell in frame.grid.cells():
        part = frame.part(cell)
        mixed = _OPACITY * heat(values[cell]) + (1 - _OPACITY) * grey[part]
        tinted[part] = picture[part] if cell in seen else mixed.astype(np.uint8)
    return tinted


def _write_probabilities(
    canvas: Canvas,
    frame: Frame,
    picture: Pixels,
    probabilities: npt.NDArray[np.float64],
    seen: Collection[Cell],
    goal: Cell | None,
) -> None:
    """Write each probability in percent if it fits. That of the goal is lower, below its letter."""
    size = frame.cell * 0.2
    if size < 7:
        return
    for cell in frame.grid.cells():
        if cell not in seen:
            red, green, blue = (int(channel) for channel in picture[frame.part(cell)].mean(axis=(0, 1)))
            x, y = frame.centre(cell)
            place = x, y + (0.24 * frame.cell if cell == goal else 0)
            canvas.text(place, percent(float(probabilities[cell])), size, text_on((red, green, blue)))


def percent(probability: float) -> str:
    """Return a probability in percent, with two digits if it is small.

    >>> percent(0.4), percent(0.0432), percent(0.0004), percent(0)
    ('40 %', '4.3 %', '<0.1 %', '0 %')
    """
    if probability == 0:
        return "0 %"
    if probability < 0.0005:
        return "<0.1 %"
    return f"{100 * probability:.1f} %" if probability < 0.0995 else f"{100 * probability:.0f} %"


def _outline(
    canvas: Canvas, frame: Frame, cell: Cell | None, colour: Colour, *, letter: str = "", dot: bool = False
) -> None:
    """Outline a cell, with a letter on a disc or a dot in it."""
    if cell is None:
        return
    width = frame.cell / 22
    canvas.outline(frame.box(cell), colour, width, casing=TEXT if colour == GOAL else PAPER, inset=0.35 * width)
    x, y = frame.centre(cell)
    if letter:
        at, radius = (x, y - 0.14 * frame.cell), 0.19 * frame.cell
        canvas.disc(at, radius, colour, TEXT, radius * 0.11)
        canvas.text(at, letter, 1.35 * radius, text_on(colour))
    elif dot:
        canvas.disc((x, y), 0.1 * frame.cell, colour, PAPER, 0.02 * frame.cell)


def _colour_bar(width: int, scale: int, top: float, at_least: bool) -> Pixels:
    """Return the colour bar from 0 to `top`. A plus sign after `top` shows that larger values look the same."""
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
