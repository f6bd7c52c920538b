"""Planners: the value of each move, from a belief, a position and the moves left.

The value of a path for a goal in some cell depends on the position of that cell relative to the agent, not on the
belief. It is tabulated, and planning is a product of the tables with the belief. The path itself matters only for cells
beside it; for all other cells its end matters, and many paths share an end. So there are two tables: `_tail_table` for
the ends of paths and all cells, `_near_table` for paths and the cells around the agent. Planning a move takes time
in proportion to the number of cells.

This module needs NumPy alone and is the only implementation of the planners: `BeliefAgent` multiplies its tables with
batches of beliefs on any device, and `airloc export` copies it into the runner of an exported agent.

Legend: P paths, H their length, E their ends, N = (2 H + 3)^2 cells around the agent.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

KING_MOVES = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""The eight moves as in `airloc.grid.MOVES`: N, NE, E, SE, S, SW, W, NW."""
_TIE_MARGIN = 1e-4
"""Relative margin by which a move must be better to be preferred to an earlier one in `_TIE_ORDER`."""
_TIE_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""Rank of each move among moves of equal value: straight moves come before diagonal ones."""


class Distance(NamedTuple):
    """Distances of goals from cells, as integer arrays of any shape."""

    moves: Any
    """In moves of the task."""
    chebyshev: Any
    """In king's moves: side and corner neighbours are one apart."""
    manhattan: Any
    """In rows and columns: side neighbours are one apart, corner neighbours two."""

    @classmethod
    def of(cls, rows: Any, cols: Any, moves: int) -> "Distance":
        """Return the distances of row and column offsets in a task of eight or four moves."""
        chebyshev, manhattan = np.maximum(abs(rows), abs(cols)), abs(rows) + abs(cols)
        return cls(chebyshev if moves == 8 else manhattan, chebyshev, manhattan)


@dataclass(frozen=True)
class Greedy:
    """Looks one move ahead: each cell counts by its belief and its distance after the move."""

    discount: float = 0.3
    """Discount per move."""
    horizon: int = 1
    """Moves looked ahead."""

    def detection_probability(self, distance: Distance) -> Any:
        """Return the probability that a glimpse reveals goals at this distance: zero, none is expected."""
        return np.zeros_like(distance.moves, dtype=np.float32)

    def tail_value(self, last: Any, length: int, moves_left: int) -> Any:
        """Return the value of a path of `length` moves for goals that are `last` moves away from its end."""
        return _powers(self.discount, last) * (last + length <= moves_left)


@dataclass(frozen=True)
class Lookahead:
    """Looks several moves ahead and expects that glimpses reveal goals.

    The value of a path of `horizon` moves is a sum over cells. A goal on the path is found when the agent reaches it.
    Each glimpse that has the goal at a side or at a corner reveals it with some probability, and the agent then flies
    there at once. The agent flies to goals that it has not seen after the path. Both detection probabilities are far
    below the accuracy of the network on all pairs: a goal that is still sought is one of the harder ones. Higher values
    lead the agent past goals whose patch is of another day or shows little.
    """

    horizon: int = 4
    """Moves looked ahead."""
    discount: float = 0.9
    """Discount per move."""
    at_side: float = 0.2
    """Probability that a glimpse reveals a goal at one of its sides."""
    at_corner: float = 0.05
    """Probability that a glimpse reveals a goal at one of its corners, where the two patches share no edge."""
    beyond: float = 0.5
    """Discount per move after the path."""

    def detection_probability(self, distance: Distance) -> Any:
        """Return the probability that a glimpse reveals goals at this distance; at distance zero it is one."""
        side = (distance.manhattan == 1).astype(np.float32)
        corner = ((distance.manhattan == 2) & (distance.chebyshev == 1)).astype(np.float32)
        return (distance.manhattan == 0) + self.at_side * side + self.at_corner * corner

    def tail_value(self, last: Any, length: int, moves_left: int) -> Any:
        """Return the value of a path of `length` moves for unseen goals that are `last` moves away from its end."""
        return self.discount**length * _powers(self.beyond, last) * (last + length <= moves_left)


Planner = Greedy | Lookahead

PLANNERS: dict[str, Planner] = {"greedy": Greedy(), "lookahead": Lookahead()}


def make_planner(name: str, **settings: Any) -> Planner:
    """Create a planner by its name in `PLANNERS`, with other settings than the default ones."""
    return replace(PLANNERS[name], **settings)


class PathTables(NamedTuple):
    """Everything that planning needs besides the belief, for one number of moves left on one grid."""

    paths: Any
    """Cells of every path relative to the agent, (P, H, 2), ordered by the first move."""
    ends: Any
    """Different ends of the paths relative to the agent, (E, 2)."""
    end_of: Any
    """Index of each path's end, (P,)."""
    near: Any
    """Value of every path for a goal in every cell near the agent, in addition to the value of its end, (P, N)."""
    tail: Any
    """Value of a path's end for a goal at every offset from it, (2 (rows + H) - 1, 2 (cols + H) - 1)."""


