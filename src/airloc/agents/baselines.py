"""The two random baselines: `random`, and the paper's `priv-random` with privileged moves."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from typing import NamedTuple

import numpy as np
import torch

from airloc.agents.agent import EpisodeBatch, privileged_moves, task_moves, unvisited, visit
from airloc.grid import MOVES, Cell, Grid
from airloc.task.batch import Observation


class RandomState(NamedTuple):
    """The noise still to be used and the cells visited."""

    noise: torch.Tensor
    step: int
    grid: Grid
    visited: torch.Tensor


@dataclass(frozen=True)
class RandomAgent:
    """Draws every move uniformly from those allowed: all that the task has, or the privileged ones."""

    name: str = "random"
    privileged: bool = False

    def reset(self, episodes: EpisodeBatch) -> RandomState:
        """Remember nothing yet."""
        return RandomState(
            episodes.noise, 0, episodes.grid, unvisited(len(episodes.goal), episodes.grid, episodes.goal.device)
        )

    def act(self, observation: Observation, state: RandomState) -> tuple[torch.Tensor, RandomState]:
        """Take the allowed move with the highest noise, which is a uniform choice."""
        noise, visited = state.noise[:, state.step], state.visited
        allowed = task_moves(observation.position, state.grid)
        if self.privileged:
            visited = visit(visited, observation.position, state.grid)
            allowed = privileged_moves(observation.position, visited, state.grid)
        noise = noise.masked_fill(~allowed, -1.0)
        return noise.argmax(dim=1), state._replace(step=state.step + 1, visited=visited)


# ---------- Baselines that fly a plan made before the start: the lawnmower and the expanding square.
# ~
# ~ A plan is a table of moves by start cell and step; what the agent sees on the way changes nothing.

MOVE_NUMBER = {(row, col): number for number, (row, col) in enumerate(MOVES.tolist())}

Plan = Callable[[Grid, int, Cell], list[Cell]]
"""Gives the path (start included, budget + 1 cells) to fly from a start on a grid."""


class PlannedState(NamedTuple):
    """The moves of every episode's plan, (B, T); unknown until the start is seen."""

    grid: Grid
    budget: int
    moves: torch.Tensor | None
    step: int


@dataclass(frozen=True)
class PlannedAgent:
    """Flies the plan for its start cell, whatever it sees."""

    name: str
    plan: Plan

    def reset(self, episodes: EpisodeBatch) -> PlannedState:
        """Wait for the start."""
        return PlannedState(episodes.grid, episodes.budget, None, 0)

    def act(self, observation: Observation, state: PlannedState) -> tuple[torch.Tensor, PlannedState]:
        """Make the plan's next move."""
        moves = state.moves
        if moves is None:
            starts, which = torch.unique(observation.position, dim=0, return_inverse=True)
            plans = [self.plan(state.grid, state.budget, (row, col)) for row, col in starts.tolist()]
            moves = torch.tensor([moves_along(path) for path in plans], device=which.device)[which]
        return moves[:, state.step], state._replace(moves=moves, step=state.step + 1)


def moves_along(path: list[Cell]) -> list[int]:
    """The numbers of the moves along a path of neighbouring cells."""
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
    """Fly the expanding square of search and rescue around the start, skipping what lies outside."""
    square = _expanding_square(start, 2 * max(grid.shape))
    return _fly(grid, start, [cell for cell in square if grid.contains(cell)], budget)


def _expanding_square(start: Cell, legs: int) -> Iterator[Cell]:
    """North 1, east 1, south 2, west 2, north 3, ... until every cell in reach is covered."""
    row, col = start
    for leg in range(2 * legs):
        step_row, step_col = ((-1, 0), (0, 1), (1, 0), (0, -1))[leg % 4]
        for _ in range(leg // 2 + 1):
            row, col = row + step_row, col + step_col
            yield row, col


def _fly(grid: Grid, start: Cell, targets: Iterable[Cell], budget: int) -> list[Cell]:
    """Visit targets in order by shortest ways and return, again and again, until the budget is spent."""
    return list(islice(_way(grid, start, cycle([*targets, start])), budget + 1))


def _way(grid: Grid, start: Cell, targets: Iterable[Cell]) -> Iterator[Cell]:
    here = start
    yield here
    for target in targets:
        while here != target:
            step_row, step_col = np.sign(np.subtract(target, here)).tolist()
            if grid.moves == 4 and step_row:
                step_col = 0
            here = here[0] + step_row, here[1] + step_col
            yield here
