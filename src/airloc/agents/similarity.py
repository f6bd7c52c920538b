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


class SamePlaceCalibration(NamedTuple):
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


SAME_PLACE = SamePlaceCalibration(temper=0.57, weight=16.9, neutral=0.216)
"""For the shipped relation network, fitted by `python -m benchmarks.field_here` to searches with goals from the same
day and from before a disaster. Run it again when the weights change."""


def same_place(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The probability that pictures (B, S, S, 3) uint8 show the same place, (B,)."""
    return (SLOPE * (correlation(glimpse, goal) - MIDDLE)).sigmoid()


def correlation(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The largest correlation of the goal's centre with the glimpse over small shifts, (B,) in [-1, 1]."""
    seen, wanted = _shapes(glimpse), _shapes(goal)[..., SHIFT:-SHIFT, SHIFT:-SHIFT]
    half = wanted.shape[-1] // 2
    windows = functional.unfold(_quarters(seen, half + 2 * SHIFT, half), half)  # (4 B, d, n)
    centre = _quarters(wanted, half, half).flatten(1)
    centre = centre - centre.mean(dim=1, keepdim=True)
    centre = centre / _long_enough(centre.norm(dim=1, keepdim=True))
    # The centre has no mean, so that the windows' own need not be taken out before they are multiplied.
    alike = torch.bmm(centre[:, None], windows)[:, 0]  # (4 B, n)
    spread = windows.norm(dim=1).square() - windows.sum(dim=1).square() / windows.shape[1]
    alike = alike / _long_enough(spread.clamp(min=0).sqrt())
    return alike.view(len(goal), 4, -1).mean(dim=1).amax(dim=1)


def _shapes(patches: torch.Tensor) -> torch.Tensor:
    """Patches at half the size, (B, 3, s, s), each colour without its blur: only what has a shape is compared."""
    small = functional.avg_pool2d(patches.permute(0, 3, 1, 2).float(), 2)
    dark = (patches.amax(dim=3) <= DARK).float()[:, None]
    shown = (functional.max_pool2d(dark, 2) == 0).float()  # (B, 1, s, s)
    return (small - _blurred(small * shown) / _blurred(shown).clamp(min=1e-3)) * shown


def _blurred(values: torch.Tensor) -> torch.Tensor:
    return functional.avg_pool2d(values, BLUR, stride=1, padding=BLUR // 2, count_include_pad=False)


def _quarters(squares: torch.Tensor, side: int, step: int) -> torch.Tensor:
    """Four squares of a side, a step apart, of each square (B, 3, ...): (4 B, 3, side, side)."""
    parts = squares.unfold(2, side, step).unfold(3, side, step)  # (B, 3, 2, 2, side, side)
    return parts.permute(0, 2, 3, 1, 4, 5).reshape(-1, 3, side, side)


def _long_enough(length: torch.Tensor) -> torch.Tensor:
    """What to divide by for unit length: quarters that are nearly flat stay shorter."""
    return length.clamp(min=FAINT)
