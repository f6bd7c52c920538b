"""Discounted returns, and their normalisation by group.

Legend: T budget, K policies, N moves of a batch.
"""

from functools import lru_cache

import torch
from torch import nn


def discounted_returns(reward: torch.Tensor, gamma: float) -> torch.Tensor:
    """Compute returns of rewards (..., T): each is the reward plus gamma times the next return.

    >>> discounted_returns(torch.tensor([-1.0, -1.0, 2.0]), 0.9)
    tensor([-0.2800,  0.8000,  2.0000])
    """
    # Not as a matrix product, which a GPU may round to ten bits.
    return (reward[..., None, :] * _discounts(reward.shape[-1], gamma, reward.device)).sum(dim=-1)


@lru_cache
def _discounts(steps: int, gamma: float, device: torch.device) -> torch.Tensor:
    """Return the factor of the reward of every step (second axis) in the return of every step (first axis), (T, T)."""
    step = torch.arange(steps, device=device)
    later = step - step[:, None]
    return torch.where(later < 0, 0.0, gamma ** later.clamp(min=0))


def normalise_by_group(value: torch.Tensor, group: torch.Tensor, counts: torch.Tensor, groups: int) -> torch.Tensor:
    """Normalise the values of every group to zero mean and unit variance; a group without variance divides by one.

    Args:
        value: The values, (K, N).
        group: Group of each value, (K, N), below `groups`.
        counts: 1 for values that count, 0 for others, (K, N) float; the results of the others are undefined.
        groups: Number of groups.
    """
    size, total, squares = value.new_zeros(3, len(value), groups).unbind()
    size = size.scatter_add_(1, group, counts).clamp_(min=1.0)
    mean = total.scatter_add_(1, group, value * counts) / size
    centred = value - mean.gather(1, group)
    variance = squares.scatter_add_(1, group, centred.square() * counts) / size
    # Below this threshold the values of a group are equal up to rounding.
    std = nn.functional.threshold(variance, 1e-8, 1.0).sqrt()
    return centred / std.gather(1, group)
