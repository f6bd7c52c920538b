"""The rules of the task, as pure functions. All environments are thin wrappers around them.

A move adds one of eight steps to the position. It may leave the area, where every glimpse is black. On a grid of four
moves, only the straight steps are moves, with the same indices, and the border is closed: any other step is counted but
does not change the position. The episode ends when the position is the goal cell (found) or when the budget is used up
(truncated). The reward of a move is `3 * found - 1`: 2 for the move that finds the goal, -1 for any other. A reward
function may replace it:

    def closer(found, distance, next_distance):
        return 3 * found + (distance - next_distance) - 1

Its arguments are arrays or tensors: whether the move finds the goal, and the distances to the goal before and after it.
It returns one number for each move.

In the variant that ends by declaration, reaching the goal has no effect. At every glimpse, including the first and the
last, the agent may declare that the glimpse shows the goal. A declaration ends the episode: it is a find if it is
correct, and a false alarm otherwise. It is correct in the goal's cell, which contains the centre of a goal that lies
between cells, and anywhere if it reports the position of the goal to within half a cell. It is not a move. Its reward
is 3 for a find, so that a find after n moves has the return 3 - n in both variants, and -3 times the cost of a false
alarm otherwise. An agent without moves left that does not declare has missed the goal.

The functions take NumPy arrays or torch tensors.

Legend: `...` any batch shape, A actions. Cells have a last axis of 2.
"""

import importlib
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid

Ints = npt.NDArray[np.int64]
ArrayT = TypeVar("ArrayT", npt.NDArray[Any], torch.Tensor)

FOUND_REWARD = 3
STEP_REWARD = -1

RewardFunction: TypeAlias = Callable[[Any, Any, Any], Any]
"""Returns the rewards (...) of moves from `found`, `distance` and `next_distance`, each (...)."""

REPORT_REACH = 0.5
"""Largest error of a reported position that is a find, in cells."""

FALSE_ALARM_COST = 4.0
"""Default cost of a false alarm in units of finds."""

MAX_BUDGET = 2048
"""Largest budget: twice the number of cells of the largest grid."""


class MoveOutcome(NamedTuple, Generic[ArrayT]):
    """Result of a move."""

    position: ArrayT
    """Cell after the move, (..., 2)."""
    steps: ArrayT
    """Number of moves including this one, (...)."""
    reward: ArrayT
    """`3 * found - 1`, or that of a reward function, (...)."""
    found: ArrayT
    """True if the position is the goal cell, bool (...)."""
    truncated: ArrayT
    """True if the budget is used up without a find, bool (...)."""


def move(
    position: ArrayT,
    steps: ArrayT,
    goal: ArrayT,
    action: ArrayT,
    *,
    moves: ArrayT,
    budget: int,
    grid: Grid | None = None,
    reward: RewardFunction | None = None,
    by_declaration: bool = False,
) -> MoveOutcome[ArrayT]:
    """Make one move.

    Args:
        position: Cells before the move, (..., 2).
        steps: Number of moves before this one, (...).
        goal: Goal cells, (..., 2).
        action: Indices into `moves`, (...).
        moves: The move table `airloc.grid.MOVES` as an array of the same kind, (8, 2).
        budget: Maximum number of moves of an episode.
        grid: Grid, which may restrict the moves. Default: eight moves.
        reward: Reward function. Default: `3 * found - 1`.
        by_declaration: A move neither finds the goal nor ends the episode, whose last glimpse may still be declared.

    >>> import numpy as np
    >>> out = move(np.array([0, 0]), np.array(9), np.array([1, 1]), np.array(3), moves=MOVES, budget=10)
    >>> out.position.tolist(), int(out.reward), bool(out.found), bool(out.truncated)
    ([1, 1], 2, True, False)
    """
    step = moves[action]
    if grid is not None and grid.moves == 4:
        step = step * (_is_straight(step) & inside(position + step, grid))[..., None]
    target = position + step
    steps = steps + 1
    found = (target == goal).all(-1)
    truncated = (steps >= budget) & ~found
    if by_declaration:
        found, truncated = found & False, truncated & False
    rewards = move_reward(reward, found, position - goal, target - goal, grid)
    return MoveOutcome(target, steps, rewards, found, truncated)


def move_reward(
    reward: RewardFunction | None, found: ArrayT, offset: ArrayT, next_offset: ArrayT, grid: Grid | None = None
) -> ArrayT:
    """Return the rewards (...) of moves, given `found` (...) and the offsets (..., 2) to the goal before and after.

    Raises:
        AirlocError: If the reward function does not return one number for each move.
    """
    if reward is None:
        rewards: ArrayT = FOUND_REWARD * found + STEP_REWARD
        return rewards
    distance, next_distance = (_length(each, grid) for each in (offset, next_offset))
    rewards = reward(found, distance, next_distance)
    if getattr(rewards, "shape", None) != found.shape:
        shape = getattr(rewards, "shape", type(rewards).__name__)
        raise AirlocError(
            f"The reward function returns {shape} for moves of shape {tuple(found.shape)}",
            "Return one number for each move, computed from its arguments",
        )
    return rewards


