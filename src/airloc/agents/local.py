"""The baselines `local` and `priv-local`: fly where the patch embedder says, as if the goal were always adjacent."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from airloc.agents import sight
from airloc.agents.agent import Briefing
from airloc.agents.choice import choose
from airloc.agents.constraints import keep_to_task, privileged_moves, unvisited, visit
from airloc.agents.sight import Sight
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.vision.eyes import Eyes


class State(NamedTuple):
    """What has been seen and where the agent has been."""

    grid: Grid
    noise: torch.Tensor
    step: int
    visited: torch.Tensor
    sight: Sight


@dataclass(frozen=True, eq=False)
class LocalAgent:
    """Follows the exploitation prior u, whatever the distance to the goal."""

    name: str
    eyes: Eyes
    """Frozen, on the device of play."""
    privileged: bool = False
    """Stay inside and avoid visited cells; in a dead end, when every neighbour is visited, only stay inside."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""

    @torch.inference_mode()
    def reset(self, briefing: Briefing) -> State:
        """Look at the goals."""
        blank = unvisited(len(briefing.goal), briefing.grid, briefing.goal.device)
        return State(briefing.grid, briefing.noise, 0, blank, sight.begin(self.eyes, briefing.goal))

    @torch.inference_mode()
    def act(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """Move where the goal would most probably lie if it were adjacent."""
        _, prior, seen = sight.see(self.eyes, observation.patch, state.sight)
        prior = keep_to_task(prior, observation.position, state.grid)
        visited = state.visited
        if self.privileged:
            visited = visit(visited, observation.position, state.grid)
            allowed = privileged_moves(observation.position, visited, state.grid)
            prior = prior.masked_fill(~allowed, -torch.inf)
        action = choose(prior, state.noise[:, state.step] if self.sample else None)
        return action, state._replace(step=state.step + 1, visited=visited, sight=seen)
