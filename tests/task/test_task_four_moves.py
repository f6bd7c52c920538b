"""Four moves as a property of the task: every shell, suite and agent follows, and the blind optimum with them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.agent import EpisodeBatch
from airloc.agents.blind import blind
from airloc.agents.registry import available_agents, make_agent
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import evaluate
from airloc.evaluation.metrics import blind_optimum, blind_optimum_by_distance, blind_optimum_is_exact
from airloc.grid import MOVES, Grid
from airloc.rollout import rollout
from airloc.task import priors, rules
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.env import SearchEnv
from airloc.task.suites import far_pairs, per_distance, uniform
from airloc.task.vector_env import SearchVectorEnv
from untrained import untrained_airloc

GRID = Grid(5, 5, moves=4)
SMALL = Grid(3, 4, 8, 2, moves=4)


@pytest.fixture(scope="module")
def small_areas() -> list[SearchArea]:
    rng = np.random.default_rng(0)
    return [SearchArea(f"small_{n}", rng.integers(0, 256, (*SMALL.size, 3), dtype=np.uint8)) for n in range(3)]


@given(st.integers(1, 9), st.integers(2, 9))
def test_neighbours_are_the_cells_at_manhattan_distance_one(rows: int, cols: int):
    grid = Grid(rows, cols, moves=4)
    cells = np.array(list(grid.cells()))
    table = np.abs(cells[:, None] - cells[None]).sum(axis=2)
    assert np.array_equal(grid.distances(), table)
    assert grid.max_distance == table.max()
    for number, cell in enumerate(grid.cells()):
        assert {grid.index(to) for to in grid.neighbours(cell)} == set(np.flatnonzero(table[number] == 1).tolist())


@pytest.mark.parametrize("moves", [0, 5, 16])
def test_other_numbers_of_moves_are_refused(moves: int):
    with pytest.raises(AirlocError, match="4 or 8"):
        Grid(5, 5, moves=moves)  # type: ignore[arg-type]


def test_the_border_is_closed_and_diagonals_lead_nowhere_but_cost_a_move():
    corner, goal = np.zeros((8, 2), dtype=np.int64), np.full((8, 2), 2)
    out = rules.move(corner, np.zeros(8, dtype=np.int64), goal, np.arange(8), moves=MOVES, budget=10, grid=GRID)
    moved = {number for number in range(8) if out.position[number].any()}
    assert moved == {2, 4}
    assert out.steps.tolist() == [1] * 8


@given(st.tuples(st.integers(0, 4), st.integers(0, 4)))
def test_allowed_moves_are_those_to_the_neighbours(cell: tuple[int, int]):
    allowed = np.flatnonzero(rules.moves_allowed(np.array(cell), GRID, MOVES))
    assert [tuple((np.array(cell) + MOVES[number]).tolist()) for number in allowed] == GRID.neighbours(cell)
    tensor = rules.moves_allowed(torch.tensor(cell), GRID, torch.from_numpy(MOVES))
    assert np.array_equal(np.flatnonzero(tensor.numpy()), allowed)


def test_the_shells_agree_step_by_step(small_areas: list[SearchArea]):
    rng, count, budget = np.random.default_rng(1), 300, SMALL.default_budget
    area = rng.integers(3, size=count)
    start, goal = priors.PairSampler(priors.uniform(SMALL), SMALL).draw(rng, count)
    actions = rng.integers(4, size=(budget, count))
    single = SearchEnv(small_areas, replace(SMALL, moves=8), moves=4)
    vector = SearchVectorEnv(count, small_areas, SMALL)
    batch = BatchEnv(CellTable.of(small_areas, SMALL), budget)
    assert single.action_space.n == vector.single_action_space.n == 4
    _, infos = vector.reset(options={"area": area, "start": start, "goal": goal})
    assert infos["action_mask"].shape == (count, 4)
    batch.reset(*(torch.from_numpy(array) for array in (area, start, goal)))
    playing, log = np.ones(count, dtype=bool), []
    for t in range(budget):
        obs, reward, found, spent, _ = vector.step(actions[t])
        step = batch.step(torch.from_numpy(SMALL.directions[actions[t]]))
        assert np.array_equal(obs["position"][playing], step.observation.position.numpy()[playing])
        assert np.array_equal(reward[playing], step.reward.numpy()[playing])
        assert rules.inside(step.observation.position, SMALL).all()
        log.append((step.observation.position.numpy().copy(), reward.copy(), playing.copy()))
        playing = playing & ~(found | spent)
    assert not playing.any()
    for n in range(0, count, 10):
        single.reset(options={"area": int(area[n]), "start": start[n], "goal": goal[n]})
        for t, (position, reward, on) in enumerate(log):
            if on[n]:
                obs, earned, *_, info = single.step(actions[t, n])
                assert np.array_equal(obs["position"], position[n])
                assert earned == reward[n]
        assert info["distance"] == np.abs(start[n] - goal[n]).sum()


def test_gymnasium_accepts_the_environment_of_four_moves():
    check_env(SearchEnv(moves=4), skip_render_check=True)


@pytest.mark.parametrize("name", available_agents())
def test_agents_keep_to_the_four_moves_and_inside(name: str, toy_areas: list[SearchArea]):
    suite = far_pairs([area.name for area in toy_areas], GRID, per_area=1)
    played = rollout(make_agent(name), suite, BatchEnv(CellTable.of(toy_areas, GRID), suite.budget))
    assert rules.inside(played.path, GRID).all()
    steps = np.abs(np.diff(played.path, axis=1)).sum(axis=2)
    made = np.arange(suite.budget) < played.steps[:, None]
    assert (steps[made] == 1).all()


def test_sampled_moves_keep_to_the_four_too(toy_areas: list[SearchArea]):
    suite = far_pairs([area.name for area in toy_areas], GRID, per_area=1)
    played = rollout(untrained_airloc(sample=True), suite, BatchEnv(CellTable.of(toy_areas, GRID), suite.budget))
    assert (np.abs(np.diff(played.path, axis=1)).sum(axis=2) <= 1).all()


class Diagonal:
    """An agent that knows nothing of four moves."""

    name = "diagonal"

    def reset(self, episodes: EpisodeBatch) -> None:
        del episodes

    def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
        return torch.full((len(observation.patch),), 3), state


class Stubborn(Diagonal):
    """An agent that always flies north."""

    def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
        return torch.zeros(len(observation.patch), dtype=torch.int64), state


def test_an_agent_that_flies_diagonally_is_told_that_it_cannot_play(toy_areas: list[SearchArea]):
    suite = far_pairs(["toy_0"], GRID)
    with pytest.raises(AirlocError, match="'diagonal' moves diagonally"):
        evaluate(Diagonal(), suite, toy_areas[:1])
    assert evaluate(Diagonal(), toy_areas[:1], per_distance(["toy_0"], Grid(5, 5))).agent == "diagonal"


def test_moves_against_the_border_are_counted(toy_areas: list[SearchArea]):
    suite = far_pairs(["toy_0"], GRID)
    score = evaluate(Stubborn(), suite, toy_areas[:1])
    assert (score.log.steps[~score.log.found] == 10).all()


def test_the_successors_suite_has_five_episodes_per_area_and_distance_with_all_pairs_alike():
    suite = far_pairs([f"a{n}" for n in range(400)], GRID)
    assert (suite.budget, len(suite)) == (10, 400 * 25)
    assert np.unique(suite.distance, return_counts=True)[1].tolist() == [2000] * 5
    assert set(suite.distance.tolist()) == {4, 5, 6, 7, 8}
    corner_to_corner = suite.start[suite.distance == 8]
    assert {tuple(cell) for cell in corner_to_corner.tolist()} == {(0, 0), (0, 4), (4, 0), (4, 4)}
    at_four = suite.distance == 4
    centre = (suite.start[at_four] == 2).all(axis=1).mean()
    assert centre == pytest.approx(4 / (GRID.distances() == 4).sum(), abs=0.01)


def test_the_digest_knows_the_moves_and_keeps_what_it_was_for_eight():
    eight, four = uniform(["a"], Grid(5, 5)), uniform(["a"], GRID)
    assert eight.csv() == four.csv()
    assert eight.digest != four.digest
    assert eight.digest == "dbb5394ce70ed9ead5232e93d1476dbb368c6d4c77738ad8792dd3f8789e5d1d"


def test_the_blind_optimum_of_the_successors_protocol_by_distance():
    optimum = blind_optimum_by_distance(GRID, 10, priors.far_pairs)
    assert [round(value, 3) for value in optimum.values()] == [0.483, 0.6, 0.9, 1, 1]
    assert list(optimum) == [4, 5, 6, 7, 8]
    suite = far_pairs(["a"], GRID)
    assert blind_optimum(suite) == pytest.approx(0.7967, abs=1e-4)
    assert blind_optimum_is_exact(suite)


def test_flown_without_looking_the_path_finds_what_the_optimum_says(toy_areas: list[SearchArea]):
    suite = far_pairs([area.name for area in toy_areas], GRID, per_area=150)
    score = evaluate(blind(0, priors.far_pairs), suite, toy_areas)
    assert score.value("success") == pytest.approx(0.797, abs=0.02)


def test_with_uniform_goals_no_blind_path_finds_more_than_its_ten_cells_of_twenty_four():
    table = priors.uniform(GRID)
    by_distance = blind_optimum_by_distance(GRID, 10, priors.uniform)
    share = {distance: table[GRID.distances() == distance].sum() for distance in by_distance}
    assert sum(by_distance[distance] * share[distance] for distance in share) == pytest.approx(10 / 24)


def test_told_the_distance_a_blind_path_would_find_still_more():
    optima = [
        np.mean(list(blind_optimum_by_distance(GRID, 10, partial(priors.at_distance, distance=distance)).values()))
        for distance in range(4, 9)
    ]
    assert np.mean(optima) == pytest.approx(0.931, abs=0.0005)
