"""A planned sweep: the most probable cells in a short order, for a vehicle that cannot think on board."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from airloc.areas.area import Mask
from airloc.grid import Cell, distance, distances

ROUNDS = 20
"""Passes over the tour that try to shorten it."""


def plan_sweep(belief: npt.NDArray[np.float64], searchable: Mask, start: Cell, budget: int) -> list[Cell]:
    """Give the order in which to fly over the most probable cells, as many as the budget of moves allows.

    Two plans are made: a short tour of the very most probable cells, and going again and again where there is most
    probability for the way. The one that covers more probability is taken.

    Args:
        belief: The probability of every cell, (rows, cols).
        searchable: The cells that may be flown to, (rows, cols).
        start: Where the flight begins; the first cell of the sweep.
        budget: Moves that may be flown.

    >>> plan_sweep(np.array([[0.0, 0.1, 0.9]]), np.ones((1, 3), dtype=bool), (0, 0), 2)
    [(0, 0), (0, 1), (0, 2)]
    """
    plans = _tour(belief, searchable, start, budget), _greedy(belief, searchable, start, budget)
    return max(plans, key=lambda plan: sum(float(belief[cell]) for cell in plan))


def most_for_the_way(belief: npt.NDArray[np.float64], left: Mask, here: Cell, budget: int) -> Cell | None:
    """Of the cells that are left, the one with the most probability for its distance; None where none is in reach."""
    cells = np.argwhere(left)
    away = distances(cells, np.array(here))
    within = (away <= budget) & (away > 0)
    if not within.any():
        return None
    cells, away = cells[within], away[within]
    value = belief[cells[:, 0], cells[:, 1]] / away
    # Of equal ones the straight neighbour comes first: it is nearer in metres.
    slant = np.abs(cells - np.array(here)).min(axis=1)
    row, col = cells[int(np.lexsort((slant, away, -value))[0])].tolist()
    return row, col


def _greedy(belief: npt.NDArray[np.float64], searchable: Mask, start: Cell, budget: int) -> list[Cell]:
    left, plan = searchable.copy(), [start]
    left[start] = False
    while (cell := most_for_the_way(belief, left, plan[-1], budget - length(plan))) is not None:
        plan.append(cell)
        left[cell] = False
    return plan


def _tour(belief: npt.NDArray[np.float64], searchable: Mask, start: Cell, budget: int) -> list[Cell]:
    """The most probable cells in a short order, the near ones first among equals."""
    cells = np.argwhere(searchable)
    cells = cells[(cells != start).any(axis=1)]
    away = distances(cells, np.array(start))
    order = np.lexsort((cells[:, 1], cells[:, 0], away, -belief[cells[:, 0], cells[:, 1]]))
    ranked = [(row, col) for row, col in cells[order][:budget].tolist()]
    low, high = 0, len(ranked)
    best = [start]
    while low < high:  # the largest number of cells whose tour fits
        middle = (low + high + 1) // 2
        tour = _shortened(_nearest_first(start, ranked[:middle]))
        if length(tour) <= budget:
            low, best = middle, tour
        else:
            high = middle - 1
    return best


def length(tour: list[Cell]) -> int:
    """Moves along a tour."""
    return sum(distance(a, b) for a, b in pairwise(tour))


def _nearest_first(start: Cell, cells: list[Cell]) -> list[Cell]:
    """Go to the nearest cell that is left, again and again; a straight move before a diagonal one."""
    left = np.array(cells, dtype=np.int64).reshape(-1, 2)
    tour = [start]
    while len(left):
        step = np.abs(left - np.array(tour[-1]))
        nearest = int((step.max(axis=1) * 4 + step.min(axis=1)).argmin())
        row, col = left[nearest].tolist()
        tour.append((row, col))
        left = np.delete(left, nearest, axis=0)
    return tour


def _shortened(tour: list[Cell]) -> list[Cell]:
    """Turn parts of the tour around while that makes it shorter; its first cell stays."""
    path = np.array(tour, dtype=np.int64)
    for _ in range(ROUNDS):
        changed = False
        for first in range(1, len(path) - 1):
            # Turning path[first..last] around replaces its two outer legs; the last cell has no leg after it.
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
