"""The plan of a field search, the searcher that it makes, and its simulation over an orthoimage.

A `SearchPlan` holds the settings of a search in SI units. `lay_out_search` lays the grid on an outline or on an image,
`prepare_goal` turns the image of the goal into a patch, and `start_search` builds the searcher, for the command line
and the server. `simulate` flies the search over an orthoimage: the searcher observes only the cells it flies to.

Legend: points are coordinates of the layout's plane; positions are (lat, lon) in degrees, or (x, y) in pixels, x right
and y down, if the layout has no georeference.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from shapely.geometry import MultiPolygon

from airloc.agents.agent import Agent
from airloc.agents.matching import declaration_threshold
from airloc.agents.registry import DEFAULT_AGENT
from airloc.areas.area import Pixels
from airloc.areas.layout import Layout, lay_out, lay_out_outline, read_cell
from airloc.areas.raster import Raster
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.flight import Camera, budget_from_endurance
from airloc.missions.photos import VIEW_SIDE, Goal, View, is_uniform, make_goal
from airloc.missions.priors import PriorSource, combine_priors
from airloc.missions.searcher import Glimpse, Searcher
from airloc.task.rules import FALSE_ALARM_COST, MAX_BUDGET, check_budget
from airloc.vision.locator import GoalViews

__all__ = [
    "FieldSearch",
    "PhotoRecord",
    "PreparedGoal",
    "SearchPlan",
    "SearchRecord",
    "format_position",
    "lay_out_search",
    "nearest_searchable",
    "point_of",
    "prepare_goal",
    "searchable_cell",
    "simulate",
    "start_search",
]

SMALL_GOAL = 0.6
"""Width of a goal image, in cells, below which recognition is poor."""
MIN_GOAL_PIXELS = 24
"""Side of a goal image, in pixels, below which recognition is poor."""
MAX_WIDTH_RATIO = 4.0
"""Largest ratio of the bounds of a goal's width: a sighting takes time and memory for every scale."""

Point = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Settings of a field search.

    Raises:
        AirlocError: If a setting is out of range, or both a budget and an endurance are set.
    """

    cell_m: float = 100.0
    """Side of a cell in metres, or in pixels if the image has no georeference."""
    gap_m: float | None = None
    """Gap between cells in the same unit; a twelfth of the cell if None."""
    heading: float = 0.0
    """Compass direction of the grid's columns in degrees."""
    start: tuple[float, float] | None = None
    """Position of the first photo; the centre of the grid if None."""
    budget: int | None = None
    """Moves that the vehicle may fly; twice the longer side of the grid if None."""
    endurance: float | None = None
    """Flight time in seconds, instead of a budget."""
    speed: float = 8.0
    """Speed in metres per second."""
    hover: float = 2.0
    """Seconds at each photo."""
    agent: str = DEFAULT_AGENT
    """Name of the agent that guides the search, or a checkpoint folder."""
    false_alarm_cost: float = FALSE_ALARM_COST
    """Cost of a false alarm, in finds."""
    detection: float | None = None
    """Probability of detection (POD) in a photo that shows the whole cell; the measured one if None."""
    footprint: float = 4 / 3
    """Shorter side of the ground that a photo shows, in cells."""
    camera: Camera = field(default_factory=Camera)
    seed: int = 0
    """Random seed for agents that sample."""

    def __post_init__(self) -> None:
        declaration_threshold(self.false_alarm_cost)
        if not 1 <= self.footprint <= 4:
            raise AirlocError(f"Photos cannot show {self.footprint:g} cells", "Give a footprint from 1 to 4 cells")
        if self.budget is not None:
            check_budget(self.budget)
            if self.endurance is not None:
                raise AirlocError("Both a budget and an endurance are set", "Give only one of them")


class FieldSearch(NamedTuple):
    """A search in the field: its plan, its grid on the ground and its searcher."""

    plan: SearchPlan
    layout: Layout
    goal: Goal
    searcher: Searcher
    sources: tuple[str, ...] = ()
    """Names of the sources of the prior; none if all cells are equally probable."""

    @property
    def height_m(self) -> float:
        """Flight height from which the shorter side of a photo shows the footprint of the plan."""
        return self.plan.camera.height_for(self.plan.footprint * self.layout.cell_m)


