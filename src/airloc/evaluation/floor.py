"""The blind optimum: what flying the best path without looking would score on the same suite."""

import numpy as np
import numpy.typing as npt

from airloc.agents import blind
from airloc.grid import Grid
from airloc.task import priors
from airloc.task.suites import Suite

FLOWN_FOR: dict[str, blind.PriorOf] = {"far-pairs": priors.far_pairs}
"""Suites, by name, whose blind flight is the best for their own prior; all others have the per-distance one."""


def blind_optimum(suite: Suite) -> float:
    """The success of blind flight, the mean over its optimal paths.

    In expectation over the draw for a suite that was generated from a prior, on exactly its episodes otherwise.
    """
    if suite.prior is None:
        starts = sorted({(row, col) for row, col in suite.start.tolist()})
        found = blind.success_table(suite.grid, suite.budget, starts, _prior_of(suite))
        episodes = zip(suite.start.tolist(), suite.goal.tolist(), strict=True)
        hits = np.array([found[tuple(start)][tuple(goal)] for start, goal in episodes])
        return float(np.average(hits, weights=suite.weight))
    return float((suite.prior * _found(suite.grid, suite.budget, _prior_of(suite))).sum())


def blind_optimum_by_distance(grid: Grid, budget: int, prior: blind.PriorOf) -> dict[int, float]:
    """The success of the path that is best for a prior, in expectation over the prior, for each of its distances."""
    table, found, distances = prior(grid), _found(grid, budget, prior), grid.distances()
    strata = {int(distance): table * (distances == distance) for distance in np.unique(distances[table > 0])}
    return {distance: float((part * found).sum() / part.sum()) for distance, part in strata.items()}


def blind_optimum_is_exact(suite: Suite) -> bool:
    """Whether the blind optimum is proven; otherwise it is a lower bound, or a mean over some of the optimal paths.

    All optimal paths are worth the same under the prior they are optimal for; for any other suite the mean over them
    is proven only when all of them are known.
    """
    prior = _prior_of(suite)
    if suite.prior is None:
        starts = sorted({(row, col) for row, col in suite.start.tolist()})
        return blind.is_complete(suite.grid, suite.budget, starts, prior)
    proven = blind.is_exact if np.array_equal(suite.prior, prior(suite.grid)) else blind.is_complete
    return proven(suite.grid, suite.budget, list(suite.grid.cells()), prior)


def _prior_of(suite: Suite) -> blind.PriorOf:
    return FLOWN_FOR.get(suite.name, priors.per_distance)


def _found(grid: Grid, budget: int, prior: blind.PriorOf) -> npt.NDArray[np.float64]:
    """How often the best paths find a goal: by start and goal, (count, count)."""
    starts = list(grid.cells())
    found = blind.success_table(grid, budget, starts, prior)
    return np.stack([found[start].ravel() for start in starts])
