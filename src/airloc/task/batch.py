"""The tensor environment: many episodes in step, all areas on the device.

Legend: B episodes in step, S side of a cell. Nothing here leaves the device.
"""

from typing import NamedTuple

import torch

from airloc.task import rules
from airloc.task.cells import CellTable


class Observation(NamedTuple):
    """What agents see after a move. The goal's picture comes once, with the briefing."""

    patch: torch.Tensor
    """The glimpses of the current cells, (B, S, S, 3) uint8, black outside."""
    position: torch.Tensor
    """The current cells, (B, 2) int64; outside the area too."""
    moves_left: torch.Tensor
    """Moves left of the budget, (B,) int64."""


class Step(NamedTuple):
    """What a step of the batch gave."""

    observation: Observation
    reward: torch.Tensor
    """`3 * found - 1`; zero for episodes that had ended before, (B,) int64."""
    found: torch.Tensor
    """Episodes whose goal has been found, (B,) bool."""
    ended: torch.Tensor
    """Episodes that are over, found or out of moves, (B,) bool."""


class Declared(NamedTuple):
    """What a round of declarations gave, in the variant that ends by them."""

    found: torch.Tensor
    """Episodes that declared the goal now and were right, (B,) bool."""
    false_alarm: torch.Tensor
    """Episodes that declared it now and were wrong, (B,) bool."""
    ended: torch.Tensor
    """Episodes that are over, declared or out of moves, (B,) bool."""
    reward: torch.Tensor
    """3 for a find, minus 3 times its cost for a false alarm, otherwise zero, (B,) float."""


class BatchEnv:
    """Plays a batch of episodes in step; an episode that has ended stays where it is.

    Args:
        cells: The patches of all areas.
        budget: Moves allowed in an episode.
        goal_cells: Where the goals' pictures are taken from; the same areas unless given.
        by_declaration: Episodes end by `declare`, which is to be called after `reset` and after every `step`.
        false_alarm_cost: What a wrong declaration costs in finds.
    """

    def __init__(
        self,
        cells: CellTable,
        budget: int,
        goal_cells: CellTable | None = None,
        *,
        by_declaration: bool = False,
        false_alarm_cost: float = rules.FALSE_ALARM_COST,
    ) -> None:
        self.cells = cells
        self.goal_cells = goal_cells or cells
        self.budget = rules.check_budget(budget)
        self.by_declaration = by_declaration
        self.false_alarm_cost = rules.check_false_alarm_cost(false_alarm_cost)
        self._moves = rules.moves_on(cells.device)

    def reset(self, area: torch.Tensor, start: torch.Tensor, goal: torch.Tensor) -> Observation:
        """Begin episodes: areas (B,), start cells (B, 2), goal cells (B, 2)."""
        self._area, self._goal = area, goal
        self._position = start
        self._steps = torch.zeros_like(area)
        self._found = torch.zeros_like(area, dtype=torch.bool)
        self._ended = self._found
        return self._observe()

    def goal_patches(self) -> torch.Tensor:
        """The pictures of the goals, (B, S, S, 3) uint8."""
        return self.goal_cells.patches(self._area, self._goal)

    def step(self, action: torch.Tensor) -> Step:
        """Move by actions (B,)."""
        out = rules.move(
            self._position, self._steps, self._goal, action, moves=self._moves, budget=self.budget, grid=self.cells.grid
        )
        over = self._ended
        reward, found, truncated = out.reward, out.found, out.truncated
        if self.by_declaration:  # a move finds nothing, and the last glimpse may still be declared
            reward, found, truncated = torch.full_like(reward, rules.STEP_REWARD), over & False, over & False
        self._position = torch.where(over[:, None], self._position, out.position)
        self._steps = torch.where(over, self._steps, out.steps)
        self._found = torch.where(over, self._found, found)
        self._ended = over | found | truncated
        return Step(self._observe(), reward.masked_fill(over, 0), self._found, self._ended)

    def declare(self, said: torch.Tensor) -> Declared:
        """End the episodes that say (B,) that the goal is here, and those whose last move is spent."""
        playing = ~self._ended
        verdict = rules.declare(self._position, self._goal, said & playing, cost=self.false_alarm_cost)
        self._found = self._found | verdict.found
        self._ended = self._ended | (said & playing) | (self._steps >= self.budget)
        return Declared(verdict.found, verdict.false_alarm, self._ended, verdict.reward)

    def _observe(self) -> Observation:
        return Observation(self.cells.patches(self._area, self._position), self._position, self.budget - self._steps)
