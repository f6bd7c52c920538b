"""Watching agents play: what they believed before every move, beside where they flew.

Legend: E episodes, B of a batch, T budget, C cells, S side of a cell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.areas.area import Pixels, SearchArea, fit
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.rollout import Trajectories, play
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.suites import Suite

Note = Callable[[torch.Tensor, Any], torch.Tensor | None]
"""Gives what to note (B, ...) of moves (B,) and the state they were chosen in; None for nothing."""


class Recorder:
    """An agent that plays as another does while something is noted of every move; the notes change nothing.

    Args:
        agent: Who plays.
        note: What to note.
    """

    def __init__(self, agent: Agent, note: Note) -> None:
        self._agent = agent
        self._note = note
        self._batches: list[list[torch.Tensor]] = []

    @property
    def name(self) -> str:
        """The name of the agent that plays."""
        return self._agent.name

    def reset(self, briefing: EpisodeBatch) -> Any:
        """Begin the notes of another batch."""
        self._batches.append([])
        return self._agent.reset(briefing)

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Let the agent act, and note."""
        action, state = self._agent.act(observation, state)
        noted = self._note(action, state)
        if noted is not None:
            self._batches[-1].append(noted.cpu())
        return action, state

    def notes(self, budget: int) -> npt.NDArray[Any] | None:
        """All notes in the order of play, (E, T, ...), zero where a batch had ended; None where there are none."""
        if not all(self._batches):
            return None
        return np.concatenate([_padded(torch.stack(notes, dim=1).numpy(), budget) for notes in self._batches])


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """One episode as it was played."""

    agent: str
    area: SearchArea
    path: list[Cell]
    """Cells from the start on."""
    goal: Cell
    goal_picture: Pixels
    """What the agent was given to find, (S, S, 3)."""
    found: bool
    beliefs: npt.NDArray[np.float32] | None
    """The belief before every move, (moves, rows, cols); None for an agent that has none."""

    @property
    def moves(self) -> int:
        """Moves made."""
        return len(self.path) - 1

    @property
    def last_belief(self) -> npt.NDArray[np.float32] | None:
        """The belief before the last move, less the cell that this move showed not to be the goal, (rows, cols)."""
        if self.beliefs is None or self.found:
            return None if self.beliefs is None else self.beliefs[-1]
        row, col = self.path[-1]
        left: npt.NDArray[np.float32] = self.beliefs[-1].copy()
        if 0 <= row < left.shape[0] and 0 <= col < left.shape[1]:
            left[row, col] = 0
        left /= max(float(left.sum()), 1e-12)
        return left

    @property
    def chance(self) -> float | None:
        """The last belief at the goal."""
        return None if self.last_belief is None else float(self.last_belief[self.goal])

    @property
    def rank(self) -> int | None:
        """Place of the goal in the last belief: 1 where no cell was held more probable."""
        belief = self.last_belief
        return None if belief is None else 1 + int((belief > belief[self.goal]).sum())


@dataclass(frozen=True, slots=True, eq=False)
class RolloutLog:
    """A suite as an agent played it."""

    agent: str
    areas: Sequence[SearchArea]
    goal_areas: Sequence[SearchArea]
    """What the goals' pictures were taken from: the areas, or other pictures of the same ground."""
    suite: Suite
    played: Trajectories
    beliefs: npt.NDArray[np.float32] | None
    """The belief before every move, (E, T, C), zero for moves that were not made; None for an agent without belief."""

    @property
    def made(self) -> npt.NDArray[np.bool_]:
        """Which moves were made, (E, T)."""
        made: npt.NDArray[np.bool_] = np.arange(self.suite.budget) < self.played.steps[:, None]
        return made

    def search(self, number: int) -> Search:
        """One episode."""
        suite, moves = self.suite, int(self.played.steps[number])
        path = [(int(row), int(col)) for row, col in self.played.path[number, : moves + 1]]
        row, col = suite.goal[number].tolist()
        beliefs = None if self.beliefs is None else self.beliefs[number, :moves].reshape(moves, *suite.grid.shape)
        left, top, right, bottom = suite.grid.box((row, col))
        picture = fit(self.goal_areas[suite.area[number]], suite.grid).image[top:bottom, left:right]
        area, found = fit(self.areas[suite.area[number]], suite.grid), bool(self.played.found[number])
        return Search(self.agent, area, path, (row, col), picture, found, beliefs)


def watch(
    agent: Agent,
    areas: Sequence[SearchArea],
    suite: Suite,
    *,
    goal_areas: Sequence[SearchArea] | None = None,
    must_believe: bool = False,
    seed: int = 0,
    batch: int = 1024,
    device: str = "cpu",
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> RolloutLog:
    """Play a suite and keep what the agent believed.

    Args:
        agent: Who searches.
        areas: The areas, numbered as in the suite.
        suite: The episodes.
        goal_areas: Other pictures of the same ground to take the goals from, one for each area.
        must_believe: Refuse an agent that has no belief, at its first move.
        seed: Decides every random choice.
        batch: Episodes in step.
        device: Where the areas are kept.
        on_batch: Called with the number of episodes just played.

    Raises:
        AirlocError: When the agent must believe and does not.
    """
    recorder = Recorder(agent, _required(agent.name) if must_believe else belief_of)
    cells = CellTable.of(areas, suite.grid, device)
    goal_cells = None if goal_areas is None else CellTable.of(goal_areas, suite.grid, device)
    env = BatchEnv(cells, suite.budget, goal_cells)
    played = play(recorder, suite, env, seed=seed, batch=batch, on_batch=on_batch)
    watched = RolloutLog(agent.name, areas, goal_areas or areas, suite, played, recorder.notes(suite.budget))
    if watched.beliefs is not None:
        watched.beliefs[~watched.made] = 0
    return watched


def belief_of(action: torch.Tensor, state: Any) -> torch.Tensor | None:
    """The belief (B, C) in a state; None where it has none."""
    del action
    belief: torch.Tensor | None = getattr(state, "belief", None)
    return None if belief is None else belief.float()


def _required(name: str) -> Note:
    """A note of the belief that has to be there."""

    def note(action: torch.Tensor, state: Any) -> torch.Tensor:
        belief = belief_of(action, state)
        if belief is None:
            raise AirlocError(f"The agent {name!r} keeps no belief", "Give belief, or the checkpoint folder of one")
        return belief

    return note


def _padded(notes: npt.NDArray[Any], budget: int) -> npt.NDArray[Any]:
    """Notes (B, t, ...) made as long as the budget, (B, T, ...)."""
    return np.pad(notes, [(0, 0), (0, budget - notes.shape[1]), *[(0, 0)] * (notes.ndim - 2)])