def _length(offset: ArrayT, grid: Grid | None) -> ArrayT:
    """Return the number of moves that an offset (..., 2) takes, (...)."""
    rows, cols = abs(offset[..., 0]), abs(offset[..., 1])
    if grid is not None and grid.moves == 4:
        total: ArrayT = rows + cols
        return total
    longer: ArrayT = torch.maximum(rows, cols) if isinstance(rows, torch.Tensor) else np.maximum(rows, cols)
    return longer


def load_reward(reward: RewardFunction | str | None) -> RewardFunction | None:
    """Return a reward function; text such as `my_rewards:closer` names the module and the function.

    Raises:
        AirlocError: If there is no such function.
    """
    if reward is None or reward == "":
        return None
    if not isinstance(reward, str):
        function: Any = reward
    else:
        module, _, name = reward.partition(":")
        try:
            function = operator.attrgetter(name)(importlib.import_module(module))
        except Exception as error:  # the code of another module can raise anything
            problem = f"There is no reward function {reward!r}: {error!r}"
            raise AirlocError(problem, "Write module:function, of a module that Python can import") from error
    if not callable(function):
        raise AirlocError(
            f"The reward {reward!r} is not a function", "Use a function of found, distance, next_distance"
        )
    loaded: RewardFunction = function
    return loaded


class DeclarationOutcome(NamedTuple, Generic[ArrayT]):
    """Result of a declaration."""

    found: ArrayT
    """True if the goal is declared correctly, bool (...)."""
    false_alarm: ArrayT
    """True if the goal is declared wrongly, bool (...)."""
    reward: ArrayT
    """3 for a find, -3 times its cost for a false alarm, zero without a declaration, float (...)."""


def declare(
    position: ArrayT,
    goal: ArrayT,
    declared: ArrayT,
    *,
    cost: float = FALSE_ALARM_COST,
    error: ArrayT | None = None,
) -> DeclarationOutcome[ArrayT]:
    """Evaluate declarations.

    Args:
        position: Current cells, (..., 2).
        goal: Goal cells, (..., 2).
        declared: True for episodes that declare the goal, bool (...).
        cost: Cost of a false alarm in units of finds.
        error: Distance from the reported position to the centre of the goal, in cells, (...). Default: no position is
            reported.

    >>> import numpy as np
    >>> outcome = declare(np.array([[1, 1], [1, 2]]), np.array([[1, 1], [1, 1]]), np.array([True, True]))
    >>> outcome.found.tolist(), outcome.false_alarm.tolist(), outcome.reward.tolist()
    ([True, False], [False, True], [3.0, -12.0])
    """
    arrived = (position == goal).all(-1)
    if error is not None:
        arrived = arrived | (error <= REPORT_REACH)
    found, wrong = declared & arrived, declared & ~arrived
    return DeclarationOutcome(found, wrong, FOUND_REWARD * found - FOUND_REWARD * cost * wrong)


class StepOutcome(NamedTuple, Generic[ArrayT]):
    """Result of a move or a declaration."""

    position: ArrayT
    """Current cell, (..., 2)."""
    steps: ArrayT
    """Number of moves, (...)."""
    reward: ArrayT
    """Reward of the declaration or the move, (...)."""
    found: ArrayT
    """True if the goal is declared correctly, bool (...)."""
    missed: ArrayT
    """True if nothing was declared and there are no moves left, bool (...)."""
    false_alarm: ArrayT
    """True if the goal is declared wrongly, bool (...)."""


def declare_or_move(
    position: ArrayT,
    steps: ArrayT,
    goal: ArrayT,
    action: ArrayT,
    declared: ArrayT,
    *,
    moves: ArrayT,
    budget: int,
    grid: Grid | None = None,
    cost: float = FALSE_ALARM_COST,
    reward: RewardFunction | None = None,
) -> StepOutcome[ArrayT]:
    """Declare the goal where `declared` (...) is True, and move elsewhere while there are moves left; see `move`.

    A move finds nothing, so that a reward function receives `found` as False.
    """
    outcome = declare(position, goal, declared, cost=cost)
    moving = ~declared & (steps < budget)
    out = move(position, steps, goal, action, moves=moves, budget=budget, grid=grid, reward=reward, by_declaration=True)
    return StepOutcome(
        position=position + (out.position - position) * moving[..., None],
        steps=steps + moving,
        reward=outcome.reward + out.reward * moving,
        found=outcome.found,
        missed=~declared & (steps >= budget),
        false_alarm=outcome.false_alarm,
    )


