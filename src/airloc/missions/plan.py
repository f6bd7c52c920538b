"""The plan of a field search, the searcher that it makes, and its simulation over an orthoimage.

A `SearchPlan` holds the settings of a search in SI units. `lay_out_search` lays the grid on an outline or on an image,
`prepare_goal` turns the image of the goal into a patch, and `start_search` builds the searcher, for the command line
and the server. `simulate` flies the search over an orthoimage: the searcher observes only the cells it flies to.

Legend: points are coordinates of the layout's plane; positions are (lat, lon) in degrees, or (x, y) in pixels, x right
and y down, if the layout has no georeference.
"""

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
from airloc.missions.photos import goal_patch, is_uniform
from airloc.missions.searcher import Glimpse, Searcher
from airloc.task.rules import FALSE_ALARM_COST, MAX_BUDGET, check_budget

__all__ = [
    "FieldSearch",
    "GoalPatch",
    "PhotoRecord",
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

MIN_GOAL_PIXELS = 24
"""Side of a goal image, in pixels, below which recognition is poor."""

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
    detection: float = 0.9
    """Probability of detection (POD) in a photo that shows the whole cell."""
    camera: Camera = field(default_factory=Camera)
    seed: int = 0
    """Random seed for agents that sample."""

    def __post_init__(self) -> None:
        declaration_threshold(self.false_alarm_cost)
        if self.budget is not None:
            check_budget(self.budget)
            if self.endurance is not None:
                raise AirlocError("Both a budget and an endurance are set", "Give only one of them")


class FieldSearch(NamedTuple):
    """A search in the field: its plan, its grid on the ground and its searcher."""

    plan: SearchPlan
    layout: Layout
    goal: Pixels
    """Goal patch, (48, 48, 3)."""
    searcher: Searcher

    @property
    def height_m(self) -> float:
        """Flight height from which a photo shows a whole cell."""
        return self.plan.camera.height_for(self.layout.cell_m)


class GoalPatch(NamedTuple):
    """The goal as agents observe it."""

    pixels: Pixels
    """RGB bytes, (48, 48, 3)."""
    uniform: bool
    """True if the patch has one colour, so that agents cannot recognise it."""
    warnings: tuple[str, ...]
    """Reasons why agents may not recognise the goal."""


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


def prepare_goal(image: Pixels, cell_m: float, width_m: float | None = None, unit: str = "m") -> GoalPatch:
    """Turn the image of a goal into a patch, with warnings if it is hard to recognise.

    Args:
        image: Image of the goal, of any size.
        cell_m: Side of a cell.
        width_m: Width of the footprint of the image; one cell if None.
        unit: Unit of the lengths, for warnings.
    """
    patch = goal_patch(image, cell_m, width_m)
    height, width = image.shape[:2]
    warnings = []
    if width_m is not None and width_m < cell_m:
        warnings.append(f"the goal image shows less than a cell ({width_m:g} {unit}); smaller cells may work better")
    if min(height, width) < MIN_GOAL_PIXELS:
        warnings.append(f"the goal image has only {width} x {height} px")
    elif width_m is not None and width * cell_m / width_m < MIN_GOAL_PIXELS:
        cell_px = width * cell_m / width_m
        warnings.append(f"a cell has only {cell_px:.0f} px in the goal image, which is {width_m:g} {unit} wide")
    uniform = is_uniform(patch)
    if uniform:
        warnings.append("the goal image has a single colour and cannot be recognised")
    return GoalPatch(patch, uniform, tuple(warnings))


def start_search(plan: SearchPlan, layout: Layout, goal: Pixels, agent: Agent) -> FieldSearch:
    """Build the searcher of a plan.

    Args:
        plan: The plan.
        layout: Its grid, from `lay_out_search`.
        goal: Goal patch, (48, 48, 3).
        agent: The agent that `plan.agent` names.

    Raises:
        AirlocError: If the start is outside the search area, or the endurance is too short.
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
    )
    return FieldSearch(plan, layout, goal, searcher)


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


def format_position(layout: Layout, cell: Cell) -> str:
    """Return the position of a cell as text: 59.352710,15.002684, or x,y in pixels."""
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
    truth: Cell | None
    """Cell of the goal, if it is known."""

    @property
    def layout(self) -> Layout:
        """The grid on the ground."""
        return self.search.layout

    @property
    def searcher(self) -> Searcher:
        """The searcher after the last photo."""
        return self.search.searcher

    @property
    def goal(self) -> Pixels:
        """Goal patch, (48, 48, 3)."""
        return self.search.goal

    @property
    def correct(self) -> bool | None:
        """True if the declared cell is the goal; None if the goal is unknown or nothing was declared."""
        declared = self.searcher.advice().declared
        return None if self.truth is None or declared is None else declared == self.truth


def simulate(
    search: FieldSearch,
    raster: Raster,
    truth: Cell | None = None,
    on_photo: Callable[[int], None] = lambda count: None,
) -> SearchRecord:
    """Fly a search to its end, with photos cropped from an image.

    Args:
        search: The search, before its first photo.
        raster: The image.
        truth: Cell of the goal, if it is known; the search does not use it.
        on_photo: Called with 1 after every photo.
    """
    searcher, layout = search.searcher, search.layout
    photos: list[PhotoRecord] = []
    stride = max(1, searcher.budget // (MAX_FRAMES if layout.grid.count <= LARGE_GRID else MAX_FRAMES_LARGE))
    advice = searcher.advice()
    while (cell := advice.next_cell) is not None:
        view = read_cell(raster, layout, cell)
        poa = float(searcher.belief()[cell])
        advice = searcher.observe(cell, Glimpse(view.pixels, view.coverage))
        keep = len(photos) % stride == 0 or advice.next_cell is None
        belief = searcher.belief().astype(np.float32) if keep else None
        photos.append(PhotoRecord(cell, advice.match_probability or 0.0, poa, view.coverage, searcher.pos, belief))
        on_photo(1)
    return SearchRecord(search, photos, truth)
