"""The Gymnasium, vector and tensor environments follow the same rules, in every variant."""

import functools
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.vec_env import DummyVecEnv

import airloc  # noqa: F401 (registers the environments)
from airloc.areas import load_dataset
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid, MoveCount
from airloc.task import rules
from airloc.task.anywhere import GoalsAnywhere
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable, cut_patches
from airloc.task.env import SearchEnv
from airloc.task.photos import FlightConditions
from airloc.task.priors import PairSampler, uniform
from airloc.task.vector_env import SearchVectorEnv

GRID = Grid(4, 5, 8, 2)
BUDGET = 10
EPISODES = 300
COST = 1.5
ENDINGS = ("found", "false_alarm", "missed")


@pytest.fixture(scope="module")
def small_areas() -> list[SearchArea]:
    rng = np.random.default_rng(0)
    return [SearchArea(f"small_{n}", rng.integers(0, 256, (*GRID.size, 3), dtype=np.uint8)) for n in range(7)]


@functools.cache
def all_patches(areas: tuple[SearchArea, ...]) -> np.ndarray:
    return np.concatenate([cut_patches(one.image, GRID) for one in areas])


def patches_at(areas: list[SearchArea], area: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The patches at positions (B, 2) of areas (B,), black outside."""
    table = all_patches(tuple(areas))
    index = area * GRID.count + position @ [GRID.cols, 1]
    within = rules.inside(position, GRID)
    return np.where(within[:, None, None, None], table[np.where(within, index, 0)], 0)


def closer(found, distance, next_distance):
    """A reward function for arrays and tensors."""
    return 5 * found + 0.5 * (distance - next_distance) - 2


def reference(position, steps, goal, number, declared, grid: Grid, declare: bool, reward) -> rules.StepOutcome:
    how = {"moves": MOVES, "budget": BUDGET, "grid": grid, "reward": reward}
    if declare:
        return rules.declare_or_move(position, steps, goal, number, declared, cost=COST, **how)
    return rules.StepOutcome(*rules.move(position, steps, goal, number, **how), false_alarm=declared)


@pytest.mark.parametrize("moves", [8, 4])
@pytest.mark.parametrize("declare", [False, True])
@pytest.mark.parametrize(
    ("conditions", "own_reward"),
    [
        ({}, None),
        ({"flight": FlightConditions(1.5, seed=4)}, closer),
        ({"goals": GoalsAnywhere()}, None),
        ({"goals": GoalsAnywhere("unknown", seed=3)}, closer),
    ],
)
def test_all_environments_agree_with_the_rules_step_by_step(
    small_areas: list[SearchArea], moves: MoveCount, declare: bool, conditions: dict, own_reward
):
    glimpses, goals = small_areas, small_areas
    for condition in conditions.values():
        glimpses, goals = condition.apply(small_areas, None, GRID)
    rng, grid = np.random.default_rng(1), Grid(4, 5, 8, 2, moves=moves)
    area = rng.integers(len(small_areas), size=EPISODES)
    start, goal = PairSampler(uniform(grid), grid).sample(rng, EPISODES)
    how = {"declare": declare, "false_alarm_cost": COST, "reward": own_reward, **conditions}
    vector = SearchVectorEnv(EPISODES, small_areas, grid, BUDGET, **how)
    batch = BatchEnv.from_areas(
        small_areas,
        grid,
        BUDGET,
        **conditions,
        by_declaration=declare,
        false_alarm_cost=COST,
        reward=own_reward,
    )
    observation, _ = vector.reset(options={"area": area, "start": start, "goal": goal})
    first = batch.reset(*(torch.from_numpy(array) for array in (area, start, goal)))
    assert np.array_equal(observation["patch"], first.patch.numpy())
    assert np.array_equal(observation["goal"], patches_at(goals, area, goal))
    assert np.array_equal(observation["goal"], batch.goal_patches().numpy())

    position, steps, playing = start.copy(), np.zeros(EPISODES, dtype=np.int64), np.ones(EPISODES, dtype=bool)
    log, made, counts = [], 0, dict.fromkeys(ENDINGS, 0)
    for _ in range(BUDGET + declare):
        at_goal = (position == goal).all(axis=1)
        declared = declare & (rng.random(EPISODES) < np.where(at_goal, 0.5, 1 / 15))
        action = np.where(declared, moves, rng.integers(moves, size=EPISODES))
        number = grid.directions[np.where(declared, 0, action)]
        expected = reference(position, steps, goal, number, declared, grid, declare, own_reward)
        observation, reward, terminated, truncated, infos = vector.step(action)
        said = batch.declare(torch.from_numpy(declared)) if declare else None
        step = batch.step(torch.from_numpy(number))
        position = np.where(playing[:, None], expected.position, position)
        steps = np.where(playing, expected.steps, steps)
        ended = expected.found | expected.false_alarm | expected.missed

        def agree(one, other, playing=playing) -> bool:
            return np.array_equal(np.asarray(one)[playing], np.asarray(other)[playing])

        assert agree(reward, expected.reward)
        assert agree(step.reward if said is None else step.reward + said.reward, expected.reward)
        assert agree(terminated, expected.found | expected.false_alarm)
        assert agree(truncated, expected.missed)
        assert agree(step.ended, ended)
        assert agree(step.found if said is None else said.found, expected.found)
        for seen in (observation["position"], step.observation.position):
            assert agree(seen, position)
        for seen in (observation["patch"], step.observation.patch):
            assert agree(seen, patches_at(glimpses, area, position))
        for seen in (observation["moves_left"][:, 0], step.observation.moves_left):
            assert agree(seen, BUDGET - steps)
        if declare:
            assert agree(said.false_alarm, expected.false_alarm)
            assert all(agree(infos[name] & ended, getattr(expected, name)) for name in ENDINGS if ended.any())
        log.append((action, position, expected, playing))
        made += int(playing.sum())
        counts = {name: counts[name] + int(getattr(expected, name)[playing].sum()) for name in ENDINGS}
        playing = playing & ~ended
    assert not playing.any()
    assert made > 4 * EPISODES
    assert sum(counts.values()) == EPISODES
    assert (min(counts.values()) > 15) == declare

    single = SearchEnv(small_areas, grid, BUDGET, **how)
    for n in range(0, EPISODES, 10):
        first, _ = single.reset(options={"area": int(area[n]), "start": start[n], "goal": goal[n]})
        assert np.array_equal(first["goal"], patches_at(goals, area[n : n + 1], goal[n : n + 1])[0])
        for action, position, expected, playing in log:
            if not playing[n]:
                break
            observation, reward, terminated, truncated, info = single.step(action[n])
            assert (reward, truncated) == (expected.reward[n], expected.missed[n])
            assert terminated == (expected.found[n] | expected.false_alarm[n])
            assert np.array_equal(observation["position"], position[n])
            assert np.array_equal(observation["patch"], patches_at(glimpses, area[n : n + 1], position[n : n + 1])[0])
            assert info["action_mask"].shape == (moves + declare,)
            within = rules.moves_inside(position[n], grid, MOVES)[grid.directions]
            assert info["action_mask"].tolist() == [*within.tolist(), 1][: moves + declare]
            if declare and (terminated or truncated):
                assert [info[name] for name in ENDINGS] == [getattr(expected, name)[n] for name in ENDINGS]
        assert info["distance"] == grid.moves_between(start[n], goal[n])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("airloc/Search-5x5-v0", {}),
        ("airloc/Search-7x7-v0", {}),
        ("airloc/Search-5x5-v0", {"moves": 4}),
        ("airloc/Search-5x5-v0", {"declare": True}),
        ("airloc/Search-5x5-v0", {"declare": True, "moves": 4, "false_alarm_cost": 0.5}),
        ("airloc/Search-5x5-v0", {"flight": FlightConditions()}),
        ("airloc/Search-5x5-v0", {"flight": FlightConditions(2.0, variants=2), "flips": True}),
        ("airloc/Search-5x5-v0", {"goals": GoalsAnywhere("unknown", variants=2), "flips": True}),
    ],
)
def test_gymnasium_and_stable_baselines_accept_the_environment(small_areas, name: str, arguments: dict):
    areas = [SearchArea(area.name, area.image.repeat(8, axis=0).repeat(8, axis=1)) for area in small_areas[:2]]
    check_env(gym.make(name, areas=areas, render_mode="rgb_array", **arguments).unwrapped)
    sb3_check_env(gym.make(name, areas=areas, **arguments).unwrapped, warn=False)


@pytest.mark.parametrize("arguments", [{}, {"moves": 4}, {"declare": True}])
def test_action_masks_are_those_that_sb3_contrib_asks_a_vector_of_environments_for(small_areas, arguments: dict):
    envs = DummyVecEnv([lambda: SearchEnv(small_areas, GRID, **arguments)] * 3)
    envs.seed(0)
    envs.reset()
    masks = np.stack(envs.env_method("action_masks"))  # as sb3_contrib.common.maskable.utils.get_action_masks
    positions = np.stack([env._position for env in envs.envs])
    expected = envs.envs[0].actions.mask(positions)
    assert masks.dtype == np.bool_
    assert np.array_equal(masks, expected)
    vector = SearchVectorEnv(50, small_areas, GRID, **arguments)
    _, infos = vector.reset(seed=0)
    assert np.array_equal(vector.action_masks(), infos["action_mask"])
    assert not vector.action_masks().all()


def test_maskable_ppo_never_leaves_the_area(small_areas: list[SearchArea]):
    from sb3_contrib import MaskablePPO  # both imported here, because Stable-Baselines3 takes seconds
    from sb3_contrib.common.maskable.utils import get_action_masks

    areas = [SearchArea(area.name, area.image.repeat(8, axis=0).repeat(8, axis=1)) for area in small_areas[:2]]
    env = gym.make("airloc/Search-5x5-v0", areas=areas)
    model = MaskablePPO("MultiInputPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    model.learn(32)
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        action, _ = model.predict(observation, action_masks=get_action_masks(env))
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        assert rules.inside(observation["position"], Grid(5, 5))


def test_areas_are_a_list_a_dataset_a_name_or_a_path(areas_folder: Path):
    dataset = load_dataset(areas_folder)
    expected = tuple(area.name for area in dataset.areas(Grid(5, 5)))
    for areas in (dataset, areas_folder, str(areas_folder), iter(list(dataset.areas(Grid(5, 5))))):
        assert SearchEnv(areas).sampler.names == expected
    assert SearchVectorEnv(2, areas_folder).sampler.names == expected
    assert len(SearchEnv(load_dataset("synthetic", count=3), "4x4").sampler.names) == 3


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("areas", 5),
        ("areas", [np.zeros((48, 48, 3), dtype=np.uint8)]),
        ("areas", "no-such-folder"),
        ("grid", 5),
        ("grid", "5y"),
        ("budget", "ten"),
        ("budget", 2.5),
        ("moves", 5),
        ("prior", "hopeful"),
        ("distance", "far"),
        ("false_alarm_cost", "dear"),
        ("flight", 1.0),
        ("goals", "anywhere"),
        ("reward", 3),
        ("reward", "no_such_module:reward"),
        ("reward", "airloc.task.rules"),
        ("reward", "airloc.task.rules:no_such_function"),
    ],
)
@pytest.mark.parametrize("kind", [SearchEnv, SearchVectorEnv])
def test_a_bad_argument_is_named(small_areas: list[SearchArea], kind: type, argument: str, value: object):
    arguments = {"areas": small_areas, "grid": GRID, argument: value}
    with pytest.raises(AirlocError) as error:
        kind(**arguments)
    shown = "ndarray" if isinstance(value, list) else "int" if argument == "areas" and value == 5 else str(value)
    assert shown in str(error.value)


def test_bad_numbers_of_environments_render_modes_and_rewards_are_named(small_areas: list[SearchArea]):
    for count in (0, -1, 2.5, "two"):
        with pytest.raises(AirlocError, match="num_envs"):
            SearchVectorEnv(count, small_areas, GRID)
    with pytest.raises(AirlocError, match="render_mode 'movie'"):
        SearchEnv(small_areas, GRID, render_mode="movie")
    for reward in (lambda found, distance, after: 1, lambda found, distance, after: np.zeros((1, 2))):
        env = SearchEnv(small_areas, GRID, reward=reward)
        env.reset(seed=0)
        with pytest.raises(AirlocError, match="reward function returns"):
            env.step(0)
    for env in (SearchEnv(small_areas, GRID), SearchVectorEnv(1, small_areas, GRID)):
        with pytest.raises(AirlocError, match="reset"):
            env.action_masks()


def test_a_reward_function_is_named_by_its_module(small_areas: list[SearchArea], tmp_path: Path, monkeypatch):
    (tmp_path / "my_rewards.py").write_text("def closer(found, distance, next_distance):\n    return found * 7 - 0.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    env = SearchEnv(small_areas, GRID, reward="my_rewards:closer")
    env.reset(options={"start": (0, 0), "goal": (1, 1)})
    assert env.step(4)[1] == -0.5
    assert env.step(2)[1] == 6.5


def test_the_tensor_environment_refuses_episodes_that_start_at_their_goal(small_areas: list[SearchArea]):
    env = BatchEnv.from_areas(small_areas, GRID, BUDGET)
    cells = torch.tensor([[0, 1], [2, 2]])
    with pytest.raises(AirlocError, match="1 of 2 episodes start at their goal"):
        env.reset(torch.tensor([0, 1]), cells, torch.tensor([[0, 1], [2, 3]]))


def test_arguments_set_the_grid_the_budget_and_the_distance(small_areas: list[SearchArea]):
    env = gym.make("airloc/Search-v0", areas=small_areas, grid=GRID, budget=3, distance=4, flips=True)
    observation, info = env.reset(seed=0)
    assert "distance" not in info
    for _ in range(3):
        *_, ended, info = env.step(0)
    assert ended
    assert info["distance"] == 4
    assert observation["patch"].shape == (8, 8, 3)
    assert observation["moves_left"].tolist() == [3]


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


def test_the_vector_environment_resets_in_the_next_step(small_areas: list[SearchArea]):
    envs = gym.make_vec("airloc/Search-v0", num_envs=3, areas=small_areas, grid=GRID, budget=2)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    start, goal = np.array([(0, 0)] * 3), np.array([(0, 1), (3, 4), (3, 4)])
    envs.reset(seed=0, options={"area": np.zeros(3, dtype=int), "start": start, "goal": goal})
    _, reward, terminated, truncated, _ = envs.step(np.array([2, 2, 2]))
    assert (reward.tolist(), terminated.tolist(), truncated.any()) == ([2, -1, -1], [True, False, False], False)
    observation, reward, terminated, truncated, _ = envs.step(np.array([2, 6, 6]))
    assert reward.tolist() == [0, -1, -1]
    assert truncated.tolist() == [False, True, True]
    assert observation["moves_left"][0, 0] == 2
    assert envs.observation_space.contains(observation)


def test_flipped_episodes_show_flipped_patches_of_the_same_area(small_areas: list[SearchArea]):
    envs = SearchVectorEnv(64, small_areas[:1], GRID, flips=True)
    observation, _ = envs.reset(seed=3)
    patches = cut_patches(small_areas[0].image, GRID)
    flipped = {one.tobytes() for p in patches for one in (p, p[::-1], p[:, ::-1], p[::-1, ::-1])}
    assert all(patch.tobytes() in flipped for patch in observation["patch"])
    assert any(patch.tobytes() not in {p.tobytes() for p in patches} for patch in observation["patch"])


def test_every_episode_draws_a_variant_of_the_photos_and_keeps_it(small_areas: list[SearchArea]):
    flight = FlightConditions(variants=3)
    glimpses, goals = (
        [cut_patches(flight.photograph(small_areas[:1], GRID, role, n)[0].image, GRID) for n in range(3)]
        for role in ("glimpse", "goal")
    )
    env, drawn = SearchEnv(small_areas[:1], GRID, flight=flight), []
    for seed in range(12):
        first, _ = env.reset(seed=seed, options={"start": (1, 1), "goal": (3, 3)})
        env.step(2)
        back, *_ = env.step(6)
        assert np.array_equal(first["patch"], back["patch"])
        (number,) = (n for n in range(3) if np.array_equal(first["goal"], goals[n][GRID.index((3, 3))]))
        assert np.array_equal(first["patch"], glimpses[number][GRID.index((1, 1))])
        drawn.append(number)
    assert set(drawn) == {0, 1, 2}
    envs = SearchVectorEnv(64, small_areas[:1], GRID, flight=flight)
    episodes = {"area": np.zeros(64, dtype=int), "start": np.array([(1, 1)] * 64), "goal": np.array([(3, 3)] * 64)}
    observation, _ = envs.reset(seed=0, options=episodes)
    numbers = [{n for n in range(3) if np.array_equal(goal, goals[n][-2])} for goal in observation["goal"]]
    assert set.union(*numbers) == {0, 1, 2}
    for patch, number in zip(observation["patch"], numbers, strict=True):
        assert np.array_equal(patch, glimpses[min(number)][GRID.index((1, 1))])


def test_without_flight_conditions_seeds_give_the_episodes_that_they_always_gave(small_areas: list[SearchArea]):
    one, other = (SearchEnv(small_areas, GRID, flight=flight) for flight in (None, FlightConditions()))
    for seed in range(5):
        (first, info), (second, other_info) = (env.reset(seed=seed) for env in (one, other))
        assert info["area"] == other_info["area"]
        assert first["position"].tolist() == second["position"].tolist()


def test_reset_options_fix_what_they_name(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID)
    observation, info = env.reset(seed=0, options={"area": "small_3", "start": (1, 1), "distance": 2})
    assert info["area"] == "small_3"
    assert fly_north(env)[-1]["distance"] == 2
    assert observation["position"].tolist() == [1, 1]
    goal_only, _ = env.reset(options={"area": 2, "goal": (3, 4)})
    assert np.array_equal(goal_only["goal"], patches_at(small_areas, np.array([2]), np.array([[3, 4]]))[0])


@pytest.mark.parametrize(
    "options",
    [
        {"area": 99},
        {"area": "nowhere"},
        {"start": (9, 9)},
        {"start": (0, 0), "goal": (0, 0)},
        {"distance": 9},
        {"x": 1},
        {"area": 0.5},
        {"start": (0.5, 0)},
        {"start": 5},
        {"goal": (0, 0, 0)},
        {"distance": "far"},
    ],
)
def test_invalid_reset_options_are_refused(small_areas: list[SearchArea], options: dict):
    with pytest.raises(AirlocError):
        SearchEnv(small_areas, GRID).reset(options=options)


def fly_north(env: SearchEnv) -> tuple:
    """Step north until the episode ends."""
    while True:
        outcome = env.step(0)
        if outcome[2] or outcome[3]:
            return outcome


def test_steps_after_the_end_and_invalid_actions_are_refused(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID)
    with pytest.raises(AirlocError, match="reset"):
        env.step(0)
    env.reset(seed=0)
    for action in (8, -1):
        with pytest.raises(AirlocError, match="0 to 7"):
            env.step(action)
    fly_north(env)
    with pytest.raises(AirlocError, match="reset"):
        env.step(0)


@pytest.mark.parametrize("actions", [[-1, 0], [8, 0], [0], [[0], [1]], [0.5, 0], 3, None])
def test_invalid_actions_leave_a_vector_environment_as_it_was(small_areas: list[SearchArea], actions):
    env = SearchVectorEnv(2, small_areas, GRID)
    before = env.reset(seed=0)[0]["position"]
    with pytest.raises(AirlocError, match="0 to 7"):
        env.step(np.array(actions))
    after = env.step(np.zeros(2, dtype=int))[0]["position"]
    assert (after == before + MOVES[0]).all()


@pytest.mark.parametrize(
    ("area", "start", "goal"), [(-1, (0, 0), (1, 1)), (99, (0, 0), (1, 1)), (0, (9, 9), (1, 1)), (0, (1, 1), (1, 1))]
)
def test_invalid_episodes_of_a_vector_environment_are_counted(small_areas: list[SearchArea], area, start, goal):
    options = {"area": [area, 0], "start": [start, (0, 0)], "goal": [goal, (1, 1)]}
    with pytest.raises(AirlocError, match="1 of 2"):
        SearchVectorEnv(2, small_areas, GRID).reset(options=options)


@pytest.mark.parametrize(
    "options", [{"area": [0] * 3}, {"start": [(0, 0)] * 3}, {"goal": "here"}, {"area": ["x", "y"]}]
)
def test_episodes_that_do_not_fit_the_number_of_environments_are_refused(small_areas: list[SearchArea], options: dict):
    complete = {"area": [0, 1], "start": [(0, 0)] * 2, "goal": [(1, 1)] * 2}
    env = SearchVectorEnv(2, small_areas, GRID)
    env.reset(options=complete)
    with pytest.raises(AirlocError, match="2 environments"):
        env.reset(options=complete | options)


def test_one_episode_can_be_fixed_for_all_environments_of_a_vector(small_areas: list[SearchArea]):
    env = SearchVectorEnv(2, small_areas, GRID)
    observation, _ = env.reset(options={"area": 0, "start": (1, 2), "goal": (0, 0)})
    assert observation["position"].tolist() == [[1, 2]] * 2
    assert (observation["goal"] == patches_at(small_areas, np.array([0, 0]), np.zeros((2, 2), dtype=int))).all()


def test_invalid_use_of_the_environments_is_refused(small_areas: list[SearchArea]):
    with pytest.raises(AirlocError, match="reset"):
        SearchVectorEnv(2, small_areas, GRID).step(np.zeros(2, dtype=int))
    with pytest.raises(AirlocError, match="area, start and goal"):
        SearchVectorEnv(2, small_areas, GRID).reset(options={"area": [0, 0]})
    with pytest.raises(AirlocError, match="'hopeful'"):
        SearchEnv(small_areas, GRID, prior="hopeful")
    for cost in (-1.0, float("nan"), float("inf")):
        with pytest.raises(AirlocError, match=str(cost)):
            SearchEnv(small_areas, GRID, declare=True, false_alarm_cost=cost)


def test_a_find_has_the_same_return_with_and_without_declarations(small_areas: list[SearchArea]):
    returns = []
    for declare in (False, True):
        env = SearchEnv(small_areas, GRID, BUDGET, declare=declare)
        env.reset(options={"area": 0, "start": (0, 0), "goal": (0, 3)})
        outcomes = [env.step(move) for move in ([2, 2, 2, 8] if declare else [2, 2, 2])]
        assert [terminated for _, _, terminated, _, _ in outcomes] == [False] * (len(outcomes) - 1) + [True]
        returns.append(sum(reward for _, reward, *_ in outcomes))
    assert returns == [0.0, 0.0]


def test_the_last_glimpse_can_be_declared_and_a_move_instead_is_a_miss(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID, 1, declare=True)
    for last, reward, ending in ((8, 3.0, "found"), (2, 0.0, "missed")):
        env.reset(options={"area": 0, "start": (0, 0), "goal": (0, 1)})
        observation, _, terminated, truncated, info = env.step(2)
        assert (terminated, truncated, observation["moves_left"].tolist()) == (False, False, [0])
        assert not set(ENDINGS) & set(info)
        observation, got, *_, info = env.step(last)
        assert (got, info[ending], sum(info[name] for name in ENDINGS)) == (reward, True, 1)
        assert observation["position"].tolist() == [0, 1], "without moves left the position does not change"


def test_the_tensor_environment_ends_each_episode_once(small_areas: list[SearchArea]):
    env = BatchEnv(CellTable.from_areas(small_areas[:1], GRID), 1, by_declaration=True)
    env.reset(torch.tensor([0, 0]), torch.tensor([[0, 0], [0, 0]]), torch.tensor([[0, 1], [3, 4]]))
    assert not env.declare(torch.tensor([False, False])).ended.any()
    step = env.step(torch.tensor([2, 2]))
    assert (step.ended.any(), step.reward.tolist()) == (False, [-1, -1])
    last = env.declare(torch.tensor([True, False]))
    assert (last.found.tolist(), last.false_alarm.any()) == ([True, False], False)
    assert last.ended.all()
    again = env.declare(torch.tensor([True, True]))
    assert not (again.found | again.false_alarm).any()


def test_a_vector_of_declaring_environments_continues_after_the_end(small_areas: list[SearchArea]):
    envs = gym.make_vec("airloc/Search-v0", num_envs=2, areas=small_areas, grid=GRID, budget=3, declare=True)
    assert envs.single_action_space.n == 9
    envs.reset(seed=0, options={"area": [0, 0], "start": [(0, 0)] * 2, "goal": [(0, 1)] * 2})
    _, reward, terminated, _, infos = envs.step(np.array([8, 2]))
    assert (reward.tolist(), terminated.tolist()) == ([-12, -1], [True, False])
    assert (infos["false_alarm"].tolist(), infos["_false_alarm"].tolist()) == ([True, False], [True, False])
    observation, reward, terminated, truncated, infos = envs.step(np.array([8, 8]))
    assert (reward.tolist(), terminated.tolist(), truncated.any()) == ([0, 3], [False, True], False)
    assert (infos["found"].tolist(), infos["_found"].tolist()) == ([False, True], [False, True])
    assert observation["moves_left"][0, 0] == 3


def test_the_declaration_is_an_action_only_where_episodes_end_by_it(small_areas: list[SearchArea]):
    env = SearchEnv(small_areas, GRID)
    _, info = env.reset(seed=0)
    assert (env.action_space.n, info["action_mask"].shape) == (8, (8,))
    envs = SearchVectorEnv(1, small_areas, GRID)
    envs.reset(seed=0)
    with pytest.raises(AirlocError, match="0 to 7"):
        envs.step(np.array([8]))
    env = SearchEnv(small_areas, GRID, declare=True)
    env.reset(seed=0)
    with pytest.raises(AirlocError, match="0 to 8"):
        env.step(9)
