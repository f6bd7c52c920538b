"""95 % intervals by a cluster bootstrap, and paired comparisons on the same episodes.

Episodes of one area are not independent, nor are areas cut from one tile. The bootstrap therefore resamples tiles.

Legend: E episodes, C clusters, R resamples, K quantities.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from airloc.areas.area import SearchArea
from airloc.evaluation.metrics import Floats, Metric
from airloc.seeding import stream
from airloc.task.suites import Suite

_RESAMPLES = 2000
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
        self._times = rng.multinomial(self.clusters, np.full(self.clusters, 1 / self.clusters), size=_RESAMPLES)

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