class PreparedGoal(NamedTuple):
    """A goal, and how well it can be recognised."""

    goal: Goal
    uniform: bool
    """True if the picture has one colour, so that it cannot be recognised."""
    warnings: tuple[str, ...]
    """Reasons why the goal may not be recognised."""


def lay_out_search(plan: SearchPlan, outline: MultiPolygon | None, raster: Raster | None = None) -> Layout:
    """Lay the grid of a plan on an image, on an outline, or on the part of an image inside an outline.

    Raises:
        AirlocError: If there is neither image nor outline, or no valid grid fits.
    """
    if raster is not None:
        return lay_out(raster, outline, plan.cell_m, gap_m=plan.gap_m, heading=plan.heading)
    if outline is None:
        raise AirlocError("The search has neither an image nor an outline", "Give at least one of them")
    return lay_out_outline(outline, plan.cell_m, gap_m=plan.gap_m, heading=plan.heading)


def prepare_goal(
    image: Pixels,
    layout: Layout,
    widths_m: tuple[float, float] | None = None,
    heading: float | None = None,
    *,
    same_day: bool = False,
) -> PreparedGoal:
    """Prepare the picture of a goal, with warnings if it is hard to recognise.

    Args:
        image: Picture of the goal, of any size.
        layout: The grid on the ground.
        widths_m: Smallest and largest width of the ground that its central square shows; one cell if None.
        heading: Compass direction of its upper edge; None if it is unknown.
        same_day: The picture is from the day of the flight.

    Raises:
        AirlocError: If the goal is larger than the search area, its width is too uncertain, or the heading is not a
            direction.
    """
    cell_m, unit = layout.cell_m, layout.unit
    side_m = max(layout.grid.shape) * layout.pitch_m - layout.gap_m
    if widths_m is not None and widths_m[0] > side_m:
        problem = f"The goal image shows {widths_m[0]:g} {unit}, more than the search area, {side_m:.0f} {unit}"
        raise AirlocError(problem, "Check the width of the goal image, or search a larger area")
    if widths_m is not None and widths_m[1] > MAX_WIDTH_RATIO * widths_m[0]:
        problem = f"A width of the goal image from {widths_m[0]:g} to {widths_m[1]:g} {unit} is too uncertain"
        raise AirlocError(problem, f"Give a range of at most a factor of {MAX_WIDTH_RATIO:g}")
    if heading is not None and not math.isfinite(heading):
        raise AirlocError(f"A goal heading of {heading} degrees is not valid", "Give a compass direction, such as 30")
    turn = None if heading is None else heading - layout.heading
    goal = make_goal(image, cell_m, widths_m, turn, same_day=same_day)
    height, width = image.shape[:2]
    width_m = None if widths_m is None else math.sqrt(widths_m[0] * widths_m[1])
    warnings = []
    if width_m is not None and width_m < SMALL_GOAL * cell_m:
        warnings.append(f"the goal image shows less than a cell ({width_m:g} {unit}); smaller cells may work better")
    if min(height, width) < MIN_GOAL_PIXELS:
        warnings.append(f"the goal image has only {width} x {height} px")
    elif width_m is not None and width * cell_m / width_m < MIN_GOAL_PIXELS:
        cell_px = width * cell_m / width_m
        warnings.append(f"a cell has only {cell_px:.0f} px in the goal image, which is {width_m:g} {unit} wide")
    uniform = is_uniform(goal.picture)
    if uniform:
        warnings.append("the goal image has a single colour and cannot be recognised")
    elif not GoalViews(goal.picture).textured:
        warnings.append("the goal image has hardly any texture and may not be recognised")
    return PreparedGoal(goal, uniform, tuple(warnings))


