"""Offsets from a glimpse to a goal, in cells, and how a quarter turn moves them.

The relation network sees a pair of patches in four frames, each turned on by a quarter, and in each it judges only the
offsets of one sector; the four sectors together are all offsets but the zero one. So a turned pair gives turned
answers by construction.

Legend: R radius, O = (2 R + 1)^2 offsets in row-major order, J = R (R + 1) offsets of a sector, K = 4 turns.
"""

from functools import lru_cache

import torch

from airloc.grid import MOVES, Grid

RADIUS = 4
"""Farthest offset that is told apart, in cells; farther ones count as the nearest in their direction."""
COUNT = (2 * RADIUS + 1) ** 2
SAME = COUNT // 2
"""Number of the offset zero: glimpse and goal are the same place."""
SECTOR = tuple((row, col) for col in range(1, RADIUS + 1) for row in range(1 - col, col + 1))
"""The offsets judged in a frame: east and south-east, and what lies behind them."""
TURNS = 4


def number(row: int, col: int) -> int:
    """Number of an offset; one beyond the radius is drawn in towards zero.

    >>> number(0, 0) == SAME, number(0, 9) == number(0, 4), number(-8, 4) == number(-4, 2)
    (True, True, True)
    """
    reach = max(abs(row), abs(col))
    if reach > RADIUS:
        row, col = round(row * RADIUS / reach), round(col * RADIUS / reach)
    return (row + RADIUS) * (2 * RADIUS + 1) + col + RADIUS


def turned(row: int, col: int, turns: int) -> tuple[int, int]:
    """Where an offset goes when the picture is turned left by so many quarters.

    >>> turned(0, 1, 1), turned(1, 1, 1), turned(2, 1, 4)
    ((-1, 0), (-1, 1), (2, 1))
    """
    for _ in range(turns % TURNS):
        row, col = -col, row
    return row, col


@lru_cache
def sectors(device: torch.device) -> torch.Tensor:
    """For each offset but zero its place among the answers of all frames, (O - 1,) in 0..K J - 1."""
    place = {
        number(*turned(row, col, -turn)): turn * len(SECTOR) + judged
        for turn in range(TURNS)
        for judged, (row, col) in enumerate(SECTOR)
    }
    return _table([place[offset] for offset in range(COUNT) if offset != SAME], device)


def offsets_from(position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Number of the offset from cells (B, 2) to every cell of the grid, (B, cells)."""
    reach = max(grid.shape)
    row, col = (
        torch.arange(side, device=position.device) - position[:, axis, None] + reach - 1
        for axis, side in enumerate(grid.shape)
    )
    return _numbers(reach, position.device)[row[:, :, None], col[:, None]].flatten(1)


@lru_cache
def between(grid: Grid, device: torch.device) -> torch.Tensor:
    """Number of the offset from every cell to every other, (cells, cells)."""
    with torch.inference_mode(False):
        return offsets_from(torch.tensor(list(grid.cells()), device=device), grid)


@lru_cache
def _numbers(reach: int, device: torch.device) -> torch.Tensor:
    """Numbers of all offsets shorter than `reach`, (2 reach - 1, 2 reach - 1)."""
    steps = range(1 - reach, reach)
    return _table([[number(row, col) for col in steps] for row in steps], device)


@lru_cache
def adjacent(device: torch.device) -> torch.Tensor:
    """Numbers of the eight moves' offsets, (8,)."""
    return _table([number(row, col) for row, col in MOVES.tolist()], device)


def _table(numbers: list[int] | list[list[int]], device: torch.device) -> torch.Tensor:
    """A tensor to be kept, which training may use even where it was first asked for in play."""
    with torch.inference_mode(False):
        return torch.tensor(numbers, device=device)
