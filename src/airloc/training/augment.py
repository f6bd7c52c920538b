"""Turning and recolouring patches, alike for both of a pair.

The eight symmetries of the square act on patches and on directions together: after a flip or a turn the goal lies in
the direction that the flip or turn gives.

Legend: B patches or pairs, S side of a patch, C channels; directions are numbers of `airloc.grid.MOVES`.
"""

from functools import lru_cache

import numpy as np
import torch

from airloc.grid import MOVES

SYMMETRIES = 8


@lru_cache
def directions_after(device: torch.device) -> torch.Tensor:
    """For each symmetry where each direction goes, (8, 8): bit 0 flips left-right, bit 1 up-down, bit 2 transposes."""
    table = np.empty((SYMMETRIES, len(MOVES)), dtype=np.int64)
    for symmetry in range(SYMMETRIES):
        for number, (row, col) in enumerate(MOVES.tolist()):
            col = -col if symmetry & 1 else col
            row = -row if symmetry & 2 else row
            turned = (col, row) if symmetry & 4 else (row, col)
            table[symmetry, number] = int((np.array(turned) == MOVES).all(axis=1).argmax())
    return torch.from_numpy(table).to(device)


def turn_patches(patches: torch.Tensor, symmetry: torch.Tensor) -> torch.Tensor:
    """Turn patches (B, C, S, S), each by its own symmetry (B,)."""
    bits = [(symmetry & bit > 0)[:, None, None, None] for bit in (1, 2, 4)]
    patches = torch.where(bits[0], patches.flip(-1), patches)
    patches = torch.where(bits[1], patches.flip(-2), patches)
    return torch.where(bits[2], patches.transpose(-1, -2), patches)


def turn_directions(direction: torch.Tensor, symmetry: torch.Tensor) -> torch.Tensor:
    """Turn directions (B,), each by its own symmetry (B,)."""
    return directions_after(direction.device)[symmetry, direction]


def recolour(pairs: torch.Tensor, strength: float) -> torch.Tensor:
    """Change brightness, contrast, saturation, channel gains and gamma, alike for all patches of an entry.

    Args:
        pairs: RGB in [0, 1], (B, patches, 3, S, S).
        strength: How much; 0 changes nothing, 1 is strong.
    """
    count, device = len(pairs), pairs.device

    def around_one(spread: float, channels: int = 1) -> torch.Tensor:
        exponent = torch.empty(count, 1, channels, 1, 1, device=device).uniform_(-spread, spread) * strength
        return exponent.exp()

    grey = pairs.mean(dim=2, keepdim=True)
    pairs = grey + (pairs - grey) * around_one(0.4)
    middle = pairs.mean(dim=(1, 3, 4), keepdim=True)
    pairs = middle + (pairs - middle) * around_one(0.35)
    pairs = pairs * around_one(0.25) * around_one(0.1, channels=3)
    return pairs.clamp(1e-4, 1.0) ** around_one(0.3)
