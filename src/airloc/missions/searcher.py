"""The agent that leads a search, one glimpse at a time: a batch of one, with its state.

Legend: glimpses are uint8 RGB (48, 48, 3).
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.belief import BeliefAgent
from airloc.agents.matching import with_match
from airloc.areas.area import Mask, Pixels
from airloc.errors import AirlocError
from airloc.grid import MOVES, Cell, Grid, distance
from airloc.missions.sweep import most_for_the_way
from airloc.seeding import stream
from airloc.task.batch import Observation
from airloc.task.rules import check_budget


class AgentSession:
    """An agent in its episode.

    Args:
        agent: Who leads.
        goal: The picture of the goal.
        grid: The cells.
        start: Where the agent begins.
        budget: Moves it may make.
        seed: Decides the choices of agents that draw.
    """

    def __init__(self, agent: Agent, goal: Pixels, grid: Grid, start: Cell, budget: int, seed: int) -> None:
        self.at = start
        """Where the agent is: the cell that it is to be shown next, perhaps outside the grid."""
        self.moves = 0
        self.shown: set[Cell] = set()
        """The cells that it was shown."""
        self._agent, self._grid, self._budget = with_match(_in_the_field(agent)), grid, budget
        noise = torch.from_numpy(stream(seed, "searcher").random((1, budget, len(MOVES)), dtype=np.float32))
        with torch.inference_mode():
            self._state = self._agent.reset(EpisodeBatch(torch.from_numpy(goal.copy())[None], grid, budget, noise))

    @property
    def spent(self) -> bool:
        """Whether all its moves are made."""
        return self.moves >= self._budget

    def match(self, cell: Cell, glimpse: Pixels) -> float:
        """The probability that a glimpse is the goal's."""
        with torch.inference_mode():
            here, self._state = self._agent.match(self._observation(cell, glimpse), self._state)
        return float(here)

    def show(self, glimpse: Pixels | None) -> None:
        """Show the agent where it is, black where there is nothing to see, and let it move."""
        side = self._grid.cell
        seen = np.zeros((side, side, 3), dtype=np.uint8) if glimpse is None else glimpse
        with torch.inference_mode():
            action, self._state = self._agent.act(self._observation(self.at, seen), self._state)
        self.shown.add(self.at)
        row, col = (np.array(self.at) + MOVES[int(action)]).tolist()
        self.at, self.moves = (row, col), self.moves + 1

    def belief(self) -> npt.NDArray[np.float64] | None:
        """The agent's own belief over the cells, (rows, cols); None where it has none."""
        own: torch.Tensor | None = getattr(self._state, "belief", None)
        return None if own is None else own[0].double().cpu().numpy().reshape(self._grid.shape)

    def _observation(self, cell: Cell, glimpse: Pixels) -> Observation:
        patch = torch.from_numpy(glimpse.copy())[None]
        return Observation(patch, torch.tensor([cell]), torch.tensor([self._budget - self.moves]))


def _in_the_field(agent: Agent) -> Agent:
    """The agent as it plays where goals lie anywhere, the start included, near ones no likelier than far ones."""
    return replace(agent, prior="anywhere") if isinstance(agent, BeliefAgent) else agent


# ---------- The live searcher: a goal, a grid and a budget go in; after each photo, the next cell comes out.
# ~
# ~ Any agent can lead. It plays the task on the whole rectangle of cells, as it was trained, one king's move at a time. The
# ~ searcher stands between the agent and the vehicle:
# ~
# ~ - A cell that is not searchable (outside the outline) is never flown to. The agent is shown black there, as outside the
# ~   area in training, and moves on.
# ~ - A cell that was photographed before is not flown to again. The agent is shown what was seen.
# ~ - When the agent has spent its moves in this way while the vehicle has flight left, the rest goes to the most probable
# ~   cells, the near ones first.
# ~ - Where the photo shows the goal with enough probability, the searcher declares the find and the search is over.
# ~
# ~ The budget is in moves flown: a leg costs the distance of its ends. Everything follows from the photos and their order,
# ~ so that a search is resumed by showing the same photos again.
# ~
# ~ Legend: glimpses are uint8 RGB (48, 48, 3); a belief is (rows, cols), zero where nothing is searched, and sums to one.

Status = Literal["searching", "found", "spent"]
Belief = npt.NDArray[np.float64]


class Glimpse(NamedTuple):
    """What a photo showed of a cell."""

    pixels: Pixels
    """(48, 48, 3)."""
    seen: float = 1.0
    """Share of the cell that it showed."""


class Advice(NamedTuple):
    """What the searcher says."""

    status: Status
    """`searching` until the find is declared (`found`) or nothing more can be reached (`spent`)."""
    cell: Cell | None
    """Where the next photo is wanted; None when the search is over."""
    declared: Cell | None
    """Where the goal is, as far as the searcher can tell."""
    here: float | None
    """The probability that the last photo shows the goal; None before the first."""
    moves_left: int
    """Moves that may still be flown."""
    best: Cell
    """The most probable cell."""
    best_probability: float
    """How probable it is: how sure the searcher is."""


