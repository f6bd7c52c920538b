"""Where to fly next, from a belief: planners, each a function of belief, position, moves left and grid.

All planners move inside the grid alone. What a path is worth for a goal in some cell depends on that cell's place
relative to the agent, not on the belief: it is tabulated once for a grid, and planning is a product of that table with
the belief.

Legend: B episodes, C cells, P paths looked ahead at, H their length, Y x X the cells around the agent that may matter:
(2 rows - 1) x (2 cols - 1), the agent in their middle.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import torch

from airloc.grid import Grid
from airloc.task.rules import inside, moves_on

Planner = Callable[[torch.Tensor, torch.Tensor, int, Grid], torch.Tensor]
"""From belief (B, C), position (B, 2), moves left and grid to the worth of the eight moves, (B, 8), minus infinity for
those that end outside."""

LIMIT = 2**24
"""Numbers in a table at most: on large grids one looks less far ahead."""

TIE = 1e-4
"""Share of its worth that a move must be better by to be preferred to the one before it: straight ones come first."""


@dataclass(frozen=True)
class Greedy:
    """Goes where most belief is near: each cell counts by its belief and its distance after the move."""

    discount: float = 0.3
    """What a cell is worth after one more move."""

    def __call__(self, belief: torch.Tensor, position: torch.Tensor, left: int, grid: Grid) -> torch.Tensor:
        """Worth of the eight moves, (B, 8)."""
        return _best_by_move(self.worth, 1, belief, position, left, grid)

    def worth(self, away: torch.Tensor, left: int) -> torch.Tensor:
        """What paths of one move are worth for goals so far away from its end, (P, 1, ...) to (P, ...)."""
        away = away[:, 0]
        return (self.discount**away).masked_fill(away > left - 1, 0.0)


@dataclass(frozen=True)
class Lookahead:
    """Looks several moves ahead, and counts on what glimpses will tell.

    Every path of `horizon` moves is judged by what it brings, cell by cell: a cell on the path is found when it is
    reached; a goal beside the path is recognised with the probability `recognise` and found a move later; what
    remains is flown to after the path.
    """

    horizon: int = 3
    """Moves looked ahead, where the grid is small enough."""
    discount: float = 0.8
    """What a find is worth one move later."""
    recognise: float = 0.3
    """Probability that a glimpse tells that the goal is beside it."""
    beyond: float = 0.5
    """Discount per move of what is flown to after the path."""

    def __call__(self, belief: torch.Tensor, position: torch.Tensor, left: int, grid: Grid) -> torch.Tensor:
        """Worth of the eight moves, (B, 8)."""
        return _best_by_move(self.worth, self.horizon, belief, position, left, grid)

    def worth(self, away: torch.Tensor, left: int) -> torch.Tensor:
        """What paths are worth for goals so far away from each of their cells, (P, H, ...) to (P, ...)."""
        time = torch.arange(1, away.shape[1] + 1, device=away.device).view(-1, *[1] * (away.dim() - 2))
        reached = (self.discount**time * (away == 0)).amax(dim=1)
        near = (self.discount ** (time + 1) * ((away == 1) & (time < left))).amax(dim=1)
        last, length = away[:, -1], away.shape[1]
        after = self.discount**length * self.beyond**last * (last + length <= left)
        return torch.maximum(reached, torch.maximum(after, self.recognise * near + (1 - self.recognise) * after))


PLANNERS: dict[str, Planner] = {"greedy": Greedy(), "lookahead": Lookahead()}

Worth = Callable[[torch.Tensor, int], torch.Tensor]


def _best_by_move(
    worth: Worth, horizon: int, belief: torch.Tensor, position: torch.Tensor, left: int, grid: Grid
) -> torch.Tensor:
    """Worth of each first move under the best path that begins with it, (B, 8)."""
    around = (2 * grid.rows - 1) * (2 * grid.cols - 1)
    length = max(1, min(horizon, left))
    while length > 1 and grid.moves**length * around > LIMIT:
        length -= 1
    # More moves than lead anywhere change nothing, so that those cases share a table.
    table = _table(worth, length, min(left, grid.max_distance + horizon + 1), grid, position.device)
    steps = _paths(length, grid.moves, position.device)
    first = torch.arange(0, 8, 8 // grid.moves, device=position.device)  # on a grid of four moves the straight ones
    best = torch.full((len(belief), 8), -torch.inf, device=belief.device)
    cells, which = torch.unique(position, dim=0, return_inverse=True)
    for number, cell in enumerate(cells):
        here = (which == number).nonzero()[:, 0]
        row, col = cell.tolist()
        window = table[:, grid.rows - 1 - row : 2 * grid.rows - 1 - row, grid.cols - 1 - col : 2 * grid.cols - 1 - col]
        value = belief[here] @ window.reshape(len(table), -1).T  # (b, P)
        value = value.masked_fill(~inside(cell + steps, grid).all(dim=1), -torch.inf)
        best[here[:, None], first] = value.view(len(here), grid.moves, -1).amax(dim=2)
    # Several moves often lead to the same cells equally soon: rounding must not decide between them.
    return best * _preference(best.device)


@lru_cache(maxsize=32)
def _table(worth: Worth, length: int, left: int, grid: Grid, device: torch.device) -> torch.Tensor:
    """What every path is worth for a goal at every place around the agent, (P, Y, X)."""
    steps = _paths(length, grid.moves, device)[..., None, None, :]  # (P, H, 1, 1, 2)
    rows, cols = (torch.arange(1 - side, side, device=device) for side in grid.shape)
    down, across = (rows[:, None] - steps[..., 0]).abs(), (cols - steps[..., 1]).abs()  # (P, H, Y, X)
    away = torch.maximum(down, across) if grid.moves == 8 else down + across
    return torch.cat([worth(some, left).float() for some in torch.split(away, 4096)])


@lru_cache
def _preference(device: torch.device) -> torch.Tensor:
    """Nearly one for every move, (8,)."""
    place = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7], device=device)
    return 1 - TIE * place


@lru_cache(maxsize=8)
def _paths(length: int, moves_known: int, device: torch.device) -> torch.Tensor:
    """Every sequence of so many moves, of eight or four, as steps from the start, (P, H, 2), ordered by the first."""
    moves = moves_on(device)[:: 8 // moves_known]
    choices = torch.tensor(list(product(range(len(moves)), repeat=length)), device=device)
    return moves[choices].cumsum(dim=1)
