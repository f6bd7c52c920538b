"""A planned sweep: a short path over the most probable cells, for a vehicle without an onboard computer.

Legend: a belief is (rows, cols); the length of a path is in moves, the Chebyshev distance between its cells.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from airloc.areas.area import Mask
from airloc.grid import Cell, distance, distances

__all__ = ["best_cell_in_reach", "path_length", "plan_sweep"]

ROUNDS = 20
"""Maximum number of 2-opt passes over a tour."""


def plan_sweep(belief: npt.NDArray[np.float64], searchable: Mask, start: Cell, budget: int) -> list[Cell]:
    """Return a path over the most probable cells that the budget reaches.

    Two candidates are computed: a 2-opt tour of the most probable cells, and a greedy path that always flies to the
    cell with the most probability per move. The path that covers more probability is returned.

    Args:
        belief: Probability of area, (rows, cols).
        searchable: Cells that the vehicle may fly to, (rows, cols).
        start: First cell of the path.
        budget: Maximum length of the path.

    >>> plan_sweep(np.array([[0.0, 0.1, 0.9]]), np.ones((1, 3), dtype=bool), (0, 0), 2)
    [(0, 0), (0, 1), (0, 2)]
    """
    plans = _tour(belief, searchable, start, budget), _greedy(belief, searchable, start, budget)
    return max(plans, key=lambda plan: sum(float(belief[cell]) for cell in plan))


def best_cell_in_reach(belief: npt.NDArray[np.float64], left: Mask, position: Cell, budget: int) -> Cell | None:
    """Return the cell with the most probability per move, or None if the budget reaches none.

    Args:
        belief: Probability of area, (rows, cols).
        left: Candidate cells, (rows, cols).
        position: Current cell of the vehicle.
        budget: Moves left.
    """
    cells = np.argwhere(left)
    away = distances(cells, np.array(position))
    within = (away <= budget) & (away > 0)
    if not within.any():
        return None
    cells, away = cells[within], away[within]
    value = belief[cells[:, 0], cells[:, 1]] / away
    # Ties go to the straight neighbour, which is nearer in metres than the diagonal one.
    slant = np.abs(cells - np.array(position)).min(axis=1)
    row, col = cells[int(np.lexsort((slant, away, -value))[0])].tolist()
    return row, col


def path_length(path: list[Cell]) -> int:
    """Return the number of moves along a path."""
    return sum(distance(a, b) for a, b in pairwise(path))


def _greedy(belief: npt.NDArray[np.float64], searchable: Mask, start: Cell, budget: int) -> list[Cell]:
    left, plan = searchable.copy(), [start]
    left[start] = False
    while (cell := best_cell_in_reach(belief, left, plan[-1], budget - path_length(plan))) is not None:
        plan.append(cell)
        left[cell] = False
    return plan


def _tour(belief: npt.NDArray[np.float64], searchable: Mask, start: Cell, budget: int) -> list[Cell]:
    """Tour as many of the most probable cells as the budget allows; ties go to the nearer cell."""
    cells = np.argwhere(searchable)
    cells = cells[(cells != start).any(axis=1)]
    away = distances(cells, np.array(start))
    order = np.lexsort((cells[:, 1], cells[:, 0], away, -belief[cells[:, 0], cells[:, 1]]))
    ranked = [(row, col) for row, col in cells[order][:budget].tolist()]
    low, high = 0, len(ranked)
    best = [start]
    while low < high:  # binary search for the largest number of cells whose tour fits
        middle = (low + high + 1) // 2
        tour = _two_opt(_nearest_neighbour(start, ranked[:middle]))
        if path_length(tour) <= budget:
            low, best = middle, tour
        else:
            high = middle - 1
    return best


def _nearest_neighbour(start: Cell, cells: list[Cell]) -> list[Cell]:
    """Build a tour by always flying to the nearest cell left, a straight move before a diagonal one."""
    left = np.array(cells, dtype=np.int64).reshape(-1, 2)
    tour = [start]
    while len(left):
        step = np.abs(left - np.array(tour[-1]))
        nearest = int((step.max(axis=1) * 4 + step.min(axis=1)).argmin())
        row, col = left[nearest].tolist()
        tour.append((row, col))
        left = np.delete(left, nearest, axis=0)
    return tour


def _two_opt(tour: list[Cell]) -> list[Cell]:
    """Reverse segments of a tour while that shortens it; the first cell stays."""
    path = np.array(tour, dtype=np.int64)
    for _ in range(ROUNDS):
        changed = False
        for first in range(1, len(path) - 1):
            # Reversing path[first..last] replaces its two outer legs; the last cell has no leg after it.
            before, ends = path[first - 1], path[first + 1 :]
            after = np.concatenate([path[first + 2 :], ends[-1:]])
            tail = np.arange(len(ends)) == len(ends) - 1
            old = distances(before, path[first]) + np.where(tail, 0, distances(ends, after))
            new = distances(ends, before) + np.where(tail, 0, distances(after, path[first]))
            gain = old - new
            if len(gain) and gain.max() > 0:
                last = first + 1 + int(gain.argmax())
                path[first : last + 1] = path[first : last + 1][::-1].copy()
                changed = True
        if not changed:
            break
    return [(row, col) for row, col in path.tolist()]
