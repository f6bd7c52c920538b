"""The rules of the task, pure and written once; every environment is a thin shell over them.

A move adds one of the eight king's steps to the position. It may leave the area: that is allowed, counted and
shows black. On a grid of four moves only the straight steps are moves, under the same numbers, and the border is
closed: any other step is counted and leads nowhere. The episode ends when the position is the goal's (found) or when
the budget of moves is spent (truncated). Each move earns `3 * found - 1`: two for the one that finds the goal, minus
one for any other.

In the variant that ends by declaration nobody is told of an arrival. At every glimpse, the first and the last included,
the agent may say that the goal is here: that ends the episode, found where it is true, a false alarm where it is not.
Saying it is no move. It earns 3 where it is true, so that a find after n moves returns 3 - n in both variants, and
minus 3 times the cost of a false alarm where it is not. Who has no move left and does not say it has missed the goal.

The functions take NumPy arrays and torch tensors alike. Legend: `...` any batch shape, cells have a last axis of 2.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid

ArrayT = TypeVar("ArrayT", npt.NDArray[Any], torch.Tensor)

FOUND_REWARD = 3
STEP_REWARD = -1

FALSE_ALARM_COST = 4.0
"""What a false alarm costs in finds, unless said otherwise."""

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
    reward: ArrayT
    """3 for a find, minus 3 times its cost for a false alarm, zero where nothing was declared, float (...)."""


def declare(position: ArrayT, goal: ArrayT, said: ArrayT, *, cost: float = FALSE_ALARM_COST) -> Verdict[ArrayT]:
    """Judge declarations.

    Args:
        position: Cells that agents are over, (..., 2).
        goal: Cells of the goals, (..., 2).
        said: Which episodes say that the goal is here, bool (...).
        cost: What a false alarm costs in finds.

    >>> import numpy as np
    >>> verdict = declare(np.array([[1, 1], [1, 2]]), np.array([[1, 1], [1, 1]]), np.array([True, True]))
    >>> verdict.found.tolist(), verdict.false_alarm.tolist(), verdict.reward.tolist()
    ([True, False], [False, True], [3.0, -12.0])
    """
    arrived = (position == goal).all(-1)
    found, wrong = said & arrived, said & ~arrived
    return Verdict(found, wrong, FOUND_REWARD * found - FOUND_REWARD * cost * wrong)


class Turn(NamedTuple, Generic[ArrayT]):
    """What a move or a declaration led to, in the variant that ends by declaration."""

    position: ArrayT
    """The cell the agent is over, (..., 2)."""
    steps: ArrayT
    """Moves made so far, (...)."""
    reward: ArrayT
    """That of the declaration, or minus one for a move, float (...)."""
    found: ArrayT
    """Whether the goal was declared where it is, bool (...)."""
    missed: ArrayT
    """Whether nothing was declared and there was no move left to make, bool (...)."""
    false_alarm: ArrayT
    """Whether the goal was declared where it is not, bool (...)."""


def declare_or_move(
    position: ArrayT,
    steps: ArrayT,
    goal: ArrayT,
    action: ArrayT,
    said: ArrayT,
    *,
    moves: ArrayT,
    budget: int,
    grid: Grid | None = None,
    cost: float = FALSE_ALARM_COST,
) -> Turn[ArrayT]:
    """Declare where it is said (...) that the goal is here, and move elsewhere while there are moves; see `move`."""
    verdict = declare(position, goal, said, cost=cost)
    flies = ~said & (steps < budget)
    to = move(position, steps, goal, action, moves=moves, budget=budget, grid=grid).position
    return Turn(
        position=position + (to - position) * flies[..., None],
        steps=steps + flies,
        reward=verdict.reward + STEP_REWARD * flies,
        found=verdict.found,
        missed=~said & (steps >= budget),
        false_alarm=verdict.false_alarm,
    )


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


def check_false_alarm_cost(cost: float) -> float:
    """Give the cost of a false alarm in finds back if it is one."""
    if not 0 <= cost < float("inf"):
        raise AirlocError(f"A false alarm cannot cost {cost} finds", "Give a number of 0 or more")
    return cost


def check_budget(budget: int) -> int:
    """Give the budget back if it allows a move at all, and not more than can be kept in memory."""
    if budget < 1:
        raise AirlocError(f"A budget of {budget} allows no move", "Give a budget of 1 or more")
    if budget > MAX_BUDGET:
        raise AirlocError(f"A budget of {budget} moves is more than can be played", f"Give at most {MAX_BUDGET}")
    return budget


# ---------- What the numbers mean that players give to the NumPy environments: moves, and "here" where that is said.
# ~
# ~ Legend: `...` any batch shape, A actions.

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Actions:
    """The actions of a task: the moves of its grid, and after them "here" where episodes end by declaration."""

    grid: Grid
    budget: int
    declare: bool = False
    """Episodes end by declaration."""
    false_alarm_cost: float = FALSE_ALARM_COST
    """What a wrong declaration costs in finds."""

    def __post_init__(self) -> None:
        check_false_alarm_cost(self.false_alarm_cost)

    @property
    def count(self) -> int:
        """A, how many there are."""
        return self.grid.moves + self.declare

    def mask(self, position: Ints) -> npt.NDArray[np.int8]:
        """Which actions stay in the area, (..., A): saying "here" always does."""
        stay = moves_inside(position, self.grid, MOVES)[..., self.grid.directions]
        here = np.ones((*stay.shape[:-1], self.count - self.grid.moves), dtype=np.bool_)
        return np.concatenate([stay, here], axis=-1).astype(np.int8)

    def play(self, position: Ints, steps: Ints, goal: Ints, action: Ints) -> Turn[npt.NDArray[Any]]:
        """Do what actions (...) mean.

        Where arriving is enough, `found` says of an arrival, `missed` that the budget is spent, and no alarm is false.
        """
        said = self.declare & (action == self.grid.moves)
        number = self.grid.directions[np.where(said, 0, action)]
        if not self.declare:
            out = move(position, steps, goal, number, moves=MOVES, budget=self.budget, grid=self.grid)
            return Turn(*out, false_alarm=said)
        return declare_or_move(
            position,
            steps,
            goal,
            number,
            said,
            moves=MOVES,
            budget=self.budget,
            grid=self.grid,
            cost=self.false_alarm_cost,
        )

    def ending(self, turn: Turn[npt.NDArray[Any]]) -> dict[str, Any]:
        """What is told of episodes at their end, each (...): how they ended, where they end by declaration."""
        if not self.declare:
            return {}
        return {"found": turn.found, "false_alarm": turn.false_alarm, "missed": turn.missed}
