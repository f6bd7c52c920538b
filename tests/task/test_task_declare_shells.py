"""Declaring in the shells: rules, Gymnasium, vector and tensor environment end the same episodes the same way."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import airloc  # noqa: F401 (registers the environments)
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid, MoveCount
from airloc.task import rules
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.env import SearchEnv
from airloc.task.priors import PairSampler, uniform
from airloc.task.vector_env import SearchVectorEnv

BUDGET = 10
EPISODES = 1000
COST = 1.5
ENDINGS = ("found", "false_alarm", "missed")


def grid_of(moves: MoveCount) -> Grid:
    return Grid(4, 5, 8, 2, moves=moves)


@pytest.fixture(scope="module")
def small_areas() -> list[SearchArea]:
    rng = np.random.default_rng(0)
    size = grid_of(8).size
    return [SearchArea(f"small_{n}", rng.integers(0, 256, (*size, 3), dtype=np.uint8)) for n in range(7)]


def cries(rng: np.random.Generator, position: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Who says "here" now: one in two over the goal, one in fifteen elsewhere."""
    return rng.random(len(position)) < np.where((position == goal).all(axis=1), 0.5, 1 / 15)


@pytest.mark.parametrize("moves", [8, 4])
def test_the_four_shells_agree_step_by_step_on_random_moves_and_declarations(
    small_areas: list[SearchArea], moves: MoveCount
):
    rng, grid = np.random.default_rng(1), grid_of(moves)
    area = rng.integers(len(small_areas), size=EPISODES)
    start, goal = PairSampler(uniform(grid), grid).draw(rng, EPISODES)
    how = {"declare": True, "false_alarm_cost": COST}
    vector = SearchVectorEnv(EPISODES, small_areas, grid, BUDGET, **how)
    batch = BatchEnv(CellTable.of(small_areas, grid), BUDGET, by_declaration=True, false_alarm_cost=COST)
    vector.reset(options={"area": area, "start": start, "goal": goal})
    batch.reset(*(torch.from_numpy(array) for array in (area, start, goal)))
    position, steps = start.copy(), np.zeros(EPISODES, dtype=np.int64)
    playing = np.ones(EPISODES, dtype=bool)
    log: list[list[tuple]] = [[] for _ in range(EPISODES)]
    seen = dict.fromkeys(ENDINGS, 0)

    for _ in range(BUDGET + 1):
        said = cries(rng, position, goal)
        action = np.where(said, moves, rng.integers(moves, size=EPISODES))
        number = grid.directions[np.where(said, 0, action)]
        turn = rules.declare_or_move(
            position, steps, goal, number, said, moves=MOVES, budget=BUDGET, grid=grid, cost=COST
        )
        observation, reward, terminated, truncated, infos = vector.step(action)
        told = batch.declare(torch.from_numpy(said))
        step = batch.step(torch.from_numpy(number))
        position = np.where(playing[:, None], turn.position, position)
        steps = np.where(playing, turn.steps, steps)
        ended = turn.found | turn.false_alarm | turn.missed
        for n in np.flatnonzero(playing):
            endings = [bool(getattr(turn, name)[n]) for name in ENDINGS]
            assert sum(endings) == ended[n], "an episode ends in one way"
            expected = (float(turn.reward[n]), endings[0] or endings[1], endings[2])
            assert (reward[n], terminated[n], truncated[n]) == expected
            assert float(told.reward[n] + step.reward[n]) == expected[0]
            assert (bool(told.found[n]), bool(told.false_alarm[n]), bool(told.ended[n])) == (*endings[:2], ended[n])
            assert bool(step.ended[n]) == ended[n]
            if ended[n]:
                assert [bool(infos[name][n]) for name in ENDINGS] == endings
                assert all(infos[f"_{name}"][n] for name in ENDINGS)
                seen = {name: seen[name] + was for name, was in zip(ENDINGS, endings, strict=True)}
            assert np.array_equal(observation["position"][n], position[n])
            assert np.array_equal(step.observation.position[n].numpy(), position[n])
            assert np.array_equal(observation["patch"][n], step.observation.patch[n].numpy())
            assert observation["moves_left"][n, 0] == int(step.observation.moves_left[n]) == BUDGET - steps[n]
            log[n].append((action[n], position[n].copy(), *expected, endings))
        playing &= ~ended
    assert not playing.any()
    assert min(seen.values()) > 50, "every ending happens"
    assert seen["found"] + seen["false_alarm"] + seen["missed"] == EPISODES

    single = SearchEnv(small_areas, grid, BUDGET, **how)
    for n in range(EPISODES):
        single.reset(options={"area": int(area[n]), "start": start[n], "goal": goal[n]})
        for action_n, cell, *expected, endings in log[n]:
            observation, *outcome, info = single.step(action_n)
            assert outcome == expected
            assert np.array_equal(observation["position"], cell)
            assert [info.get(name, False) for name in ENDINGS] == endings
            assert ("distance" in info) == any(endings)
            assert info["action_mask"].shape == (moves + 1,)
            assert info["action_mask"][-1] == 1


