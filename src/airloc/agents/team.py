"""Several drones with one belief, and targets that move.

Every photo of every drone updates one belief. The drones choose their moves one after the other. For each of them a
cell counts by how soon it gets there compared with the others: fully if it is nearest, half if another drone is as
near, and little if another drone is nearer. The cell that a drone chooses counts for no other drone.

If the target moves, the picture of the goal shows where it was at first. The glimpses tell where that place is; from
there the target walks. Its belief follows by repeating the rounds so far: the target steps, and is not in the cells
that were photographed in that round. This is exact, since glimpses depend on the place alone.

Legend: B episodes, K drones, C cells, S = 48 side of a patch.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.nn.functional import pad

from airloc.agents.agent import EpisodeBatch
from airloc.agents.belief import BeliefAgent, BeliefState, move_values
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.motion import STILL, Motion, transition_of
from airloc.task.rules import inside, moves_on

FARTHER = 0.3
"""How much a cell counts for a drone if another drone is nearer to it."""


class TeamState(NamedTuple):
    """State of a `TeamAgent`."""

    place: BeliefState
    """State of the belief agent, with the glimpses of all drones."""
    seen: tuple[torch.Tensor, ...]
    """Indices of the cells that the drones photographed in each round, (B, K); the number of cells if outside."""
    belief: torch.Tensor
    """Probability of every cell of having the target, (B, C). Rows sum to one."""


@dataclass(frozen=True, eq=False)
class TeamAgent:
    """Searches with several drones, and for a target that may move.

    Observations have an axis of drones: patches (B, K, S, S, 3), positions (B, K, 2) and moves left (B,).
    """

    agent: BeliefAgent
    motion: Motion = STILL
    """How the target moves."""
    farther: float = FARTHER
    """How much a cell counts for a drone if another drone is nearer to it."""
    blind: bool = False
    """Ignore what the glimpses show. This is the baseline of a team that plans from its prior alone."""

    @property
    def name(self) -> str:
        """Name of the agent."""
        return "blind-team" if self.blind else self.agent.name

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> TeamState:
        """Return a uniform belief."""
        place = self.agent.reset(episodes)
        return TeamState(place, (), place.belief)

    @torch.inference_mode()
    def act(self, observation: Observation, state: TeamState) -> tuple[torch.Tensor, TeamState]:
        """Update the belief and plan a move for every drone, (B, K)."""
        state = self.observe(observation, state)
        return self._plan(self._predict(state), observation, state.place.grid), state

    @torch.inference_mode()
    def observe(self, observation: Observation, state: TeamState) -> TeamState:
        """Return the state after a round of glimpses, without moves."""
        place, grid, position = state.place, state.place.grid, observation.position
        patch = torch.zeros_like(observation.patch) if self.blind else observation.patch
        for drone in range(position.shape[1]):
            one = Observation(patch[:, drone], position[:, drone], observation.moves_left)
            place = self.agent.observe(one, place)
        cells = torch.where(inside(position, grid), position[..., 0] * grid.cols + position[..., 1], grid.count)
        seen = (*state.seen, cells)
        belief = self._track(place, seen) if self.motion else place.belief
        return TeamState(place, seen, belief)

    def _track(self, place: BeliefState, seen: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the belief of a moving target: all rounds again, from where the place is believed to be, (B, C)."""
        belief = self.agent.place(place)
        matrix = _dense(self.motion, place.grid, belief.device)
        for number, cells in enumerate(seen):
            belief = belief @ matrix if number else belief
            belief = pad(belief, (0, 1)).scatter(1, cells, 0.0)[:, :-1]
            belief = belief / belief.sum(dim=1, keepdim=True).clamp(min=1e-30)
        return belief

    def _predict(self, state: TeamState) -> torch.Tensor:
        """Return the belief at the time of the next glimpses, (B, C)."""
        if not self.motion:
            return state.belief
        return state.belief @ _dense(self.motion, state.place.grid, state.belief.device)

    def _plan(self, belief: torch.Tensor, observation: Observation, grid: Grid) -> torch.Tensor:
        """Return the moves of all drones, chosen one after the other, (B, K)."""
        moves = moves_on(belief.device)
        position, moves_left = observation.position.clone(), int(observation.moves_left.min())
        cells = torch.cartesian_prod(*(torch.arange(side, device=belief.device) for side in grid.shape))
        actions = []
        for drone in range(position.shape[1]):
            away = (position[:, :, None] - cells).abs().amax(dim=-1)  # (B, K, C)
            rest = torch.cat([away[:, :drone], away[:, drone + 1 :]], dim=1)
            own = belief if not rest.shape[1] else belief * reach(away[:, drone], rest.amin(dim=1), self.farther)
            values = move_values(self.agent.planner, own, position[:, drone], moves_left, grid)
            target = position[:, drone, None] + moves  # (B, 8, 2)
            taken = (target[:, :, None] == position[:, None, :drone]).all(dim=-1).any(dim=-1)
            actions.append((values - 1e6 * taken).argmax(dim=1))
            position[:, drone] += moves[actions[-1]]
            chosen = (cells == position[:, drone, None]).all(dim=-1)
            belief = belief.masked_fill(chosen, 0.0)
        return torch.stack(actions, dim=1)


def reach(own: Any, others: Any, farther: float = FARTHER) -> Any:
    """Return how much cells count for a drone, given its distance and that of the nearest other drone, (...).

    >>> import numpy as np
    >>> reach(np.array([1, 2, 3]), np.array([2, 2, 2]), 0.25).tolist()
    [1.0, 0.5, 0.25]
    """
    return 1.0 * (own < others) + 0.5 * (own == others) + farther * (own > others)


@lru_cache(maxsize=8)
def _dense(motion: Motion, grid: Grid, device: torch.device) -> torch.Tensor:
    """Return the transition of a motion as a tensor, (C, C)."""
    return torch.from_numpy(transition_of(motion, grid.shape).toarray()).float().to(device)
