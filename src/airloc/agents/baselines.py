"""Baselines that ignore the glimpses: random moves, and paths planned before the start.

`random` and the paper's `priv-random` draw their moves. `lawnmower` and `spiral` follow a plan: a path for each start
cell, which no glimpse changes.

Legend: B episodes, T budget.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import EpisodeBatch, privileged_moves, task_moves, unvisited, visit
from airloc.grid import MOVES, Cell, Grid
from airloc.task.batch import Observation

MOVE_NUMBER = {(row, col): number for number, (row, col) in enumerate(MOVES.tolist())}
"""Index of each move by its row and column step."""

Plan = Callable[[Grid, int, Cell], list[Cell]]
"""Returns the path (start included, budget + 1 cells) for a grid, a budget and a start."""
PriorPlan = Callable[[Grid, int, Cell, npt.NDArray[np.float64]], list[Cell]]
"""Returns such a path for a prior over the cells too, (C,)."""


class RandomState(NamedTuple):
    """State of a `RandomAgent`."""

    noise: torch.Tensor
    step: int
    grid: Grid
    visited: torch.Tensor


@dataclass(frozen=True)
class RandomAgent:
    """Draws every move uniformly from the moves of the task, or from the privileged moves."""

    name: str = "random"
    privileged: bool = False

    def reset(self, episodes: EpisodeBatch) -> RandomState:
        """Return a state without visited cells."""
        blank = unvisited(len(episodes.goal), episodes.grid, episodes.goal.device)
        return RandomState(episodes.noise, 0, episodes.grid, blank)

    def act(self, observation: Observation, state: RandomState) -> tuple[torch.Tensor, RandomState]:
        """Take the allowed move with the highest noise, which is a uniform choice."""
        noise, visited = state.noise[:, state.step], state.visited
        allowed = task_moves(observation.position, state.grid)
        if self.privileged:
            visited = visit(visited, observation.position, state.grid)
            allowed = privileged_moves(observation.position, visited, state.grid)
        noise = noise.masked_fill(~allowed, -1.0)
        return noise.argmax(dim=1), state._replace(step=state.step + 1, visited=visited)


class PlannedState(NamedTuple):
    """State of a `PlannedAgent`."""

    grid: Grid
    budget: int
    moves: torch.Tensor | None
    """Moves of every episode's plan, (B, T); None until the start is observed."""
    step: int
    prior: torch.Tensor | None = None
    """Prior of every episode, (B, C), if it is known."""


@dataclass(frozen=True)
class PlannedAgent:
    """Follows the plan for its start cell."""

    name: str
    plan: Plan
    plan_for: PriorPlan | None = None
    """Plan for episodes with a prior; they have the same plan as others if None."""

    def reset(self, episodes: EpisodeBatch) -> PlannedState:
        """Return a state without a plan."""
        return PlannedState(episodes.grid, episodes.budget, None, 0, episodes.prior)

    def act(self, observation: Observation, state: PlannedState) -> tuple[torch.Tensor, PlannedState]:
        """Make the next move of the plan."""
        moves = state.moves
        if moves is None and state.prior is not None and self.plan_for is not None:
            known = zip(observation.position.tolist(), state.prior.double().cpu().numpy(), strict=True)
            paths = [self.plan_for(state.grid, state.budget, (row, col), prior) for (row, col), prior in known]
            moves = torch.tensor([moves_along(path) for path in paths], device=state.prior.device)
        elif moves is None:
            starts, which = torch.unique(observation.position, dim=0, return_inverse=True)
            plans = [self.plan(state.grid, state.budget, (row, col)) for row, col in starts.tolist()]
            moves = torch.tensor([moves_along(path) for path in plans], device=which.device)[which]
        return moves[:, state.step], state._replace(moves=moves, step=state.step + 1)


def moves_along(path: list[Cell]) -> list[int]:
    """Return the indices of the moves along a path of neighbouring cells."""
    return [MOVE_NUMBER[b[0] - a[0], b[1] - a[1]] for a, b in pairwise(path)]


def lawnmower(grid: Grid, budget: int, start: Cell) -> list[Cell]:
    """Fly to the nearest corner, then sweep line by line along the longer side, back and forth."""
    corners = [(row, col) for row in (0, grid.rows - 1) for col in (0, grid.cols - 1)]
    row, col = min(corners, key=lambda corner: (int(grid.moves_between(np.array(start), np.array(corner))), corner))
    rows = range(grid.rows) if row == 0 else range(grid.rows - 1, -1, -1)
    cols = range(grid.cols) if col == 0 else range(grid.cols - 1, -1, -1)
    if grid.cols >= grid.rows:
        sweep = [(r, c) for line, r in enumerate(rows) for c in (cols if line % 2 == 0 else cols[::-1])]
    else:
        sweep = [(r, c) for line, c in enumerate(cols) for r in (rows if line % 2 == 0 else rows[::-1])]
    return _fly(grid, start, sweep, budget)


def spiral(grid: Grid, budget: int, start: Cell) -> list[Cell]:
    """Fly the expanding square of search and rescue around the start, without the cells outside the grid."""
    square = expanding_square(start, 2 * max(grid.shape))
    return _fly(grid, start, [cell for cell in square if grid.contains(cell)], budget)


def expanding_square(start: Cell, legs: int) -> Iterator[Cell]:
    """Yield north 1, east 1, south 2, west 2, north 3, ... until every cell in reach is covered."""
    row, col = start
    for leg in range(2 * legs):
        step_row, step_col = ((-1, 0), (0, 1), (1, 0), (0, -1))[leg % 4]
        for _ in range(leg // 2 + 1):
            row, col = row + step_row, col + step_col
            yield row, col


def _fly(grid: Grid, start: Cell, targets: Iterable[Cell], budget: int) -> list[Cell]:
    """Visit the targets in order along shortest paths, return to the start, and repeat until the budget is used."""
    return list(islice(_shortest_paths(grid, start, cycle([*targets, start])), budget + 1))


def _shortest_paths(grid: Grid, start: Cell, targets: Iterable[Cell]) -> Iterator[Cell]:
    cell = start
    yield cell
    for target in targets:
        while cell != target:
            step_row, step_col = np.sign(np.subtract(target, cell)).tolist()
            if grid.moves == 4 and step_row:
                step_col = 0
            cell = cell[0] + step_row, cell[1] + step_col
            yield cell