@pytest.mark.parametrize("arguments", [{}, {"moves": 4}, {"false_alarm_cost": 0.5}])
def test_gymnasium_and_stable_baselines_accept_the_declaring_environment(arguments: dict):
    env = gym.make("airloc/Search-5x5-v0", declare=True, render_mode="rgb_array", **arguments)
    check_env(env.unwrapped)
    sb3_check_env(gym.make("airloc/Search-5x5-v0", declare=True, **arguments).unwrapped, warn=False)


def test_a_find_returns_what_it_does_without_declaring(small_areas: list[SearchArea]):
    returns = []
    for declare in (False, True):
        env = SearchEnv(small_areas, grid_of(8), BUDGET, declare=declare)
        env.reset(options={"area": 0, "start": (0, 0), "goal": (0, 3)})
        moves = [2, 2, 2, 8] if declare else [2, 2, 2]
        outcomes = [env.step(move) for move in moves]
        assert outcomes[-1][2]
        assert not any(terminated for _, _, terminated, _, _ in outcomes[:-1])
        returns.append(sum(reward for _, reward, *_ in outcomes))
    assert returns == [0.0, 0.0]


def test_the_last_glimpse_may_be_declared_and_one_that_is_not_ends_in_a_miss(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, grid_of(8), 1, declare=True)
    for last, reward, ending in ((8, 3.0, "found"), (2, 0.0, "missed")):
        env.reset(options={"area": 0, "start": (0, 0), "goal": (0, 1)})
        observation, _, terminated, truncated, info = env.step(2)
        assert (terminated, truncated, observation["moves_left"].tolist()) == (False, False, [0])
        assert not set(ENDINGS) & set(info)
        observation, got, *_, info = env.step(last)
        assert (got, info[ending], sum(info[name] for name in ENDINGS)) == (reward, True, 1)
        assert observation["position"].tolist() == [0, 1], "nothing moves when there is no move left"


def test_a_vector_of_declaring_environments_goes_on_after_the_end(small_areas: list[SearchArea]):
    envs = gym.make_vec("airloc/Search-v0", num_envs=2, areas=small_areas, grid=grid_of(8), budget=3, declare=True)
    assert envs.single_action_space.n == 9
    envs.reset(seed=0, options={"area": [0, 0], "start": [(0, 0)] * 2, "goal": [(0, 1)] * 2})
    _, reward, terminated, _, infos = envs.step(np.array([8, 2]))
    assert (reward.tolist(), terminated.tolist()) == ([-12, -1], [True, False])
    assert (infos["false_alarm"].tolist(), infos["_false_alarm"].tolist()) == ([True, False], [True, False])
    observation, reward, terminated, truncated, infos = envs.step(np.array([8, 8]))
    assert (reward.tolist(), terminated.tolist(), truncated.any()) == ([0, 3], [False, True], False)
    assert (infos["found"].tolist(), infos["_found"].tolist()) == ([False, True], [False, True])
    assert observation["moves_left"][0, 0] == 3


def test_here_is_no_action_of_the_task_that_ends_by_arrival(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, grid_of(8))
    _, info = env.reset(seed=0)
    assert (env.action_space.n, info["action_mask"].shape) == (8, (8,))
    with pytest.raises(AirlocError, match="0 to 7"):
        env.step(8)
    with pytest.raises(IndexError):
        _reset(SearchVectorEnv(1, small_areas, grid_of(8))).step(np.array([8]))


def test_impossible_costs_and_actions_beyond_here_are_refused(small_areas: list[SearchArea]):
    for cost in (-1.0, float("nan"), float("inf")):
        with pytest.raises(AirlocError, match="cannot cost"):
            SearchEnv(small_areas, grid_of(8), declare=True, false_alarm_cost=cost)
    env = SearchEnv(small_areas, grid_of(8), declare=True)
    env.reset(seed=0)
    with pytest.raises(AirlocError, match="0 to 8"):
        env.step(9)


def _reset(envs: SearchVectorEnv) -> SearchVectorEnv:
    envs.reset(seed=0)
    return envs
