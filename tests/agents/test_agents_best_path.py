"""The blind optimum, checked against brute force and against the reference values of the task."""

import time
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents import blind
from airloc.agents.agent import EpisodeBatch
from airloc.agents.best_path import best_paths
from airloc.grid import MOVES, Grid, distance
from airloc.task import priors
from airloc.task.batch import Observation

pytestmark = pytest.mark.long


def brute_force(grid: Grid, budget: int, start: tuple[int, int], weights: np.ndarray):
    """Every sequence of moves inside, the best value, and the share of the best that visit each cell."""
    best, visits = -1.0, []
    for actions in product(range(8), repeat=budget):
        cell, seen = start, {start}
        for action in actions:
            cell = (cell[0] + int(MOVES[action][0]), cell[1] + int(MOVES[action][1]))
            if not grid.contains(cell):
                break
            seen.add(cell)
        else:
            value = sum(weights[grid.index(c)] for c in seen - {start})
            if value > best + 1e-12:
                best, visits = value, []
            if value > best - 1e-12:
                visits.append([c in seen for c in grid.cells()])
    return best, np.mean(visits, axis=0)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([Grid(2, 3), Grid(3, 3), Grid(1, 4)]),
    st.integers(1, 4),
    st.lists(st.integers(0, 3), min_size=9, max_size=9),
    st.integers(0, 3),
)
def test_search_finds_the_optimum_and_all_its_paths_as_brute_force_does(grid, budget, levels, start):
    weights = np.array(levels[: grid.count], dtype=float)
    cell = grid.cell_of(start % grid.count)
    weights[grid.index(cell)] = 0
    value, share = brute_force(grid, budget, cell, weights)
    found = best_paths(grid, budget, cell, weights)
    assert found.exact
    assert found.value == pytest.approx(value)
    assert np.allclose(found.share, share)


def expected_success(grid: Grid, prior: np.ndarray) -> float:
    """The best that blind flight can reach on a square grid when it knows the prior, which has its symmetries."""
    last, total = grid.rows - 1, 0.0
    for row, col in grid.cells():
        if row <= col <= last // 2:
            turned = {(a, b) for r, c in ((row, col), (col, row)) for a in (r, last - r) for b in (c, last - c)}
            paths = best_paths(grid, grid.default_budget, (row, col), prior[grid.index((row, col))])
            assert paths.exact
            total += len(turned) * paths.value
    return total


@pytest.mark.parametrize(
    ("grid", "prior", "success"),
    [
        (Grid(5, 5), "per-distance", 0.521),
        (Grid(5, 5), "pairs-per-distance", 0.493),
        (Grid(5, 5), "uniform", 0.417),
        pytest.param(Grid(7, 7), "per-distance", 0.410, marks=pytest.mark.slow),
        pytest.param(Grid(7, 7), "pairs-per-distance", 0.386, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_reference_values_are_met_exactly(grid: Grid, prior: str, success: float):
    assert expected_success(grid, priors.PRIORS[prior](grid)) == pytest.approx(success, abs=5e-4)


def test_drawn_paths_are_flyable_optimal_and_follow_the_seed():
    grid, budget = Grid(5, 5), 10
    prior = priors.per_distance(grid)
    for start in grid.cells():
        path = blind.blind(seed=3).plan(grid, budget, start)
        assert path == blind.blind(seed=3).plan(grid, budget, start)
        assert path[0] == start
        assert len(path) == budget + 1
        assert all(grid.contains(cell) for cell in path)
        assert all(distance(a, b) == 1 for a, b in pairwise(path))
        value = prior[grid.index(start), [grid.index(cell) for cell in set(path)]].sum()
        assert value == pytest.approx(best_paths(grid, budget, start, prior[grid.index(start)]).value)
    paths = {tuple(blind.blind(seed).plan(grid, budget, (2, 2))) for seed in range(8)}
    assert len(paths) > 1


def test_success_table_is_the_frequency_of_visits_among_drawn_paths():
    grid, budget, start = Grid(3, 4), 4, (0, 2)
    table = blind.success_table(grid, budget, [start])[start]
    plans = [blind.blind(seed).plan(grid, budget, start) for seed in range(3000)]
    seen = np.array([[cell in plan for cell in grid.cells()] for plan in plans]).mean(axis=0).reshape(grid.shape)
    assert np.abs(seen - table).max() < 0.04


def test_mirrored_starts_have_mirrored_tables():
    grid = Grid(4, 5)
    tables = blind.success_table(grid, 8, list(grid.cells()))
    for row, col in grid.cells():
        assert np.allclose(tables[row, col][::-1], tables[3 - row, col])
        assert np.allclose(tables[row, col][:, ::-1], tables[row, 4 - col])


def test_large_grids_get_a_lower_bound_that_can_be_flown():
    grid = Grid(12, 12)
    prior = priors.per_distance(grid)[grid.index((0, 6))]
    paths = best_paths(grid, 24, (0, 6), prior)
    assert not paths.exact
    path = paths.draw(np.random.default_rng(0))
    assert prior[[grid.index(cell) for cell in set(path)]].sum() == pytest.approx(paths.value)
    assert paths.share.sum() >= 20


def test_a_beam_that_collects_as_much_as_any_path_could_is_proven_optimal():
    grid = Grid(12, 12)
    assert best_paths(grid, 24, (6, 6), priors.per_distance(grid)[grid.index((6, 6))]).exact


@pytest.mark.parametrize(("shape", "budget"), [("5x5", 40), ("5x5", 200), ("1x30", 2000), ("2x3", 2048)])
def test_long_budgets_find_every_goal_by_paths_that_can_be_flown(shape: str, budget: int):
    grid = Grid.parse(shape)
    starts = [(0, 0), (grid.rows // 2, grid.cols // 2)]
    tables = blind.success_table(grid, budget, starts)
    assert blind.is_exact(grid, budget, starts)
    for start in starts:
        assert tables[start].min() == pytest.approx(1)
        path = blind.blind().plan(grid, budget, start)
        assert len(path) == budget + 1
        assert set(path) == set(grid.cells())
        assert all(distance(a, b) == 1 for a, b in pairwise(path))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["3x20", "20x20", "30x30"])
def test_large_grids_do_not_keep_anybody_waiting(shape: str):
    grid = Grid.parse(shape)
    began = time.process_time()
    tables = blind.success_table(grid, grid.default_budget, list(grid.cells()))
    assert time.process_time() - began < 20
    assert all(table.sum() > grid.default_budget / 2 for table in tables.values())


def test_blind_flies_the_best_path_of_the_prior_that_comes_with_an_episode():
    grid, budget = Grid(4, 5), 5
    weights = np.random.default_rng(1).dirichlet(np.full(grid.count, 0.3), size=2)
    goal = torch.zeros(2, 48, 48, 3, dtype=torch.uint8)
    agent, starts = blind.blind(), torch.tensor([[0, 0], [2, 3]])
    state = agent.reset(EpisodeBatch(goal, grid, budget, torch.zeros(2, budget, 8), torch.from_numpy(weights)))
    position, collected = starts.clone(), [set(), set()]
    for left in range(budget, 0, -1):
        moves, state = agent.act(Observation(goal, position, torch.full((2,), left)), state)
        position = position + torch.from_numpy(MOVES)[moves]
        for seen, cell in zip(collected, position.tolist(), strict=True):
            seen.add(tuple(cell))
    for number, seen in enumerate(collected):
        start = tuple(starts[number].tolist())
        best = best_paths(grid, budget, start, weights[number])
        assert sum(weights[number][grid.index(cell)] for cell in seen - {start}) == pytest.approx(best.value)
