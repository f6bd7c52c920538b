"""The two random baselines: `random`, and the paper's `priv-random` with privileged moves."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from airloc.agents.agent import Briefing
from airloc.agents.constraints import privileged_moves, task_moves, unvisited, visit
from airloc.grid import Grid
from airloc.task.batch import Observation


class State(NamedTuple):
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

    def reset(self, briefing: Briefing) -> State:
        """Remember nothing yet."""
        return State(
            briefing.noise, 0, briefing.grid, unvisited(len(briefing.goal), briefing.grid, briefing.goal.device)
        )

    def act(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """Take the allowed move with the highest noise, which is a uniform choice."""
        noise, visited = state.noise[:, state.step], state.visited
        allowed = task_moves(observation.position, state.grid)
        if self.privileged:
            visited = visit(visited, observation.position, state.grid)
            allowed = privileged_moves(observation.position, visited, state.grid)
        noise = noise.masked_fill(~allowed, -1.0)
        return noise.argmax(dim=1), state._replace(step=state.step + 1, visited=visited)
