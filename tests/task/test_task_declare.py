"""The variant that ends by declaration: who says nothing misses, who is wrong fails, in rules, tensors and scores."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.agent import EpisodeBatch
from airloc.agents.baselines import PlannedAgent, lawnmower
from airloc.evaluation.evaluate import evaluate
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task import rules
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.suites import all_pairs, declared, per_distance

GRID = Grid(5, 5)


class Oracle:
    """Flies the lawnmower and knows the goal again by its bytes; `lie` says "here" at the wrong places instead."""

    name = "oracle"

    def __init__(self, lie: bool = False) -> None:
        self._agent = PlannedAgent("plan", lawnmower)
        self._lie = lie

    def reset(self, episodes: EpisodeBatch) -> Any:
        return episodes.goal, self._agent.reset(episodes)

    def match(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        same = (observation.patch == state[0]).flatten(1).all(dim=1)
        return (~same if self._lie else same).float(), state

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        action, inner = self._agent.act(observation, state[1])
        return action, (state[0], inner)


def test_perfect_judgement_scores_as_being_told(toy_areas):
    suite = all_pairs([area.name for area in toy_areas], GRID)
    told = evaluate(PlannedAgent("plan", lawnmower), suite, toy_areas)
    said = evaluate(Oracle(), declared(suite), toy_areas, batch=7 * 25)
    np.testing.assert_array_equal(said.log.found, told.log.found)
    np.testing.assert_array_equal(said.log.path, told.log.path)
    np.testing.assert_array_equal(said.log.declared, told.log.found)
    assert said.value("false_alarms") == 0
    assert said.value("missed") == pytest.approx(1 - (told.value("success") or 0))


def test_who_cries_at_once_fails_at_the_start(toy_areas):
    suite = declared(per_distance([area.name for area in toy_areas], GRID))
    score = evaluate(Oracle(lie=True), suite, toy_areas)
    assert (score.value("success"), score.value("false_alarms"), score.value("missed")) == (0, 1, 0)
    assert score.value("steps") == 0


def test_flying_over_the_goal_in_silence_is_a_miss(toy_areas):
    class Silent(Oracle):
        def match(self, observation, state):
            return torch.zeros(len(observation.patch)), state

    score = evaluate(Silent(), declared(all_pairs([area.name for area in toy_areas], GRID, budget=30)), toy_areas)
    assert (score.value("missed"), score.value("steps")) == (1, 30)


def test_the_last_glimpse_may_still_be_declared(toy_areas):
    cells = CellTable.of(toy_areas[:1], GRID)
    env = BatchEnv(cells, 1, by_declaration=True)
    env.reset(torch.tensor([0, 0]), torch.tensor([[0, 0], [0, 0]]), torch.tensor([[0, 1], [4, 4]]))
    assert not env.declare(torch.tensor([False, False])).ended.any()
    step = env.step(torch.tensor([2, 2]))
    assert not step.ended.any()
    assert step.reward.tolist() == [-1, -1]
    last = env.declare(torch.tensor([True, False]))
    assert (last.found.tolist(), last.false_alarm.tolist(), last.ended.tolist()) == (
        [True, False],
        [False] * 2,
        [True] * 2,
    )
    again = env.declare(torch.tensor([True, True]))
    assert not (again.found | again.false_alarm).any(), "what has ended stays ended"


CASES = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=n, max_size=n)] * 2,
        st.lists(st.booleans(), min_size=n, max_size=n),
    )
)


@given(CASES)
def test_a_declaration_is_right_or_a_false_alarm_never_both(case):
    position, goal, said = (np.array(part) for part in case)
    found, wrong, _ = rules.declare(position, goal, said)
    assert not (found & wrong).any()
    np.testing.assert_array_equal(found | wrong, said)
    tensors = rules.declare(*(torch.from_numpy(part) for part in (position, goal, said)))
    np.testing.assert_array_equal(tensors.found.numpy(), found)


def test_a_declared_suite_is_another_suite_with_the_same_episodes():
    suite = per_distance(["a", "b"], GRID)
    assert declared(suite).digest != suite.digest
    assert declared(suite).csv() == suite.csv()


def test_found_false_alarms_and_misses_sum_to_one(toy_areas):
    suite = declared(per_distance([area.name for area in toy_areas], GRID))
    cells = CellTable.of(toy_areas, GRID)
    for threshold in (0.0, 0.5, 1.1):
        env = BatchEnv(cells, suite.budget, by_declaration=True)
        played = rollout(PlannedAgent("plan", lawnmower), suite, env, threshold=threshold)
        assert played.declared is not None
        assert not (played.found & ~played.declared).any()
        assert played.declared.all() == (threshold == 0.0)
