"""The metrics of the paper, each the ratio of two sums over episodes, and their 95 % intervals.

| metric            | over                | numerator                         | denominator        |
|-------------------|---------------------|-----------------------------------|--------------------|
| success           | all episodes        | found                             | 1                  |
| steps             | all episodes        | moves (the budget where not found)| 1                  |
| step_ratio        | successes           | moves / minimum                   | 1                  |
| step_ratio_table  | successes           | 1                                 | minimum / moves    |
| residual_distance | failures            | last cell to goal                 | 1                  |

If episodes end by declaration, found means declared correctly, and there are two more metrics over all episodes:
`false_alarms` (declared wrongly) and `missed` (not declared). The three sum to one.

`step_ratio` is defined in the text of the paper, `step_ratio_table` is printed in its tables. The fifth metric of the
paper, the runtime, is measured and not a ratio of sums. Ratios of sums take weights, strata and the bootstrap alike.

The module also has the overlap of segmentation masks, and the blind optimum: the success of the best path that does not
use any observation, on the same suite.

Intervals are those of a cluster bootstrap. Episodes of one area are not independent, nor are areas cut from one tile:
the bootstrap resamples tiles. Paired comparisons use the same episodes and the same resamples.

Legend: E episodes, C clusters, R resamples, K quantities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.agents import blind
from airloc.areas.area import SearchArea
from airloc.evaluation.variants import blind_team_success
from airloc.grid import Grid
from airloc.rollout import RolloutLog
from airloc.seeding import stream
from airloc.task import priors
from airloc.task.suites import Suite

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """The contributions of every episode to the two sums of a metric."""

    numerator: Floats
    """(E,)."""
    denominator: Floats
    """(E,)."""

    def value(self) -> float | None:
        """Return the metric over all episodes, or None if it is undefined."""
        sums = np.ascontiguousarray(self.terms().T).sum(axis=1)  # contiguous: sums in pairs, with less rounding
        value = float(self.of_sums(sums[None])[0])
        return None if np.isnan(value) else value

    def terms(self) -> Floats:
        """Return what every episode adds to the sums, (E, K).

        A metric that is not a ratio overrides this method and `of_sums`.
        """
        return np.stack([self.numerator, self.denominator], axis=1)

    def of_sums(self, sums: Floats) -> Floats:
        """Return the metric for each row of sums, (R, K) to (R,); NaN if it is undefined."""
        numerator, denominator = sums.T
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(denominator > 0, numerator / denominator, np.nan))

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Metric":
        """Return the metric over some of the episodes."""
        return Metric(self.numerator * chosen, self.denominator * chosen)


def metrics(log: RolloutLog) -> dict[str, Metric]:
    """Return every metric of a rollout."""
    suite, steps = log.suite, log.steps
    weight = suite.weight / suite.weight.sum() * len(suite)
    minimum = suite.distance
    won, lost = weight * log.found, weight * ~log.found
    residual = suite.grid.moves_between(log.path[:, -1], suite.goal if log.last_goal is None else log.last_goal)
    scored = {
        "success": Metric(won, weight),
        "steps": Metric(weight * steps, weight),
        "step_ratio": Metric(won * steps / minimum, won),
        "step_ratio_table": Metric(won, won * minimum / np.maximum(steps, 1)),  # zero moves if the start is declared
        "residual_distance": Metric(lost * residual, lost),
    }
    if log.declared is not None:
        scored["false_alarms"] = Metric(weight * (log.declared & ~log.found), weight)
        scored["missed"] = Metric(weight * ~log.declared, weight)
    return scored


class Overlap(NamedTuple):
    """Pixel counts of the building class.

    >>> pooled([Overlap(1, 1, 0), Overlap(1, 0, 1)])
    Overlap(tp=2, fp=1, fn=1)
    """

    tp: int
    """True positives."""
    fp: int
    """False positives."""
    fn: int
    """False negatives."""

    @property
    def iou(self) -> float:
        """Intersection over union."""
        return self.tp / max(self.tp + self.fp + self.fn, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.tp / max(2 * self.tp + self.fp + self.fn, 1)


def pooled(counts: Iterable[Overlap]) -> Overlap:
    """Return the sum of counts."""
    return Overlap(*(sum(column) for column in zip(*counts, strict=True)))


def blind_optimum(suite: Suite) -> float:
    """Return the success of the best path without observations, as the mean over all optimal paths.

    It is the expectation for a suite that was sampled from a prior, and the value on exactly its episodes otherwise.
    With several drones or a moving goal, it is the success of a team that plans from the prior alone.
    """
    if suite.is_variant:
        return blind_team_success(suite)
    if suite.prior is None:
        starts = sorted({(row, col) for row, col in suite.start.tolist()})
        found = blind.success_table(suite.grid, suite.budget, starts, _prior_of(suite))
        episodes = zip(suite.start.tolist(), suite.goal.tolist(), strict=True)
        hits = np.array([found[tuple(start)][tuple(goal)] for start, goal in episodes])
        return float(np.average(hits, weights=suite.weight))
    return float((suite.prior * _found(suite.grid, suite.budget, _prior_of(suite))).sum())


def blind_optimum_by_distance(grid: Grid, budget: int, prior: blind.PriorOf) -> dict[int, float]:
    """Return the expected success of the best path for a prior, for each distance of the prior."""
    table, found, distances = prior(grid), _found(grid, budget, prior), grid.distances()
    strata = {int(distance): table * (distances == distance) for distance in np.unique(distances[table > 0])}
    return {distance: float((part * found).sum() / part.sum()) for distance, part in strata.items()}


def blind_optimum_is_exact(suite: Suite) -> bool:
    """Return True if the blind optimum is proven. Otherwise it is a lower bound, or a mean over some optimal paths.

    All optimal paths have the same value under their own prior. For any other suite, the mean is proven only if all
    optimal paths are known.
    """
    if suite.is_variant:
        return False
    prior = _prior_of(suite)
    if suite.prior is None:
        starts = sorted({(row, col) for row, col in suite.start.tolist()})
        return blind.is_complete(suite.grid, suite.budget, starts, prior)
    proven = blind.is_exact if np.array_equal(suite.prior, prior(suite.grid)) else blind.is_complete
    return proven(suite.grid, suite.budget, list(suite.grid.cells()), prior)


def _prior_of(suite: Suite) -> blind.PriorOf:
    """Return the prior that the blind path is optimal for: far pairs for a suite of these, otherwise per distance."""
    if suite.prior is not None and np.array_equal(suite.prior, priors.far_pairs(suite.grid)):
        return priors.far_pairs
    return priors.per_distance


def _found(grid: Grid, budget: int, prior: blind.PriorOf) -> npt.NDArray[np.float64]:
    """Return the share of the best paths that find each goal from each start, (count, count)."""
    starts = list(grid.cells())
    found = blind.success_table(grid, budget, starts, prior)
    return np.stack([found[start].ravel() for start in starts])


RESAMPLES = 2000
"""Resamples of every bootstrap."""
_LEVEL = 0.95

Interval = tuple[float | None, float | None]


class Bootstrap:
    """Resamples clusters of episodes. The same seed and clusters give the same resamples, which pairs comparisons.

    Args:
        cluster: Name of each episode's cluster, (E,).
        seed: Random seed of the resamples.
    """

    def __init__(self, cluster: Sequence[str], seed: int = 0) -> None:
        names, self._number = np.unique(np.asarray(cluster), return_inverse=True)
        self.clusters = len(names)
        rng = stream(seed, "bootstrap")
        # Count of each cluster in each resample, (R, C).
        self._times = rng.multinomial(self.clusters, np.full(self.clusters, 1 / self.clusters), size=RESAMPLES)

    @classmethod
    def over(cls, suite: Suite, areas: Sequence[SearchArea], seed: int = 0) -> "Bootstrap":
        """Resample the source tiles of a suite's areas."""
        return cls([areas[area].source for area in suite.area.tolist()], seed)

    def interval(self, metric: Metric) -> Interval:
        """Return the percentile interval of a metric, or (None, None) for a single cluster."""
        return self.percentiles(self._resampled(metric))

    def difference(self, first: Metric, second: Metric) -> Interval:
        """Return the interval of `first - second` on the same episodes and resamples."""
        return self.percentiles(self._resampled(first) - self._resampled(second))

    def totals(self, values: Floats) -> Floats:
        """Return the sums of values (E, K) over the episodes of every resample, (R, K)."""
        columns = [np.bincount(self._number, weights=column, minlength=self.clusters) for column in values.T]
        return np.asarray(self._times @ np.stack(columns, axis=1), dtype=np.float64)

    def _resampled(self, metric: Metric) -> Floats:
        """Return the metric in every resample, (R,); NaN if it is undefined."""
        return metric.of_sums(self.totals(metric.terms()))

    def percentiles(self, values: Floats) -> Interval:
        """Return the percentile interval of the values of all resamples, (R,)."""
        values = values[~np.isnan(values)]
        if self.clusters < 2 or not len(values):
            return None, None
        low, high = np.percentile(values, [50 * (1 - _LEVEL), 50 * (1 + _LEVEL)])
        return float(low), float(high)


def paired_difference(
    first: Mapping[str, Metric], second: Mapping[str, Metric], bootstrap: Bootstrap
) -> dict[str, dict[str, float | Interval | None]]:
    """Return the difference of each metric between two agents on the same episodes, with its interval."""
    compared: dict[str, dict[str, float | Interval | None]] = {}
    for name, metric in first.items():
        a, b = metric.value(), second[name].value()
        compared[name] = {
            "difference": None if a is None or b is None else a - b,
            "ci95": bootstrap.difference(metric, second[name]),
        }
    return compared


def discordant(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Count the episodes in which only the first agent found the goal, and only the second."""
    return int((first & ~second).sum()), int((second & ~first).sum())
