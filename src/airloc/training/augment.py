"""Turning and recolouring of patches and of squares that patches are cut from.

Legend: B patches, squares or groups of patches, S side, C channels.
"""

import torch

SYMMETRIES = 8
"""Of the square: bit 0 flips left and right, bit 1 up and down, bit 2 transposes."""


def turn_patches(patches: torch.Tensor, symmetry: torch.Tensor) -> torch.Tensor:
    """Turn patches (B, C, S, S), each by its own symmetry (B,)."""
    bits = [(symmetry & bit > 0)[:, None, None, None] for bit in (1, 2, 4)]
    patches = torch.where(bits[0], patches.flip(-1), patches)
    patches = torch.where(bits[1], patches.flip(-2), patches)
    return torch.where(bits[2], patches.transpose(-1, -2), patches)


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
