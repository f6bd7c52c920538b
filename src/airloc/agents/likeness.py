"""How alike two pictures are, as a probability that they show the same place: the reference for declaring a find.

The score is the largest normalised cross-correlation of glimpse and goal over small shifts, which brightness and
contrast do not change. A logistic curve turns it into a probability. It is calibrated for searches, in which about one
glimpse in ten is the goal's; `docs/field.md` says how well it holds.

Legend: B pairs, S = 48 side of a patch, s = 24 side after halving, c = 20 side of the compared centre, n = 25 shifts.
"""

import torch
from torch.nn import functional

SLOPE, MIDDLE = 20.5, 0.43
"""The logistic curve: its steepness, and the correlation at which both answers are equally probable."""
SHIFT = 2
"""Largest shift in halved pixels: four of a patch, a twelfth of a cell."""


BLUR = 9
"""Side in halved pixels of the mean that is taken out."""


def same_place(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The probability that pictures (B, S, S, 3) uint8 show the same place, (B,)."""
    return (SLOPE * (correlation(glimpse, goal) - MIDDLE)).sigmoid()


def correlation(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The largest correlation of the goal's centre with the glimpse over small shifts, (B,) in [-1, 1]."""
    seen, wanted = _halved(glimpse), _halved(goal)
    side = wanted.shape[-1] - 2 * SHIFT
    centre = _standardised(wanted[..., SHIFT : SHIFT + side, SHIFT : SHIFT + side].flatten(1)[:, None])  # (B, 1, D)
    windows = functional.unfold(seen, side).transpose(1, 2)  # (B, n, D)
    return (_standardised(windows) * centre).sum(dim=-1).amax(dim=1)


def _halved(patches: torch.Tensor) -> torch.Tensor:
    """Patches at half the size, (B, 3, s, s), each colour without its blur: only what has a shape is compared."""
    small = functional.avg_pool2d(patches.permute(0, 3, 1, 2).float(), 2)
    return small - functional.avg_pool2d(small, BLUR, stride=1, padding=BLUR // 2, count_include_pad=False)


def _standardised(values: torch.Tensor) -> torch.Tensor:
    """Values (..., D) with zero mean and unit length; a flat picture correlates with nothing."""
    centred = values - values.mean(dim=-1, keepdim=True)
    length: torch.Tensor = centred.norm(dim=-1, keepdim=True)
    return centred / length.clamp(min=1.0)
