"""What agents say of being there, judged against where they were."""

from typing import Any

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.baselines import PlannedAgent, lawnmower
from airloc.areas.synthetic import Synthetic
from airloc.evaluation.calibration import judge, match_calibration
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.suites import all_pairs, per_distance

GRID = Grid(5, 5)


class Knowing:
    """Flies the lawnmower; says 0.9 over the goal and 0.1 elsewhere."""

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


def test_nobody_is_told_and_every_cell_is_asked_for_once(toy_areas):
    suite = all_pairs([area.name for area in toy_areas], GRID, budget=30)
    judged = judge(Knowing(), toy_areas, suite, batch=77)
    assert judged.here.shape == judged.path.shape[:2] == (len(suite), 31)
    is_goal = (judged.path == suite.goal[:, None]).all(axis=2)
    np.testing.assert_allclose(judged.here, np.where(is_goal, 0.85, 0.15), rtol=1e-6)
    assert (judged.asked & is_goal).sum(axis=1).max() == 1
    assert judged.asked.sum(axis=1).max() <= GRID.count
    after = is_goal[:, :-1].any(axis=1)
    assert (judged.path[after, -1] != suite.goal[after]).any(), "the flight goes on over the goal"


def test_reliability_of_here_in_worked_numbers(toy_areas):
    suite = per_distance([area.name for area in toy_areas], GRID, budget=30)
    found = match_calibration(judge(Knowing(), toy_areas, suite))
    assert [(entry.forecast, entry.hit) for entry in found.bins] == [
        (pytest.approx(0.15), 0.0),
        (pytest.approx(0.85), 1.0),
    ]
    assert found.ece == pytest.approx(0.15)


def test_an_agent_without_judgement_has_that_of_the_likeness():
    areas = list(Synthetic(count=3, seed=3).areas(GRID))
    suite = per_distance([area.name for area in areas], GRID)
    judged = judge(PlannedAgent("plan", lawnmower), areas, suite)
    is_goal = (judged.path == suite.goal[:, None]).all(axis=2)
    assert judged.here[is_goal].min() > 0.5
    assert judged.here[judged.asked & ~is_goal].mean() < 0.05
