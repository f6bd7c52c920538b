"""What the numbers mean that players give to the NumPy environments: moves, and "here" where that is said.

Legend: `...` any batch shape, A actions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from airloc.grid import MOVES, Grid
from airloc.task import rules

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Actions:
    """The actions of a task: the moves of its grid, and after them "here" where episodes end by declaration."""

    grid: Grid
    budget: int
    declare: bool = False
    """Episodes end by declaration."""
    false_alarm_cost: float = rules.FALSE_ALARM_COST
    """What a wrong declaration costs in finds."""

    def __post_init__(self) -> None:
        rules.check_false_alarm_cost(self.false_alarm_cost)

    @property
    def count(self) -> int:
        """A, how many there are."""
        return self.grid.moves + self.declare

    def mask(self, position: Ints) -> npt.NDArray[np.int8]:
        """Which actions stay in the area, (..., A): saying "here" always does."""
        stay = rules.moves_inside(position, self.grid, MOVES)[..., self.grid.directions]
        here = np.ones((*stay.shape[:-1], self.count - self.grid.moves), dtype=np.bool_)
        return np.concatenate([stay, here], axis=-1).astype(np.int8)

    def play(self, position: Ints, steps: Ints, goal: Ints, action: Ints) -> rules.Turn[npt.NDArray[Any]]:
        """Do what actions (...) mean.

        Where arriving is enough, `found` says of an arrival, `missed` that the budget is spent, and no alarm is false.
        """
        said = self.declare & (action == self.grid.moves)
        number = self.grid.directions[np.where(said, 0, action)]
        if not self.declare:
            out = rules.move(position, steps, goal, number, moves=MOVES, budget=self.budget, grid=self.grid)
            return rules.Turn(*out, false_alarm=said)
        return rules.declare_or_move(
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

    def ending(self, turn: rules.Turn[npt.NDArray[Any]]) -> dict[str, Any]:
        """What is told of episodes at their end, each (...): how they ended, where they end by declaration."""
        if not self.declare:
            return {}
        return {"found": turn.found, "false_alarm": turn.false_alarm, "missed": turn.missed}
