"""The frame around a grid in which flights stay, laid out so that a step takes few operations.

A position is one number there, its place; what the rules say of positions is looked up by it. Tables are made from the
rules, which stay the only ones.

Legend: n cells, P places.
"""

from dataclasses import dataclass

import torch

from airloc.grid import Grid
from airloc.task.rules import inside, moves_on

FRESH, VISITED, OUTSIDE = 0, 1, 2
"""What speaks against flying to a place, for those who are told."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Positions as places."""

    width: int
    """Places in a row."""
    positions: torch.Tensor
    """(P, 2): the position of every place."""
    cells: torch.Tensor
    """(P,): the number of the cell there, n outside."""
    places: torch.Tensor
    """(n,): the place of every cell."""
    strides: torch.Tensor
    """(8,): what each move adds to a place."""
    standing: torch.Tensor
    """(P,) uint8: `FRESH` in the grid, `OUTSIDE` around it."""

    @classmethod
    def around(cls, grid: Grid, shape: tuple[int, int], reach: int, device: torch.device) -> "Frame":
        """A frame of (rows, cols) whose first place lies `reach` rows and columns before the grid."""
        rows, cols = (torch.arange(-reach, side - reach, device=device) for side in shape)
        positions = torch.cartesian_prod(rows, cols)
        within = inside(positions, grid)
        cells = torch.where(within, positions[:, 0] * grid.cols + positions[:, 1], grid.count)
        places = within.nonzero()[:, 0]  # cells and places are both numbered row by row
        strides = moves_on(device)[:, 0] * shape[1] + moves_on(device)[:, 1]
        standing = torch.where(within, FRESH, OUTSIDE).to(torch.uint8)
        return cls(shape[1], positions, cells, places, strides, standing)


class Privileges:
    """Who has been where, and which moves privileged agents may therefore make (see `constraints.privileged_moves`).

    Args:
        frame: Where they fly.
        policies: K.
        batch: B.
    """

    def __init__(self, frame: Frame, policies: int, batch: int) -> None:
        self._strides = frame.strides
        self._standing = frame.standing.repeat(policies, batch, 1)  # (K, B, P)
        self._after_visit = frame.standing.clamp(min=VISITED)

    def forbidden(self, place: torch.Tensor) -> torch.Tensor:
        """Visit places (K, B) and give the moves that are forbidden from there, bool (K, B, 8).

        Allowed are moves to the best there is: to fresh cells, else to visited ones, else anywhere.
        """
        self._standing.scatter_(2, place[..., None], self._after_visit[place][..., None])
        ahead = self._standing.gather(2, place[..., None] + self._strides)
        return ahead > ahead.amin(dim=2, keepdim=True)
