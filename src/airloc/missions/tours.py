"""Planned flights of several vehicles over a map of probabilities that photos do not change on the way.

A tour visits the cells that are worth their way (an orienteering problem): cells are inserted where they add the most
probability for the least length, and a large neighbourhood search improves the tours. Lengths are Euclidean, in cells.

Legend: C cells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from airloc.grid import Cell
from airloc.missions.tour_search import improve_tours

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EPSILON = 0.05
"""Length in cells that is added to every detour, so that cells on a straight leg do not count as free."""


def plan_tours(
    mass: Floats, starts: Sequence[Cell], budgets: Sequence[float], *, filmed: bool = False, seed: int = 0
) -> list[list[Cell]]:
    """Return a path for each vehicle over the cells whose probability is worth the way.

    Args:
        mass: Probability of each cell, (rows, cols); cells without any are flown over but not visited.
        starts: First cell of each vehicle.
        budgets: Largest length of each path, in cells.
        filmed: The way is filmed, one cell wide, so that straight legs see more than turns. Otherwise a photo shows
            each cell.
        seed: Random seed of the search for better tours.

    >>> plan_tours(np.array([[0.0, 0.1, 0.9]]), [(0, 0)], [2.0])
    [[(0, 0), (0, 1), (0, 2)]]
    """
    first = [_Tour([start], float(budget)) for start, budget in zip(starts, budgets, strict=True)]
    left = mass.copy()
    for start in starts:
        left[start] = 0
    prizes = left.copy()
    _insert(first, left)
    better = [
        _Tour(path, float(budget))
        for path, budget in zip(
            improve_tours(prizes, [tour.cells for tour in first], budgets, filmed=filmed, seed=seed),
            budgets,
            strict=True,
        )
    ]
    for tour in better:
        tour.fit(prizes)
    _insert(better, _without(prizes, better))
    return [tour.cells for tour in max(better, first, key=lambda tours: _collected(prizes, tours))]


@dataclass
class _Tour:
    """The path of one vehicle."""

    cells: list[Cell]
    """Cells in order."""
    budget: float

    @property
    def length(self) -> float:
        """Length in cells."""
        return sum(math.dist(a, b) for a, b in pairwise(self.cells))

    def fit(self, prizes: Floats) -> None:
        """Leave out the cells with the least probability for the length that they save, until the budget suffices."""
        while self.length > self.budget + 1e-9 and len(self.cells) > 1:
            before, here, after = self.cells[:-1], self.cells[1:], [*self.cells[2:], None]
            rates = [
                float(prizes[cell])
                / (math.dist(a, cell) + (0.0 if b is None else math.dist(cell, b) - math.dist(a, b)) + EPSILON)
                for a, cell, b in zip(before, here, after, strict=True)
            ]
            del self.cells[1 + int(np.argmin(rates))]


def _without(mass: Floats, tours: "list[_Tour]") -> Floats:
    """Return the probability of the cells that no tour visits."""
    left = mass.copy()
    for tour in tours:
        left[tuple(np.transpose(tour.cells))] = 0
    return left


def _collected(mass: Floats, tours: "list[_Tour]") -> float:
    return float(mass.sum() - _without(mass, tours).sum())


def _insert(tours: list[_Tour], left: Floats) -> None:
    """Insert the cells that add the most probability for their length, while the budgets allow any; clear them."""
    cells = np.argwhere(left > 0)
    if not len(cells):
        return
    mass, paths = left[cells[:, 0], cells[:, 1]], [[list(cell) for cell in tour.cells] for tour in tours]
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
        tour_.cells = [(row, col) for row, col in path]


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
        cost[better], whose[better], where[better] = own[better], number, best[better] + 1
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
