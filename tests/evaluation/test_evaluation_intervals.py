"""Bootstrap intervals: coverage, clusters and paired comparisons."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airloc.evaluation.intervals import Bootstrap, discordant, paired_difference
from airloc.evaluation.metrics import Metric


def test_the_bootstrap_interval_has_its_nominal_coverage():
    """Areas differ in difficulty; 95 % intervals over 40 areas contain the mean in about 95 % of the trials."""
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        found = rng.random((40, 4)) < rng.beta(3, 3, size=(40, 1))
        low, high = Bootstrap(np.repeat([str(n) for n in range(40)], 4), seed=trial).interval(
            Metric(found.ravel().astype(float), np.ones(160))
        )
        covered += low <= 0.5 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_clusters_widen_the_interval_when_episodes_of_an_area_are_correlated():
    found = np.repeat(np.random.default_rng(0).random(30) < 0.5, 10).astype(float)
    metric = Metric(found, np.ones(300))
    wide = Bootstrap(np.repeat([str(n) for n in range(30)], 10)).interval(metric)
    narrow = Bootstrap([str(n) for n in range(300)]).interval(metric)
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


def test_one_cluster_has_no_interval():
    assert Bootstrap(["only"] * 5).interval(Metric(np.ones(5), np.ones(5))) == (None, None)


def test_a_metric_without_episodes_has_no_interval():
    assert Bootstrap(list("abc")).interval(Metric(np.zeros(3), np.zeros(3))) == (None, None)


@given(st.lists(st.booleans(), min_size=4, max_size=40))
def test_the_difference_of_an_agent_to_itself_is_zero(found: list[bool]):
    metric = Metric(np.array(found, dtype=float), np.ones(len(found)))
    compared = paired_difference(
        {"success": metric}, {"success": metric}, Bootstrap([str(n) for n in range(len(found))])
    )
    assert compared["success"] == {"difference": 0.0, "ci95": (0.0, 0.0)}


def test_pairing_narrows_the_interval_of_a_difference():
    rng = np.random.default_rng(0)
    hard = rng.random(100)
    first, second = (Metric((hard < level).astype(float), np.ones(100)) for level in (0.6, 0.5))
    bootstrap = Bootstrap([str(n) for n in range(100)])
    low, high = bootstrap.difference(first, second)
    alone = bootstrap.interval(first)
    assert low > 0
    assert high - low < alone[1] - alone[0]


def test_discordant_episodes_are_counted():
    assert discordant(np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 1], bool)) == (1, 2)


class Median(Metric):
    """The median of whole numbers below 5: the sums count the episodes of each number."""

    def terms(self):
        return np.eye(5)[self.numerator.astype(int)] * self.denominator[:, None]

    def of_sums(self, sums):
        below = sums.cumsum(axis=1)
        return np.where(below[:, -1] > 0, (below >= below[:, -1:] / 2).argmax(axis=1), np.nan)


def test_a_metric_that_is_no_ratio_has_an_interval():
    median = Median(np.array([1.0, 4, 2, 3, 3, 0]), np.array([1.0, 1, 1, 1, 1, 0]))
    low, high = Bootstrap(list("abcdef")).interval(median)
    assert median.value() == 3
    assert 1 <= low < 3 <= high <= 4
    assert Median(np.zeros(2), np.zeros(2)).value() is None
