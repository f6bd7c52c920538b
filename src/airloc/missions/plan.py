"""The plan of a field search, and the searcher that it makes.

A `SearchPlan` holds the settings of a search in SI units. `lay_out_search` lays the grid on an outline or on an image,
`prepare_goal` turns the image of the goal into a patch, and `start_search` builds the searcher, for the command line
and the server.

Legend: points are coordinates of the layout's plane; positions are (lat, lon) in degrees, or (x, y) in pixels, x right
and y down, if the layout has no georeference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from shapely.geometry import MultiPolygon

from airloc.agents.agent import Agent
from airloc.agents.matching import declaration_threshold
from airloc.agents.registry import DEFAULT_AGENT
from airloc.areas.area import Mask, Pixels
from airloc.areas.layout import Layout, lay_out, lay_out_outline, read_square
from airloc.areas.raster import Points, Raster
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.endurance import FlightSettings, budget_from_endurance
from airloc.missions.fence import Fence, fence_in
from airloc.missions.flight import Camera
from airloc.missions.photos import LARGEST_PICTURE, Goal, is_uniform, make_goal
from airloc.missions.priors import PriorSource, combine_priors
from airloc.missions.team import MAX_VEHICLES, TeamSearcher
from airloc.task.motion import Motion
from airloc.task.rules import FALSE_ALARM_COST, MAX_BUDGET, check_budget
from airloc.vision.locator import has_structure

MAX_SORTIES = 16
"""Largest number of flights of a vehicle in one search."""
MAX_SPEED, MAX_HOVER = 200.0, 3600.0
"""Largest speed in metres per second, and longest time at a photo in seconds."""
SMALL_GOAL = 0.6
"""Width of a goal image, in cells, below which recognition is poor."""
WHOLE_GOAL = 0.99
"""Fraction of a goal with image data above which it is whole."""
MIN_GOAL_PIXELS = 24
"""Side of a goal image, in pixels, below which recognition is poor."""

FAR_PORT = 10_000.0
"""Distance in metres of home or landing from the search area above which there is a warning."""

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
    flight: FlightSettings = field(default_factory=FlightSettings)
    """Home and landing, no-fly zones, wind and reserve."""
    seed: int = 0
    """Random seed for agents that sample, and for the walk of a simulated target."""
    drones: int = 1
    """Number of vehicles. Each has the whole budget or endurance."""
    sorties: int = 1
    """Flights of each vehicle, with a new battery and the whole budget or endurance each."""
    launches: tuple[tuple[float, float], ...] = ()
    """Positions where the second and further vehicles are launched; the start if there are fewer."""
    walking: float = 0.0
    """Speed of a target that walks at random, in metres per second."""
    drift: tuple[float, float] = (0.0, 0.0)
    """Speed of a target that drifts, in metres per second, and the compass direction that it drifts to."""

    def __post_init__(self) -> None:
        if not 1 <= self.drones <= MAX_VEHICLES:
            raise AirlocError(f"A search cannot have {self.drones} drones", f"Use 1 to {MAX_VEHICLES}")
        if not 1 <= self.sorties <= MAX_SORTIES:
            raise AirlocError(f"A search cannot have {self.sorties} sorties", f"Use 1 to {MAX_SORTIES}")
        if len(self.launches) >= self.drones:
            problem = f"There are {len(self.launches)} launch positions for {self.drones - 1} further drones"
            raise AirlocError(problem, "Give one position for each drone after the first, or more drones")
        declaration_threshold(self.false_alarm_cost)
        if not 0.1 <= self.speed <= MAX_SPEED:
            problem = f"A vehicle cannot fly at {self.speed:g} m/s"
            raise AirlocError(problem, f"Give a speed from 0.1 to {MAX_SPEED:g} m/s")
        if not 0 <= self.hover <= MAX_HOVER:
            raise AirlocError(f"A photo cannot take {self.hover:g} s", f"Give a time from 0 to {MAX_HOVER:g} s")
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
    searcher: TeamSearcher
    sources: tuple[str, ...] = ()
    """Names of the sources of the prior; none if all cells are equally probable."""
    fence: Fence | None = None
    """Where the vehicle may fly; anywhere if None."""

    @property
    def height_m(self) -> float:
        """Flight height from which the shorter side of a photo shows the footprint of the plan."""
        return _height(self.plan, self.layout)

    def reach(self, cell: Cell) -> Mask:
        """Return the cells to which legs inside the fence lead from a cell, (rows, cols)."""
        searchable = self.layout.searchable
        return searchable if self.fence is None else searchable & (self.fence.parts == self.fence.parts[cell])

    def place(self, cell: Cell) -> tuple[float, float]:
        """Return the fractional row and column from which a cell is photographed: its centre if that is allowed."""
        return (float(cell[0]), float(cell[1])) if self.fence is None else self.fence.place(cell)

    def bends(self, start: Cell, end: Cell) -> Points:
        """Return the points at which the leg between two cells bends around corners of the fence, (n, 2)."""
        if self.fence is None:
            return np.zeros((0, 2))
        return self.fence.route(*(self.layout.centres(self.place(cell)) for cell in (start, end)))[1:-1]


class PreparedGoal(NamedTuple):
    """A goal, and how well it can be recognised."""

    goal: Goal
    warnings: tuple[str, ...]
    """Reasons why the goal may not be recognised."""


def lay_out_search(plan: SearchPlan, outline: MultiPolygon | None, raster: Raster | None = None) -> Layout:
    """Lay the grid of a plan on an image, on an outline, or on the part of an image inside an outline.

    Raises:
        AirlocError: If there is neither image nor outline, or no valid grid fits.
    """
    if raster is not None:
        layout = lay_out(raster, outline, plan.cell_m, gap_m=plan.gap_m, heading=plan.heading)
    elif outline is None:
        raise AirlocError("The search has neither an image nor an outline", "Give at least one of them")
    else:
        layout = lay_out_outline(outline, plan.cell_m, gap_m=plan.gap_m, heading=plan.heading)
    return _fence_in(plan, layout)[0]


def _fence_in(plan: SearchPlan, layout: Layout) -> tuple[Layout, Fence | None]:
    """Leave out the cells that cannot be reached, and return the fence of a plan."""
    settings = plan.flight
    start = None if plan.start is None else point_of(layout, plan.start)
    ends = [settings.home, settings.landing]
    ports = [point_of(layout, position) for position in ends if position is not None]
    return fence_in(layout, start, margin_m=settings.margin_m, no_fly=settings.no_fly, ports=ports)


def _height(plan: SearchPlan, layout: Layout) -> float:
    return plan.camera.height_for(plan.footprint * layout.cell_m)


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
        AirlocError: If the goal has a single colour, is larger than the search area or much smaller than a cell, its
            width is too uncertain, or the heading is not a direction.
    """
    cell_m, unit = layout.cell_m, layout.unit
    side_m = max(layout.grid.shape) * layout.pitch_m - layout.gap_m
    if widths_m is not None and widths_m[0] > side_m:
        problem = f"The goal image shows {widths_m[0]:g} {unit}, more than the search area, {side_m:.0f} {unit}"
        raise AirlocError(problem, "Check the width of the goal image, or search a larger area")
    turn = None if heading is None else heading - layout.heading
    goal = make_goal(image, cell_m, widths_m, turn, same_day=same_day, unit=unit)
    if is_uniform(goal.picture):
        raise AirlocError("The goal image has a single colour and cannot be recognised", "Give a photo of the place")
    height, width = image.shape[:2]
    width_m = None if widths_m is None else math.sqrt(widths_m[0] * widths_m[1])
    warnings = []
    if width_m is not None and width_m < SMALL_GOAL * cell_m:
        warnings.append(f"the goal image shows less than a cell ({width_m:g} {unit}); smaller cells may work better")
    if min(height, width) < MIN_GOAL_PIXELS:
        warnings.append(f"the goal image has only {width} x {height} px")
    elif width_m is not None and min(height, width) * cell_m / width_m < MIN_GOAL_PIXELS:
        cell_px = min(height, width) * cell_m / width_m
        warnings.append(f"a cell has only {cell_px:.0f} px in the goal image, which is {width_m:g} {unit} wide")
    if not has_structure(goal.picture):
        warnings.append("the goal image has hardly any texture and may not be recognised")
    return PreparedGoal(goal, tuple(warnings))


