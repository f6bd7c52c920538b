"""Planned flights of several vehicles over a map of probabilities that photos do not change on the way.

Each vehicle first flies the leg that collects probability soonest, found by a beam search. The rest of its range goes
to an orienteering tour: cells are inserted where they add the most probability for the least length, and the tour is
shortened by 2-opt. Lengths are Euclidean and in cells.

Legend: R rows, C cells, W states of a beam, F cells of a footprint, M legs of all tours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from airloc.grid import MOVES, Cell

__all__ = ["parallel_tracks", "plan_tours", "soonest_leg"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EPSILON = 0.05
"""Length in cells that is added to every detour, so that cells on a straight leg do not count as free."""
ROUNDS = 3
"""Number of times that the tours are shortened and filled again."""
PASSES = 12
"""Largest number of 2-opt passes over a tour."""


def plan_tours(mass: Floats, starts: Sequence[Cell], budgets: Sequence[float]) -> list[list[Cell]]:
    """Return a path for each vehicle over the cells whose probability is worth the way.

    Args:
        mass: Probability of each cell, (rows, cols); cells without any are flown over but not visited.
        starts: First cell of each vehicle.
        budgets: Largest length of each path, in cells.

    >>> plan_tours(np.array([[0.0, 0.1, 0.9]]), [(0, 0)], [2.0])
    [[(0, 0), (0, 2)]]
    """
    tours = [
        _Tour(np.array([start], dtype=np.int64), float(budget)) for start, budget in zip(starts, budgets, strict=True)
    ]
    left = mass.copy()
    for start in starts:
        left[start] = 0
    for _ in range(ROUNDS):
        _insert(tours, left)
        for tour in tours:
            tour.shorten()
    return [[(row, col) for row, col in tour.cells.tolist()] for tour in tours]


@dataclass
class _Tour:
    """The path of one vehicle."""

    cells: Ints
    """Cells in order, (n, 2)."""
    budget: float
    length: float = field(default=0.0)

    def shorten(self) -> None:
        """Reverse parts of the path while that shortens it; the first cell stays."""
        path = self.cells.astype(np.float64)
        for _ in range(PASSES):
            changed = False
            for first in range(1, len(path) - 1):
                before, here, ends = path[first - 1], path[first], path[first + 1 :]
                after = np.concatenate([path[first + 2 :], ends[-1:]])
                onward = np.r_[np.ones(len(ends) - 1), 0.0]  # the last cell has no leg after it
                old = np.linalg.norm(before - here) + onward * np.linalg.norm(ends - after, axis=1)
                gain = old - np.linalg.norm(ends - before, axis=1) - onward * np.linalg.norm(after - here, axis=1)
                best = int(gain.argmax())
                if gain[best] > 1e-9:
                    path[first : first + 2 + best] = path[first : first + 2 + best][::-1].copy()
                    changed = True
            if not changed:
                break
        self.cells = path.astype(np.int64)
        self.length = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def _insert(tours: list[_Tour], left: Floats) -> None:
    """Insert the cells that add the most probability for their length, while the budgets allow any; clear them."""
    cells = np.argwhere(left > 0)
    if not len(cells):
        return
    mass, paths = left[cells[:, 0], cells[:, 1]], [tour.cells.tolist() for tour in tours]
    spare = np.array([tour.budget - tour.length for tour in tours])
    budgets = np.array([max(tour.budget, 1e-9) for tour in tours])
    cost, whose, where = _cheapest(cells, paths, spare)
    open_ = np.ones(len(cells), dtype=np.bool_)
    while True:
        fits = open_ & (cost <= spare[whose] + 1e-9)
        if not fits.any():
            cost, whose, where = _cheapest(cells, paths, spare)
            fits = open_ & (cost <= spare[whose] + 1e-9)
            if not fits.any():
                break
        share = np.sqrt(spare.clip(0) / budgets)[whose]  # vehicles with range left come first
        number = int(np.where(fits, mass / (cost + EPSILON) * share, -1.0).argmax())
        tour, at = int(whose[number]), int(where[number])
        paths[tour].insert(at, cells[number].tolist())
        spare[tour] -= cost[number]
        open_[number] = False
        left[tuple(cells[number])] = 0
        moved = whose == tour
        split = open_ & moved & (where == at)
        where = where + (moved & (where > at))
        _compare(cells, paths[tour], tour, (at, at + 1), float(spare[tour]), cost, whose, where)
        if split.any():
            cost[split], whose[split], where[split] = _cheapest(cells[split], paths, spare)
    for tour_, path in zip(tours, paths, strict=True):
        tour_.cells = np.array(path, dtype=np.int64)


def _cheapest(cells: Ints, paths: list[list[list[int]]], spare: Floats) -> tuple[Floats, Ints, Ints]:
    """Return the cheapest detour to each cell: its length, the index of the tour and the place in it, each (C,)."""
    cost = np.full(len(cells), np.inf)
    whose, where = np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells), dtype=np.int64)
    for number, path in enumerate(paths):
        if spare[number] <= 0:
            continue
        nodes = np.array(path, dtype=np.float64)
        to = np.linalg.norm(cells[:, None] - nodes, axis=-1)  # (C, n)
        legs = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
        detour = np.concatenate([to[:, :-1] + to[:, 1:] - legs, to[:, -1:]], axis=1)
        best = detour.argmin(axis=1)
        own = detour[np.arange(len(cells)), best]
        better = (own < cost) & (own <= spare[number] + 1e-9)
        cost, whose, where = (
            np.where(better, own, cost),
            np.where(better, number, whose),
            np.where(better, best + 1, where),
        )
    return cost, whose, where


def _compare(
    cells: Ints,
    path: list[list[int]],
    tour: int,
    places: Sequence[int],
    spare: float,
    cost: Floats,
    whose: Ints,
    where: Ints,
) -> None:
    """Update the cheapest detours, in place, by those at new legs of a tour with some range to spare."""
    for place in places:
        before = np.array(path[place - 1], dtype=np.float64)
        detour = np.linalg.norm(cells - before, axis=1)
        if place < len(path):
            after = np.array(path[place], dtype=np.float64)
            detour += np.linalg.norm(cells - after, axis=1) - np.linalg.norm(after - before)
        better = (detour < cost) & (detour <= spare)
        cost[better], whose[better], where[better] = detour[better], tour, place


def parallel_tracks(mass: Floats, starts: Sequence[Cell]) -> list[list[Cell]]:
    """Return paths that cover all cells with probability by parallel tracks, of about the same length.

    The tracks follow the rows, back and forth, from the first to the last cell with probability.

    >>> parallel_tracks(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), [(0, 0)])
    [[(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]]
    """
    cells = list[Cell]()
    for number, row in enumerate(np.flatnonzero((mass > 0).any(axis=1)).tolist()):
        cols = np.flatnonzero(mass[row] > 0)
        track = range(int(cols[0]), int(cols[-1]) + 1)
        cells += [(row, col) for col in (track if number % 2 == 0 else reversed(track))]
    parts = np.array_split(np.arange(len(cells)), len(starts))
    return [[start, *(cells[index] for index in part)] for start, part in zip(starts, parts, strict=True)]


def soonest_leg(
    mass: Floats, start: Cell, steps: int, *, radius: float, discount: float, width: int = 64
) -> list[Cell]:
    """Return the path that collects the most probability, discounted by its length, under a moving footprint.

    Args:
        mass: Probability of each cell, (rows, cols).
        start: First cell.
        steps: Number of moves.
        radius: Radius of the footprint in cells.
        discount: Factor for each cell of length.
        width: Number of paths kept by the beam search.
    """
    rows, cols = mass.shape
    reach = int(np.ceil(radius))
    around = np.moveaxis(np.indices((2 * reach + 1, 2 * reach + 1)) - reach, 0, -1).reshape(-1, 2)
    around = around[np.hypot(*around.T) <= radius]  # (F, 2)
    padded = np.pad(mass, reach).ravel()
    offsets = around[:, 0] * (cols + 2 * reach) + around[:, 1]
    lengths = np.hypot(*MOVES.T)
    position = np.array([start])
    unseen = np.ones((1, len(padded)), dtype=np.bool_)
    unseen[0, _index(position, reach, cols)[:, None] + offsets] = False
    value, length, parents = np.zeros(1), np.zeros(1), list[tuple[Ints, Ints]]()
    for _ in range(steps):
        target = position[:, None] + MOVES  # (W, 8, 2)
        inside = ((target >= 0) & (target < (rows, cols))).all(axis=-1)
        state, move = np.nonzero(inside)
        seen = _index(target[state, move], reach, cols)[:, None] + offsets
        gain = (padded[seen] * unseen[state[:, None], seen]).sum(axis=1)
        far = length[state] + lengths[move]
        total = value[state] + gain * discount**far
        order = np.argsort(-total, kind="stable")
        _, first = np.unique(_index(target[state, move], reach, cols)[order], return_index=True)
        kept = order[np.sort(first)][:width]  # the best path to each cell
        position, value, length = target[state[kept], move[kept]], total[kept], far[kept]
        unseen = unseen[state[kept]]
        unseen[np.arange(len(kept))[:, None], seen[kept]] = False
        parents.append((state[kept], position))
    best, path = int(value.argmax()), list[Cell]()
    for state, position in reversed(parents):
        row, col = position[best].tolist()
        path.append((row, col))
        best = int(state[best])
    return [start, *reversed(path)]


def _index(cells: Ints, reach: int, cols: int) -> Ints:
    """Return the indices of cells (..., 2) in the padded map, (...)."""
    index: Ints = (cells[..., 0] + reach) * (cols + 2 * reach) + cells[..., 1] + reach
    return index
