"""Paths over an area, as in the paper's figures: S for the start, numbered circles for the visits, G for the goal.

A cell that is visited several times shows every number. Visits outside the area lie in a margin around it.

Legend: Pixels: uint8 RGB (H, W, 3). A path is a sequence of cells that begins with the start and may leave the grid.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from airloc.drawing.canvas import Canvas, Frame, Pixels, Point, text_width
from airloc.drawing.palette import GOAL, OUTSIDE, PAPER, PATH_A, START, TEAM, TEXT, Colour, text_on
from airloc.grid import Cell, Grid

Mark: TypeAlias = int
"""Number of the visit that a circle stands for; 0 is the start, `_GOAL` the goal."""

Places: TypeAlias = dict[tuple[Cell, Mark], tuple[Point, float]]
"""Centre and radius of each circle."""

_START, _GOAL = 0, -1


def draw_trajectory(
    image: Pixels,
    grid: Grid,
    path: Sequence[Cell],
    goal: Cell | None,
    *,
    colour: Colour = PATH_A,
    dashed: bool = False,
    scale: int = 3,
    found: bool | None = None,
    dim_unvisited: bool = False,
    margin: int | None = None,
) -> Pixels:
    """Draw a path over an area.

    Args:
        image: The area's image, with the aspect of the grid at any resolution.
        grid: The grid.
        path: Cells in the order of the visits, beginning with the start.
        goal: Cell of the goal. None hides it.
        colour: Colour of the line and the circles.
        dashed: Draw the line dashed.
        scale: Pixels of the picture for one pixel of the grid.
        found: Outline the goal solid instead of dashed. Defaults to True if the path visits the goal.
        dim_unvisited: Darken unvisited cells and the gaps between cells.
        margin: Cells of margin on every side, for pictures of one size. Defaults to what the path needs.
    """
    frame = Frame.around(grid, [*path, *([goal] if goal else [])], scale, margin)
    canvas, picture = _prepare(image, frame, path, goal, found=found, dim_unvisited=dim_unvisited)
    draw_path(canvas, frame, path, goal, colour=colour, dashed=dashed)
    return canvas.over(picture)


def draw_team(
    image: Pixels,
    grid: Grid,
    paths: Sequence[Sequence[Cell]],
    goal: Cell | None,
    *,
    scale: int = 3,
    legs: Sequence[Sequence[Sequence[Point]]] | None = None,
) -> Pixels:
    """Draw the paths of several drones over an area, each in its own colour, every other one dashed.

    Visits are numbered from 1 for each drone.

    Args:
        image: The area's image, with the aspect of the grid at any resolution.
        grid: The grid.
        paths: Cells of each drone inside the grid, beginning with its start; empty paths are left out.
        goal: Cell of the goal. None hides it.
        scale: Pixels of the picture for one pixel of the grid.
        legs: For each visit of each drone, the places (row, col) at which the leg to it bends, and that of the visit
            itself. By default, legs are straight between the centres of the cells.
    """
    frame = Frame.around(grid, (), scale, 0)
    visited = [cell for path in paths for cell in path]
    canvas, picture = _prepare(image, frame, visited, goal, found=None, dim_unvisited=True)
    for number, path in enumerate(paths):
        if path:
            own, colour = goal if goal in path else None, TEAM[number % len(TEAM)]
            flown = None if legs is None else legs[number]
            draw_path(canvas, frame, path, own, colour=colour, dashed=number % 2 == 1, first=1, legs=flown)
    return canvas.over(picture)


def _prepare(
    image: Pixels, frame: Frame, visited: Sequence[Cell], goal: Cell | None, *, found: bool | None, dim_unvisited: bool
) -> tuple[Canvas, Pixels]:
    """Return a canvas with the cells and the goal, and the ground below it."""
    picture = frame.backdrop(image)
    if dim_unvisited:
        picture = _dim(picture, frame, visited)
    canvas = Canvas(frame.size[1], frame.size[0])
    _draw_cells(canvas, frame, visited)
    if goal is not None:
        solid, width = goal in visited if found is None else found, frame.cell / 24
        dash = None if solid else frame.cell / 9
        canvas.outline(frame.box(goal), GOAL, width, casing=TEXT, inset=0.3 * width, dash=dash)
    return canvas, picture


def draw_path(
    canvas: Canvas,
    frame: Frame,
    path: Sequence[Cell],
    goal: Cell | None,
    *,
    colour: Colour = PATH_A,
    dashed: bool = False,
    first: int | None = None,
    legs: Sequence[Sequence[Point]] | None = None,
) -> None:
    """Draw a path with S at the start, the numbers of the other visits, and G if there is a goal.

    With `first`, the start has this number instead of S, and the next visit the one after it. `draw_team` describes
    `legs`.
    """
    legs = [[cell] for cell in map(frame.clamp, path)] if legs is None else legs
    places = _place_marks(frame, path, goal, legs)
    _draw_line(canvas, frame, path, places, legs, colour, dashed)
    _draw_marks(canvas, places, colour, first)


def _dim(picture: Pixels, frame: Frame, visited: Sequence[Cell]) -> Pixels:
    """Return the picture with the area in dark grey, except for the visited cells."""
    dim, area = picture.copy(), picture[frame.area]
    dim[frame.area] = (0.38 * (0.4 * area + 0.6 * area.mean(axis=2, keepdims=True))).astype(np.uint8)
    for cell in filter(frame.grid.contains, visited):
        dim[frame.part(cell)] = picture[frame.part(cell)]
    return dim


def _draw_cells(canvas: Canvas, frame: Frame, visited: Sequence[Cell]) -> None:
    """Outline the cells of the grid, and fill visited cells outside the grid."""
    for cell in frame.grid.cells():
        canvas.box(frame.box(cell), outline=PAPER, width=max(1.0, 0.4 * frame.scale), alpha=105)
    for cell in visited:
        if not frame.grid.contains(frame.clamp(cell)):
            canvas.box(frame.box(cell), fill=OUTSIDE)


def _place_marks(frame: Frame, path: Sequence[Cell], goal: Cell | None, legs: Sequence[Sequence[Point]]) -> Places:
    """Return the place and radius of every circle. Circles in one cell lie in the directions of their lines."""
    pulls: dict[Cell, dict[Mark, Point]] = defaultdict(dict)
    cells = [frame.clamp(cell) for cell in path]
    for visit, cell in enumerate(cells):
        ends = cells[max(0, visit - 1) : visit] + cells[visit + 1 : visit + 2]
        pulls[cell][visit] = sum(end[1] - cell[1] for end in ends), sum(end[0] - cell[0] for end in ends)
    if goal is not None:
        pulls[frame.clamp(goal)][_GOAL] = (0.0, 0.0)
    middles = {cell: leg[-1] for cell, leg in zip(cells, legs, strict=True)}
    places: Places = {}
    for cell, marks in pulls.items():
        x, y = frame.at(middles.get(cell, cell))
        strongest_first = sorted(marks.items(), key=lambda item: -math.hypot(*item[1]))
        free, radius = place_circles(len(marks), strongest_first[0][1])
        for mark, (right, down) in strongest_first:
            slot = max(free, key=lambda place: place[0] * right + place[1] * down)
            free.remove(slot)
            places[cell, mark] = (x + slot[0] * frame.cell, y + slot[1] * frame.cell), radius * frame.cell
    return places


def place_circles(count: int, towards: Point = (-1.0, -1.0)) -> tuple[list[Point], float]:
    """Return the places of `count` circles in a cell of side 1, relative to its centre, and their radius.

    The circles do not overlap. Up to six form a ring that begins in the direction `towards` (right, down); a seventh
    lies in its middle. More form a square.

    >>> place_circles(1)
    ([(0.0, 0.0)], 0.19)
    """
    if count == 1:
        return [(0.0, 0.0)], 0.19
    if count <= 7:
        ring = min(count, 6)
        half_chord = math.sin(math.pi / ring)
        radius = min(0.19, 0.47 * half_chord / (1.06 + half_chord))
        first = math.atan2(towards[1], towards[0])
        turns = [first + 2 * math.pi * spot / ring for spot in range(ring)]
        around = [((0.47 - radius) * math.cos(turn), (0.47 - radius) * math.sin(turn)) for turn in turns]
        return around + [(0.0, 0.0)] * (count - ring), radius
    side = math.ceil(math.sqrt(count))
    pitch = 0.94 / side
    spots = [divmod(spot, side) for spot in range(count)]
    middle = (side - 1) / 2
    return [((col - middle) * pitch, (row - middle) * pitch) for row, col in spots], 0.47 * pitch


def _draw_line(
    canvas: Canvas,
    frame: Frame,
    path: Sequence[Cell],
    places: Places,
    legs: Sequence[Sequence[Point]],
    colour: Colour,
    dashed: bool,
) -> None:
    """Draw the line on a light casing that keeps it visible on any image."""
    width = frame.cell / 26
    points: list[Point] = []
    for visit, (cell, leg) in enumerate(zip(path, legs, strict=True)):
        points += [*map(frame.at, leg[:-1]), places[frame.clamp(cell), visit][0]]
    if len(points) > 1:
        canvas.line(points, PAPER, 1.9 * width)
        canvas.line(points, colour, width, dash=2.4 * width if dashed else None)


def _draw_marks(canvas: Canvas, places: Places, colour: Colour, first: int | None) -> None:
    """Draw the circles with their letters and numbers."""
    for (_, mark), (at, radius) in places.items():
        if mark == _START:
            text, fill = "S" if first is None else str(first), START
        elif mark == _GOAL:
            text, fill = "G", GOAL
        else:
            text, fill = str(mark + (first or 0)), colour
        canvas.disc(at, radius, fill, PAPER if mark != _GOAL else TEXT, radius * 0.11)
        size = min(1.35 * radius, 1.5 * radius / text_width(text, 1))
        canvas.text(at, text, size, text_on(fill))
