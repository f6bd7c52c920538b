"""The four shells, rules, Gymnasium, vector and tensor environment, play the same game."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import airloc  # noqa: F401 (registers the environments)
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid
from airloc.task import rules
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable, cut_patches
from airloc.task.env import SearchEnv
from airloc.task.priors import PairSampler, uniform
from airloc.task.vector_env import SearchVectorEnv

GRID = Grid(4, 5, 8, 2)
BUDGET = 10
EPISODES = 1250  # with 8 moves on average, 10,000 moves


@pytest.fixture(scope="module")
def small_areas() -> list[SearchArea]:
    rng = np.random.default_rng(0)
    return [SearchArea(f"small_{n}", rng.integers(0, 256, (*GRID.size, 3), dtype=np.uint8)) for n in range(7)]


def see(areas: list[SearchArea], area: int, cell: np.ndarray) -> np.ndarray:
    row, col = cell.tolist()
    if not GRID.contains((row, col)):
        return np.zeros((8, 8, 3), dtype=np.uint8)
    return cut_patches(areas[area].image, GRID)[GRID.index((row, col))]


def test_the_four_shells_agree_step_by_step_on_ten_thousand_random_moves(small_areas: list[SearchArea]):
    rng = np.random.default_rng(1)
    area = rng.integers(len(small_areas), size=EPISODES)
    start, goal = PairSampler(uniform(GRID), GRID).draw(rng, EPISODES)
    actions = rng.integers(8, size=(BUDGET, EPISODES))

    single = SearchEnv(small_areas, GRID, BUDGET)
    vector = SearchVectorEnv(EPISODES, small_areas, GRID, BUDGET)
    batch = BatchEnv(CellTable.of(small_areas, GRID), BUDGET)
    vector_obs, _ = vector.reset(options={"area": area, "start": start, "goal": goal})
    batch_obs = batch.reset(*(torch.from_numpy(array) for array in (area, start, goal)))
    position, steps = start.copy(), np.zeros(EPISODES, dtype=np.int64)
    playing = np.ones(EPISODES, dtype=bool)

    assert np.array_equal(vector_obs["patch"], batch_obs.patch.numpy())
    assert np.array_equal(vector_obs["goal"], batch.goal_patches().numpy())
    log: list[list[tuple]] = [[] for _ in range(EPISODES)]
    moves = 0
    for t in range(BUDGET):
        out = rules.move(position, steps, goal, actions[t], moves=MOVES, budget=BUDGET)
        position, steps = (np.where(playing[:, None], out.position, position), np.where(playing, out.steps, steps))
        vector_obs, reward, terminated, truncated, _ = vector.step(actions[t])
        step = batch.step(torch.from_numpy(actions[t]))
        for n in np.flatnonzero(playing):
            moves += 1
            expected = (int(out.reward[n]), bool(out.found[n]), bool(out.truncated[n]))
            assert (int(reward[n]), bool(terminated[n]), bool(truncated[n])) == expected
            ended = bool(step.ended[n])
            assert (int(step.reward[n]), bool(step.found[n]), ended) == (*expected[:2], expected[1] or expected[2])
            patch = see(small_areas, area[n], position[n])
            assert np.array_equal(vector_obs["patch"][n], patch)
            assert np.array_equal(step.observation.patch[n].numpy(), patch)
            assert np.array_equal(vector_obs["position"][n], position[n])
            assert np.array_equal(step.observation.position[n].numpy(), position[n])
            assert vector_obs["moves_left"][n, 0] == int(step.observation.moves_left[n]) == BUDGET - steps[n]
            log[n].append((position[n].copy(), *expected))
        playing &= ~(out.found | out.truncated)
    assert not playing.any()
    assert moves >= 10_000

    for n in range(EPISODES):
        obs, _ = single.reset(options={"area": int(area[n]), "start": start[n], "goal": goal[n]})
        assert np.array_equal(obs["goal"], see(small_areas, area[n], goal[n]))
        for t, (cell, *expected) in enumerate(log[n]):
            obs, reward, terminated, truncated, info = single.step(actions[t, n])
            assert [reward, terminated, truncated] == expected
            assert np.array_equal(obs["position"], cell)
            assert np.array_equal(obs["patch"], see(small_areas, area[n], cell))
            assert np.array_equal(info["action_mask"], rules.moves_inside(cell, GRID, MOVES))


@pytest.mark.parametrize("name", ["airloc/Search-5x5-v0", "airloc/Search-7x7-v0"])
def test_gymnasium_and_stable_baselines_accept_the_environment(name: str):
    env = gym.make(name, render_mode="rgb_array")
    check_env(env.unwrapped)
    sb3_check_env(gym.make(name).unwrapped, warn=False)


def test_any_grid_is_had_by_arguments(small_areas: list[SearchArea]):
    env = gym.make("airloc/Search-v0", areas=small_areas, grid=GRID, budget=3, distance=4, flips=True)
    obs, info = env.reset(seed=0)
    assert "distance" not in info
    for _ in range(3):
        *_, ended, info = env.step(0)
    assert ended
    assert info["distance"] == 4
    assert obs["patch"].shape == (8, 8, 3)
    assert obs["moves_left"].tolist() == [3]


def test_the_same_seed_gives_the_same_episodes(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID, flips=True)
    first = [env.reset(seed=5)[0]["goal"].tobytes(), env.reset()[0]["goal"].tobytes()]
    again = [env.reset(seed=5)[0]["goal"].tobytes(), env.reset()[0]["goal"].tobytes()]
    assert first == again
    assert first[0] != first[1]


def test_rendering_shows_the_search_and_only_on_demand(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID, render_mode="rgb_array")
    assert env.render() is None
    env.reset(seed=0)
    before = env.render()
    env.step(0)
    after = env.render()
    assert before is not None
    assert after is not None
    assert after.dtype == np.uint8
    assert SearchEnv(small_areas, GRID).render() is None


def test_the_vector_environment_declares_and_keeps_its_autoreset_mode(small_areas: list[SearchArea]):
    envs = gym.make_vec("airloc/Search-v0", num_envs=3, areas=small_areas, grid=GRID, budget=2)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    start, goal = np.array([(0, 0)] * 3), np.array([(0, 1), (3, 4), (3, 4)])
    envs.reset(seed=0, options={"area": np.zeros(3, dtype=int), "start": start, "goal": goal})
    _, reward, terminated, truncated, _ = envs.step(np.array([2, 2, 2]))
    assert (reward.tolist(), terminated.tolist(), truncated.any()) == ([2, -1, -1], [True, False, False], False)
    obs, reward, terminated, truncated, _ = envs.step(np.array([2, 6, 6]))
    assert reward.tolist() == [0, -1, -1]
    assert truncated.tolist() == [False, True, True]
    assert obs["moves_left"][0, 0] == 2
    assert envs.observation_space.contains(obs)


def test_flipped_vector_episodes_show_flipped_patches_of_the_same_area(small_areas: list[SearchArea]):
    envs = SearchVectorEnv(64, small_areas[:1], GRID, flips=True)
    obs, _ = envs.reset(seed=3)
    patches = cut_patches(small_areas[0].image, GRID)
    turned = {variant.tobytes() for patch in patches for variant in _variants(patch)}
    assert all(patch.tobytes() in turned for patch in obs["patch"])
    assert any(patch.tobytes() not in {p.tobytes() for p in patches} for patch in obs["patch"])


def _variants(patch: np.ndarray) -> list[np.ndarray]:
    return [patch, patch[::-1], patch[:, ::-1], patch[::-1, ::-1]]


def test_reset_options_fix_what_they_name(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID)
    obs, info = env.reset(seed=0, options={"area": "small_3", "start": (1, 1), "distance": 2})
    assert info["area"] == "small_3"
    assert _fly_away(env)[-1]["distance"] == 2
    assert obs["position"].tolist() == [1, 1]
    goal_only, _ = env.reset(options={"area": 2, "goal": (3, 4)})
    assert np.array_equal(goal_only["goal"], see(small_areas, 2, np.array([3, 4])))


@pytest.mark.parametrize(
    "options",
    [
        {"area": 99},
        {"area": "nowhere"},
        {"start": (9, 9)},
        {"start": (0, 0), "goal": (0, 0)},
        {"distance": 9},
        {"x": 1},
    ],
)
def test_impossible_reset_options_are_refused_with_a_cure(small_areas: list[SearchArea], options: dict):
    with pytest.raises(AirlocError):
        SearchEnv(small_areas, GRID).reset(options=options)


def _fly_away(env: SearchEnv) -> tuple:
    """Step north until the episode ends."""
    while True:
        outcome = env.step(0)
        if outcome[2] or outcome[3]:
            return outcome


def test_stepping_after_the_end_and_moves_that_are_none_are_refused(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID)
    env.reset(seed=0)
    with pytest.raises(AirlocError, match="0 to 7"):
        env.step(8)
    with pytest.raises(AirlocError, match="0 to 7"):
        env.step(-1)
    _fly_away(env)
    with pytest.raises(AirlocError, match="reset"):
        env.step(0)


@pytest.mark.parametrize(
    ("area", "start", "goal"), [(-1, (0, 0), (1, 1)), (99, (0, 0), (1, 1)), (0, (9, 9), (1, 1)), (0, (1, 1), (1, 1))]
)
def test_vector_episodes_that_are_none_are_refused(small_areas: list[SearchArea], area, start, goal):
    with pytest.raises(AirlocError, match="different goals inside"):
        SearchVectorEnv(1, small_areas, GRID).reset(options={"area": [area], "start": [start], "goal": [goal]})


def test_stepping_before_reset_and_unknown_priors_are_refused(small_areas: list[SearchArea]):
    with pytest.raises(AirlocError, match="reset"):
        SearchEnv(small_areas, GRID).step(0)
    with pytest.raises(AirlocError, match="reset"):
        SearchVectorEnv(2, small_areas, GRID).step(np.zeros(2, dtype=int))
    with pytest.raises(AirlocError, match="prior"):
        SearchEnv(small_areas, GRID, prior="hopeful")
    with pytest.raises(AirlocError, match="together"):
        SearchVectorEnv(2, small_areas, GRID).reset(options={"area": [0, 0]})
