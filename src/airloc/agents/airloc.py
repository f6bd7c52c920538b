"""AiRLoc, the agent of the paper, its variants, and the baselines `local` and `priv-local`.

At every step the segmentation unit and the patch embedder relate the glimpse to the goal: the embedding c and the
exploitation prior u, eight logits for the direction of an adjacent goal. The encoded position p is added to c, an LSTM
reads [c + p ; u], and its output plus u are the logits of the eight moves. AiRLoc learns when to follow the prior and
when to explore. `local` always follows u, as if the goal were adjacent.

The first half of each embedder branch depends on one patch, so that its maps are cached by patch. Embeddings are cached
by pair. Episodes of a batch that share an area share both caches.

Legend: B episodes, n of them with missing features, S = 48 side of a patch, H = 12 side and W = 128 number of maps.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from airloc.agents.agent import (
    EpisodeBatch,
    check_patch_side,
    mask_task_moves,
    privileged_moves,
    select_action,
    unvisited,
    visit,
)
from airloc.agents.cache import FeatureCache, content_keys, pair_keys
from airloc.agents.policy import LSTMState, Policy
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.vision.embedder import EMBEDDING, PatchEncoder
from airloc.vision.position import PositionEncoding

_SIDE = 48
"""Side in pixels of the patches that the patch encoder takes."""


class AirlocState(NamedTuple):
    """State of an `AirlocAgent`."""

    grid: Grid
    noise: torch.Tensor
    step: int
    visited: torch.Tensor
    """Visited cells, bool (B, rows, cols). Only privileged agents keep it up to date."""
    cache: "EmbeddingCache"
    memory: LSTMState
    prior: torch.Tensor | None
    """Exploitation prior u of the last decision, (B, 8); `local` would follow it."""
    logits: torch.Tensor | None
    """Logits of the last decision, (B, 8); minus infinity for forbidden moves."""


@dataclass(frozen=True, eq=False)
class AirlocAgent:
    """Searches with a frozen patch encoder and one trained policy, whose variant selects the parts in use."""

    name: str
    encoder: PatchEncoder
    """Optimised for inference, on the device of play."""
    policy: Policy
    """A single policy (K = 1), on the device of play."""
    training_grid: Grid = field(default_factory=Grid)
    """Grid that the policy was trained on."""
    position_encoding: PositionEncoding = field(default_factory=PositionEncoding)
    """How positions were encoded in the training."""
    sample: bool = False
    """Sample moves from the policy instead of taking the most probable move."""

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> AirlocState:
        """Encode the goals and return an empty memory."""
        count = len(episodes.goal)
        return AirlocState(
            grid=episodes.grid,
            noise=episodes.noise,
            step=0,
            visited=unvisited(count, episodes.grid, episodes.goal.device),
            cache=encode_goals(self.encoder, episodes.goal),
            memory=self.policy.initial_state(count),
            prior=None,
            logits=None,
        )

    @torch.inference_mode()
    def act(self, observation: Observation, state: AirlocState) -> tuple[torch.Tensor, AirlocState]:
        """Embed the pair of glimpse and goal, update the LSTM and select a move."""
        embedding, prior, cache = embed_pairs(self.encoder, observation.patch, state.cache)
        position = self.position_encoding.encode(observation.position, state.grid, self.training_grid)
        embedding = embedding + position
        logits, memory = self.policy(embedding[None], prior[None], state.memory)
        logits, visited = _mask_moves(
            logits[0], observation.position, state.visited, state.grid, self.policy.variant.priv
        )
        action = select_action(logits, state.noise[:, state.step] if self.sample else None)
        return action, state._replace(
            step=state.step + 1, visited=visited, cache=cache, memory=memory, prior=prior, logits=logits
        )


class LocalState(NamedTuple):
    """State of a `LocalAgent`."""

    grid: Grid
    noise: torch.Tensor
    step: int
    visited: torch.Tensor
    cache: "EmbeddingCache"
    logits: torch.Tensor | None
    """Exploitation prior u of the last decision, (B, 8); minus infinity for forbidden moves."""


@dataclass(frozen=True, eq=False)
class LocalAgent:
    """Follows the exploitation prior u at every distance to the goal."""

    name: str
    encoder: PatchEncoder
    """Optimised for inference, on the device of play."""
    privileged: bool = False
    """Stay inside and avoid visited cells; see `privileged_moves`."""
    sample: bool = False
    """Sample moves from the prior instead of taking the most probable move."""

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> LocalState:
        """Encode the goals."""
        blank = unvisited(len(episodes.goal), episodes.grid, episodes.goal.device)
        return LocalState(episodes.grid, episodes.noise, 0, blank, encode_goals(self.encoder, episodes.goal), None)

    @torch.inference_mode()
    def act(self, observation: Observation, state: LocalState) -> tuple[torch.Tensor, LocalState]:
        """Move in the most probable direction of an adjacent goal."""
        _, prior, cache = embed_pairs(self.encoder, observation.patch, state.cache)
        logits, visited = _mask_moves(prior, observation.position, state.visited, state.grid, self.privileged)
        action = select_action(logits, state.noise[:, state.step] if self.sample else None)
        return action, state._replace(step=state.step + 1, visited=visited, cache=cache, logits=logits)


def _mask_moves(
    logits: torch.Tensor, position: torch.Tensor, visited: torch.Tensor, grid: Grid, privileged: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Forbid moves by the task and by privileges; return the logits (B, 8) and the updated visited mask."""
    logits = mask_task_moves(logits, position, grid)
    if not privileged:
        return logits, visited
    visited = visit(visited, position, grid)
    return logits.masked_fill(~privileged_moves(position, visited, grid), -torch.inf), visited


