"""The paper's five metrics, each the ratio of two sums over episodes.

| metric            | over                | numerator                         | denominator        |
|-------------------|---------------------|-----------------------------------|--------------------|
| success           | all episodes        | found                             | 1                  |
| steps             | all episodes        | moves (the budget where not found)| 1                  |
| step_ratio        | successes           | moves / minimum                   | 1                  |
| step_ratio_table  | successes           | 1                                 | minimum / moves    |
| residual_distance | failures            | last cell to goal                 | 1                  |

Where episodes end by declaration, found means declared where the goal is, and there are two more over all episodes:
`false_alarms` (declared elsewhere) and `missed` (never declared). The three sum to one.

`step_ratio` is what the paper's text defines, `step_ratio_table` what its tables print. Runtime, the fifth, is a
clock's and not a sum over episodes. As sums, all metrics take weights, strata and the bootstrap in the same way.

Legend: E episodes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.agents import blind
from airloc.grid import Grid
from airloc.rollout import RolloutLog
from airloc.task import priors
from airloc.task.suites import Suite

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as what every episode adds to two sums."""

    numerator: Floats
    """(E,)."""
    denominator: Floats
    """(E,)."""

    def value(self) -> float | None:
        """The metric over all episodes; None where no episode counts."""
        return ratio(float(self.numerator.sum()), float(self.denominator.sum()))

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Metric":
        """The metric over some of the episodes; the others add nothing."""
        return Metric(self.numerator * chosen, self.denominator * chosen)


def metrics(log: RolloutLog) -> dict[str, Metric]:
    """Return every metric of a rollout."""
    suite, steps = log.suite, log.steps
    weight = suite.weight / suite.weight.sum() * len(suite)
    minimum = suite.distance
    won, lost = weight * log.found, weight * ~log.found
    residual = suite.grid.apart(log.path[:, -1], suite.goal)
    scored = {
        "success": Metric(won, weight),
        "steps": Metric(weight * steps, weight),
        "step_ratio": Metric(won * steps / minimum, won),
        "step_ratio_table": Metric(won, won * minimum / np.maximum(steps, 1)),  # no move where the start is declared
        "residual_distance": Metric(lost * residual, lost),
    }
    if log.declared is not None:
        scored["false_alarms"] = Metric(weight * (log.declared & ~log.found), weight)
        scored["missed"] = Metric(weight * ~log.declared, weight)
    return scored


def ratio(numerator: float, denominator: float) -> float | None:
    """Divide, or give None where there is nothing to divide by."""
    return numerator / denominator if denominator else None


# ---------- How well marked buildings match the true ones, from counts of pixels that can be added up exactly.
# ~


class Overlap(NamedTuple):
    """Pixels of the building class.

    >>> pooled([Overlap(1, 1, 0), Overlap(1, 0, 1)])
    Overlap(tp=2, fp=1, fn=1)
    """

    tp: int
    """Buildings that were marked."""
    fp: int
    """Marked, and no building."""
    fn: int
    """Buildings that were not marked."""

    @property
    def iou(self) -> float:
        """Intersection over union."""
        return self.tp / max(self.tp + self.fp + self.fn, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.tp / max(2 * self.tp + self.fp + self.fn, 1)


def pooled(counts: Iterable[Overlap]) -> Overlap:
    """All counts as one."""
    return Overlap(*(sum(column) for column in zip(*counts, strict=True)))


# ---------- The blind optimum: what flying the best path without looking would score on the same suite.
# ~

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