def path_tables(planner: Planner, moves_left: int, rows: int, cols: int, moves: int = 8) -> PathTables:
    """Return the tables of a planner on a grid of rows x cols cells with eight or four moves."""
    length = max(1, min(planner.horizon, moves_left))
    farthest = max(rows, cols) - 1 if moves == 8 else rows + cols - 2
    # A larger number of moves left than any goal needs changes nothing: these cases share a table.
    near = _near_table(planner, length, min(moves_left, 2 * length + 1), moves)
    tail = _tail_table(planner, length, min(moves_left, farthest + 2 * length), rows, cols, moves)
    return PathTables(_paths(length, moves), *_path_ends(length, moves), near, tail)


def move_values(planner: Planner, belief: Any, position: tuple[int, int], moves_left: int) -> Any:
    """Return the value of each first move under the best path that begins with it, (8,).

    The belief is (rows, cols). Moves that end outside the grid have the value minus infinity.
    """
    (row, col), (rows, cols) = position, belief.shape
    paths, ends, end_of, near, tail = path_tables(planner, moves_left, rows, cols)
    length = paths.shape[1]
    windows = np.lib.stride_tricks.sliding_window_view(tail, (rows, cols))
    window = windows[rows - 1 + length - row - ends[:, 0], cols - 1 + length - col - ends[:, 1]]  # (E, rows, cols)
    around = np.pad(belief, length + 1)[row : row + 2 * length + 3, col : col + 2 * length + 3]
    value = (window.reshape(len(ends), -1) @ belief.ravel())[end_of] + near @ around.ravel()  # (P,)
    cells = paths + np.array([row, col])
    inside = ((cells >= 0) & (cells < (rows, cols))).all(axis=(1, 2))
    best = np.where(inside, value, -np.inf).reshape(len(KING_MOVES), -1).max(axis=1)
    return best * tie_preference()


def path_value(planner: Planner, distances: list[Distance], moves_left: int) -> Any:
    """Return the value of paths for goals at given distances from each of their cells, (P, ...).

    Args:
        planner: The planner.
        distances: One entry for each move; the last one is (P, ...). Paths that begin with the same moves are adjacent,
            and share a row in the entries before they differ.
        moves_left: Moves left at the start of the paths.
    """
    value = np.zeros_like(distances[0].moves[:1], dtype=np.float32)
    unseen = np.ones_like(value)
    for made, distance in enumerate(distances, start=1):
        branches = len(distance.moves) // len(value)
        value, unseen = value.repeat(branches, axis=0), unseen.repeat(branches, axis=0)
        arrival = made + distance.moves
        found = unseen * planner.detection_probability(distance) * (arrival <= moves_left)
        value, unseen = value + found * _powers(planner.discount, arrival), unseen - found
    return value + unseen * planner.tail_value(distances[-1].moves, len(distances), moves_left)


@lru_cache(maxsize=64)
def _near_table(planner: Planner, length: int, moves_left: int, moves: int) -> Any:
    """Return the value of every path for a goal in every cell near the agent, beyond that of its end, (P, N)."""
    near = np.arange(-length - 1, length + 2)
    cells = [_paths(made, moves)[:, -1, :, None, None] for made in range(1, length + 1)]  # (P, 2, 1, 1)
    distances = [Distance.of(near[:, None] - cell[:, 0], near - cell[:, 1], moves) for cell in cells]
    value = path_value(planner, distances, moves_left) - planner.tail_value(distances[-1].moves, length, moves_left)
    return value.astype(np.float32).reshape(len(value), -1)


@lru_cache(maxsize=64)
def _tail_table(planner: Planner, length: int, moves_left: int, rows: int, cols: int, moves: int) -> Any:
    """Return the value of a path's end for a goal at every offset, (2 (rows + H) - 1, 2 (cols + H) - 1)."""
    down, across = (np.arange(1 - side - length, side + length) for side in (rows, cols))
    distance = Distance.of(down[:, None], across, moves)
    return planner.tail_value(distance.moves, length, moves_left).astype(np.float32)


def tie_preference() -> Any:
    """Return factors close to one that order moves of equal value by `_TIE_ORDER`, float32 (8,).

    Several moves often reach the same cells equally soon, and rounding must not decide between them.
    """
    return (1 - np.float32(_TIE_MARGIN) * np.array(_TIE_ORDER, dtype=np.float32)).astype(np.float32)


@lru_cache(maxsize=8)
def _path_ends(length: int, moves: int) -> tuple[Any, Any]:
    """Return the different ends of all paths, (E, 2), and the index of each path's end, (P,)."""
    ends, index = np.unique(_paths(length, moves)[:, -1], axis=0, return_inverse=True)
    return ends, index.ravel()


@lru_cache(maxsize=8)
def _paths(length: int, moves: int) -> Any:
    """Return every sequence of `length` moves as cells relative to the start, (P, H, 2), ordered by first move."""
    steps = np.array(KING_MOVES)[:: 8 // moves]
    choices = np.indices([moves] * length).reshape(length, -1).T
    return steps[choices].cumsum(axis=1)


def _powers(base: float, exponent: Any) -> Any:
    """Return float32 powers of a number. Tables have many entries and few different exponents."""
    return (np.float32(base) ** np.arange(exponent.max() + 1, dtype=np.float32))[exponent]