def read_goal(
    raster: Raster,
    layout: Layout,
    place: tuple[float, float],
    widths_m: tuple[float, float] | None = None,
    heading: float | None = None,
) -> PreparedGoal:
    """Read the goal at a fractional row and column of the grid.

    Args:
        raster: The image.
        layout: The grid.
        place: Row and column of the goal's centre.
        widths_m: Width of the square, given twice; one cell by default.
        heading: Compass direction of its upper edge; that of the grid by default.

    Raises:
        AirlocError: If the width is a range, or as for `prepare_goal`.
    """
    if widths_m is not None and widths_m[0] != widths_m[1]:
        problem = f"A place on the map is {widths_m[0]:g} to {widths_m[1]:g} {layout.unit} wide"
        raise AirlocError(problem, "Give one width, or an image of the goal")
    cells = 1.0 if widths_m is None else widths_m[0] / layout.cell_m
    turn = 0.0 if heading is None or not math.isfinite(heading) else heading - layout.heading
    side = max(layout.grid.cell, round(layout.grid.cell * min(cells, LARGEST_PICTURE)))
    view = read_square(raster, layout, place, cells, side, turn)
    direction = layout.heading if heading is None else heading
    prepared = prepare_goal(view.pixels, layout, widths_m, direction, same_day=True)
    if view.coverage > WHOLE_GOAL:
        return prepared
    cut = f"{100 * (1 - view.coverage):.0f} % of the goal has no image data: it may not be recognised"
    return prepared._replace(warnings=(*prepared.warnings, cut))


