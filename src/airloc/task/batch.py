"""The tensor environment: many episodes in parallel, with all areas on one device.

Legend: B episodes of a batch, S side of a cell in pixels. No tensor leaves the device.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import rules
from airloc.task.anywhere import GoalsAnywhere
from airloc.task.cells import CellTable, cell_tables
from airloc.task.photos import FlightConditions


class Observation(NamedTuple):
    """What agents observe after a move. They receive the goal patch once, with `EpisodeBatch`."""

    patch: torch.Tensor
    """Patches of the current cells, (B, S, S, 3) uint8, black outside the area."""
    position: torch.Tensor
    """Current cells, (B, 2) int64, possibly outside the area."""
    moves_left: torch.Tensor
    """Moves left of the budget, (B,) int64."""


class Step(NamedTuple):
    """Result of a step."""

    observation: Observation
    reward: torch.Tensor
    """`3 * found - 1`, or that of a reward function; zero for episodes that ended before, (B,)."""
    found: torch.Tensor
    """True for episodes whose goal has been found, (B,) bool."""
    ended: torch.Tensor
    """True for episodes that are over, (B,) bool."""


class Declaration(NamedTuple):
    """Result of a round of declarations, in the variant that ends by declaration."""

    found: torch.Tensor
    """True for episodes that declare the goal now, correctly, (B,) bool."""
    false_alarm: torch.Tensor
    """True for episodes that declare the goal now, wrongly, (B,) bool."""
    ended: torch.Tensor
    """True for episodes that are over, (B,) bool."""
    reward: torch.Tensor
    """3 for a find, -3 times its cost for a false alarm, otherwise zero, (B,) float."""


class BatchEnv:
    """Plays a batch of episodes in parallel. An episode that has ended stays where it is.

    Args:
        cells: The patches of all areas.
        budget: Maximum number of moves of an episode.
        goal_cells: The patches that goals are taken from. Default: `cells`.
        by_declaration: Episodes end by `declare`, which must be called after `reset` and after every `step`.
        false_alarm_cost: Cost of a wrong declaration in units of finds.
        reward: Reward function of the moves, or its name; see `airloc.task.rules`. Default: `3 * found - 1`.
    """

    def __init__(
        self,
        cells: CellTable,
        budget: int,
        goal_cells: CellTable | None = None,
        *,
        by_declaration: bool = False,
        false_alarm_cost: float = rules.FALSE_ALARM_COST,
        reward: rules.RewardFunction | str | None = None,
    ) -> None:
        self.cells = cells
        self.goal_cells = goal_cells or cells
        self.budget = rules.check_budget(budget)
        self.by_declaration = by_declaration
        self.false_alarm_cost = rules.check_false_alarm_cost(false_alarm_cost)
        self.reward = rules.load_reward(reward)
        self._moves = rules.moves_on(cells.device)

    @classmethod
    def from_areas(
        cls,
        areas: Sequence[SearchArea],
        grid: Grid,
        budget: int,
        *,
        goal_areas: Sequence[SearchArea] | None = None,
        flight: FlightConditions | None = None,
        goals: GoalsAnywhere | None = None,
        device: torch.device | str = "cpu",
        by_declaration: bool = False,
        false_alarm_cost: float = rules.FALSE_ALARM_COST,
        reward: rules.RewardFunction | str | None = None,
    ) -> "BatchEnv":
        """Build the environment of search areas, which are fitted to the grid if necessary.

        Args:
            areas: The areas.
            grid: The grid.
            budget: Maximum number of moves of an episode.
            goal_areas: Other images of the same places that goals are taken from, one per area.
            flight: Glimpses and goals are photos. With several variants, `variant * len(areas) + area` is the index of
                an area in one of them.
            goals: Goals lie anywhere, with variants as in `flight`. Not together with `flight`.
            device: Device of the patches.
            by_declaration: Episodes end by `declare`.
            false_alarm_cost: Cost of a wrong declaration in units of finds.
            reward: Reward function of the moves, or its name.
        """
        cells, goal_cells = cell_tables(areas, grid, goal_areas=goal_areas, flight=flight, goals=goals, device=device)
        return cls(
            cells,
            budget,
            goal_cells,
            by_declaration=by_declaration,
            false_alarm_cost=false_alarm_cost,
            reward=reward,
        )

    def reset(self, area: torch.Tensor, start: torch.Tensor, goal: torch.Tensor) -> Observation:
        """Start episodes with these areas (B,), start cells (B, 2) and goal cells (B, 2).

        Raises:
            AirlocError: If an episode starts at its goal.
        """
        if at_goal := int((start == goal).all(dim=1).sum()):
            problem = f"{at_goal} of {len(start)} episodes start at their goal"
            raise AirlocError(problem, "Use different cells for start and goal")
        self._area, self._goal = area, goal
        self._position = start
        self._steps = torch.zeros_like(area)
        self._found = torch.zeros_like(area, dtype=torch.bool)
        self._ended = self._found
        return self._observe()

    def goal_patches(self) -> torch.Tensor:
        """Return the goal patches, (B, S, S, 3) uint8."""
        return self.goal_cells.patches(self._area, self._goal)

    def step(self, action: torch.Tensor) -> Step:
        """Make the moves (B,)."""
        over = self._ended
        out = rules.move(
            self._position,
            self._steps,
            self._goal,
            action,
            moves=self._moves,
            budget=self.budget,
            grid=self.cells.grid,
            reward=self.reward,
            by_declaration=self.by_declaration,
        )
        self._position = torch.where(over[:, None], self._position, out.position)
        self._steps = torch.where(over, self._steps, out.steps)
        self._found = torch.where(over, self._found, out.found)
        self._ended = over | out.found | out.truncated
        return Step(self._observe(), out.reward.masked_fill(over, 0), self._found, self._ended)

    def declare(self, declared: torch.Tensor, error: torch.Tensor | None = None) -> Declaration:
        """End the episodes that declare the goal (B,), and those without moves left.

        `error` (B,) is the distance in cells from a reported position of the goal to its centre, if one is reported.
        """
        playing = ~self._ended
        outcome = rules.declare(self._position, self._goal, declared & playing, cost=self.false_alarm_cost, error=error)
        self._found = self._found | outcome.found
        self._ended = self._ended | (declared & playing) | (self._steps >= self.budget)
        return Declaration(outcome.found, outcome.false_alarm, self._ended, outcome.reward)

    def _observe(self) -> Observation:
        return Observation(self.cells.patches(self._area, self._position), self._position, self.budget - self._steps)
