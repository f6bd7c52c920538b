"""Where to fly next, and a planned sweep: a short path over the most probable cells for a vehicle without a computer.

Legend: a belief is (rows, cols); the length of a path is in moves, the Chebyshev distance between its cells.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from airloc.agents.planner import Planner, move_values
from airloc.agents.team import reach
from airloc.areas.area import Mask
from airloc.grid import MOVES, Cell, distance, distances
from airloc.missions.tours import plan_tours

if TYPE_CHECKING:
    from airloc.areas.layout import Layout

MAX_DETOUR = 8
"""Moves over photographed cells after which a vehicle flies straight to the best cell."""


def plan_sweep(belief: npt.NDArray[np.float64], searchable: Mask, start: Cell, budget: int) -> list[Cell]:
    """Return a path over the most probable cells that the budget reaches.

    Two candidates are computed: a tour of `airloc.missions.tours`, and a greedy path that always flies to the cell with
    the most probability per move, also when the tour leaves moves. The path that covers more probability is returned.

    Args:
        belief: Probability of area, (rows, cols).
        searchable: Cells that the vehicle may fly to, (rows, cols).
        start: First cell of the path.
        budget: Maximum length of the path.

    >>> plan_sweep(np.array([[0.0, 0.1, 0.9]]), np.ones((1, 3), dtype=bool), (0, 0), 2)
    [(0, 0), (0, 1), (0, 2)]
    """
    tour = plan_tours(belief * searchable, [start], [float(budget)])[0]  # no leg has more moves than its length
    plans = _fill(tour, belief, searchable, budget), _fill([start], belief, searchable, budget)
    return max(plans, key=lambda plan: sum(float(belief[cell]) for cell in plan))


def extend_sweep(
    path: list[Cell],
    belief: npt.NDArray[np.float64],
    layout: "Layout",
    *,
    endurance: float,
    speed: float,
    hover: float,
) -> list[Cell]:
    """Append cells to a sweep until the endurance is spent, the flight home included.

    A budget that follows from an endurance assumes diagonal moves; a sweep with straight ones has time left.

    Args:
        path: The sweep; it begins at home.
        belief: Probability of area, (rows, cols).
        layout: The grid on the ground.
        endurance: Flight time in seconds.
        speed: Speed in metres per second.
        hover: Seconds at each photo.
    """
    left, plan = _without(layout.searchable, path), list(path)
    centres = layout.centres(np.moveaxis(np.indices(layout.grid.shape), 0, -1))  # (rows, cols, 2)
    to_home = np.linalg.norm(centres - centres[path[0]], axis=-1)
    metres = sum(math.dist(centres[a], centres[b]) for a, b in pairwise(path))
    while True:
        leg = np.linalg.norm(centres - centres[plan[-1]], axis=-1)
        left &= (metres + leg + to_home) / speed + hover * (len(plan) + 1) <= endurance
        cell = best_cell_in_reach(belief, left, plan[-1], max(layout.grid.shape))
        if cell is None:
            return plan
        metres += float(leg[cell])
        plan.append(cell)
        left[cell] = False


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


def next_cell(
    planner: Planner,
    belief: npt.NDArray[np.float64],
    free: Mask,
    position: Cell,
    moves_left: int,
    others: Sequence[Cell],
) -> Cell | None:
    """Return the cell that a vehicle photographs next, or None if the budget reaches none.

    The planner moves over the part of the belief that this vehicle reaches first, until it comes to a free cell.

    Args:
        planner: The planner.
        belief: Probability of area, (rows, cols).
        free: Cells that the vehicle may be sent to, (rows, cols).
        position: Its cell.
        moves_left: Moves left in its budget.
        others: Cells of the other vehicles, or those they are heading to.
    """
    cells = np.moveaxis(np.indices(belief.shape), 0, -1)
    own = belief * free
    if others:
        away = np.stack([distances(cells, np.array(other)) for other in (position, *others)])
        own = own * reach(away[0], away[1:].min(axis=0))
    at = position
    for made in range(min(MAX_DETOUR, moves_left) if own.any() else 0):
        move = int(move_values(planner, own[None], np.array([at]), moves_left - made).argmax())
        row, col = (np.array(at) + MOVES[move]).tolist()
        at = (row, col)
        if free[at]:
            return at
    return best_cell_in_reach(own, free, position, moves_left)


def path_length(path: Sequence[Cell]) -> int:
    """Return the number of moves along a path."""
    return sum(distance(a, b) for a, b in pairwise(path))


def _fill(path: list[Cell], belief: npt.NDArray[np.float64], searchable: Mask, budget: int) -> list[Cell]:
    """Append cells to a path while the budget reaches one."""
    left, plan = _without(searchable, path), list(path)
    while (cell := best_cell_in_reach(belief, left, plan[-1], budget - path_length(plan))) is not None:
        plan.append(cell)
        left[cell] = False
    return plan


def _without(searchable: Mask, path: list[Cell]) -> Mask:
    left = searchable.copy()
    left[tuple(np.transpose(path))] = False
    return left