def inside(position: ArrayT, grid: Grid) -> ArrayT:
    """Return True for cells in the grid, bool (...)."""
    row, col = position[..., 0], position[..., 1]
    return (row >= 0) & (row < grid.rows) & (col >= 0) & (col < grid.cols)


def moves_inside(position: ArrayT, grid: Grid, moves: ArrayT) -> ArrayT:
    """Return True for the moves that end in the grid, bool (..., 8)."""
    return inside(position[..., None, :] + moves, grid)


def moves_allowed(position: ArrayT, grid: Grid, moves: ArrayT) -> ArrayT:
    """Return True for the moves that change the position, bool (..., 8).

    These are all of them, or on a grid of four moves the straight ones that end in the grid.
    """
    within = moves_inside(position, grid, moves)
    allowed: ArrayT = within | ~within if grid.moves == 8 else within & _is_straight(moves)
    return allowed


def _is_straight(step: ArrayT) -> ArrayT:
    """Return True for steps (..., 2) to the north, east, south or west, bool (...)."""
    straight: ArrayT = abs(step).sum(-1) == 1
    return straight


@lru_cache
def moves_on(device: torch.device) -> torch.Tensor:
    """Return the move table on a device, (8, 2); it is copied there once."""
    return torch.from_numpy(MOVES).to(device)


def check_false_alarm_cost(cost: float) -> float:
    """Return the cost of a false alarm, or raise an error if it is not valid."""
    if not isinstance(cost, Real) or not 0 <= cost < float("inf"):
        raise AirlocError(f"A false alarm cannot cost {cost} finds", "Use a cost of 0 or more")
    return cost


def check_budget(budget: int) -> int:
    """Return the budget, or raise an error if it is not valid."""
    budget = check_integer("budget", budget)
    if budget < 1:
        raise AirlocError(f"A budget of {budget} moves is too small", "Use a budget of 1 or more")
    if budget > MAX_BUDGET:
        raise AirlocError(f"A budget of {budget} moves is too large", f"Use a budget of at most {MAX_BUDGET}")
    return budget


def check_integer(name: str, value: int) -> int:
    """Return an argument as an integer, or raise an error that names it."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise AirlocError(f"The argument {name} = {value!r} is not an integer", "Use a whole number") from error


@dataclass(frozen=True)
class Actions:
    """The actions of the NumPy environments: the moves of the grid and, in one variant, the declaration."""

    grid: Grid
    budget: int
    declare: bool = False
    """Episodes end by declaration."""
    false_alarm_cost: float = FALSE_ALARM_COST
    """Cost of a wrong declaration in units of finds."""
    reward: RewardFunction | None = None
    """Reward function of the moves; by default `3 * found - 1`."""

    def __post_init__(self) -> None:
        check_false_alarm_cost(self.false_alarm_cost)

    @property
    def count(self) -> int:
        """Number of actions, A."""
        return self.grid.moves + self.declare

    def mask(self, position: Ints) -> npt.NDArray[np.int8]:
        """Return 1 for actions that stay in the area, int8 (..., A), including the declaration."""
        stay = moves_inside(position, self.grid, MOVES)[..., self.grid.directions]
        declaration = np.ones((*stay.shape[:-1], self.count - self.grid.moves), dtype=np.bool_)
        return np.concatenate([stay, declaration], axis=-1).astype(np.int8)

    def step(self, position: Ints, steps: Ints, goal: Ints, action: Ints) -> StepOutcome[npt.NDArray[Any]]:
        """Apply the actions (...).

        Without declarations, `found` means that the goal is reached, and `missed` that the budget is used up.
        """
        declared = self.declare & (action == self.grid.moves)
        number = self.grid.directions[np.where(declared, 0, action)]
        if not self.declare:
            out = move(
                position,
                steps,
                goal,
                number,
                moves=MOVES,
                budget=self.budget,
                grid=self.grid,
                reward=self.reward,
            )
            return StepOutcome(*out, false_alarm=declared)
        return declare_or_move(
            position,
            steps,
            goal,
            number,
            declared,
            moves=MOVES,
            budget=self.budget,
            grid=self.grid,
            cost=self.false_alarm_cost,
            reward=self.reward,
        )

    def end_info(self, outcome: StepOutcome[npt.NDArray[Any]]) -> dict[str, Any]:
        """Return how episodes ended, each (...), for `info`; empty without declarations."""
        if not self.declare:
            return {}
        return {"found": outcome.found, "false_alarm": outcome.false_alarm, "missed": outcome.missed}
