"""Metrics and the blind optimum in worked numbers; intervals with their coverage, clusters and paired comparisons."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.blind import blind
from airloc.areas.area import SearchArea
from airloc.evaluation.metrics import (
    Bootstrap,
    Metric,
    blind_optimum,
    blind_optimum_by_distance,
    blind_optimum_is_exact,
    discordant,
    metrics,
    paired_difference,
)
from airloc.grid import Grid
from airloc.rollout import RolloutLog, rollout
from airloc.task import priors
from airloc.task.suites import Suite, end_by_declaration, far_pairs

GRID = Grid(5, 5)


def made_suite(pairs, weight=None) -> Suite:
    starts, goals = (np.array(cells) for cells in zip(*pairs, strict=True))
    area = np.arange(len(pairs)) // 2
    names = tuple(f"area {n}" for n in range(area.max() + 1))
    return Suite("made", GRID, 4, names, area, starts, goals, None, np.ones(len(pairs)) if weight is None else weight)


def made_log(suite: Suite, paths) -> RolloutLog:
    """A log of these paths; those shorter than the budget are padded with their last cell."""
    full = np.array([path + [path[-1]] * (5 - len(path)) for path in paths])
    steps = np.array([len(path) - 1 for path in paths])
    return RolloutLog("made", suite, full, np.array([len(path) < 5 for path in paths]), steps, seconds=0.5)


WORKED = made_suite([((0, 0), (0, 1)), ((0, 0), (2, 2)), ((4, 4), (0, 0)), ((0, 0), (0, 3))])
PATHS = [
    [(0, 0), (0, 1)],  # found in 1 of 1
    [(0, 0), (0, 1), (1, 1), (2, 2)],  # found in 3 of 2
    [(4, 4), (4, 3), (4, 2), (4, 1), (4, 0)],  # not found, 4 away
    [(0, 0), (0, 0), (-1, 0), (-1, 1), (-1, 2)],  # not found, 1 away
]
LOG = made_log(WORKED, PATHS)


def test_the_five_metrics_in_worked_numbers():
    values = {name: metric.value() for name, metric in metrics(LOG).items()}
    assert values["success"] == 0.5
    assert values["steps"] == (1 + 3 + 4 + 4) / 4
    assert values["step_ratio"] == pytest.approx((1 / 1 + 3 / 2) / 2)
    assert values["step_ratio_table"] == pytest.approx(1 / ((1 / 1 + 2 / 3) / 2))
    assert values["residual_distance"] == pytest.approx((4 + 1) / 2)


def test_weights_make_episodes_count_more():
    weighted = made_suite(
        [((0, 0), (0, 1)), ((0, 0), (2, 2)), ((4, 4), (0, 0)), ((0, 0), (0, 3))], np.array([3, 1, 1, 1.0])
    )
    values = {name: metric.value() for name, metric in metrics(made_log(weighted, PATHS)).items()}
    assert values["success"] == pytest.approx(4 / 6)
    assert values["steps"] == pytest.approx((3 * 1 + 3 + 4 + 4) / 6)
    assert values["step_ratio"] == pytest.approx((3 * 1 + 1.5) / 4)


def test_metrics_without_episodes_to_count_are_none():
    lost = made_log(WORKED, [[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]] * 4)
    values = {name: metric.value() for name, metric in metrics(lost).items()}
    assert values["step_ratio"] is None
    assert values["step_ratio_table"] is None
    assert values["residual_distance"] is not None


def test_strata_count_their_own_episodes_alone():
    success = metrics(LOG)["success"]
    assert success.where(WORKED.distance == 1).value() == 1
    assert success.where(WORKED.distance == 4).value() == 0


FOUR = Grid(5, 5, moves=4)


def test_the_blind_optimum_of_the_successors_protocol_by_distance():
    optimum = blind_optimum_by_distance(FOUR, 10, priors.far_pairs)
    assert [round(value, 3) for value in optimum.values()] == [0.483, 0.6, 0.9, 1, 1]
    assert list(optimum) == [4, 5, 6, 7, 8]
    suite = far_pairs(["a"], FOUR)
    assert blind_optimum(suite) == pytest.approx(0.7967, abs=1e-4)
    assert blind_optimum_is_exact(suite)
    declared = end_by_declaration(suite)
    assert (blind_optimum(declared), blind_optimum_is_exact(declared)) == (blind_optimum(suite), True)


def test_the_blind_agent_scores_its_optimum(toy_areas: list[SearchArea]):
    suite = far_pairs([area.name for area in toy_areas], FOUR, per_area=150)
    assert rollout(blind(0, priors.far_pairs), suite, toy_areas).found.mean() == pytest.approx(0.797, abs=0.02)


def test_with_uniform_goals_a_blind_path_finds_ten_cells_of_twenty_four():
    table = priors.uniform(FOUR)
    by_distance = blind_optimum_by_distance(FOUR, 10, priors.uniform)
    share = {distance: table[FOUR.distances() == distance].sum() for distance in by_distance}
    assert sum(by_distance[distance] * share[distance] for distance in share) == pytest.approx(10 / 24)


def test_a_blind_path_finds_more_when_the_distance_is_known():
    optima = [
        np.mean(list(blind_optimum_by_distance(FOUR, 10, partial(priors.at_distance, distance=distance)).values()))
        for distance in range(4, 9)
    ]
    assert np.mean(optima) == pytest.approx(0.931, abs=0.0005)


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