class Searcher:
    """One search.

    Args:
        agent: Who leads.
        goal: The picture of the goal, (48, 48, 3).
        grid: The cells.
        start: The first cell to look at.
        budget: Moves that may be flown.
        searchable: The cells that are searched, (rows, cols); all unless given.
        threshold: Declare the find from this probability on.
        detection: The probability of recognising the goal in a photo that shows it whole.
        seed: Decides the choices of agents that draw.
    """

    def __init__(
        self,
        agent: Agent,
        goal: Pixels,
        grid: Grid,
        *,
        start: Cell,
        budget: int,
        searchable: Mask | None = None,
        threshold: float = 0.5,
        detection: float = 0.9,
        seed: int = 0,
    ) -> None:
        self.grid, self.budget = grid, check_budget(budget)
        self.searchable = np.ones(grid.shape, dtype=np.bool_) if searchable is None else searchable
        self.threshold, self.detection = _share("threshold", threshold), _share("detection", detection)
        if not (grid.contains(start) and self.searchable[start]):
            raise AirlocError(f"The start {start} is no cell that is searched", "Start in a cell of the outline")
        self.flown: list[Cell] = []
        """The cells that were waited for and photographed, in order."""
        self.pod: Belief = np.zeros(grid.shape)
        """Probability of detection: that the goal would have been recognised if it were there, (rows, cols)."""
        self._lead = AgentSession(agent, goal, grid, start, budget, seed)
        self._glimpses: dict[Cell, Glimpse] = {}
        self._wanted: Cell | None = start
        self._declared: Cell | None = None
        self._here: float | None = None
        self.prior = self.belief()
        """The belief before the first photo, (rows, cols)."""

    @property
    def glimpses(self) -> Mapping[Cell, Glimpse]:
        """All that was seen, by cell."""
        return self._glimpses

    @property
    def moves_flown(self) -> int:
        """Moves flown so far."""
        return sum(distance(a, b) for a, b in pairwise(self.flown))

    @property
    def pos(self) -> float:
        """Probability of success: that what was flown so far would have found the goal."""
        return float((self.prior * self.pod).sum())

    @property
    def status(self) -> Status:
        """How the search stands."""
        if self._declared is not None:
            return "found"
        return "spent" if self._wanted is None else "searching"

    def observe(self, cell: Cell, glimpse: Glimpse) -> Advice:
        """Take a photo of a cell into account.

        A photo of the cell that is waited for moves the search on. One of another cell is looked at for the goal, and
        kept: the vehicle is not sent there again. One of a cell that was seen before changes nothing.

        Raises:
            AirlocError: When the cell lies outside the grid, the glimpse has another size, or the search is over.
        """
        self._check(cell, glimpse)
        if cell not in self._glimpses:
            self._glimpses[cell] = glimpse
            self.pod[cell] = self.detection * glimpse.seen
            self._here = self._lead.match(cell, glimpse.pixels)
            if self._here >= self.threshold:
                self._declared = cell
        if cell == self._wanted:
            self.flown.append(cell)
        if self._declared is None and self._wanted in self._glimpses:
            self._wanted = self._next()
        return self.advice()

    def advice(self) -> Advice:
        """Say how the search stands and where to go."""
        belief = self.belief()
        best = self.grid.cell_of(int(belief.argmax()))
        wanted = None if self._declared else self._wanted
        left = self.budget - self.moves_flown
        return Advice(self.status, wanted, self._declared, self._here, left, best, float(belief[best]))

    def belief(self) -> Belief:
        """The probability of area: how probable it is for every cell that the goal is there, (rows, cols)."""
        weight = self._lead.belief()
        if weight is None:
            weight = self.searchable * (1 - self.pod)
        else:
            weight = weight * self.searchable
            for cell in self._glimpses.keys() - self._lead.shown:  # what the agent does not know yet
                weight[cell] *= 1 - self.pod[cell]
        if self._declared is not None and self._here is not None:
            weight[self._declared] = 0
            weight = (1 - self._here) * weight / max(weight.sum(), 1e-300)
            weight[self._declared] = self._here
        total = weight.sum()
        return np.asarray(weight / total if total > 0 else self.searchable / self.searchable.sum())

    def _next(self) -> Cell | None:
        """Where to send the vehicle: where the agent leads, past all that needs no flight; then where it is best."""
        while True:
            at = self._lead.at
            if self.grid.contains(at) and self.searchable[at] and at not in self._glimpses:
                return at
            if self._lead.spent:
                return self._most_probable_in_reach()
            glimpse = self._glimpses.get(at)
            self._lead.show(None if glimpse is None else glimpse.pixels)

    def _most_probable_in_reach(self) -> Cell | None:
        """The unseen cell with the most probability for its distance; None when the flight left reaches none."""
        left = self.searchable.copy()
        for cell in self._glimpses:
            left[cell] = False
        return most_for_the_way(self.belief(), left, self.flown[-1], self.budget - self.moves_flown)

    def _check(self, cell: Cell, glimpse: Glimpse) -> None:
        """Refuse what is no photo of this search."""
        if not self.grid.contains(cell):
            raise AirlocError(f"The cell {cell} lies outside the grid of {self.grid}", "Photograph a cell of the grid")
        side = self.grid.cell
        if glimpse.pixels.shape != (side, side, 3) or glimpse.pixels.dtype != np.uint8:
            raise AirlocError(
                f"A glimpse of shape {glimpse.pixels.shape} and type {glimpse.pixels.dtype} is none",
                f"Give RGB bytes of shape ({side}, {side}, 3), as airloc.missions.photos cuts them",
            )
        if self.status != "searching":
            raise AirlocError("The search is over", "Begin another one")


def _share(what: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise AirlocError(f"A {what} of {value} is no probability", "Give a number from 0 to 1")
    return value
