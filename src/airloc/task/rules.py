"""The rules of the task, pure and written once; every environment is a thin shell over them.

A move adds one of the eight king's steps to the position. It may leave the area: that is allowed, counted and
shows black. On a grid of four moves only the straight steps are moves, under the same numbers, and the border is
closed: any other step is counted and leads nowhere. The episode ends when the position is the goal's (found) or when
the budget of moves is spent (truncated). Each move earns `3 * found - 1`: two for the one that finds the goal, minus
one for any other.

In the variant that ends by declaration nobody is told of an arrival. At every glimpse, the first and the last included,
the agent may say that the goal is here: that ends the episode, found where it is true, a false alarm where it is not.

The functions take NumPy arrays and torch tensors alike. Legend: `...` any batch shape, cells have a last axis of 2.
"""

from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy.typing as npt
import torch

from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid

ArrayT = TypeVar("ArrayT", npt.NDArray[Any], torch.Tensor)

FOUND_REWARD = 3
STEP_REWARD = -1

MAX_BUDGET = 2048
"""Twice what it takes to fly over every cell of the largest grid."""


class Outcome(NamedTuple, Generic[ArrayT]):
    """What a move led to."""

    position: ArrayT
    """The cell moved to, (..., 2)."""
    steps: ArrayT
    """Moves made so far, this one included, (...)."""
    reward: ArrayT
    """`3 * found - 1`, (...)."""
    found: ArrayT
    """Whether the position is the goal's, bool (...)."""
    truncated: ArrayT
    """Whether the budget is spent without a find, bool (...)."""


def move(
    position: ArrayT,
    steps: ArrayT,
    goal: ArrayT,
    action: ArrayT,
    *,
    moves: ArrayT,
    budget: int,
    grid: Grid | None = None,
) -> Outcome[ArrayT]:
    """Make one move.

    Args:
        position: Cells before the move, (..., 2).
        steps: Moves made before this one, (...).
        goal: Cells of the goals, (..., 2).
        action: Numbers of moves in `moves`, (...).
        moves: The move table `airloc.grid.MOVES`, as an array of the same kind, (8, 2).
        budget: Moves allowed in an episode.
        grid: Whose rules of movement hold; without one those of eight moves.

    >>> import numpy as np
    >>> out = move(np.array([0, 0]), np.array(9), np.array([1, 1]), np.array(3), moves=MOVES, budget=10)
    >>> out.position.tolist(), int(out.reward), bool(out.found), bool(out.truncated)
    ([1, 1], 2, True, False)
    """
    step = moves[action]
    if grid is not None and grid.moves == 4:
        step = step * (_is_straight(step) & inside(position + step, grid))[..., None]
    position = position + step
    steps = steps + 1
    found = (position == goal).all(-1)
    reward = FOUND_REWARD * found + STEP_REWARD
    return Outcome(position, steps, reward, found, (steps >= budget) & ~found)


class Verdict(NamedTuple, Generic[ArrayT]):
    """What a declaration led to."""

    found: ArrayT
    """Whether the goal was declared where it is, bool (...)."""
    false_alarm: ArrayT
    """Whether it was declared where it is not, bool (...)."""


def declare(position: ArrayT, goal: ArrayT, said: ArrayT) -> Verdict[ArrayT]:
    """Judge declarations: `said` (...) tells which episodes say that the goal is here.

    >>> import numpy as np
    >>> verdict = declare(np.array([[1, 1], [1, 2]]), np.array([[1, 1], [1, 1]]), np.array([True, True]))
    >>> verdict.found.tolist(), verdict.false_alarm.tolist()
    ([True, False], [False, True])
    """
    arrived = (position == goal).all(-1)
    return Verdict(said & arrived, said & ~arrived)


def inside(position: ArrayT, grid: Grid) -> ArrayT:
    """Whether cells lie in the grid, bool (...)."""
    row, col = position[..., 0], position[..., 1]
    return (row >= 0) & (row < grid.rows) & (col >= 0) & (col < grid.cols)


def moves_inside(position: ArrayT, grid: Grid, moves: ArrayT) -> ArrayT:
    """Which of the eight moves end in the grid, bool (..., 8)."""
    return inside(position[..., None, :] + moves, grid)


def moves_allowed(position: ArrayT, grid: Grid, moves: ArrayT) -> ArrayT:
    """Which of the eight moves lead somewhere, bool (..., 8): all; on a grid of four the straight ones that stay in."""
    within = moves_inside(position, grid, moves)
    allowed: ArrayT = within | ~within if grid.moves == 8 else within & _is_straight(moves)
    return allowed


def _is_straight(step: ArrayT) -> ArrayT:
    """Whether steps (..., 2) lead north, east, south or west, bool (...)."""
    straight: ArrayT = abs(step).sum(-1) == 1
    return straight


@lru_cache
def moves_on(device: torch.device) -> torch.Tensor:
    """The move table on a device, (8, 2), copied there once."""
    return torch.from_numpy(MOVES).to(device)


def check_budget(budget: int) -> int:
    """Give the budget back if it allows a move at all, and not more than can be kept in memory."""
    if budget < 1:
        raise AirlocError(f"A budget of {budget} allows no move", "Give a budget of 1 or more")
    if budget > MAX_BUDGET:
        raise AirlocError(f"A budget of {budget} moves is more than can be played", f"Give at most {MAX_BUDGET}")
    return budget
