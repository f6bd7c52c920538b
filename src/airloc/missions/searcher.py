"""The live searcher: takes a goal, a grid and a budget; returns the next cell to photograph after each photo.

Any agent can guide a search. The agent plays the task on the whole rectangle of cells, as in training, one king's move
at a time. The searcher stands between the agent and the vehicle:

- The searcher never sends the vehicle to a cell outside the search outline. The agent observes a black glimpse there,
  as it does outside the area in training, and moves on.
- The searcher never sends the vehicle to a cell twice. The agent observes the photo of the cell again.
- When the agent has used all its moves and the vehicle still has budget, the searcher spends the rest on the most
  probable cells per move.
- The goal is located in the whole photo, not only in its cell, and the relation network of `belief` compares both as
  they are aligned. The match probability of a photo is the larger one of the agent's and of this judge's. When it
  reaches the threshold, the searcher declares the find and the search ends.
- If the heading of the goal's picture is unknown, `belief` searches for all headings at once.
- A black, blurred or misexposed photo is refused, and its cell may be photographed again.
- Further photos of a cell are compared with the goal too. The cell keeps the one that is most like the goal.
- A person may judge any photo. A confirmed photo is the find. A rejected one is not, and the search goes on.

The budget counts the moves of the vehicle: a leg costs the Chebyshev distance between its ends. The state of a search
depends only on the photos, the verdicts and their order, so a search resumes by observing the same photos again.

Legend: glimpses are uint8 RGB (48, 48, 3); a belief is (rows, cols), sums to one and is zero in cells not searched.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from airloc.agents.agent import Agent
from airloc.agents.matching import SIGHTING, comparison
from airloc.agents.sighting import matching_network
from airloc.areas.area import Mask, Pixels
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid
from airloc.missions.detection import measured_pod
from airloc.missions.photos import VIEW_SIDE, Goal, View, find_flaw
from airloc.missions.session import AgentSession, Belief
from airloc.missions.sweep import best_cell_in_reach, path_length
from airloc.missions.units import format_cell
from airloc.task.rules import check_budget
from airloc.vision.locator import judge

__all__ = ["Advice", "Candidate", "Find", "Glimpse", "Searcher", "Status", "UnusablePhotoError"]

PERSON = 0.99
"""Probability that the verdict of a person is right."""

Status = Literal["searching", "found", "spent"]


class Glimpse(NamedTuple):
    """The part of a photo that shows one cell."""

    pixels: Pixels
    """RGB bytes, (48, 48, 3)."""
    coverage: float = 1.0
    """Fraction of the cell that the photo shows."""
    view: View | None = None
    """What the photo shows around the cell; the glimpse alone if None."""

    def whole_view(self) -> View:
        """Return the view of the photo."""
        if self.view is not None:
            return self.view
        margin = (VIEW_SIDE - len(self.pixels)) // 2
        dark = (self.pixels.max(axis=2) == 0) if self.coverage < 1 else np.zeros(self.pixels.shape[:2], dtype=np.bool_)
        return View(np.pad(self.pixels, ((margin, margin), (margin, margin), (0, 0))), np.pad(~dark, margin))


class Find(NamedTuple):
    """A declared find."""

    cell: Cell
    """Cell of the photo."""
    position: tuple[float, float]
    """Fractional row and column of the goal's centre; those of the cell if the goal was not located in the photo."""
    probability: float
    """Probability that the photo shows the goal."""


class Candidate(NamedTuple):
    """A photo and how much it looks like the goal."""

    number: int
    """Number of the photo, from 1."""
    glimpse: Glimpse
    find: Find
    """Place at which the photo would show the goal, and its probability."""
    verdict: bool | None = None
    """Verdict of a person: True if the photo shows the goal, False if it does not, None if nobody has judged."""


class UnusablePhotoError(AirlocError):
    """A photo that cannot be compared with the goal."""


class Advice(NamedTuple):
    """State of a search and the next waypoint."""

    status: Status
    """`searching`, `found` after a declaration, or `spent` when the budget reaches no further cell."""
    next_cell: Cell | None
    """Cell to photograph next; None when the search has ended."""
    declared: Find | None
    """The find that the searcher declared."""
    match_probability: float | None
    """Probability that the last new photo shows the goal; None before the first photo."""
    moves_left: int
    """Moves left in the budget."""
    best: Cell
    """Cell with the highest probability of area."""
    best_probability: float
    """Probability of area of that cell."""