def read_goal(raster: Raster, layout: Layout, place: tuple[float, float]) -> Goal:
    """Read the goal at a fractional row and column of the grid: a square of one cell, turned like the grid."""
    reach = layout.cell_m / layout.pitch_m / 2
    corners = np.array(place) + reach * np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)])
    patch = raster.read_quad(layout.plane, layout.centres(corners), (layout.grid.cell, layout.grid.cell)).pixels
    return Goal(patch, patch, same_day=True)


def start_search(
    plan: SearchPlan, layout: Layout, goal: Goal, agent: Agent, sources: Sequence[PriorSource] = ()
) -> FieldSearch:
    """Build the searcher of a plan.

    Args:
        plan: The plan.
        layout: Its grid, from `lay_out_search`.
        goal: The goal.
        agent: The agent that `plan.agent` names.
        sources: What is known about the place of the goal; they multiply.

    Raises:
        AirlocError: If the start is outside the search area, the endurance is too short, or the prior is not valid.
    """
    start = _start_cell(plan, layout)
    searcher = Searcher(
        agent,
        goal,
        layout.grid,
        start=start,
        budget=_budget(plan, layout, start),
        searchable=layout.searchable,
        threshold=declaration_threshold(plan.false_alarm_cost),
        detection=plan.detection,
        seed=plan.seed,
        prior=combine_priors(layout, sources) if sources else None,
    )
    return FieldSearch(plan, layout, goal, searcher, tuple(str(source) for source in sources))


def _start_cell(plan: SearchPlan, layout: Layout) -> Cell:
    if plan.start is None:
        return nearest_searchable(layout, layout.centres([(side - 1) / 2 for side in layout.grid.shape]))
    return searchable_cell(layout, plan.start, "start")


def _budget(plan: SearchPlan, layout: Layout, start: Cell) -> int:
    if plan.endurance is not None:
        return budget_from_endurance(layout, start, plan.endurance, plan.speed, plan.hover)
    return min(layout.grid.default_budget, MAX_BUDGET) if plan.budget is None else plan.budget


def point_of(layout: Layout, position: tuple[float, float]) -> Point:
    """Return a position as a point of the layout's plane."""
    if layout.plane is None:
        x, y = position
        return np.array([x, -y])
    return layout.plane.from_degrees(position)


def nearest_searchable(layout: Layout, point: Point) -> Cell:
    """Return the searchable cell whose centre is nearest to a point."""
    cells = np.argwhere(layout.searchable)
    row, col = cells[int(np.linalg.norm(layout.centres(cells) - point, axis=-1).argmin())].tolist()
    return row, col


def searchable_cell(layout: Layout, position: tuple[float, float], name: str) -> Cell:
    """Return the searchable cell at a position.

    Raises:
        AirlocError: If there is none; the error names the nearest one.
    """
    point = point_of(layout, position)
    cell = layout.cell_at(point)
    if cell is not None and layout.searchable[cell]:
        return cell
    nearest = nearest_searchable(layout, point)
    away = float(np.linalg.norm(layout.centres(nearest) - point))
    raise AirlocError(
        f"The {name} is outside the search area, {away:.0f} {layout.unit} from the nearest cell",
        f"Give a position inside; the nearest is {format_position(layout, nearest)}",
    )


def nearest_cell(position: tuple[float, float]) -> Cell:
    """Return the cell of a fractional row and column."""
    row, col = (math.floor(number + 0.5) for number in position)
    return row, col


def format_position(layout: Layout, cell: tuple[float, float]) -> str:
    """Return a position in rows and columns as text: 59.352710,15.002684, or x,y in pixels."""
    if layout.plane is None:
        return "{:.0f},{:.0f}".format(*(layout.centres(cell) * (1, -1)))
    return "{:.6f},{:.6f}".format(*layout.lat_lon(cell))


MAX_FRAMES, MAX_FRAMES_LARGE = 48, 12
"""Approximate number of beliefs to keep, and the number for a large grid, which takes longer to draw."""
LARGE_GRID = 2500
"""Number of cells above which a grid is large."""


