"""Rollouts follow the rules, do not depend on the batch size, and recorders do not change the play."""

import dataclasses
import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.baselines import PlannedAgent, lawnmower
from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import available_agents, make_agent
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation import evaluate
from airloc.grid import MOVES, Grid
from airloc.rollout import (
    BELIEF,
    LOGITS,
    MATCH,
    PRIOR_FOLLOWED,
    DiagonalError,
    EpisodeRecord,
    RolloutLog,
    agent_noise,
    rollout,
)
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable, cut_patches
from airloc.task.photos import FlightConditions
from airloc.task.rules import inside
from airloc.task.suites import Suite, all_pairs, end_by_declaration, far_pairs, per_distance, uniform
from untrained import Stage, untrained_airloc, untrained_relation

pytestmark = pytest.mark.long

GRID = Grid(5, 5)


ONE_OF_A_KIND = ["random", "priv-random", "lawnmower", "airloc", "airloc-priv", "local", "priv-local", "belief"]
"""An agent of every class, with and without privileges. `test_agents_baselines.py` plays all agents in batches."""


@lru_cache(maxsize=2)
def agent_of(name: str) -> Agent:
    return make_agent(name)


@pytest.fixture(scope="module")
def suite(toy_areas: list[SearchArea]) -> Suite:
    return uniform([area.name for area in toy_areas], GRID, per_area=2)


@pytest.fixture(scope="module")
def env(toy_areas: list[SearchArea]) -> BatchEnv:
    return BatchEnv(CellTable.from_areas(toy_areas, GRID), 10)


@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_paths_are_single_moves_from_the_start_and_stop_at_the_goal(name: str, suite: Suite, env: BatchEnv):
    log = rollout(agent_of(name), suite, env)
    assert np.array_equal(log.path[:, 0], suite.start)
    steps = np.abs(np.diff(log.path, axis=1)).max(axis=2)
    for index, found in enumerate(log.found):
        made = int(log.steps[index])
        assert steps[index].tolist() == [1] * made + [0] * (10 - made)
        at_goal = (log.path[index, : made + 1] == suite.goal[index]).all(axis=1)
        assert at_goal.tolist() == [False] * made + [bool(found)]
        assert found or made == 10


@pytest.mark.parametrize(("name", "batch"), [(name, 1 + 3 * (n % 2)) for n, name in enumerate(ONE_OF_A_KIND)])
def test_paths_do_not_depend_on_the_batch_size(name: str, batch: int, suite: Suite, env: BatchEnv):
    few = suite.subset(range(0, 12, 2))
    whole, parts = (rollout(agent_of(name), few, env, seed=3, batch=size) for size in (1024, batch))
    assert np.array_equal(whole.path, parts.path)


FOUR = Grid(5, 5, moves=4)


@pytest.mark.parametrize("name", available_agents())
def test_agents_keep_to_four_moves_and_inside(name: str, toy_areas: list[SearchArea]):
    suite = far_pairs([area.name for area in toy_areas[:2]], FOUR, per_area=1)
    log = rollout(agent_of(name), suite, toy_areas[:2])
    assert inside(log.path, FOUR).all()
    assert (np.abs(np.diff(log.path, axis=1)).sum(axis=2)[log.moved] == 1).all()


def test_sampled_moves_keep_to_four_moves_too(toy_areas: list[SearchArea]):
    suite = far_pairs([area.name for area in toy_areas], FOUR, per_area=1)
    log = rollout(untrained_airloc(sample=True), suite, toy_areas)
    assert (np.abs(np.diff(log.path, axis=1)).sum(axis=2) <= 1).all()


