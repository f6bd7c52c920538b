"""Discounted returns, and their normalisation by distance left to the goal.

Legend: T steps, K policies, B episodes.
"""

import torch


def discounted(reward: torch.Tensor, gamma: float) -> torch.Tensor:
    """Returns of rewards (T, ...): each the reward plus gamma times the next return.

    >>> discounted(torch.tensor([-1.0, -1.0, 2.0]), 0.9)
    tensor([-0.2800,  0.8000,  2.0000])
    """
    returns = [reward[-1]]
    for earlier in reversed(reward[:-1].unbind()):
        returns.append(earlier + gamma * returns[-1])
    return torch.stack(returns[::-1])


def normalise_by_group(value: torch.Tensor, group: torch.Tensor, counts: torch.Tensor, groups: int) -> torch.Tensor:
    """Bring the values of every group to zero mean and unit variance; a group without spread divides by one.

    Args:
        value: The values, (K, N).
        group: Number of each value's group, (K, N), below `groups`.
        counts: Whether each value counts, (K, N) float; those that do not come out as they may.
        groups: How many groups there are.
    """
    empty = value.new_zeros(len(value), groups)
    size = empty.scatter_add(1, group, counts).clamp(min=1.0)
    mean = empty.scatter_add(1, group, value * counts) / size
    centred = value - mean.gather(1, group)
    variance = empty.scatter_add(1, group, centred.square() * counts) / size
    spread = variance.sqrt()
    # Below this the values of a group are equal up to rounding.
    return centred / spread.masked_fill(spread <= 1e-4, 1.0).gather(1, group)
