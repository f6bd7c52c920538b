"""Where to fly next, from a belief: planners, each a function of belief, position, moves left and grid.

All planners move inside the grid alone. What a path is worth for a goal in some cell depends on that cell's place
relative to the agent, not on the belief: it is tabulated, and planning is a product of tables with the belief. Only for
cells beside a path does the path as such matter; for all others its end does, and many paths share an end. So there are
two tables: one of ends for all cells, one of paths for the cells around the agent. A move takes time in proportion to
the cells.

Legend: B episodes, C cells, P paths looked ahead at, H their length, E their ends, N = (2 H + 3)^2 cells around the
agent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch.nn.functional import pad

from airloc.grid import Grid
from airloc.task.rules import inside, moves_on

Planner = Callable[[torch.Tensor, torch.Tensor, int, Grid], torch.Tensor]
"""From belief (B, C), position (B, 2), moves left and grid to the worth of the eight moves, (B, 8), minus infinity for
those that end outside."""

TIE = 1e-4
"""Share of its worth that a move must be better by to be preferred to the one before it: straight ones come first."""


class Away(NamedTuple):
    """How far goals are from cells, of any shape."""

    moves: torch.Tensor
    """In moves of the task."""
    king: torch.Tensor
    """In king's moves: sides and corners are one away."""
    straight: torch.Tensor
    """In rows and columns: sides are one away, corners two."""

    @classmethod
    def of(cls, down: torch.Tensor, across: torch.Tensor, moves: int) -> "Away":
        """So many rows down and columns across, in a task of eight or four moves."""
        king, straight = torch.maximum(down.abs(), across.abs()), down.abs() + across.abs()
        return cls(king if moves == 8 else straight, king, straight)


@dataclass(frozen=True)
class Greedy:
    """Goes where most belief is near: each cell counts by its belief and its distance after the move."""

    discount: float = 0.3
    """What a cell is worth after one more move."""

    def __call__(self, belief: torch.Tensor, position: torch.Tensor, left: int, grid: Grid) -> torch.Tensor:
        """Worth of the eight moves, (B, 8)."""
        return _best_by_move(self, 1, belief, position, left, grid)

    def told(self, away: Away) -> torch.Tensor:
        """Probability that a glimpse tells of goals so far away from it: nothing is counted on."""
        return torch.zeros_like(away.moves, dtype=torch.float32)

    def after(self, last: torch.Tensor, length: int, left: int) -> torch.Tensor:
        """What a path is worth for goals so far away from its end."""
        return _power(self.discount, last) * (last + length <= left)


@dataclass(frozen=True)
class Lookahead:
    """Looks several moves ahead, and counts on what glimpses will tell.

    Every path of `horizon` moves is judged by what it brings, cell by cell: a cell on the path is found when it is
    reached; a goal beside the path may be recognised by every glimpse that has it at a side or at a corner, and is then
    flown to at once; what is not recognised is flown to after the path. Both probabilities are far below what the
    network reaches on all pairs: a goal that is still sought is among the harder ones, and where its picture is of
    another day, or there is nothing to see, counting on glimpses leads past it.
    """

    horizon: int = 4
    """Moves looked ahead."""
    discount: float = 0.9
    """What a find is worth one move later."""
    at_side: float = 0.2
    """Probability that a glimpse tells that the goal is at one of its sides."""
    at_corner: float = 0.05
    """Probability that a glimpse tells that the goal is at one of its corners, where the two share no edge."""
    beyond: float = 0.5
    """Discount per move of what is flown to after the path."""

    def __call__(self, belief: torch.Tensor, position: torch.Tensor, left: int, grid: Grid) -> torch.Tensor:
        """Worth of the eight moves, (B, 8)."""
        return _best_by_move(self, self.horizon, belief, position, left, grid)

    def told(self, away: Away) -> torch.Tensor:
        """Probability that a glimpse tells of goals so far away from it; one that is there is found."""
        side, corner = away.straight == 1, (away.straight == 2) & (away.king == 1)
        return (away.straight == 0) + self.at_side * side + self.at_corner * corner

    def after(self, last: torch.Tensor, length: int, left: int) -> torch.Tensor:
        """What a path is worth for goals that it tells nothing of, so far away from its end."""
        return self.discount**length * _power(self.beyond, last) * (last + length <= left)


PLANNERS: dict[str, Planner] = {"greedy": Greedy(), "lookahead": Lookahead()}


