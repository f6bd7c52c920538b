"""Flying episodes on tabulated features: the rollout of policy training and its validation.

Legend: T budget, K policies, B episodes.
"""

from typing import NamedTuple

import torch

from airloc.agents.constraints import privileged_moves, unvisited, visit
from airloc.agents.policy import Policy
from airloc.grid import Grid
from airloc.task import priors, rules
from airloc.training.features import MARGIN, Features


class Episodes(NamedTuple):
    """Episodes for K policies: areas (K, B), starts and goals (K, B, 2)."""

    area: torch.Tensor
    start: torch.Tensor
    goal: torch.Tensor


class Flight(NamedTuple):
    """What happened at every step, each (T, K, B), and who found the goal."""

    log_prob: torch.Tensor
    """Of the move that was made."""
    reward: torch.Tensor
    """Zero after the end."""
    flying: torch.Tensor
    """Whether the episode was still on, bool."""
    distance: torch.Tensor
    """Left to the goal, before the move."""
    found: torch.Tensor
    """(K, B) bool."""


def draw_episodes(features: Features, policies: int, batch: int) -> Episodes:
    """Draw areas, starts and different goals uniformly, for every policy its own."""
    grid, device = features.grid, features.device
    shape = (policies, batch)
    area = torch.randint(features.areas, shape, device=device)
    start = torch.randint(grid.count, shape, device=device)
    goal = (start + torch.randint(1, grid.count, shape, device=device)) % grid.count
    return Episodes(area, _cells(start, grid), _cells(goal, grid))


def draw_shifts(share: float, policies: int, batch: int, device: torch.device) -> torch.Tensor:
    """Draw where areas are placed, (K, B, 2): for a share of the episodes up to `MARGIN` cells aside, else as they lie.

    Who has seen areas anywhere in a larger frame cannot take the borders of one grid for those of every other.
    """
    chance = torch.rand(3, policies, batch, device=device)
    offset = (chance[1:] * (2 * MARGIN + 1)).long() - MARGIN
    return (offset * (chance[0] < share)).movedim(0, -1)


def fly(
    policy: Policy,
    features: Features,
    episodes: Episodes,
    budget: int,
    *,
    sample: bool,
    shift: torch.Tensor | None = None,
) -> Flight:
    """Fly episodes, drawing moves by their probability or taking the most probable ones.

    Args:
        policy: Who flies.
        features: What the eyes say of the areas.
        episodes: Areas, starts and goals.
        budget: Moves in an episode.
        sample: Draw moves.
        shift: How far aside positions are told, (K, B, 2); they are told as they are without it.
    """
    area, position, goal = episodes
    moves = rules.moves_on(position.device)
    policies, batch = area.shape
    memory = policy.begin(batch)
    steps = torch.zeros_like(area)
    flying = torch.ones_like(area, dtype=torch.bool)
    visited = unvisited(policies * batch, features.grid, position.device)
    record = []
    for _ in range(budget):
        seen, prior = features.look(area, position, goal, shift)
        logits, memory = policy(seen, prior, memory)
        if policy.variant.priv:
            visited = visit(visited, position.flatten(0, 1), features.grid)
            allowed = privileged_moves(position.flatten(0, 1), visited, features.grid)
            logits = logits.masked_fill(~allowed.view_as(logits), -1e9)
        chance = -torch.empty_like(logits).exponential_().log() if sample else 0.0  # Gumbel noise
        action = (logits.detach() + chance).argmax(dim=2)
        log_prob = logits.log_softmax(dim=2).gather(2, action[..., None])[..., 0]
        distance = (position - goal).abs().amax(dim=2)
        out = rules.move(position, steps, goal, action, moves=moves, budget=budget)
        record.append((log_prob, out.reward * flying, flying, distance))
        position = torch.where(flying[..., None], out.position, position)
        steps = out.steps
        flying = flying & ~out.found
    log_prob, reward, on, left = (torch.stack(column) for column in zip(*record, strict=True))
    return Flight(log_prob, reward, on, left, ~flying)


class Validation:
    """All pairs of the validation areas, weighed to equal distances: success without the noise of a draw."""

    def __init__(self, features: Features, policies: int) -> None:
        grid, device = features.grid, features.device
        prior = torch.from_numpy(priors.per_distance(grid)).float().to(device)
        start, goal = (~torch.eye(grid.count, dtype=torch.bool, device=device)).nonzero(as_tuple=True)
        self.weight = prior[start, goal]  # sums to one
        self.features, self.policies = features, policies
        self._start, self._goal = _cells(start, grid), _cells(goal, grid)

    @torch.no_grad()
    def success(self, policy: Policy, budget: int) -> torch.Tensor:
        """The success of every policy, (K,)."""
        total = torch.zeros(self.policies, device=self.weight.device)
        pairs = len(self.weight)
        for area in range(self.features.areas):
            where = torch.full((self.policies, pairs), area, device=self.weight.device)
            shape = (self.policies, pairs, 2)
            episodes = Episodes(where, self._start.expand(shape), self._goal.expand(shape))
            total += (fly(policy, self.features, episodes, budget, sample=False).found * self.weight).sum(dim=1)
        return total / self.features.areas


def _cells(number: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Cells (..., 2) of row-major numbers."""
    return torch.stack([number // grid.cols, number % grid.cols], dim=-1)
