"""AiRLoc, the agent of the paper, and its variants: learns when to follow the exploitation prior and when to explore.

At every step the segmentation unit and the patch embedder relate the glimpse to the goal (c, u), the encoded position
p is added, an LSTM reads [c + p ; u], and its output, plus u, are the logits of the eight moves.

Legend: B episodes.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from airloc.agents import sight
from airloc.agents.agent import Briefing
from airloc.agents.choice import choose
from airloc.agents.constraints import keep_to_task, privileged_moves, unvisited, visit
from airloc.agents.policy import Memory, Policy
from airloc.agents.sight import Sight
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.vision.eyes import Eyes
from airloc.vision.position import as_trained, encode_position


class State(NamedTuple):
    """What has been seen, what the LSTM remembers and where the agent has been."""

    grid: Grid
    noise: torch.Tensor
    step: int
    visited: torch.Tensor
    sight: Sight
    memory: Memory
    prior: torch.Tensor | None
    """The exploitation prior u of the move just chosen, (B, 8): what `local` would have followed."""
    logits: torch.Tensor | None
    """What the move just chosen was chosen by, (B, 8); minus infinity for forbidden moves."""


@dataclass(frozen=True, eq=False)
class AirlocAgent:
    """Searches with frozen eyes and one trained policy, whose variant says which parts are used."""

    name: str
    eyes: Eyes
    """Frozen, on the device of play."""
    policy: Policy
    """A single one (K = 1), on the device of play."""
    trained: Grid = field(default_factory=Grid)
    """The grid that the policy was trained on."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""

    @torch.inference_mode()
    def reset(self, briefing: Briefing) -> State:
        """Look at the goals and remember nothing yet."""
        count = len(briefing.goal)
        return State(
            grid=briefing.grid,
            noise=briefing.noise,
            step=0,
            visited=unvisited(count, briefing.grid, briefing.goal.device),
            sight=sight.begin(self.eyes, briefing.goal),
            memory=self.policy.begin(count),
            prior=None,
            logits=None,
        )

    @torch.inference_mode()
    def act(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """Look, remember and decide."""
        embedding, prior, seen = sight.see(self.eyes, observation.patch, state.sight)
        here = embedding + encode_position(as_trained(observation.position, state.grid, self.trained))
        logits, memory = self.policy(here[None], prior[None], state.memory)
        logits, visited = self._permitted(logits[0], observation.position, state)
        action = choose(logits, state.noise[:, state.step] if self.sample else None)
        return action, state._replace(
            step=state.step + 1, visited=visited, sight=seen, memory=memory, prior=prior, logits=logits
        )

    def _permitted(
        self, logits: torch.Tensor, position: torch.Tensor, state: State
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Forbid what the task and the variant's privileges exclude, after the residual; give the visits too."""
        logits = keep_to_task(logits, position, state.grid)
        if not self.policy.variant.priv:
            return logits, state.visited
        visited = visit(state.visited, position, state.grid)
        return logits.masked_fill(~privileged_moves(position, visited, state.grid), -torch.inf), visited
