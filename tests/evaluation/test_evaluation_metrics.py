"""Metrics and the blind optimum in worked numbers."""

from functools import partial

import numpy as np
import pytest

from airloc.agents.blind import blind
from airloc.areas.area import SearchArea
from airloc.evaluation.metrics import blind_optimum, blind_optimum_by_distance, blind_optimum_is_exact, metrics
from airloc.grid import Grid
from airloc.rollout import RolloutLog, rollout
from airloc.task import priors
from airloc.task.suites import Suite, far_pairs

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
