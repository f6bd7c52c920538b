"""Calibration and prior agreement in worked numbers, and a bound for the shipped belief."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.agent import EpisodeBatch
from airloc.agents.baselines import PlannedAgent, lawnmower
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.evaluation import analysis
from airloc.evaluation.analysis import (
    EDGES,
    Reliability,
    first_glimpses,
    match_calibration,
    prior_agreement,
    reliability,
    visited,
)
from airloc.evaluation.metrics import Bootstrap
from airloc.grid import Grid
from airloc.rollout import BELIEF, MATCH, PRIOR_FOLLOWED, RolloutLog, rollout
from airloc.task.batch import Observation
from airloc.task.suites import Suite, all_pairs, per_distance
from untrained import Stage, untrained_airloc

pytestmark = pytest.mark.long

GRID, SMALL = Grid(5, 5), Grid(1, 4)


def calibration(log: RolloutLog) -> dict[str, Reliability]:
    return dict(analysis.calibration(log, Bootstrap([log.suite.areas[area] for area in log.suite.area])))


def by_hand(beliefs: list[list[list[float]]], path: list[list[int]], goal: list[int], **how) -> RolloutLog:
    """Episodes on a row of four cells, one an area, with these beliefs (E, T, 4), columns flown and goals."""
    count, budget = len(path), len(path[0]) - 1
    flown = np.stack([np.zeros_like(path), path], axis=2)
    goals = np.array([(0, col) for col in goal])
    names = tuple(f"area {number}" for number in range(count))
    suite = Suite("made", SMALL, budget, names, np.arange(count), flown[:, 0], goals, **how)
    found = (flown == goals[:, None]).all(axis=2).any(axis=1)
    steps = np.where(found, (flown == goals[:, None]).all(axis=2).argmax(axis=1), budget)
    return RolloutLog("made", suite, flown, found, steps, recorded={BELIEF: np.array(beliefs, np.float32)})


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 4)), min_size=1, max_size=9))
def test_a_cell_is_seen_for_the_first_time_once_and_only_inside(path):
    first = first_glimpses(np.array([path]), Grid(3, 4))[0]
    seen = set()
    for cell, is_first in zip(path, first, strict=True):
        within = 0 <= cell[0] < 3 and 0 <= cell[1] < 4
        assert is_first == (within and cell not in seen)
        seen.add(cell)


TWO = by_hand(
    # The first finds its goal with the second move, the second with the first, so that its other belief is not counted.
    [[[0, 0.55, 0.25, 0.2], [0, 0, 0.45, 0.55]], [[0, 0.85, 0.1, 0.05], [0.25] * 4]],
    path=[[0, 1, 3], [0, 1, 1]],
    goal=[3, 1],
)


def test_the_most_probable_cell_in_worked_numbers():
    largest = calibration(TWO)["largest"]
    bins = [(entry.low, entry.high, entry.forecast, entry.hit, entry.count) for entry in largest.bins]
    assert bins == [(0.5, 0.6, pytest.approx(0.55), 0.5, 2), (0.8, 0.9, pytest.approx(0.85), 1.0, 1)]
    assert largest.ece == pytest.approx((2 * 0.05 + 1 * 0.15) / 3)


def test_cells_not_yet_visited_in_worked_numbers():
    cells = calibration(TWO)["cells"]
    assert sum(entry.count for entry in cells.bins) == 3 + 2 + 3, "neither the start nor the cell flown to is counted"
    gaps = {0.05: 0.05, 0.1: 0.1, 0.2: 1 - 0.45, 0.4: 0.45, 0.5: 1.1 - 1, 0.8: 1 - 0.85}  # |sum of p - goals| by bin
    assert {entry.low for entry in cells.bins} == set(gaps)
    assert cells.ece == pytest.approx(sum(gaps.values()) / 8)


def test_calibration_weights_episodes():
    weighed = dataclasses.replace(TWO, suite=dataclasses.replace(TWO.suite, weight=np.array([1.0, 3.0])))
    assert calibration(weighed)["largest"].ece == pytest.approx((2 * 0.05 + 3 * 0.15) / 5)


def test_a_belief_that_is_always_right_has_no_error_and_one_that_is_always_wrong_has_all():
    for goal, error in ((3, 0.0), (2, 1.0)):
        sure = by_hand([[[0, 0, 0, 1.0]]], path=[[0, 1]], goal=[goal])
        assert calibration(sure)["largest"].ece == error


def test_visits_outside_the_grid_are_no_cells():
    assert visited(by_hand([[[0.25] * 4] * 3], path=[[0, -1, 4, 2]], goal=[3]))[0].tolist() == [[1, 0, 0, 0]] * 3


def test_one_area_has_no_interval_and_an_agent_without_belief_no_calibration():
    alone = calibration(by_hand([[[0, 0.5, 0.5, 0]]], path=[[0, 1]], goal=[2]))
    assert alone["cells"].ci95 == alone["cells"].bins[0].ci95 == (None, None)
    with pytest.raises(AirlocError, match="belief"):
        calibration(dataclasses.replace(TWO, recorded={}))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), episodes=st.integers(2, 12))
def test_every_forecast_is_in_one_bin_and_the_error_is_a_mean_gap(seed, episodes):
    rng = np.random.default_rng(seed)
    forecast, hit = rng.random((episodes, 9)), rng.random((episodes, 9)) < 0.5
    counted = rng.random((episodes, 9)) < 0.7
    counted[0, 0] = True
    found = reliability(forecast, hit, counted, np.ones(episodes), Bootstrap([str(n) for n in range(episodes)]))
    assert sum(entry.count for entry in found.bins) == counted.sum()
    assert all(entry.low <= entry.forecast <= entry.high for entry in found.bins)
    gap = sum(entry.count * abs(entry.forecast - entry.hit) for entry in found.bins) / counted.sum()
    assert found.ece == pytest.approx(gap)
    overall = abs(forecast[counted].mean() - hit[counted].mean())
    assert overall - 1e-9 <= found.ece <= 1
    json.dumps(found.record(), allow_nan=False)


def test_forecasts_that_come_true_as_often_as_they_say_have_a_small_error_within_its_interval():
    rng = np.random.default_rng(0)
    forecast = rng.random((400, 50))
    hit = rng.random((400, 50)) < forecast
    bootstrap = Bootstrap([str(number) for number in range(400)])
    right, wrong = (
        reliability(said, hit, np.ones_like(hit), np.ones(400), bootstrap) for said in (forecast, forecast**3)
    )
    assert right.ece < 0.02
    assert wrong.ece == pytest.approx(1 / 2 - 1 / 4, abs=0.02)
    assert wrong.ci95[0] < wrong.ece < wrong.ci95[1]
    inside = [entry.ci95[0] <= entry.forecast <= entry.ci95[1] for entry in right.bins]
    assert len(inside) == len(EDGES) - 1
    assert sum(inside) >= 11


@pytest.fixture(scope="module")
def shipped() -> RolloutLog:
    """The shipped belief agent on twenty procedural areas."""
    areas = list(Synthetic(count=20, seed=0).areas(GRID))
    return rollout(make_agent("belief"), per_distance([area.name for area in areas], GRID), areas, record=[BELIEF])


def sharpened(log: RolloutLog, power: float) -> RolloutLog:
    """The same searches with beliefs raised to a power and normalised again."""
    belief = log.recorded[BELIEF] ** power
    total = belief.sum(axis=2, keepdims=True)
    sharp = np.divide(belief, total, out=np.zeros_like(belief), where=total > 0)
    return dataclasses.replace(log, recorded={BELIEF: sharp})


LARGEST, CELLS = 0.18, 0.022
"""Upper bounds of the expected calibration errors of the shipped belief; 0.09 and 0.010 when this was written."""


def test_the_shipped_belief_is_calibrated(shipped: RolloutLog):
    found = calibration(shipped)
    assert found["largest"].ece < LARGEST
    assert found["cells"].ece < CELLS


def test_the_bound_would_catch_a_belief_that_is_too_sure(shipped: RolloutLog):
    found = calibration(sharpened(shipped, 3))
    assert found["largest"].ece > LARGEST
    assert found["cells"].ece > CELLS


class Knowing:
    """Flies the lawnmower path, with a match probability of 0.85 over the goal and 0.15 elsewhere."""

    name = "knowing"

    def __init__(self) -> None:
        self._agent = PlannedAgent("plan", lawnmower)

    def reset(self, episodes: EpisodeBatch) -> Any:
        return episodes.goal, self._agent.reset(episodes)

    def match(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        same = (observation.patch == state[0]).flatten(1).all(dim=1)
        return torch.where(same, 0.85, 0.15), state

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        action, inner = self._agent.act(observation, state[1])
        return action, (state[0], inner)


def matched(agent: Any, suite: Suite, areas: list, **how: Any) -> RolloutLog:
    """A rollout with match probabilities in which nothing is declared."""
    silent = dataclasses.replace(suite, by_declaration=True)
    return rollout(agent, silent, areas, record=[MATCH], threshold=math.inf, **how)


def test_the_flight_goes_on_over_the_goal_and_every_cell_counts_once(toy_areas):
    suite = all_pairs([area.name for area in toy_areas[:2]], GRID, budget=30)
    log = matched(Knowing(), suite, toy_areas[:2], batch=77)
    is_goal = (log.path == suite.goal[:, None]).all(axis=2)
    np.testing.assert_allclose(log.recorded[MATCH], np.where(is_goal, 0.85, 0.15), rtol=1e-6)
    first = first_glimpses(log.path, GRID)
    assert (first & is_goal).sum(axis=1).max() == 1
    assert first.sum(axis=1).max() <= GRID.count
    after = is_goal[:, :-1].any(axis=1)
    assert (log.path[after, -1] != suite.goal[after]).any()


def test_the_calibration_of_match_probabilities_in_worked_numbers(toy_areas):
    suite = per_distance([area.name for area in toy_areas], GRID, budget=30)
    found = match_calibration(matched(Knowing(), suite, toy_areas), Bootstrap.over(suite, toy_areas))
    assert [(entry.forecast, entry.hit) for entry in found.bins] == [
        (pytest.approx(0.15), 0.0),
        (pytest.approx(0.85), 1.0),
    ]
    assert found.ece == pytest.approx(0.15)


def test_an_agent_without_match_probabilities_gets_those_of_the_image_similarity():
    areas = list(Synthetic(count=3, seed=3).areas(GRID))
    suite = per_distance([area.name for area in areas], GRID)
    log = matched(PlannedAgent("plan", lawnmower), suite, areas)
    is_goal = (log.path == suite.goal[:, None]).all(axis=2)
    assert log.recorded[MATCH][is_goal].min() > 0.5
    assert log.recorded[MATCH][first_glimpses(log.path, GRID) & ~is_goal].mean() < 0.05


def test_prior_agreement_by_distance_in_worked_numbers():
    start, goal = np.array([(0, 0), (0, 0)]), np.array([(0, 2), (0, 1)])
    suite = Suite("made", GRID, 3, ("a", "b"), np.array([0, 1]), start, goal)
    path = np.array([[(0, 0), (0, 1), (1, 1), (0, 2)], [(0, 0), (0, 1), (0, 1), (0, 1)]])
    followed = np.array([[True, False, True], [False, True, True]])  # the second episode has one move only
    log = RolloutLog("made", suite, path, np.array([True, True]), np.array([3, 1]), recorded={PRIOR_FOLLOWED: followed})
    shares = prior_agreement(log, Bootstrap(["a", "b"]))
    assert {distance: (at.share, at.moves) for distance, at in shares.items()} == {1: (1 / 3, 3), 2: (1.0, 1)}
    assert shares[1].ci95 == (0.0, 0.5)


def test_prior_agreement_weights_episodes():
    start, goal = np.array([(0, 0), (0, 0)]), np.array([(0, 1), (0, 1)])
    suite = Suite("made", GRID, 1, ("a",), np.zeros(2, dtype=int), start, goal, None, np.array([3.0, 1.0]))
    path, found, steps = np.array([[(0, 0), (0, 1)]] * 2), np.array([True, True]), np.array([1, 1])
    log = RolloutLog("made", suite, path, found, steps, recorded={PRIOR_FOLLOWED: np.array([[True], [False]])})
    shares = prior_agreement(log, Bootstrap(["a", "a"]))
    assert (shares[1].share, shares[1].ci95) == (0.75, (None, None))


def test_an_agent_that_only_exploits_always_agrees_with_the_prior(toy_areas):
    agent, stage = untrained_airloc(), Stage(toy_areas)
    with torch.no_grad():
        agent.policy.decide.zero_()
        agent.policy.offset.zero_()
    log = rollout(agent, stage.suite, stage.areas, record=[PRIOR_FOLLOWED])
    shares = prior_agreement(log, Bootstrap.over(stage.suite, stage.areas))
    assert {at.share for at in shares.values()} == {1.0}


def test_prior_agreement_counts_every_move_once_and_its_record_is_plain_json(toy_areas):
    agent, stage = untrained_airloc("airloc-no-prior"), Stage(toy_areas)
    log = rollout(agent, stage.suite, stage.areas, record=[PRIOR_FOLLOWED], seed=3, batch=9)
    shares = prior_agreement(log, Bootstrap.over(stage.suite, stage.areas))
    assert sum(at.moves for at in shares.values()) == log.steps.sum()
    assert min(shares) == 1
    assert all(0 <= at.share <= 1 for at in shares.values())
    text = json.dumps({str(distance): at.record() for distance, at in shares.items()})
    assert set(json.loads(text)["1"]) == {"share", "ci95", "moves"}
