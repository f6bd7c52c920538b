"""What an agent has seen: glimpses and goals through its eyes, each patch and each pair once.

The first half of a branch of the embedder sees one patch, so its maps are kept by patch; what relates a glimpse to
a goal is kept by pair. Episodes of a batch that share an area share both.

Legend: B episodes, n of them with something new, S = 48 side of a patch, H = 12 side and W = 128 number of maps.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from airloc.agents.agent import EpisodeBatch, choose, keep_to_task, privileged_moves, unvisited, visit
from airloc.agents.cache import FeatureCache, content_keys, pair_keys
from airloc.agents.policy import Memory, Policy
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.vision.embedder import EMBEDDING, PatchEncoder
from airloc.vision.position import as_trained, encode_position

SIDE = 48
"""What the eyes were made for."""


class Sight(NamedTuple):
    """The goals of a batch and all that was seen in it so far."""

    goal: torch.Tensor
    """The pictures of the goals, (B, S, S, 3) uint8."""
    goal_keys: torch.Tensor
    """Their content, (B,)."""
    goals: FeatureCache
    """Maps of the goal's branch by patch, rows (H, H, W)."""
    glimpses: FeatureCache
    """Maps of the current patch's branch by patch, rows (H, H, W)."""
    pairs: FeatureCache
    """c and u by pair, rows (256 + 8,)."""


def begin(encoder: PatchEncoder, goal: torch.Tensor) -> Sight:
    """Look at the goals (B, S, S, 3) of a batch, through frozen eyes."""
    if encoder.training:
        raise ValueError("eyes must be in eval mode: batch statistics would leak between episodes")
    if goal.shape[1:] != (SIDE, SIDE, 3):
        problem = f"Learned agents see cells of {SIDE} x {SIDE} px, not of {goal.shape[1]} x {goal.shape[2]}"
        raise AirlocError(problem, f"Lay a grid with cells of {SIDE} px on the areas")
    keys = content_keys(goal)
    goals, glimpses = FeatureCache(), FeatureCache()
    if len(goal) == 1:  # a single episode ends on its goal and never looks at it as a glimpse
        return Sight(goal, keys, goals, glimpses, FeatureCache())

    def look(some: torch.Tensor) -> torch.Tensor:
        nonlocal glimpses
        looked = encoder.look(goal[some])
        _, glimpses = glimpses.lookup(keys[some], lambda these: _rows(encoder.embedder.current_first(looked[these])))
        return _rows(encoder.embedder.goal_first(looked))

    _, goals = goals.lookup(keys, look)
    return Sight(goal, keys, goals, glimpses, FeatureCache())


def see(encoder: PatchEncoder, patch: torch.Tensor, sight: Sight) -> tuple[torch.Tensor, torch.Tensor, Sight]:
    """Relate glimpses (B, S, S, 3) to the goals: c (B, 256), u (B, 8) and what has been seen now."""
    keys = content_keys(patch)
    goals, glimpses = sight.goals, sight.glimpses

    def relate(some: torch.Tensor) -> torch.Tensor:
        nonlocal goals, glimpses
        current, glimpses = glimpses.lookup(
            keys[some], lambda these: _rows(encoder.embedder.current_first(encoder.look(patch[some[these]])))
        )
        goal, goals = goals.lookup(
            sight.goal_keys[some],
            lambda these: _rows(encoder.embedder.goal_first(encoder.look(sight.goal[some[these]]))),
        )
        return torch.cat(encoder.embedder.relate(_maps(current), _maps(goal)), dim=1)  # (n, 264)

    rows, pairs = sight.pairs.lookup(pair_keys(keys, sight.goal_keys), relate)
    seen = sight._replace(goals=goals, glimpses=glimpses, pairs=pairs)
    return rows[:, :EMBEDDING], rows[:, EMBEDDING:], seen


def _rows(maps: torch.Tensor) -> torch.Tensor:
    """Maps (n, W, H, H) with channels last, as convolutions on the CPU like them: (n, H, H, W)."""
    return maps.permute(0, 2, 3, 1).contiguous()


def _maps(rows: torch.Tensor) -> torch.Tensor:
    return rows.permute(0, 3, 1, 2)


# ---------- The baselines `local` and `priv-local`: fly where the patch embedder says, as if the goal were always adjacent.
# ~


class LocalState(NamedTuple):
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
    encoder: PatchEncoder
    """Frozen, on the device of play."""
    privileged: bool = False
    """Stay inside and avoid visited cells; in a dead end, when every neighbour is visited, only stay inside."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> LocalState:
        """Look at the goals."""
        blank = unvisited(len(episodes.goal), episodes.grid, episodes.goal.device)
        return LocalState(episodes.grid, episodes.noise, 0, blank, begin(self.encoder, episodes.goal))

    @torch.inference_mode()
    def act(self, observation: Observation, state: LocalState) -> tuple[torch.Tensor, LocalState]:
        """Move where the goal would most probably lie if it were adjacent."""
        _, prior, seen = see(self.encoder, observation.patch, state.sight)
        prior = keep_to_task(prior, observation.position, state.grid)
        visited = state.visited
        if self.privileged:
            visited = visit(visited, observation.position, state.grid)
            allowed = privileged_moves(observation.position, visited, state.grid)
            prior = prior.masked_fill(~allowed, -torch.inf)
        action = choose(prior, state.noise[:, state.step] if self.sample else None)
        return action, state._replace(step=state.step + 1, visited=visited, sight=seen)


# ---------- AiRLoc, the agent of the paper, and its variants: learns when to follow the exploitation prior and when to explore.
# ~
# ~ At every step the segmentation unit and the patch embedder relate the glimpse to the goal (c, u), the encoded position
# ~ p is added, an LSTM reads [c + p ; u], and its output, plus u, are the logits of the eight moves.
# ~
# ~ Legend: B episodes.


class AirlocState(NamedTuple):
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
    encoder: PatchEncoder
    """Frozen, on the device of play."""
    policy: Policy
    """A single one (K = 1), on the device of play."""
    trained: Grid = field(default_factory=Grid)
    """The grid that the policy was trained on."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> AirlocState:
        """Look at the goals and remember nothing yet."""
        count = len(episodes.goal)
        return AirlocState(
            grid=episodes.grid,
            noise=episodes.noise,
            step=0,
            visited=unvisited(count, episodes.grid, episodes.goal.device),
            sight=begin(self.encoder, episodes.goal),
            memory=self.policy.begin(count),
            prior=None,
            logits=None,
        )

    @torch.inference_mode()
    def act(self, observation: Observation, state: AirlocState) -> tuple[torch.Tensor, AirlocState]:
        """Look, remember and decide."""
        embedding, prior, seen = see(self.encoder, observation.patch, state.sight)
        here = embedding + encode_position(as_trained(observation.position, state.grid, self.trained))
        logits, memory = self.policy(here[None], prior[None], state.memory)
        logits, visited = self._permitted(logits[0], observation.position, state)
        action = choose(logits, state.noise[:, state.step] if self.sample else None)
        return action, state._replace(
            step=state.step + 1, visited=visited, sight=seen, memory=memory, prior=prior, logits=logits
        )

    def _permitted(
        self, logits: torch.Tensor, position: torch.Tensor, state: AirlocState
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Forbid what the task and the variant's privileges exclude, after the residual; give the visits too."""
        logits = keep_to_task(logits, position, state.grid)
        if not self.policy.variant.priv:
            return logits, state.visited
        visited = visit(state.visited, position, state.grid)
        return logits.masked_fill(~privileged_moves(position, visited, state.grid), -torch.inf), visited