class EmbeddingCache(NamedTuple):
    """The goals of a batch, and the features of all patches and pairs so far."""

    goal: torch.Tensor
    """Goal patches, (B, S, S, 3) uint8."""
    goal_keys: torch.Tensor
    """Content keys of the goal patches, (B,)."""
    goals: FeatureCache
    """Maps of the goal branch by patch, rows (H, H, W)."""
    glimpses: FeatureCache
    """Maps of the current patch's branch by patch, rows (H, H, W)."""
    pairs: FeatureCache
    """c and u by pair, rows (256 + 8,)."""


def encode_goals(encoder: PatchEncoder, goal: torch.Tensor) -> EmbeddingCache:
    """Encode the goals (B, S, S, 3) of a batch.

    Raises:
        ValueError: If the encoder is in training mode.
        AirlocError: If the goals are not 48 x 48 px.
    """
    if encoder.training:
        raise ValueError("the encoder must be in eval mode: batch statistics would mix episodes")
    check_patch_side(goal, _SIDE)
    keys = content_keys(goal)
    goals, glimpses = FeatureCache(), FeatureCache()
    if len(goal) == 1:  # a single episode ends on its goal and never needs it as a glimpse
        return EmbeddingCache(goal, keys, goals, glimpses, FeatureCache())

    def encode(some: torch.Tensor) -> torch.Tensor:
        nonlocal glimpses
        inputs = encoder.preprocess(goal[some])
        _, glimpses = glimpses.lookup(keys[some], lambda these: _rows(encoder.embedder.current_first(inputs[these])))
        return _rows(encoder.embedder.goal_first(inputs))

    _, goals = goals.lookup(keys, encode)
    return EmbeddingCache(goal, keys, goals, glimpses, FeatureCache())


def embed_pairs(
    encoder: PatchEncoder, patch: torch.Tensor, cache: EmbeddingCache
) -> tuple[torch.Tensor, torch.Tensor, EmbeddingCache]:
    """Embed the pairs of glimpses (B, S, S, 3) and goals: c (B, 256), u (B, 8) and the updated cache."""
    keys = content_keys(patch)
    goals, glimpses = cache.goals, cache.glimpses

    def relate(some: torch.Tensor) -> torch.Tensor:
        nonlocal goals, glimpses
        current, glimpses = glimpses.lookup(
            keys[some], lambda these: _rows(encoder.embedder.current_first(encoder.preprocess(patch[some[these]])))
        )
        goal, goals = goals.lookup(
            cache.goal_keys[some],
            lambda these: _rows(encoder.embedder.goal_first(encoder.preprocess(cache.goal[some[these]]))),
        )
        return torch.cat(encoder.embedder.relate(_maps(current), _maps(goal)), dim=1)  # (n, 264)

    rows, pairs = cache.pairs.lookup(pair_keys(keys, cache.goal_keys), relate)
    updated = cache._replace(goals=goals, glimpses=glimpses, pairs=pairs)
    return rows[:, :EMBEDDING], rows[:, EMBEDDING:], updated


def _rows(maps: torch.Tensor) -> torch.Tensor:
    """Move the channels of maps (n, W, H, H) last, the faster layout for convolutions on the CPU: (n, H, H, W)."""
    return maps.permute(0, 2, 3, 1).contiguous()


def _maps(rows: torch.Tensor) -> torch.Tensor:
    return rows.permute(0, 3, 1, 2)
