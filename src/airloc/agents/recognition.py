"""What a belief searcher has recognised: glimpses and goals through the relation network, each patch and pair once.

Legend: B episodes, n of them with something new, S = 48 side of a patch, O offsets, E numbers of an encoding.
"""

import warnings
from typing import NamedTuple

import torch
from torch.nn.functional import interpolate

from airloc.agents.likeness import Witness, correlation
from airloc.agents.memo import Memo, content_keys, pair_keys
from airloc.errors import AirlocError
from airloc.vision.offsets import SAME
from airloc.vision.relation import SIDE, Encoding, RelationNetwork

FLAT = 1.5
"""Spread of the values of a picture, of 255, below which it shows nothing: black, fog, a uniform card."""

SHARE, CHUNK = 32, 256
"""Patches and pairs that go through the network together: for each core of a CPU, whose cache they stay in, and at
most."""


class Recognition(NamedTuple):
    """The goals of a batch and all that was seen in it so far."""

    goal: torch.Tensor
    """The pictures of the goals, (B, S, S, 3) uint8."""
    goal_keys: torch.Tensor
    """Their content, (B,)."""
    goal_flat: torch.Tensor
    """Which of them show nothing, bool (B,)."""
    encodings: Memo
    """Encodings by patch, rows (E,)."""
    pairs: Memo
    """Logits by pair, rows (O,)."""
    witness: Witness
    """How the likeness of glimpse and goal is heard."""


def begin(goal: torch.Tensor, witness: Witness) -> Recognition:
    """Get ready to look for goals (B, S, S, 3); pictures of another size are resampled, with a warning."""
    if goal.shape[1:] != (SIDE, SIDE, 3):
        height, width = goal.shape[1:3]
        warnings.warn(f"Goals of {height} x {width} px are resampled to {SIDE} x {SIDE} px", stacklevel=3)
        values = goal.permute(0, 3, 1, 2).float()
        values = interpolate(values, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
        goal = values.round().clamp(0, 255).byte().permute(0, 2, 3, 1).contiguous()
    return Recognition(goal, content_keys(goal), is_flat(goal), Memo(), Memo(), witness)


def recognise(network: RelationNetwork, patch: torch.Tensor, before: Recognition) -> tuple[torch.Tensor, Recognition]:
    """Judge how the goals lie to glimpses (B, S, S, 3): logits (B, O), all zero where there is nothing to see.

    Whether the glimpse shows the goal itself is judged by the network and by the likeness of the two.
    """
    if patch.shape[1:] != (SIDE, SIDE, 3):
        problem = f"Learned agents see cells of {SIDE} x {SIDE} px, not of {patch.shape[1]} x {patch.shape[2]}"
        raise AirlocError(problem, f"Lay a grid with cells of {SIDE} px on the areas")
    keys, chunk = content_keys(patch), _chunk(patch.device)
    encodings = before.encodings

    def relate(some: torch.Tensor) -> torch.Tensor:
        nonlocal encodings
        both = torch.cat([patch[some], before.goal[some]])
        both_keys = torch.cat([keys[some], before.goal_keys[some]])
        rows, encodings = encodings.lookup(both_keys, lambda these: _rows(network.look(both[these])), chunk=chunk)
        glimpse, goal = rows.chunk(2)
        logits = network.relate(_encoding(network, glimpse), _encoding(network, goal))
        logits[:, SAME] += before.witness.weight * (
            correlation(patch[some], before.goal[some]) - before.witness.neutral
        )
        empty = is_flat(patch[some]) | before.goal_flat[some]
        return logits.masked_fill(empty[:, None], 0.0)

    logits, pairs = before.pairs.lookup(pair_keys(keys, before.goal_keys), relate, chunk=chunk)
    if len(patch) == 1:  # where nobody else may come to see it, a glimpse that comes up again is known as a pair
        encodings = encodings.only(before.goal_keys)
    return logits, before._replace(encodings=encodings, pairs=pairs)


def is_flat(patches: torch.Tensor) -> torch.Tensor:
    """Which pictures (B, S, S, 3) show nothing, bool (B,)."""
    return patches.float().flatten(1, 2).std(dim=1).amax(dim=1) < FLAT


def _chunk(device: torch.device) -> int:
    return min(CHUNK, SHARE * torch.get_num_threads()) if device.type == "cpu" else CHUNK


def _rows(encoding: Encoding) -> torch.Tensor:
    return torch.cat([part.flatten(1) for part in encoding], dim=1)


def _encoding(network: RelationNetwork, rows: torch.Tensor) -> Encoding:
    parts = torch.split(rows, [shape.numel() for shape in network.shapes], dim=1)
    return Encoding(*(part.reshape(-1, *shape) for part, shape in zip(parts, network.shapes, strict=True)))
