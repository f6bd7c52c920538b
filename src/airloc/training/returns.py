"""Discounted returns, and their normalisation by distance left to the goal.

Legend: T steps, K policies, N moves.
"""

from functools import lru_cache

import torch
from torch import nn


def discounted(reward: torch.Tensor, gamma: float) -> torch.Tensor:
    """Returns of rewards (..., T): each the reward plus gamma times the next return.

    >>> discounted(torch.tensor([-1.0, -1.0, 2.0]), 0.9)
    tensor([-0.2800,  0.8000,  2.0000])
    """
    # Multiplied and summed, and not as a matrix product, which a GPU may round to ten bits.
    return (reward[..., None, :] * _discounts(reward.shape[-1], gamma, reward.device)).sum(dim=-1)


@lru_cache
def _discounts(steps: int, gamma: float, device: torch.device) -> torch.Tensor:
    """What the reward of every step (second axis) is worth at every earlier one (first axis), (T, T)."""
    step = torch.arange(steps, device=device)
    later = step - step[:, None]
    return torch.where(later < 0, 0.0, gamma ** later.clamp(min=0))


def normalise_by_group(value: torch.Tensor, group: torch.Tensor, counts: torch.Tensor, groups: int) -> torch.Tensor:
    """Bring the values of every group to zero mean and unit variance; a group without spread divides by one.

    Args:
        value: The values, (K, N).
        group: Number of each value's group, (K, N), below `groups`.
        counts: Whether each value counts, (K, N) float; those that do not come out as they may.
        groups: How many groups there are.
    """
    size, total, squares = value.new_zeros(3, len(value), groups).unbind()
    size = size.scatter_add_(1, group, counts).clamp_(min=1.0)
    mean = total.scatter_add_(1, group, value * counts) / size
    centred = value - mean.gather(1, group)
    variance = squares.scatter_add_(1, group, centred.square() * counts) / size
    # Below this the values of a group are equal up to rounding.
    spread = nn.functional.threshold(variance, 1e-8, 1.0).sqrt()
    return centred / spread.gather(1, group)
