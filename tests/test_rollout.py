"""Playing suites: paths obey the rules, whatever the batch, and agents get what they are told they get."""

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.registry import available_agents, make_agent
from airloc.areas.area import SearchArea
from airloc.grid import Grid
from airloc.rollout import _noise, play
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.suites import Suite, per_distance, uniform

GRID = Grid(5, 5)


@pytest.fixture(scope="module")
def suite(toy_areas: list[SearchArea]) -> Suite:
    return uniform([area.name for area in toy_areas], GRID, per_area=4)


@pytest.fixture(scope="module")
def env(toy_areas: list[SearchArea]) -> BatchEnv:
    return BatchEnv(CellTable.of(toy_areas, GRID), 10)


@pytest.mark.parametrize("name", available_agents())
def test_paths_are_kings_moves_from_the_start_and_stop_at_the_goal(name: str, suite: Suite, env: BatchEnv):
    played = play(make_agent(name), suite, env)
    assert np.array_equal(played.path[:, 0], suite.start)
    steps = np.abs(np.diff(played.path, axis=1)).max(axis=2)
    for number, found in enumerate(played.found):
        made = int(played.steps[number])
        assert steps[number].tolist() == [1] * made + [0] * (10 - made)
        at_goal = (played.path[number, : made + 1] == suite.goal[number]).all(axis=1)
        assert at_goal.tolist() == [False] * made + [bool(found)]
        assert found or made == 10


@pytest.mark.parametrize(("name", "batch"), [(name, 1 + 6 * (n % 2)) for n, name in enumerate(available_agents())])
def test_the_batch_changes_nothing(name: str, batch: int, suite: Suite, env: BatchEnv):
    whole, parts = (play(make_agent(name), suite, env, seed=3, batch=size) for size in (1024, batch))
    assert np.array_equal(whole.path, parts.path)


def test_the_seed_decides_what_is_drawn(suite: Suite, env: BatchEnv):
    first, again, other = (play(make_agent("random"), suite, env, seed=seed).path for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_noise_is_one_stream_in_windows():
    whole = _noise(5, slice(0, 9), 7)
    assert whole.shape == (9, 7, 8)
    assert whole.min() >= 0
    assert whole.max() < 1
    for first, last in ((0, 1), (3, 9), (8, 9)):
        assert np.array_equal(whole[first:last], _noise(5, slice(first, last), 7))


class SamePlaceCalibration:
    """Writes down what it is told, and flies north."""

    name = "witness"

    def __init__(self) -> None:
        self.briefings: list[EpisodeBatch] = []
        self.glimpses: list[Observation] = []

    def reset(self, episodes: EpisodeBatch) -> None:
        self.briefings.append(episodes)

    def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
        self.glimpses.append(observation)
        return torch.zeros(len(observation.position), dtype=torch.int64), state


def test_agents_are_told_the_goals_picture_and_see_black_outside(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    cells = CellTable.of(toy_areas, GRID)
    calibration, counted = SamePlaceCalibration(), []
    play(calibration, suite, BatchEnv(cells, 10), batch=10, on_batch=counted.append)
    assert counted == [10, 10, 4]
    goal = torch.from_numpy(suite.goal[:10])
    assert torch.equal(calibration.briefings[0].goal, cells.patches(torch.from_numpy(suite.area[:10]), goal))
    assert calibration.briefings[0].noise.shape == (10, 10, 8)
    last = calibration.glimpses[9]
    assert last.moves_left.min() == 1
    outside = last.position[:, 0] < 0
    assert outside.any()
    assert not last.patch[outside].any()


def test_other_goal_pictures_are_shown_where_given(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], GRID)
    calibration = SamePlaceCalibration()
    grey = torch.full((48, 48, 3), 99, dtype=torch.uint8)
    numbers: list[int] = []

    def pictures(these: torch.Tensor) -> torch.Tensor:
        numbers.extend(these.tolist())
        return grey.expand(len(these), -1, -1, -1)

    played = play(calibration, suite, BatchEnv(CellTable.of(toy_areas, GRID), 10), batch=9, goals=pictures)
    assert numbers == list(range(24))
    assert all(bool((episodes.goal == 99).all()) for episodes in calibration.briefings)
    assert played.seconds > 0
