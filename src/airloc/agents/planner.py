"""The planner: the value of each move, from a belief, a position and the moves left.

A beam search compares paths. It extends the best paths found so far by one move at a time, and keeps the best of the
longer ones. The value of a path is a sum over cells, weighted by the belief:

- A goal on the path is found when the agent reaches it. Each glimpse that has the goal at a side or at a corner reveals
  it with some probability, and the agent then flies there at once. Both count by the time of arrival.
- Goals that the path does not reveal count by their distance from its end.

Both detection probabilities are below the accuracy of the network on all pairs: a goal that is still sought is one of
the harder ones. Higher values lead the agent past goals whose patch is of another day or shows little.

This module needs NumPy alone, and `airloc export` copies it into the runner of an exported agent.

Legend: B beliefs, C cells, W paths that are kept, R radii.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

KING_MOVES = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""The eight moves as in `airloc.grid.MOVES`: N, NE, E, SE, S, SW, W, NW."""
_TIE_MARGIN = 1e-4
"""Relative margin by which a move must be better to be preferred to an earlier one in `_TIE_ORDER`."""
_TIE_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""Rank of each move among moves of equal value: straight moves come before diagonal ones."""
_BORDER = 2
"""Cells around the reach of the paths. Beyond them the cells of a large grid count by their distance alone."""
_LARGEST_ARRAY = 4_000_000
"""Numbers in the largest array of a search, which limits the beliefs that are planned together."""


@dataclass(frozen=True)
class Planner:
    """Settings of the search."""

    horizon: int = 8
    """Moves looked ahead."""
    width: int = 64
    """Paths that are kept."""
    discount: float = 0.95
    """Discount per move."""
    at_side: float = 0.35
    """Probability that a glimpse reveals a goal at one of its sides."""
    at_corner: float = 0.1
    """Probability that a glimpse reveals a goal at one of its corners, where the two patches share no edge."""
    beyond: float = 0.5
    """Discount per move after the path."""


PLANNERS: dict[str, Planner] = {
    "greedy": Planner(horizon=1, discount=1.0, at_side=0.0, at_corner=0.0, beyond=0.3),
    "lookahead": Planner(),
}
"""Planners by name. `greedy` looks one move ahead: each cell counts by its belief and its distance after the move."""


def move_values(planner: Planner, belief: Any, position: Any, moves_left: int, moves: int = 8) -> Any:
    """Return the value of each first move under the best path that begins with it, (B, 8).

    The value is minus infinity for moves that end outside the grid, that the task does not have, or none of whose paths
    is among the best.

    Args:
        planner: Settings of the search.
        belief: Probability of every cell, (B, rows, cols).
        position: Row and column of the agent, (B, 2).
        moves_left: Moves left in the budget.
        moves: Moves of the task, 8 or 4.
    """
    belief, position = np.asarray(belief, dtype=np.float32), np.asarray(position)
    if max(belief.shape[1:]) > 2 * (planner.horizon + _BORDER) + 1:
        pairs = zip(belief, position, strict=True)
        values = [_search_around(planner, one, at, moves_left, moves) for one, at in pairs]
    else:
        size = max(1, _LARGEST_ARRAY // (planner.width * belief[0].size))
        parts = [slice(start, start + size) for start in range(0, len(belief), size)]
        values = [_search(planner, belief[part], position[part], moves_left, moves) for part in parts]
    return np.concatenate(values) * tie_preference()


def tie_preference() -> Any:
    """Return factors close to one that order moves of equal value by `_TIE_ORDER`, float32 (8,).

    Several moves often reach the same cells equally soon, and rounding must not decide between them.
    """
    return (1 - np.float32(_TIE_MARGIN) * np.array(_TIE_ORDER, dtype=np.float32)).astype(np.float32)


class _Paths(NamedTuple):
    """Paths of the same length from the positions of all beliefs."""

    end: Any
    """Index of the cell at the end, (B, W)."""
    first: Any
    """Number of the first move, (B, W)."""
    revealed: Any
    """Value of the goals that the path reveals, (B, W)."""
    left: Any
    """What the path leaves of the belief, (B, W, C)."""


def _search(planner: Planner, belief: Any, position: Any, moves_left: int, moves: int, far: Any = None) -> Any:
    """Return the value of each first move, (B, 8).

    Args:
        planner: Settings of the search.
        belief: Probability of every cell, (B, rows, cols).
        position: Row and column of the agent, (B, 2).
        moves_left: Moves left in the budget.
        moves: Moves of the task.
        far: Value that goals outside these cells add to a path that ends in each cell, by the length of the path,
            (length, C). Default: there are none.
    """
    count, rows, cols = belief.shape
    to, allowed = _neighbours(rows, cols, moves)
    start = (position[:, 0] * cols + position[:, 1])[:, None]
    zero = np.zeros(start.shape, dtype=np.float32)
    paths = _Paths(start, start, zero, belief.reshape(count, 1, -1))  # they have no first move yet
    length = max(1, min(planner.horizon, moves_left))
    for made in range(1, length + 1):
        tables = _goal_tables(planner, rows, cols, min(moves_left - made, rows + cols), moves)
        discount = np.float32(planner.discount**made)
        # Extend every path by each move, (B, 8 W).
        at_cell = paths.left @ tables.value  # one product a belief: threads of large ones would disturb PyTorch's
        at_cell = at_cell if far is None else at_cell + far[made - 1]
        end = to[paths.end]  # (B, W, 8)
        value = paths.revealed[..., None] + discount * np.take_along_axis(at_cell, end, axis=2)
        value = np.where(allowed[paths.end], value, np.float32(-np.inf)).reshape(count, -1)
        first = np.tile(np.arange(8), (count, 1)) if made == 1 else paths.first.repeat(8, axis=1)
        if made < length:
            paths = _keep_best(planner.width, paths, value, end.reshape(count, -1), first, tables, discount)
    return np.stack([np.where(first == move, value, -np.inf).max(axis=1) for move in range(8)], axis=1)


def _keep_best(
    width: int, paths: _Paths, value: Any, end: Any, first: Any, tables: "_GoalTables", discount: Any
) -> _Paths:
    """Return the best paths of those that extend `paths`, given their values, ends and first moves, (B, 8 W) each."""
    if value.shape[1] > width:
        preferred = value * tie_preference()[first] * np.tile(tie_preference(), value.shape[1] // 8)
        best = np.argpartition(-preferred, width - 1, axis=1)[:, :width]
        value, end, first = (np.take_along_axis(part, best, axis=1) for part in (value, end, first))
        parent = best // 8
    else:
        parent = np.arange(value.shape[1])[None].repeat(len(value), axis=0) // 8
    left = paths.left[np.arange(len(parent))[:, None], parent]
    found = discount * np.einsum("bwc,bwc->bw", left, tables.found[end])
    revealed = np.take_along_axis(paths.revealed, parent, axis=1) + found
    revealed[np.isneginf(value)] = -np.inf  # the path has left the grid
    return _Paths(end, first, revealed, left * tables.hidden[end])


def _search_around(planner: Planner, belief: Any, position: Any, moves_left: int, moves: int) -> Any:
    """Return the value of each first move in a large grid, (1, 8): paths are searched in the cells around the agent.

    Goals farther away count by their distance from the ends of paths, in king's moves.
    """
    reach = planner.horizon + _BORDER
    low = np.maximum(position - reach, 0)
    high = np.minimum(position + reach + 1, belief.shape)
    around = belief[low[0] : high[0], low[1] : high[1]]
    outside = belief.astype(np.float64)
    outside[low[0] : high[0], low[1] : high[1]] = 0
    # Sums over squares around every cell, from sums over all rows above and columns before it.
    total = np.pad(outside.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    cells = low[:, None] + np.indices(around.shape).reshape(2, -1)
    radius = np.arange(max(belief.shape))[:, None]
    (top, left), (bottom, right) = (
        [np.clip(part + edge, 0, side) for part, side in zip(cells, belief.shape, strict=True)]
        for edge in (-radius, radius + 1)
    )
    squares = total[bottom, right] - total[top, right] - total[bottom, left] + total[top, left]  # (radii, C)
    rings = np.diff(squares, axis=0, prepend=0)
    made = np.arange(1, planner.horizon + 1)[:, None]
    far = ((radius[:, 0] <= moves_left - made) * planner.beyond ** radius[:, 0].astype(np.float64)) @ rings
    return _search(planner, around[None], (position - low)[None], moves_left, moves, far.astype(np.float32))


class _GoalTables(NamedTuple):
    """Tables of the end of a path and the cell of the goal, by the moves that are left there; times count from then."""

    found: Any
    """Value of the goals that the last glimpse reveals, (C ends, C goals)."""
    hidden: Any
    """Share of the goals that the last glimpse does not reveal, (C ends, C goals)."""
    value: Any
    """Value of all goals, revealed or not, (C goals, C ends)."""


@lru_cache(maxsize=32)
def _goal_tables(planner: Planner, rows: int, cols: int, moves_left: int, moves: int) -> _GoalTables:
    cells = np.indices((rows, cols)).reshape(2, -1).T
    away = np.abs(cells[:, None] - cells)
    king, straight = away.max(axis=2), away.sum(axis=2)
    distance = king if moves == 8 else straight
    in_time = distance <= moves_left
    revealed = (king == 0) + planner.at_side * (straight == 1) + planner.at_corner * ((king == 1) & (straight == 2))
    revealed = revealed * in_time
    found = revealed * planner.discount**distance
    value = found + (1 - revealed) * in_time * planner.beyond**distance
    return _GoalTables(*(np.ascontiguousarray(table, dtype=np.float32) for table in (found, 1 - revealed, value.T)))


@lru_cache(maxsize=8)
def _neighbours(rows: int, cols: int, moves: int) -> tuple[Any, Any]:
    """Return the index of the cell after each move from each cell, (C, 8), and which moves are allowed, bool (C, 8)."""
    to = np.indices((rows, cols)).reshape(2, -1).T[:, None] + np.array(KING_MOVES)
    allowed = ((to >= 0) & (to < (rows, cols))).all(axis=2) & (np.arange(8) % (8 // moves) == 0)
    return np.where(allowed, to[..., 0] * cols + to[..., 1], 0), allowed
