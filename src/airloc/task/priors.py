"""Distributions of starts and goals, as exact tables of probabilities.

A prior is a matrix P of shape (count, count): `P[s, g]` is the probability that an episode starts in cell s and has
its goal in cell g (row-major indices). It sums to one, and its diagonal is zero. Environments sample from these tables,
and the best path without vision is computed from them. `airloc.task.goal_prior` defines the per-distance prior.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.goal_prior import goal_weights

Prior: TypeAlias = npt.NDArray[np.float64]
Cells: TypeAlias = npt.NDArray[np.int64]

MAX_CELLS = 1024
"""Largest number of cells. A table grows with its square."""


def check_size(grid: Grid) -> None:
    """Raise an error for a grid whose tables do not fit into memory."""
    if grid.count > MAX_CELLS:
        raise AirlocError(f"A {grid} grid has more than {MAX_CELLS} cells", "Use a smaller grid, at most 32x32")


def per_distance(grid: Grid) -> Prior:
    """All distances are equally probable; the start is uniform over the cells that have a goal at that distance."""
    check_size(grid)
    weights = [goal_weights(start, *grid.shape, grid.moves) for start in grid.cells()]
    return np.stack(weights) / grid.max_distance


def pairs_per_distance(grid: Grid) -> Prior:
    """All distances are equally probable; the pair is uniform over all pairs at that distance."""
    return _pairs_at(grid, range(1, grid.max_distance + 1))


def far_pairs(grid: Grid) -> Prior:
    """All far distances are equally probable; the pair is uniform over all pairs at that distance."""
    return _pairs_at(grid, far_distances(grid))


def far_distances(grid: Grid) -> range:
    """Return the distances from half the largest one on: 4 to 8 on 5 x 5 with four moves."""
    return range(max(1, grid.max_distance // 2), grid.max_distance + 1)


def _pairs_at(grid: Grid, wanted: range) -> Prior:
    check_size(grid)
    distances = grid.distances()
    return np.asarray(np.mean([(distances == at) / (distances == at).sum() for at in wanted], axis=0))


def uniform(grid: Grid) -> Prior:
    """All pairs of different cells are equally probable."""
    check_size(grid)
    different = 1.0 - np.eye(grid.count)
    return np.asarray(different / different.sum())


def at_distance(grid: Grid, distance: int) -> Prior:
    """One distance only; the start is uniform over the cells that have a goal at it, then the goal is uniform."""
    if not 1 <= distance <= grid.max_distance:
        raise AirlocError(
            f"No two cells of a {grid} grid have the distance {distance}",
            f"Use a distance from 1 to {grid.max_distance}",
        )
    check_size(grid)
    at = grid.distances() == distance
    ring = at.sum(axis=1, keepdims=True)
    return np.asarray(at / np.maximum(ring, 1) / (ring > 0).sum())


class PairSampler:
    """Samples starts and goals from a prior."""

    def __init__(self, prior: Prior, grid: Grid) -> None:
        self._cumulative = np.cumsum(prior.ravel())
        self._cells = np.array(list(grid.cells()), dtype=np.int64)

    def sample(self, rng: np.random.Generator, count: int) -> tuple[Cells, Cells]:
        """Sample starts and goals, each (count, 2)."""
        level = rng.random(count) * self._cumulative[-1]
        pair = np.searchsorted(self._cumulative, level, side="right")
        start, goal = np.divmod(pair, len(self._cells))
        return self._cells[start], self._cells[goal]


PRIORS: dict[str, Callable[[Grid], Prior]] = {
    "per-distance": per_distance,
    "pairs-per-distance": pairs_per_distance,
    "uniform": uniform,
    "far-pairs": far_pairs,
}
