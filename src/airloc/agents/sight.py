"""What an agent has seen: glimpses and goals through its eyes, each patch and each pair once.

The first half of a branch of the embedder sees one patch, so its maps are kept by patch; what relates a glimpse to
a goal is kept by pair. Episodes of a batch that share an area share both.

Legend: B episodes, n of them with something new, S = 48 side of a patch, H = 12 side and W = 128 number of maps.
"""

from typing import NamedTuple

import torch

from airloc.agents.memo import Memo, content_keys, pair_keys
from airloc.errors import AirlocError
from airloc.vision.embedder import EMBEDDING
from airloc.vision.eyes import Eyes

SIDE = 48
"""What the eyes were made for."""


class Sight(NamedTuple):
    """The goals of a batch and all that was seen in it so far."""

    goal: torch.Tensor
    """The pictures of the goals, (B, S, S, 3) uint8."""
    goal_keys: torch.Tensor
    """Their content, (B,)."""
    goals: Memo
    """Maps of the goal's branch by patch, rows (H, H, W)."""
    glimpses: Memo
    """Maps of the current patch's branch by patch, rows (H, H, W)."""
    pairs: Memo
    """c and u by pair, rows (256 + 8,)."""


def begin(eyes: Eyes, goal: torch.Tensor) -> Sight:
    """Look at the goals (B, S, S, 3) of a batch, through frozen eyes."""
    if eyes.training:
        raise ValueError("eyes must be in eval mode: batch statistics would leak between episodes")
    if goal.shape[1:] != (SIDE, SIDE, 3):
        problem = f"Learned agents see cells of {SIDE} x {SIDE} px, not of {goal.shape[1]} x {goal.shape[2]}"
        raise AirlocError(problem, f"Lay a grid with cells of {SIDE} px on the areas")
    keys = content_keys(goal)
    goals, glimpses = Memo(), Memo()
    if len(goal) == 1:  # a single episode ends on its goal and never looks at it as a glimpse
        return Sight(goal, keys, goals, glimpses, Memo())

    def look(some: torch.Tensor) -> torch.Tensor:
        nonlocal glimpses
        looked = eyes.look(goal[some])
        _, glimpses = glimpses.lookup(keys[some], lambda these: _rows(eyes.embedder.current_first(looked[these])))
        return _rows(eyes.embedder.goal_first(looked))

    _, goals = goals.lookup(keys, look)
    return Sight(goal, keys, goals, glimpses, Memo())


def see(eyes: Eyes, patch: torch.Tensor, sight: Sight) -> tuple[torch.Tensor, torch.Tensor, Sight]:
    """Relate glimpses (B, S, S, 3) to the goals: c (B, 256), u (B, 8) and what has been seen now."""
    keys = content_keys(patch)
    goals, glimpses = sight.goals, sight.glimpses

    def relate(some: torch.Tensor) -> torch.Tensor:
        nonlocal goals, glimpses
        current, glimpses = glimpses.lookup(
            keys[some], lambda these: _rows(eyes.embedder.current_first(eyes.look(patch[some[these]])))
        )
        goal, goals = goals.lookup(
            sight.goal_keys[some], lambda these: _rows(eyes.embedder.goal_first(eyes.look(sight.goal[some[these]])))
        )
        return torch.cat(eyes.embedder.relate(_maps(current), _maps(goal)), dim=1)  # (n, 264)

    rows, pairs = sight.pairs.lookup(pair_keys(keys, sight.goal_keys), relate)
    seen = sight._replace(goals=goals, glimpses=glimpses, pairs=pairs)
    return rows[:, :EMBEDDING], rows[:, EMBEDDING:], seen


def _rows(maps: torch.Tensor) -> torch.Tensor:
    """Maps (n, W, H, H) with channels last, as convolutions on the CPU like them: (n, H, H, W)."""
    return maps.permute(0, 2, 3, 1).contiguous()


def _maps(rows: torch.Tensor) -> torch.Tensor:
    return rows.permute(0, 3, 1, 2)