def start_search(
    plan: SearchPlan,
    layout: Layout,
    goal: Goal,
    agent: Agent,
    sources: Sequence[PriorSource] = (),
    ease: npt.NDArray[np.float64] | None = None,
) -> FieldSearch:
    """Build the searcher of a plan.

    Args:
        plan: The plan.
        layout: Its grid, from `lay_out_search`.
        goal: The goal.
        agent: The agent that `plan.agent` names.
        sources: What is known about the place of the goal; they multiply.
        ease: How easily a target walks in each cell, (rows, cols); all cells alike if None.

    Raises:
        AirlocError: If the start is outside the search area, the endurance is too short, or the prior is not valid.
    """
    fence = _fence_in(plan, layout)[1]
    start = _start_cell(plan, layout if fence is None else replace(layout, searchable=fence.parts == 0))
    searcher = TeamSearcher(
        agent,
        goal,
        layout.grid,
        start=start,
        budget=budget_of(plan, layout, start),
        searchable=layout.searchable,
        threshold=declaration_threshold(plan.false_alarm_cost),
        detection=plan.detection,
        seed=plan.seed,
        prior=combine_priors(layout, sources) if sources else None,
        motion=target_motion(plan, layout),
        ease=ease,
        parts=None if fence is None else fence.parts,
    )
    for number in range(2, plan.drones + 1):
        launched = plan.launches[number - 2 : number - 1]
        cell = searchable_cell(layout, launched[0], f"launch of drone {number}") if launched else start
        searcher.join(str(number), cell, budget_of(plan, layout, cell))
    names = tuple(str(source) for source in sources)
    return FieldSearch(plan, layout, goal, searcher, names, fence)


def target_motion(plan: SearchPlan, layout: Layout) -> Motion:
    """Return how the target moves while a vehicle flies to a neighbouring cell and takes its photo."""
    rate = (layout.pitch_m / plan.speed + plan.hover) / layout.pitch_m  # cells for each metre per second
    drift, direction = plan.drift[0], math.radians(plan.drift[1] - layout.heading)
    return Motion(plan.walking * rate, (-drift * rate * math.cos(direction), drift * rate * math.sin(direction)))


def _start_cell(plan: SearchPlan, layout: Layout) -> Cell:
    """Return the cell of the first photo, by default the one nearest to the centre of the grid."""
    if plan.start is None:
        return nearest_searchable(layout, layout.centres([(side - 1) / 2 for side in layout.grid.shape]))
    return searchable_cell(layout, plan.start, "start")


def budget_of(plan: SearchPlan, layout: Layout, start: Cell) -> int:
    """Return the moves that a vehicle may fly from a cell: the budget of the plan, or what its endurance allows."""
    if plan.endurance is not None:
        height = _height(plan, layout)
        return budget_from_endurance(layout, start, plan.endurance, plan.speed, plan.hover, plan.flight, height)
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


def far_ports(plan: SearchPlan, layout: Layout) -> dict[str, str]:
    """Return a warning for home and landing if they are so far away that latitude and longitude may be swapped."""
    warnings = {}
    for name, position in (("home", plan.flight.home), ("landing", plan.flight.landing)):
        if position is not None:
            point = point_of(layout, position)
            away = math.dist(point, layout.centres(nearest_searchable(layout, point)))
            if away > FAR_PORT:
                warnings[name] = f"the {name} is {away / 1000:.0f} km from the search area; latitude comes first"
    return warnings


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