def worth(planner: Greedy | Lookahead, away: Sequence[Away], left: int) -> torch.Tensor:
    """What paths are worth for goals so far away after each of their moves, (P, ...).

    Args:
        planner: Who judges.
        away: An entry a move, the last one (P, ...); paths that begin alike stand together and share a row before.
        left: Moves left at the start of the paths.
    """
    worth = torch.zeros_like(away[0].moves[:1], dtype=torch.float32)
    unknown = torch.ones_like(worth)
    for made, now in enumerate(away, start=1):
        branches = len(now.moves) // len(worth)
        worth, unknown = (part.repeat_interleave(branches, dim=0) for part in (worth, unknown))
        when = made + now.moves
        found = unknown * planner.told(now) * (when <= left)
        worth, unknown = worth + found * _power(planner.discount, when), unknown - found
    return worth + unknown * planner.after(away[-1].moves, len(away), left)


def _best_by_move(
    planner: Greedy | Lookahead, horizon: int, belief: torch.Tensor, position: torch.Tensor, left: int, grid: Grid
) -> torch.Tensor:
    """Worth of each first move under the best path that begins with it, (B, 8)."""
    device, length = position.device, max(1, min(horizon, left))
    steps, reach = _paths(length, grid.moves, device), length + 1
    ends, end_of = _ends(length, grid.moves, device)
    # More moves than lead anywhere change nothing, so that those cases share a table.
    beside = _beside(planner, length, min(left, 2 * length + 1), grid.moves, device)
    after = _after(planner, length, min(left, grid.max_distance + 2 * length), grid, device)
    around = pad(belief.view(-1, *grid.shape), (reach, reach, reach, reach))
    rows, cols = (torch.arange(side, device=device) for side in grid.shape)
    first = torch.arange(0, 8, 8 // grid.moves, device=device)  # on a grid of four moves the straight ones
    best = torch.full((len(belief), 8), -torch.inf, device=device)
    cells, which = torch.unique(position, dim=0, return_inverse=True)
    for number, cell in enumerate(cells):
        here = (which == number).nonzero()[:, 0]
        row, col = cell.tolist()
        down, across = (part + side - 1 + length for part, side in zip(-(cell + ends).T, grid.shape, strict=True))
        window = after[(down[:, None] + rows)[:, :, None], (across[:, None] + cols)[:, None]]  # (E, rows, cols)
        near = around[here, row : row + 2 * reach + 1, col : col + 2 * reach + 1].flatten(1)  # (b, N)
        value = (belief[here] @ window.flatten(1).T)[:, end_of] + near @ beside.T  # (b, P)
        value = value.masked_fill(~inside(cell + steps, grid).all(dim=1), -torch.inf)
        best[here[:, None], first] = value.view(len(here), grid.moves, -1).amax(dim=2)
    # Several moves often lead to the same cells equally soon: rounding must not decide between them.
    return best * _preference(best.device)


@lru_cache(maxsize=64)
def _beside(planner: Greedy | Lookahead, length: int, left: int, moves: int, device: torch.device) -> torch.Tensor:
    """What every path is worth for a goal at every place near the agent, beyond what its end is, (P, N)."""
    near = torch.arange(-length - 1, length + 2, device=device)
    cells = [_paths(made, moves, device)[:, -1, :, None, None] for made in range(1, length + 1)]  # (P, 2, 1, 1)
    away = [Away.of(near[:, None] - cell[:, 0], near - cell[:, 1], moves) for cell in cells]  # (P, Y, X)
    return (worth(planner, away, left) - planner.after(away[-1].moves, length, left)).float().flatten(1)


@lru_cache(maxsize=64)
def _after(planner: Greedy | Lookahead, length: int, left: int, grid: Grid, device: torch.device) -> torch.Tensor:
    """What a path's end is worth for a goal at every place around it, (2 (rows + H) - 1, 2 (cols + H) - 1)."""
    rows, cols = (torch.arange(1 - side - length, side + length, device=device) for side in grid.shape)
    return planner.after(Away.of(rows[:, None], cols, grid.moves).moves, length, left).float()


def _power(base: float, exponent: torch.Tensor) -> torch.Tensor:
    """Powers of a number, from a short list of them: tables have millions of entries and few different ones."""
    return (base ** torch.arange(int(exponent.max()) + 1, device=exponent.device))[exponent]


@lru_cache(maxsize=8)
def _ends(length: int, moves_known: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Where paths may end, as steps from the start, (E, 2), and which of these every path's end is, (P,)."""
    ends, which = torch.unique(_paths(length, moves_known, device)[:, -1], dim=0, return_inverse=True)
    return ends, which


@lru_cache
def _preference(device: torch.device) -> torch.Tensor:
    """Nearly one for every move, (8,)."""
    place = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7], device=device)
    return 1 - TIE * place


@lru_cache(maxsize=8)
def _paths(length: int, moves_known: int, device: torch.device) -> torch.Tensor:
    """Every sequence of so many moves, of eight or four, as steps from the start, (P, H, 2), ordered by the first."""
    moves = moves_on(device)[:: 8 // moves_known]
    choices = torch.cartesian_prod(*[torch.arange(len(moves), device=device)] * length).view(-1, length)
    return moves[choices].cumsum(dim=1)