def test_the_seed_decides_what_is_drawn(suite: Suite, env: BatchEnv):
    first, again, other = (rollout(make_agent("random"), suite, env, seed=seed).path for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_noise_is_one_stream_in_windows():
    whole = agent_noise(5, slice(0, 9), 7)
    assert whole.shape == (9, 7, 8)
    assert whole.min() >= 0
    assert whole.max() < 1
    for first, last in ((0, 1), (3, 9), (8, 9)):
        assert np.array_equal(whole[first:last], agent_noise(5, slice(first, last), 7))


class North:
    """Keeps what it receives, and flies north."""

    name = "north"

    def __init__(self) -> None:
        self.episodes: list[EpisodeBatch] = []
        self.observations: list[Observation] = []

    def reset(self, episodes: EpisodeBatch) -> None:
        self.episodes.append(episodes)

    def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
        self.observations.append(observation)
        return torch.zeros(len(observation.position), dtype=torch.int64), state


def test_agents_receive_the_goal_patch_and_see_black_outside(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    cells = CellTable.from_areas(toy_areas, GRID)
    north, counted = North(), []
    rollout(north, suite, BatchEnv(cells, 10), batch=10, on_batch=counted.append)
    assert counted == [10, 10, 4]
    goal = torch.from_numpy(suite.goal[:10])
    assert torch.equal(north.episodes[0].goal, cells.patches(torch.from_numpy(suite.area[:10]), goal))
    assert north.episodes[0].noise.shape == (10, 10, 8)
    last = north.observations[9]
    assert last.moves_left.min() == 1
    outside = last.position[:, 0] < 0
    assert outside.any()
    assert not last.patch[outside].any()


def test_in_flight_conditions_agents_receive_photos_and_see_black_outside(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    north, flight = North(), FlightConditions(seed=2)
    rollout(north, suite, toy_areas, flight=flight)
    area, start, goal = (torch.from_numpy(part) for part in (suite.area, suite.start, suite.goal))
    glimpses, goals = (CellTable.from_areas(areas, GRID) for areas in flight.apply(toy_areas, None, GRID))
    assert torch.equal(north.episodes[0].goal, goals.patches(area, goal))
    assert torch.equal(north.observations[0].patch, glimpses.patches(area, start))
    last = north.observations[-1]
    assert not last.patch[last.position[:, 0] < 0].any()


def test_goal_patches_can_be_replaced(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    north, indices = North(), []
    grey = torch.full((48, 48, 3), 99, dtype=torch.uint8)

    def patches(these: torch.Tensor) -> torch.Tensor:
        indices.extend(these.tolist())
        return grey.expand(len(these), -1, -1, -1)

    log = rollout(north, suite, toy_areas, batch=9, goal_patches=patches)
    assert indices == list(range(24))
    assert all(bool((episodes.goal == 99).all()) for episodes in north.episodes)
    assert log.seconds > 0


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas)


@pytest.fixture(scope="module")
def recorded(stage: Stage) -> RolloutLog:
    return rollout(BeliefAgent("belief", untrained_relation()), stage.suite, stage.areas, record=[BELIEF], seed=3)


def test_recording_beliefs_does_not_change_the_play(stage: Stage, recorded: RolloutLog):
    agent = BeliefAgent("belief", untrained_relation())
    assert np.array_equal(recorded.path, stage.play(agent).path)
    parts = rollout(agent, stage.suite, stage.areas, record=[BELIEF], seed=3, batch=5)
    assert np.array_equal(parts.path, recorded.path)
    np.testing.assert_allclose(parts.recorded[BELIEF], recorded.recorded[BELIEF], atol=1e-5)


def test_there_is_a_belief_for_every_move_and_none_after_the_end(recorded: RolloutLog):
    np.testing.assert_allclose(recorded.recorded[BELIEF].sum(axis=2), recorded.moved, atol=1e-5)
    assert recorded.moved.sum() == recorded.steps.sum()


def test_recording_logits_and_the_prior_does_not_change_the_play(stage: Stage):
    agent = untrained_airloc()
    plain = stage.play(agent)
    whole, parts = (
        rollout(agent, stage.suite, stage.areas, record=[PRIOR_FOLLOWED, LOGITS, BELIEF], seed=3, batch=batch)
        for batch in (1024, 5)
    )
    for log in (whole, parts):
        assert np.array_equal(log.path, plain.path)
        assert set(log.recorded) == {PRIOR_FOLLOWED, LOGITS}
    assert np.array_equal(whole.recorded[PRIOR_FOLLOWED], parts.recorded[PRIOR_FOLLOWED])
    step = np.diff(whole.path, axis=1)[whole.moved]
    chosen = whole.recorded[LOGITS][whole.moved].argmax(axis=1)
    assert np.array_equal(step, MOVES[chosen])


def test_match_probabilities_are_recorded_at_every_glimpse_and_beside_other_recorders(stage: Stage):
    suite = dataclasses.replace(stage.suite, by_declaration=True)
    log = rollout(untrained_airloc(), suite, stage.areas, record=[MATCH, LOGITS], threshold=math.inf)
    assert log.recorded[MATCH].shape == (len(suite), suite.budget + 1)
    assert log.recorded[LOGITS].shape == (len(suite), suite.budget, 8)
    assert (log.steps == suite.budget).all(), "nothing is declared, so that the whole budget is flown"
    ended = rollout(PlannedAgent("plan", lawnmower), stage.suite, stage.areas, record=[MATCH])
    at_goal = ended.recorded[MATCH][np.arange(len(suite)), ended.steps]
    assert at_goal[ended.found].min() > 0.5
    assert not ended.recorded[MATCH][:, -1][ended.steps < suite.budget].any()


def test_an_episode_record_ends_with_the_episode_and_has_its_own_goal(stage: Stage, recorded: RolloutLog):
    suite = stage.suite
    for index in range(len(suite)):
        episode, goal = recorded.episode(index, stage.areas), tuple(suite.goal[index].tolist())
        assert episode.path[0] == tuple(suite.start[index].tolist())
        assert (episode.path[-1] == goal) == episode.found == recorded.found[index]
        assert episode.beliefs.shape == (episode.moves, 5, 5)
        area = stage.areas[suite.area[index]]
        assert np.array_equal(episode.goal_patch, cut_patches(area.image, GRID)[GRID.index(goal)])


def test_goal_patches_can_be_cut_from_other_areas(stage: Stage):
    others = [SearchArea(area.name, 255 - area.image) for area in stage.areas]
    north = North()
    log = rollout(north, stage.suite, stage.areas, goal_areas=others)
    plain, other = log.episode(4, stage.areas), log.episode(4, stage.areas, others)
    assert np.array_equal(other.goal_patch, 255 - plain.goal_patch)
    assert np.array_equal(north.episodes[0].goal[4].numpy(), other.goal_patch)
    assert np.array_equal(other.area.image, plain.area.image)


def test_a_missing_quantity_is_left_out_unless_it_is_required(stage: Stage):
    agent = make_agent("lawnmower")
    log = rollout(agent, stage.suite, stage.areas, record=[BELIEF])
    episode = log.episode(0, stage.areas)
    assert BELIEF not in log.recorded
    assert (episode.beliefs, episode.last_belief, episode.goal_probability, episode.goal_rank) == (None,) * 4
    with pytest.raises(AirlocError, match=r"'lawnmower'.*belief"):
        rollout(agent, stage.suite, stage.areas, record=[dataclasses.replace(BELIEF, required=True)])


def made_episode(path: list[tuple[int, int]], found: bool) -> EpisodeRecord:
    """An episode on 2 x 2 cells with the goal 0,0, which has a probability of 20 % before the last move."""
    grid = Grid(2, 2)
    area = SearchArea("made", np.zeros((*grid.size, 3), np.uint8))
    beliefs = np.array([[[0.25, 0.25], [0.25, 0.25]], [[0.2, 0.5], [0.3, 0.0]]], np.float32)
    return EpisodeRecord("made", area, path, (0, 0), area.image[:48, :48], found, beliefs)


@pytest.mark.parametrize(
    ("last", "found", "probability", "rank"),
    [((0, 1), False, 0.4, 2), ((1, 0), False, 2 / 7, 2), ((2, 1), False, 0.2, 3), ((0, 0), True, 0.2, 3)],
)
def test_the_last_belief_leaves_out_the_cell_that_the_last_move_rules_out(last, found, probability, rank):
    episode = made_episode([(1, 0), (1, 1), last], found)
    assert (episode.goal_probability, episode.goal_rank) == (pytest.approx(probability), rank)
    assert episode.last_belief.sum() == pytest.approx(1)
    assert episode.beliefs[-1].max() == 0.5, "the recorded belief stays as it was"


class Diagonal(North):
    """Ignores that the task has four moves."""

    name = "diagonal"

    def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
        return torch.full((len(observation.patch),), 3), state


def test_diagonal_moves_are_refused_in_a_task_of_four_moves(toy_areas: list[SearchArea]):
    with pytest.raises(DiagonalError, match="'diagonal'"):
        rollout(Diagonal(), far_pairs(["toy_0"], FOUR), toy_areas[:1])
    assert rollout(Diagonal(), per_distance(["toy_0"], GRID), toy_areas[:1]).agent == "diagonal"


def test_moves_against_a_closed_border_count(toy_areas: list[SearchArea]):
    log = rollout(North(), far_pairs(["toy_0"], FOUR), toy_areas[:1])
    assert (log.steps[~log.found] == 10).all()


class Oracle:
    """Flies the lawnmower path and recognises the goal by its bytes; with `lie`, it declares all other cells."""

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


def test_correct_declarations_find_what_reaching_the_goal_finds(toy_areas: list[SearchArea]):
    suite = all_pairs([area.name for area in toy_areas[:2]], GRID)
    reached = rollout(PlannedAgent("plan", lawnmower), suite, toy_areas[:2])
    declared = rollout(Oracle(), end_by_declaration(suite), toy_areas[:2], batch=7 * 25)
    assert np.array_equal(declared.found, reached.found)
    assert np.array_equal(declared.path, reached.path)
    assert np.array_equal(declared.declared, reached.found)
    assert reached.declared is None


@pytest.mark.parametrize("play", [rollout, evaluate])
def test_areas_in_another_order_than_that_of_the_suite_are_refused(play, suite: Suite, toy_areas: list[SearchArea]):
    for areas in (toy_areas[::-1], toy_areas[:1]):
        with pytest.raises(AirlocError, match="for_areas"):
            play(agent_of("lawnmower"), suite, areas)
    turned = suite.for_areas([area.name for area in toy_areas[::-1]])
    log = rollout(agent_of("lawnmower"), turned, toy_areas[::-1])
    assert (log.path == rollout(agent_of("lawnmower"), suite, toy_areas).path).all()


@pytest.mark.parametrize("play", [rollout, evaluate])
@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"batch": 0}, "batch of 0"),
        ({"batch": 1.5}, "batch = 1.5"),
        ({"device": "cuda:99"}, "cuda:99"),
        ({"device": "nope"}, "nope"),
        ({"goal_areas": []}, "0 goal areas for 6 areas"),
    ],
)
def test_a_suite_that_cannot_be_played_this_way_is_refused(play, suite: Suite, toy_areas, options, fact: str):
    with pytest.raises(AirlocError, match=fact):
        play(agent_of("lawnmower"), suite, toy_areas, **options)


@pytest.mark.parametrize("play", [rollout, evaluate])
def test_a_suite_without_episodes_is_refused(play, suite: Suite, toy_areas: list[SearchArea]):
    with pytest.raises(AirlocError, match="no episodes"):
        play(agent_of("lawnmower"), suite.subset([]), toy_areas)


def test_an_immediate_false_alarm_ends_the_episode_at_the_start(toy_areas: list[SearchArea]):
    log = rollout(Oracle(lie=True), end_by_declaration(per_distance([toy_areas[0].name], GRID)), toy_areas[:1])
    assert (log.found.any(), log.declared.all(), log.steps.max()) == (False, True, 0)


@pytest.mark.parametrize("threshold", [0.0, 0.5, math.inf])
def test_only_declared_goals_are_found(toy_areas: list[SearchArea], threshold: float):
    suite = end_by_declaration(per_distance([area.name for area in toy_areas], GRID))
    log = rollout(PlannedAgent("plan", lawnmower), suite, toy_areas, threshold=threshold)
    assert not (log.found & ~log.declared).any()
    assert log.declared.all() == (threshold == 0.0)
    assert log.declared.any() == (threshold < math.inf)
