"""How alike two pictures are: the reference for declaring a find, and a witness for agents that judge for themselves.

The score is the largest normalised cross-correlation of glimpse and goal over small shifts, which brightness and
contrast do not change. Each quarter is compared on its own and the mean is taken: one road that runs the same way in
both must not speak for the rest. Where a picture has no data there is nothing to compare. A logistic curve turns the
score into a probability. It is calibrated for searches, in which about one glimpse in ten is the goal's;
`docs/field.md` says how well it holds.

Legend: B pairs, S = 48 side of a patch, s = 24 side after halving, c = 20 side of the compared centre, n = 25 shifts,
d = 300 values of a quarter.
"""

from typing import NamedTuple

import torch
from torch.nn import functional

SLOPE, MIDDLE = 19.4, 0.40
"""The logistic curve: its steepness, and the correlation at which both answers are equally probable. Fitted by
`python -m benchmarks.field_likeness`."""
SHIFT = 2
"""Largest shift in halved pixels: four of a patch, a twelfth of a cell."""
BLUR = 9
"""Side in halved pixels of the mean that is taken out."""
DARK = 8
"""Pixels none of whose values, of 255, is larger have no data."""
FAINT = 60.0
"""Length of a quarter's values below which it counts as nearly flat: 3.5 of 255 on average."""


class Witness(NamedTuple):
    """How the likeness is heard beside a network's evidence, when both judge whether a glimpse shows the goal.

    The log-odds are `temper * (evidence + weight * (correlation - neutral))`: networks are surer than they may be when
    goal and glimpse are from different days, and the likeness is bound to the place alone.
    """

    temper: float
    """What all evidence counts."""
    weight: float
    """What the correlation counts."""
    neutral: float
    """The correlation that speaks neither for the goal nor against it."""


WITNESS = Witness(temper=0.41, weight=38.8, neutral=0.176)
"""For the shipped relation network, fitted by `python -m benchmarks.field_here` to searches with goals from the same
day and from before a disaster. Run it again when the weights change."""


def same_place(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The probability that pictures (B, S, S, 3) uint8 show the same place, (B,)."""
    return (SLOPE * (correlation(glimpse, goal) - MIDDLE)).sigmoid()


def correlation(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The largest correlation of the goal's centre with the glimpse over small shifts, (B,) in [-1, 1]."""
    seen, wanted = _shapes(glimpse), _shapes(goal)
    side = wanted.shape[-1] - 2 * SHIFT
    centre = wanted[..., SHIFT : SHIFT + side, SHIFT : SHIFT + side].flatten(1)[:, None]  # (B, 1, 4 d)
    windows = functional.unfold(seen, side).transpose(1, 2)  # (B, n, 4 d)
    return (_quarters(windows, side // 2) * _quarters(centre, side // 2)).sum(dim=-1).mean(dim=-1).amax(dim=1)


def _shapes(patches: torch.Tensor) -> torch.Tensor:
    """Patches at half the size, (B, 3, s, s), each colour without its blur: only what has a shape is compared."""
    small = functional.avg_pool2d(patches.permute(0, 3, 1, 2).float(), 2)
    dark = (patches.amax(dim=3) <= DARK).float()[:, None]
    shown = (functional.max_pool2d(dark, 2) == 0).float()  # (B, 1, s, s)
    return (small - _blurred(small * shown) / _blurred(shown).clamp(min=1e-3)) * shown


def _blurred(values: torch.Tensor) -> torch.Tensor:
    return functional.avg_pool2d(values, BLUR, stride=1, padding=BLUR // 2, count_include_pad=False)


def _quarters(values: torch.Tensor, half: int) -> torch.Tensor:
    """Squares (B, n, 4 d) by quarter, (B, n, 4, d), each with zero mean and unit length; faint ones shorter."""
    square = values.reshape(*values.shape[:2], 3, 2, half, 2, half).permute(0, 1, 3, 5, 2, 4, 6)
    quarters = square.flatten(4).flatten(2, 3)
    centred = quarters - quarters.mean(dim=-1, keepdim=True)
    length: torch.Tensor = centred.norm(dim=-1, keepdim=True)
    return centred / length.clamp(min=FAINT)
