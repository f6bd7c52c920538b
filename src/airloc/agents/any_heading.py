"""A belief agent for goals whose picture has an unknown heading.

The goal is turned in steps, and the belief agent keeps the evidence for every turn as for a goal of its own. A turn is
as probable as the glimpses make it: at the right one, glimpses near the goal say more than that it lies far away. The
logits of a glimpse are therefore taken relative to those of distant cells, which stand for an unrelated pair at every
turn. The belief is the mean over the turns, weighted by their probability.

Legend: B episodes, K turns, C cells, O offsets, S = 48 side of a patch.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from airloc.agents.agent import EpisodeBatch, select_action
from airloc.agents.belief import BeliefAgent, BeliefState, move_values, offset_logits
from airloc.task.batch import Observation
from airloc.vision.offsets import NUM_NEAR, NUM_OFFSETS
from airloc.vision.turning import turn_patch

TURNS = 16
"""Number of turns. The relation network was trained with goals that are turned by up to 12 degrees."""


class HeadingState(NamedTuple):
    """State of an `AnyHeadingAgent`."""

    turned: BeliefState
    """State of the belief agent, with an episode for every turn, (B K, ...)."""
    unrelated: torch.Tensor
    """Sum of the logits of distant cells over all glimpses, (B, K)."""
    turns: torch.Tensor
    """Probability of every turn, (B, K)."""
    belief: torch.Tensor
    """Probability of every cell of being the goal, (B, C). Rows sum to one."""
    match: torch.Tensor
    """Probability that the last glimpse shows the goal, (B,)."""


@dataclass(frozen=True, eq=False)
class AnyHeadingAgent:
    """Searches for goals of unknown heading."""

    agent: BeliefAgent
    turns: int = TURNS

    @property
    def name(self) -> str:
        """Name of the agent."""
        return self.agent.name

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> HeadingState:
        """Return the prior over cells, uniform if it is unknown, and a uniform belief over turns."""
        count = len(episodes.goal)
        goals = turn_patches(episodes.goal, self.turns)
        noise = episodes.noise.repeat_interleave(self.turns, dim=0)
        prior, text = (
            None if part is None else part.repeat_interleave(self.turns, dim=0)
            for part in (episodes.prior, episodes.text)
        )
        inner = self.agent.reset(EpisodeBatch(goals, episodes.grid, episodes.budget, noise, prior, text))
        flat = torch.zeros(count, self.turns, device=goals.device)
        return HeadingState(inner, flat, flat + 1 / self.turns, inner.belief[:: self.turns], inner.match[:: self.turns])

    @torch.inference_mode()
    def act(self, observation: Observation, state: HeadingState) -> tuple[torch.Tensor, HeadingState]:
        """Update the belief and plan a move."""
        state = self.observe(observation, state)
        moves_left = int(observation.moves_left.min())
        values = move_values(self.agent.planner, state.belief, observation.position, moves_left, state.turned.grid)
        return select_action(values), state

    def match(self, observation: Observation, state: HeadingState) -> tuple[torch.Tensor, HeadingState]:
        """Return the probability (B,) that the glimpse shows the goal, and the state with the glimpse cached."""
        after = self.observe(observation, state)
        return after.match, state._replace(turned=state.turned._replace(cache=after.turned.cache))

    @torch.inference_mode()
    def observe(self, observation: Observation, state: HeadingState) -> HeadingState:
        """Return the state after a glimpse, without a move."""
        repeated = Observation(*(part.repeat_interleave(self.turns, dim=0) for part in observation))
        before = state.turned
        logits, cache = offset_logits(self.agent.network, repeated.patch, before.cache)
        turned = self.agent.observe(repeated, before._replace(cache=cache))
        new = (turned.visited != before.visited).any(dim=1)
        distant = logits[:, _distant(logits.device)].mean(dim=1) * new
        unrelated = state.unrelated + distant.view_as(state.unrelated)
        weight = self._log_weights(turned, unrelated)
        belief = (weight.softmax(dim=1)[..., None] * turned.belief.view(*weight.shape, -1)).sum(dim=1)
        probability = weight.softmax(dim=1)
        match = (probability * turned.match.view_as(weight)).sum(dim=1)
        return HeadingState(turned, unrelated, probability, belief, match)

    def place(self, state: HeadingState) -> torch.Tensor:
        """Return the probability of every cell, visited or not, (B, C): that the goal image was taken there."""
        place = self.agent.place(state.turned).view(*state.turns.shape, -1)
        return (state.turns[..., None] * place).sum(dim=1)

    def _log_weights(self, turned: BeliefState, unrelated: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of every turn up to a constant, (B, K)."""
        power = self.agent.likelihood_power
        tempered = turned.prior + power * (turned.evidence - turned.prior)
        total = tempered.logsumexp(dim=1).view_as(unrelated)
        return total - power * unrelated


def turn_patches(patches: torch.Tensor, turns: int) -> torch.Tensor:
    """Turn patches (B, S, S, 3) uint8 in equal steps, (B K, S, S, 3); beyond their border they are mirrored."""
    turned = np.concatenate([turn_patch(patch, turns) for patch in patches.cpu().numpy()])
    return torch.from_numpy(turned).to(patches.device)


def _distant(device: torch.device) -> torch.Tensor:
    """Return the indices of the offsets in rings beyond the exact ones."""
    return torch.arange(NUM_NEAR, NUM_OFFSETS, device=device)
