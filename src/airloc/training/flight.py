"""Flying episodes on tabulated features: the rollout of policy training and its validation.

The loop over the steps holds only what the next step needs; what follows from the path (rewards, distances, who was
still flying) is computed once after it. Those who found the goal fly on, and what they do then does not count.

Legend: T budget, K policies, B episodes.
"""

from typing import NamedTuple

import torch

from airloc.agents.policy import Policy, lstm
from airloc.task import priors, rules
from airloc.training.features import Features
from airloc.training.frame import Privileges
from airloc.training.tape import Step, Tape
from airloc.vision.embedder import EMBEDDING

AT_ONCE = 16_384
"""Episodes that a validation flies at once, at most, unless one area has more."""


class Episodes(NamedTuple):
    """Episodes for K policies, each (K, B): numbers of areas, and of the cells of starts and goals."""

    area: torch.Tensor
    start: torch.Tensor
    goal: torch.Tensor


class Flight(NamedTuple):
    """What happened at every step, each (K, B, T), and who found the goal."""

    action: torch.Tensor
    """The move made, by its number."""
    reward: torch.Tensor
    """Zero after the end."""
    flying: torch.Tensor
    """Whether the episode was still on, bool."""
    distance: torch.Tensor
    """Left to the goal, before the move; zero after the end."""
    found: torch.Tensor
    """(K, B) bool."""


def draw_episodes(features: Features, policies: int, batch: int) -> Episodes:
    """Draw areas, starts and different goals uniformly, for every policy its own."""
    count, device = features.grid.count, features.device
    shape = (policies, batch)
    area = torch.randint(features.areas, shape, device=device)
    start = torch.randint(count, shape, device=device)
    goal = (start + torch.randint(1, count, shape, device=device)) % count
    return Episodes(area, start, goal)


@torch.no_grad()
def fly(
    policy: Policy,
    features: Features,
    episodes: Episodes,
    budget: int,
    *,
    sample: bool,
    tape: Tape | None = None,
) -> Flight:
    """Fly episodes, drawing moves by their probability or taking the most probable ones.

    Args:
        policy: Who flies.
        features: What the eyes say of the areas.
        episodes: Areas, starts and goals.
        budget: Moves in an episode.
        sample: Draw moves.
        tape: Where to record what learning from the flight needs.
    """
    frame, (policies, batch) = features.frame, episodes.area.shape
    quest, place = features.quest(episodes.area, episodes.goal), frame.places[episodes.start]
    privileges = Privileges(frame, policies, batch) if policy.variant.priv else None
    weights = torch.cat([policy.read, policy.recall], dim=1)  # (K, I + H, 4 H)
    bias = policy.bias.repeat(1, batch, 1)
    memory, reads = policy.begin(batch), policy.read.shape[1]
    path, actions = [place], []
    for liking in _chance(policy, budget, batch, sample=sample):
        # See and remember.
        inputs = weights.new_empty(policies, batch, weights.shape[1])
        features.look(quest, place, out=inputs[..., :reads])
        inputs[..., reads:] = memory.hidden
        earlier = memory.cell
        memory, acted = lstm(torch.bmm(inputs, weights), bias, earlier)
        # Decide.
        liking.baddbmm_(memory.hidden, policy.decide)
        if policy.variant.residual:
            liking += inputs[..., EMBEDDING:reads]
        if privileges is not None:
            forbidden = privileges.forbidden(place)
            liking.masked_fill_(forbidden, -1e9)
        action = liking.argmax(dim=2)
        # Move.
        place = place + frame.strides[action]
        path.append(place)
        actions.append(action)
        if tape is not None:
            tape.steps.append(Step(inputs, earlier, memory, acted))
            if privileges is not None:
                tape.forbidden.append(forbidden)
    return _account(features, torch.stack(path, dim=2), torch.stack(actions, dim=2), episodes.goal)


def _chance(policy: Policy, budget: int, batch: int, *, sample: bool) -> torch.Tensor:
    """What a choice begins with, (T, K, B, 8): the offset of the logits and, to draw by probability, Gumbel noise."""
    policies, _, moves = policy.offset.shape
    if not sample:
        return policy.offset.repeat(budget, 1, batch, 1)
    return policy.offset - policy.offset.new_empty(budget, policies, batch, moves).exponential_().log_()


def _account(features: Features, path: torch.Tensor, action: torch.Tensor, goal: torch.Tensor) -> Flight:
    """What follows from the places (K, B, T + 1) that moves (K, B, T) led to on the way to goals (K, B)."""
    position, target = features.frame.positions[path], features.frame.positions[features.frame.places[goal]]
    distance = (position - target[:, :, None]).abs().amax(dim=3)
    closest = distance.cummin(dim=2).values  # zero from the arrival on
    flying = closest[..., :-1] > 0
    reward = (rules.FOUND_REWARD * (closest[..., 1:] == 0) + rules.STEP_REWARD) * flying
    return Flight(action, reward, flying, distance[..., :-1] * flying, closest[..., -1] == 0)


class Validation:
    """All pairs of the validation areas, weighed to equal distances: success without the noise of a draw."""

    def __init__(self, features: Features, policies: int) -> None:
        grid, device = features.grid, features.device
        prior = torch.from_numpy(priors.per_distance(grid)).float().to(device)
        self._start, self._goal = (~torch.eye(grid.count, dtype=torch.bool, device=device)).nonzero(as_tuple=True)
        self.weight = prior[self._start, self._goal]  # sums to one
        self.features, self.policies = features, policies

    def success(self, policy: Policy, budget: int) -> torch.Tensor:
        """The success of every policy, (K,)."""
        pairs = len(self.weight)
        total = self.weight.new_zeros(self.policies)
        at_once = max(1, AT_ONCE // (pairs * self.policies))
        for areas in torch.split(torch.arange(self.features.areas, device=self.weight.device), at_once):
            columns = areas.repeat_interleave(pairs), self._start.repeat(len(areas)), self._goal.repeat(len(areas))
            episodes = Episodes(*(column.expand(self.policies, -1) for column in columns))
            found = fly(policy, self.features, episodes, budget, sample=False).found
            total += (found.view(self.policies, -1, pairs) * self.weight).sum(dim=(1, 2))
        return total / self.features.areas
