"""Forecasts and what came of them, in worked numbers."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from airloc.agents.agent import Briefing
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.evaluation.calibration import Bin, Forecaster, binned, calibration_error
from airloc.evaluation.evaluate import evaluate
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.suites import Suite, per_distance
from untrained import made_airloc

GRID = Grid(5, 5)


class Belief(NamedTuple):
    belief: torch.Tensor


class Believer:
    """Holds one cell for the goal with a fixed probability, the others alike, and flies east."""

    name = "believer"

    def __init__(self, sure: float) -> None:
        self.belief = torch.full((25,), (1 - sure) / 24)
        self.belief[0] = sure

    def reset(self, briefing: Briefing) -> Belief:
        return Belief(self.belief.expand(len(briefing.goal), -1))

    def act(self, observation: Observation, state: Belief) -> tuple[torch.Tensor, Belief]:
        return torch.full((len(observation.patch),), 2), state


def suite_of(starts: list[tuple[int, int]], goals: list[tuple[int, int]]) -> Suite:
    area = np.zeros(len(starts), dtype=np.int64)
    return Suite("by hand", GRID, 3, ("toy_0",), area, np.array(starts), np.array(goals))


def test_bins_in_worked_numbers():
    forecast = np.array([0.04, 0.06, 0.95, 1.0, 0.55])
    found = binned(forecast, np.array([False, True, True, True, False]))
    assert found[0] == Bin(pytest.approx(0.05), 0.5, 2)
    assert [(entry.hit, entry.count) for entry in found] == [(0.5, 2), (0.0, 1), (1.0, 2)]
    gaps = [2 * 0.45, 0.55, 2 * 0.025]
    assert calibration_error(found) == pytest.approx(sum(gaps) / 5)
    assert calibration_error([]) is None


def test_a_belief_is_asked_of_every_cell_at_every_step_of_play(toy_areas: list[SearchArea]):
    # The first flies 3 moves and finds nothing, the second finds its goal with the first move.
    suite = suite_of([(0, 1), (2, 2)], [(0, 0), (2, 3)])
    forecaster = Forecaster(Believer(0.76))
    evaluate(forecaster, toy_areas[:1], suite)
    unlikely, likely = forecaster.bins(suite)
    assert forecaster.kind == "belief"
    assert (likely.count, likely.hit) == (4, 0.75)
    assert (unlikely.count, unlikely.hit) == (4 * 24, pytest.approx(1 / 96))


def test_batches_do_not_matter(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    records = []
    for batch in (5, 1024):
        forecaster = Forecaster(made_airloc())
        evaluate(forecaster, toy_areas, suite, batch=batch)
        records.append([(entry.count, round(entry.forecast, 4), entry.hit) for entry in forecaster.bins(suite)])
    assert records[0] == records[1]
    assert records[0]


def test_the_prior_is_asked_only_while_the_goal_is_adjacent(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    forecaster = Forecaster(made_airloc("airloc-priv"))
    score = evaluate(forecaster, toy_areas, suite)
    left = np.abs(score.played.path[:, :-1] - suite.goal[:, None]).max(axis=2)
    made = np.arange(suite.budget) < score.played.steps[:, None]
    assert sum(entry.count for entry in forecaster.bins(suite)) == 8 * int((made & (left == 1)).sum())
    assert forecaster.kind == "prior"


def test_an_agent_without_forecasts_has_no_calibration_and_plays_the_same(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    forecaster = Forecaster(make_agent("priv-random"))
    noted, plain = (evaluate(agent, toy_areas, suite) for agent in (forecaster, make_agent("priv-random")))
    assert forecaster.bins(suite) == []
    assert np.array_equal(noted.played.path, plain.played.path)