class PhotoRecord(NamedTuple):
    """One photo of a search."""

    cell: Cell
    match_probability: float
    """Probability that the photo shows the goal."""
    poa: float
    """Probability of area (POA) of the cell before the photo."""
    coverage: float
    """Fraction of the cell that has image data."""
    pos: float
    """Probability of success (POS) of the search so far."""
    belief: npt.NDArray[np.float32] | None
    """Belief after the photo, (rows, cols), for some of the photos."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchRecord:
    """A finished search."""

    search: FieldSearch
    photos: Sequence[PhotoRecord]
    truth: tuple[float, float] | None
    """Fractional row and column of the goal's centre, if they are known."""

    @property
    def layout(self) -> Layout:
        """The grid on the ground."""
        return self.search.layout

    @property
    def searcher(self) -> Searcher:
        """The searcher after the last photo."""
        return self.search.searcher

    @property
    def goal(self) -> Goal:
        """The goal."""
        return self.search.goal

    @property
    def true_cell(self) -> Cell | None:
        """Cell that contains the centre of the goal, if it is known."""
        return None if self.truth is None else nearest_cell(self.truth)

    @property
    def correct(self) -> bool | None:
        """True if the find is right; None if the goal is unknown or nothing was declared.

        A find is right if its cell contains the centre of the goal, or its position is within half a cell of it.
        """
        declared = self.searcher.advice().declared
        if self.truth is None or declared is None:
            return None
        return declared.cell == self.true_cell or (self.error_m or 0.0) <= self.layout.cell_m / 2

    @property
    def error_m(self) -> float | None:
        """Distance of the declared position from the goal's centre, in metres; None if either is unknown."""
        declared = self.searcher.advice().declared
        if self.truth is None or declared is None:
            return None
        return math.dist(declared.position, self.truth) * self.layout.pitch_m


def read_view(raster: Raster, layout: Layout, cell: Cell, plan: SearchPlan) -> View:
    """Read what a photo shows around a cell, with the footprint of the plan and its longer side across."""
    reach = layout.cell_m / layout.pitch_m  # half of two cells, in rows
    corners = np.array(cell) + reach * np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)])
    view = raster.read_quad(layout.plane, layout.centres(corners), (VIEW_SIDE, VIEW_SIDE))
    away = np.abs(np.arange(VIEW_SIDE) + 0.5 - VIEW_SIDE / 2) * 4 / VIEW_SIDE  # from the middle, in halves of a cell
    seen = (away <= plan.footprint)[:, None] & (away <= plan.footprint * plan.camera.aspect)
    return View(view.pixels, seen & view.pixels.any(axis=2))


def simulate(
    search: FieldSearch,
    raster: Raster,
    truth: tuple[float, float] | None = None,
    on_photo: Callable[[int], None] = lambda count: None,
) -> SearchRecord:
    """Fly a search to its end, with photos cropped from an image.

    Args:
        search: The search, before its first photo.
        raster: The image.
        truth: Fractional row and column of the goal's centre, if they are known; the search does not use them.
        on_photo: Called with 1 after every photo.
    """
    searcher, layout = search.searcher, search.layout
    photos: list[PhotoRecord] = []
    stride = max(1, searcher.budget // (MAX_FRAMES if layout.grid.count <= LARGE_GRID else MAX_FRAMES_LARGE))
    advice = searcher.advice()
    while (cell := advice.next_cell) is not None:
        view = read_cell(raster, layout, cell)
        poa = float(searcher.belief()[cell])
        around = read_view(raster, layout, cell, search.plan)
        # The image stands for the world: another photo of the cell would be no better.
        advice = searcher.observe(cell, Glimpse(view.pixels, view.coverage, around), check=False)
        keep = len(photos) % stride == 0 or advice.next_cell is None
        belief = searcher.belief().astype(np.float32) if keep else None
        photos.append(PhotoRecord(cell, advice.match_probability or 0.0, poa, view.coverage, searcher.pos, belief))
        on_photo(1)
    return SearchRecord(search, photos, truth)
