"""The simulation of a search over an orthoimage: the searcher observes only the cells that its vehicles fly to."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.areas.layout import Layout, read_cell, read_square
from airloc.areas.raster import Raster, RasterView
from airloc.grid import Cell
from airloc.missions.patterns import Pattern, plan_patterns
from airloc.missions.photos import VIEW_SIDE, Goal, View
from airloc.missions.plan import FieldSearch, budget_of, nearest_cell
from airloc.missions.searcher import Glimpse
from airloc.missions.team import FIRST, TeamSearcher
from airloc.seeding import stream
from airloc.task.motion import sample_walks

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
    vehicle: str = FIRST
    """Name of the vehicle that took it."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchRecord:
    """A finished search."""

    search: FieldSearch
    photos: Sequence[PhotoRecord]
    truth: tuple[float, float] | None
    """Fractional row and column of the goal's centre, if they are known."""
    patterns: Sequence[Pattern] = ()
    """Fixed patterns to compare the search with."""

    @property
    def layout(self) -> Layout:
        """The grid on the ground."""
        return self.search.layout

    @property
    def searcher(self) -> TeamSearcher:
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
        declared, error = self.searcher.advice().declared, self.error_m
        if declared is None or error is None:
            return None
        return declared.cell == self.true_cell or error <= self.layout.cell_m / 2

    @property
    def error_m(self) -> float | None:
        """Distance of the declared position from the goal's centre, in metres; None if either is unknown."""
        declared = self.searcher.advice().declared
        if self.truth is None or declared is None:
            return None
        return math.dist(declared.position, self.truth) * self.layout.pitch_m


def with_patterns(record: SearchRecord, names: Sequence[str]) -> SearchRecord:
    """Return a search beside fixed patterns with the same start, budget and probability of detection."""
    searcher, layout = record.searcher, record.layout
    start, budget = searcher.flown[0], searcher.budget
    reach = record.search.reach(start)
    found = plan_patterns(names, layout.grid, reach, searcher.prior, start, budget, searcher.detection)
    return replace(record, patterns=found)


def read_view(raster: Raster, search: FieldSearch, cell: Cell) -> tuple[RasterView, View]:
    """Read what a photo shows of a cell and around it, with the footprint of the plan and its longer side across."""
    layout, plan = search.layout, search.plan
    reach = layout.cell_m / layout.pitch_m  # half of two cells, in rows
    view = read_square(raster, layout, cell, 2.0, VIEW_SIDE)
    spots = (np.arange(VIEW_SIDE) + 0.5 - VIEW_SIDE / 2) * 4 / VIEW_SIDE  # from the cell's middle, in halves of a cell
    down, right = (2 * (np.array(search.place(cell)) - cell) / reach).tolist()
    rows = np.abs(spots - down) <= plan.footprint
    seen = rows[:, None] & (np.abs(spots - right) <= plan.footprint * plan.camera.aspect)
    glimpse, quarter = read_cell(raster, layout, cell), VIEW_SIDE // 4
    middle = seen[quarter:-quarter, quarter:-quarter]
    if not middle.all():  # the photo is taken from the edge of the cell
        glimpse = RasterView(glimpse.pixels * middle[..., None], glimpse.coverage * float(middle.mean()))
    return glimpse, View(view.pixels, seen & view.pixels.any(axis=2))


def simulate(
    search: FieldSearch,
    raster: Raster,
    truth: tuple[float, float] | None = None,
    on_photo: Callable[[int], None] = lambda count: None,
) -> SearchRecord:
    """Fly a search to its end, with photos cropped from an image.

    A target that moves walks from its true position, and a person confirms the first photo of its cell.

    Args:
        search: The search, before its first photo.
        raster: The image.
        truth: Fractional row and column of the goal's centre, if they are known; the search does not use them.
        on_photo: Called with 1 after every photo.
    """
    searcher, layout = search.searcher, search.layout
    photos: list[PhotoRecord] = []
    stride = max(1, searcher.budget // (MAX_FRAMES if layout.grid.count <= LARGE_GRID else MAX_FRAMES_LARGE))
    walk, sortie = _walk(search, truth), 1
    while True:
        if searcher.status == "spent" and (sortie < search.plan.sorties or searcher.parts_left()):
            sortie += 1
            _start_sortie(search, sortie)
        vehicle = searcher.next_to_arrive()
        if vehicle is None or searcher.status != "searching":
            return SearchRecord(search, photos, truth)
        cell, at = vehicle.next, vehicle.arrival
        assert cell is not None
        view, around = read_view(raster, search, cell)
        poa = float(searcher.belief()[cell])
        # The image stands for the world: another photo of the cell would be no better.
        glimpse = Glimpse(view.pixels, view.coverage, around)
        probability = searcher.observe(cell, glimpse, check=False, vehicle=vehicle.name).match_probability or 0.0
        if walk is not None:
            row, col = walk[min(at, len(walk) - 1)].tolist()
            truth = row, col
            if truth == cell:
                searcher.judge(len(searcher.photos), goal=True)
        keep = len(photos) % stride == 0 or searcher.status != "searching"
        belief = searcher.belief().astype(np.float32) if keep else None
        photos.append(PhotoRecord(cell, probability, poa, view.coverage, searcher.pos, belief, vehicle.name))
        on_photo(1)


def _start_sortie(search: FieldSearch, number: int) -> None:
    """Send every vehicle up again with a new battery, as a vehicle of its own: the second flight of 1 is 1-2.

    After the last sortie of the plan, only parts of the search area that were not flown yet are left.
    """
    searcher = search.searcher
    for vehicle in [vehicle for vehicle in searcher.vehicles.values() if vehicle.active]:
        parts = searcher.parts_left() if number > search.plan.sorties else None
        if parts == []:
            break
        vehicle.active = False
        start = searcher.sortie_start(vehicle.start, parts)
        budget = vehicle.budget if start == vehicle.start else budget_of(search.plan, search.layout, start)
        searcher.join(f"{vehicle.name.partition('-')[0]}-{number}", start, budget)


def _walk(search: FieldSearch, truth: tuple[float, float] | None) -> npt.NDArray[np.int64] | None:
    """Return the cells of a target that walks from its true position, (rounds + 1, 2); None if it does not move."""
    searcher = search.searcher
    if not searcher.motion or truth is None:
        return None
    rng, start = stream(search.plan.seed, "walk"), np.array([nearest_cell(truth)])
    rounds = max(vehicle.budget for vehicle in searcher.vehicles.values())
    walks = sample_walks(rng, searcher.motion, search.layout.grid.shape, start, rounds, searcher.transition)
    return np.asarray(walks[0])
