"""How starts and goals are drawn, as exact tables of probabilities.

A prior is a matrix P of shape (count, count): `P[s, g]` is the probability that an episode starts in cell s and has
its goal in cell g (row-major numbers), summing to one, with nothing on the diagonal. Suites are drawn from these
tables, and the best path that looks at nothing is computed from them.
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
"""Tables over pairs of cells grow with the square of their number."""


def check_size(grid: Grid) -> None:
    """Refuse grids whose pairs of cells would not fit into memory."""
    if grid.count > MAX_CELLS:
        raise AirlocError(
            f"A grid of {grid} has more than {MAX_CELLS} cells", "Ask for a smaller grid, such as 32x32 at most"
        )


def per_distance(grid: Grid) -> Prior:
    """Each distance equally often; the start uniform over cells that have a cell at that distance, then the goal."""
    check_size(grid)
    weights = [goal_weights(start, *grid.shape, grid.moves) for start in grid.cells()]
    return np.stack(weights) / grid.max_distance


def pairs_per_distance(grid: Grid) -> Prior:
    """Each distance equally often; the pair uniform among all pairs at that distance."""
    return _pairs_at(grid, range(1, grid.max_distance + 1))


def far_pairs(grid: Grid) -> Prior:
    """Each far distance equally often; the pair uniform among all pairs at that distance."""
    return _pairs_at(grid, far_distances(grid))


def far_distances(grid: Grid) -> range:
    """The distances of half the largest one and more: 4 to 8 on 5 x 5 with four moves."""
    return range(max(1, grid.max_distance // 2), grid.max_distance + 1)


def _pairs_at(grid: Grid, wanted: range) -> Prior:
    check_size(grid)
    distances = grid.distances()
    return np.asarray(np.mean([(distances == at) / (distances == at).sum() for at in wanted], axis=0))


def uniform(grid: Grid) -> Prior:
    """Start and goal uniform over all cells, and different."""
    check_size(grid)
    different = 1.0 - np.eye(grid.count)
    return np.asarray(different / different.sum())


def at_distance(grid: Grid, distance: int) -> Prior:
    """One distance alone: the start uniform over the cells that have a cell at it, then the goal."""
    if not 1 <= distance <= grid.max_distance:
        raise AirlocError(
            f"No two cells of a grid of {grid} are {distance} moves apart",
            f"Ask for a distance from 1 to {grid.max_distance}",
        )
    check_size(grid)
    at = grid.distances() == distance
    ring = at.sum(axis=1, keepdims=True)
    return np.asarray(at / np.maximum(ring, 1) / (ring > 0).sum())


class PairSampler:
    """Draws starts and goals from a prior, fast."""

    def __init__(self, prior: Prior, grid: Grid) -> None:
        self._cumulative = np.cumsum(prior.ravel())
        self._cells = np.array(list(grid.cells()), dtype=np.int64)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Cells, Cells]:
        """Draw starts and goals, each (count, 2)."""
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
