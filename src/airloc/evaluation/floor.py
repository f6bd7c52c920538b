"""The blind optimum: what flying the best path without looking would score on the same suite."""

import numpy as np

from airloc.agents import blind
from airloc.task.priors import per_distance
from airloc.task.suites import Suite


def blind_optimum(suite: Suite) -> float:
    """The success of blind flight, the mean over its optimal paths.

    In expectation over the draw for a suite that was generated from a prior, on exactly its episodes otherwise.
    """
    if suite.prior is None:
        starts = sorted({(row, col) for row, col in suite.start.tolist()})
        found = blind.success_table(suite.grid, suite.budget, starts)
        episodes = zip(suite.start.tolist(), suite.goal.tolist(), strict=True)
        hits = np.array([found[tuple(start)][tuple(goal)] for start, goal in episodes])
        return float(np.average(hits, weights=suite.weight))
    starts = list(suite.grid.cells())
    found = blind.success_table(suite.grid, suite.budget, starts)
    table = np.stack([found[start].ravel() for start in starts])
    return float((suite.prior * table).sum())


def blind_optimum_is_exact(suite: Suite) -> bool:
    """Whether the blind optimum is proven; otherwise it is a lower bound, or a mean over some of the optimal paths.

    All optimal paths are worth the same under the prior they are optimal for; for any other suite the mean over them
    is proven only when all of them are known.
    """
    if suite.prior is None:
        return blind.is_complete(suite.grid, suite.budget, sorted({(row, col) for row, col in suite.start.tolist()}))
    proven = blind.is_exact if np.array_equal(suite.prior, per_distance(suite.grid)) else blind.is_complete
    return proven(suite.grid, suite.budget, list(suite.grid.cells()))