class Searcher:
    """One search.

    Args:
        agent: Agent that guides the search.
        goal: Image of the goal, (48, 48, 3).
        grid: The grid of cells.
        start: First cell to photograph.
        budget: Moves that the vehicle may fly.
        searchable: Cells inside the search outline, (rows, cols); all cells if None.
        threshold: Match probability from which the searcher declares the find.
        detection: Probability of detection in a photo that shows the whole cell; the measured one if None.
        seed: Random seed for agents that sample.
        prior: Probability of the goal in every cell before the first photo, (rows, cols), up to a factor; the same in
            all searchable cells if None. The vehicle is not sent to cells of probability zero for their own sake.

    Raises:
        AirlocError: If the budget or a probability is out of range, the start is not searchable, or the prior is not
            positive in any searchable cell.
    """

    def __init__(
        self,
        agent: Agent,
        goal: Pixels | Goal,
        grid: Grid,
        *,
        start: Cell,
        budget: int,
        searchable: Mask | None = None,
        threshold: float = 0.5,
        detection: float | None = None,
        seed: int = 0,
        prior: Belief | None = None,
    ) -> None:
        self.grid, self.budget = grid, check_budget(budget)
        self.searchable = np.ones(grid.shape, dtype=np.bool_) if searchable is None else searchable
        self.threshold = _check_probability("threshold", threshold)
        self._check_start(start)
        self.flown: list[Cell] = []
        """Cells that the vehicle was sent to and photographed, in order."""
        self.pod: Belief = np.zeros(grid.shape)
        """Probability of detection (POD) so far, (rows, cols)."""
        self.goal = goal if isinstance(goal, Goal) else Goal(goal, goal)
        if detection is None:
            known, pictured = self.goal.turn is not None, self.goal.pictured
            same_day = self.goal.same_day
            detection = measured_pod(self.threshold, same_day=same_day, heading_known=known, pictured=pictured)
        self.detection = _check_probability("detection", detection)
        """POD of a photo that shows the whole cell."""
        self._views = self.goal.views()
        self._compare = comparison(matching_network(agent))
        self._weight = self.searchable * (1.0 if prior is None else _check_prior(prior, self.searchable))
        given = None if prior is None else self._weight / self._weight.sum()
        self._session = AgentSession(agent, self.goal, grid, start, budget, seed, given)
        self._glimpses: dict[Cell, Glimpse] = {}
        self._photos: list[Candidate] = []
        self._next: Cell | None = start
        self._declared: Find | None = None
        self._match_probability: float | None = None
        self.prior = self.belief()
        """Probability of area before the first photo, (rows, cols)."""

    @property
    def glimpses(self) -> Mapping[Cell, Glimpse]:
        """Glimpse of every photographed cell: the one that is most like the goal."""
        return self._glimpses

    @property
    def photos(self) -> Sequence[Candidate]:
        """All photos in order."""
        return self._photos

    def candidates(self) -> list[Candidate]:
        """Return all photos, the most probable first: confirmed ones before all, rejected ones after all."""
        verdicts = {True: 0, None: 1, False: 2}
        return sorted(self._photos, key=lambda photo: (verdicts[photo.verdict], -photo.find.probability))

    def find_photo(self, cell: Cell, glimpse: Glimpse) -> Candidate | None:
        """Return the same photo of a cell if it was observed before."""
        same = (photo for photo in self._photos if photo.find.cell == cell)
        return next((photo for photo in same if np.array_equal(photo.glimpse.pixels, glimpse.pixels)), None)

    @property
    def moves_flown(self) -> int:
        """Moves flown so far."""
        return path_length(self.flown)

    @property
    def pos(self) -> float:
        """Probability of success (POS): the prior times POD, summed over all cells."""
        return float((self.prior * self.pod).sum())

    @property
    def status(self) -> Status:
        """Status of the search."""
        if self._declared is not None:
            return "found"
        return "spent" if self._next is None else "searching"

    def observe(self, cell: Cell, glimpse: Glimpse, *, check: bool = True) -> Advice:
        """Update the search with a photo of a cell.

        A photo of the next cell moves the search on. A photo of another cell is compared with the goal and kept, and
        the vehicle is not sent to that cell again. The same photo again changes nothing.

        Args:
            cell: The cell.
            glimpse: The photo.
            check: Refuse useless photos, and all photos after the end. Without it the photo counts as it is.

        Raises:
            UnusablePhotoError: If the photo is black, blurred or misexposed. The search is as before.
            AirlocError: If the cell is outside the grid, the glimpse has the wrong shape, or the search has ended.
        """
        self._check(cell, glimpse)
        if check:
            self.check_use(cell, glimpse)
        self._add(cell, glimpse)
        if cell == self._next:
            self.flown.append(cell)
        return self._update(cell)

    def _add(self, cell: Cell, glimpse: Glimpse, *, again: bool = False) -> None:
        """Compare a photo with the goal and keep it, unless it was observed before and is not a photo taken again."""
        if again or self.find_photo(cell, glimpse) is None:
            find = self._recognise(cell, glimpse)
            earlier = [photo.find.probability for photo in self._photos if photo.find.cell == cell]
            if find.probability > max(earlier, default=-1.0):
                self._glimpses[cell] = glimpse
            self._photos.append(Candidate(len(self._photos) + 1, glimpse, find))
            self._match_probability = find.probability

    def check_use(self, cell: Cell, glimpse: Glimpse) -> None:
        """Check that the search goes on and that a photo can be compared with the goal; `observe` lists the errors."""
        if self.status != "searching":
            raise AirlocError("The search has ended", "Start another search")
        flaw = find_flaw(glimpse.whole_view())
        if flaw is not None:
            problem = f"The photo of {format_cell(cell)} is {flaw} and was not used"
            raise UnusablePhotoError(problem, "Photograph the cell again")

    def judge(self, number: int, goal: bool) -> Advice:
        """Update the search with the verdict of a person on a photo; a later verdict on the same photo replaces it.

        A confirmed photo is declared, whatever the status of the search. If the declared photo is rejected, the find is
        withdrawn and the search goes on.

        Args:
            number: Number of the photo, from 1.
            goal: Whether the photo shows the goal.

        Raises:
            AirlocError: If there is no such photo.
        """
        if not 1 <= number <= len(self._photos):
            cure = f"Give a number from 1 to {len(self._photos)}" if self._photos else "Photograph a cell first"
            raise AirlocError(f"There is no photo {number}", cure)
        photo = self._photos[number - 1]
        self._photos[number - 1] = photo._replace(verdict=goal)
        return self._update(photo.find.cell)

    def _update(self, cell: Cell) -> Advice:
        """Update POD, the declaration and the next cell after a photo of a cell or a verdict on one."""
        own = (photo for photo in self._photos if photo.find.cell == cell)
        self.pod[cell] = max(map(self._pod, own))  # photos of a cell miss the same goals
        self._declared = self._best_find()
        if self._declared is None:
            self._replan()
        return self.advice()

    def _pod(self, photo: Candidate) -> float:
        """Return the probability of detection of a photo."""
        return photo.glimpse.coverage * (self.detection if photo.verdict is None else PERSON)

    def _replan(self) -> None:
        """Choose the next cell if the last one is photographed."""
        if self._next in self._glimpses:
            self._next = self._choose_next()

    def _best_find(self) -> Find | None:
        """Return the confirmed find, or the most probable one above the threshold that nobody has rejected."""
        for photo in self.candidates():
            if photo.verdict:
                return photo.find._replace(probability=PERSON)
            if photo.verdict is None and photo.find.probability >= self.threshold:
                return photo.find
        return None

    def _recognise(self, cell: Cell, glimpse: Glimpse) -> Find:
        """Compare a photo with the goal: the agent compares the glimpse, the locator the whole view."""
        own = self._session.match(cell, glimpse.pixels)
        probability, down, right = judge(self._views, SIGHTING, self._compare, *glimpse.whole_view(), own)
        cells = self.grid.cell / self.grid.pitch  # rows per cell: offsets are in cells, without the gap
        return Find(cell, (cell[0] + down * cells, cell[1] + right * cells), probability)

    def advice(self) -> Advice:
        """Return the state of the search and the next waypoint."""
        belief = self.belief()
        best = self.grid.cell_of(int(belief.argmax()))
        return Advice(
            status=self.status,
            next_cell=None if self._declared is not None else self._next,
            declared=self._declared,
            match_probability=self._match_probability,
            moves_left=self.budget - self.moves_flown,
            best=best,
            best_probability=float(belief[best]),
        )

    def belief(self) -> Belief:
        """Return the probability of area (POA) of every cell, (rows, cols).

        A cell whose photo the agent has observed has its prior times 1 - POD, because the belief of the agent excludes
        it. A photo that the agent has not observed multiplies the agent's belief in its cell by 1 - POD.
        """
        weight = self._weight / self._weight.sum()
        own = self._session.belief()
        if own is not None:  # the agent shares out what is left for the cells that it has not observed
            seen = np.zeros(self.grid.shape, dtype=np.bool_)
            for cell in self._glimpses.keys() & self._session.observed:
                seen[cell] = True
            own = own * (weight > 0) * ~seen
            weight = np.where(seen, weight, own * weight[~seen].sum() / max(own.sum(), 1e-300))
        weight = self._with_declared(weight * (1 - self.pod))
        total = weight.sum()
        return np.asarray(weight / total if total > 0 else self._weight / self._weight.sum())

    def _with_declared(self, weight: Belief) -> Belief:
        """Return weights with the declared find, if there is one, at its probability."""
        if self._declared is not None:
            probability, weight[self._declared.cell] = self._declared.probability, 0
            weight = (1 - probability) * weight / max(weight.sum(), 1e-300)
            weight[self._declared.cell] = probability
        return weight

    def _choose_next(self) -> Cell | None:
        """Let the agent move until it reaches a cell that needs a photo; then use up the budget greedily."""
        left = self._left()
        # An agent with a belief may learn from cells that cannot have the goal; others gain nothing there.
        allowed = self._weight > 0 if self._session.belief() is None else self.searchable
        while left.any():
            at = self._session.position
            if self.grid.contains(at) and allowed[at] and at not in self._glimpses:
                return at
            if self._session.finished:
                return best_cell_in_reach(self.belief(), left, self.flown[-1], self.budget - self.moves_flown)
            glimpse = self._glimpses.get(at)
            self._session.step(None if glimpse is None else glimpse.pixels)
        return None

    def _left(self) -> Mask:
        """Return the cells that may have the goal and have no photo, (rows, cols)."""
        return (self._weight > 0) & ~self._photographed()

    def _photographed(self) -> Mask:
        """Return the cells that have a photo, (rows, cols)."""
        photographed = np.zeros(self.grid.shape, dtype=np.bool_)
        for cell in self._glimpses:
            photographed[cell] = True
        return photographed

    def _check_start(self, start: Cell) -> None:
        if not (self.grid.contains(start) and self.searchable[start]):
            raise AirlocError(f"The start {start} is not a searchable cell", "Start in a cell inside the outline")

    def _check(self, cell: Cell, glimpse: Glimpse) -> None:
        if not self.grid.contains(cell):
            raise AirlocError(f"The cell {cell} is outside the grid of {self.grid}", "Photograph a cell of the grid")
        side = self.grid.cell
        if glimpse.pixels.shape != (side, side, 3) or glimpse.pixels.dtype != np.uint8:
            raise AirlocError(
                f"A glimpse has shape {glimpse.pixels.shape} and type {glimpse.pixels.dtype}",
                f"Pass RGB bytes of shape ({side}, {side}, 3), as airloc.missions.photos returns them",
            )


def _check_prior(prior: Belief, searchable: Mask) -> Belief:
    """Return a prior over the cells if it is one."""
    if prior.shape != searchable.shape or not np.isfinite(prior).all() or (prior < 0).any():
        problem = f"The prior is not a probability for each of the {searchable.shape[0]} x {searchable.shape[1]} cells"
        raise AirlocError(problem, "Pass one from airloc.missions.priors.combine_priors")
    if not (prior * searchable).any():
        raise AirlocError("The prior is zero in every searchable cell", "Check its sources, or search a larger area")
    return prior


def _check_probability(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise AirlocError(f"The {name} {value} is not a probability", "Pass a number from 0 to 1")
    return value
