"""Planned flights stay in their budget, visit what is worth the way, and begin where probability is soonest."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.missions.tour_search import improve_tours, seen_fractions
from airloc.missions.tours import parallel_tracks, plan_tours


@pytest.fixture(autouse=True)
def _short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airloc.missions.tour_search.ROUNDS_PER_CELL", 2)


def length(path: list[tuple[int, int]]) -> float:
    return sum(math.dist(a, b) for a, b in itertools.pairwise(path))


@pytest.mark.no_cover  # tracing makes the search ten times as slow, and other tests reach all its lines
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.integers(1, 4), st.floats(0, 30))
def test_paths_stay_in_their_budget_and_no_two_visit_the_same_cell(seed: int, vehicles: int, budget: float):
    rng = np.random.default_rng(seed)
    mass = rng.random((9, 11)) * (rng.random((9, 11)) < 0.6)
    starts = [(int(row), int(col)) for row, col in rng.integers((9, 11), size=(vehicles, 2))]
    paths = plan_tours(mass, starts, [budget] * vehicles)
    assert [path[0] for path in paths] == starts
    assert all(length(path) <= budget + 1e-6 for path in paths)
    visited = [cell for path in paths for cell in path[1:]]
    assert len(set(visited)) == len(visited)
    assert all(mass[cell] > 0 for cell in visited)


def test_enough_range_visits_every_cell_with_probability():
    mass = np.random.default_rng(1).random((8, 8)) + 0.1
    paths = plan_tours(mass, [(0, 0), (7, 7)], [60.0, 60.0])
    assert {cell for path in paths for cell in path} == set(np.ndindex(8, 8))
    assert sum(map(length, paths)) < 80


def test_several_vehicles_share_the_work():
    paths = plan_tours(np.ones((10, 10)), [(0, 0), (9, 9)], [60.0, 60.0])
    assert min(map(len, paths)) > 25


def test_parallel_tracks_cover_all_cells_with_probability():
    mass = np.random.default_rng(2).random((7, 9)) < 0.5
    paths = parallel_tracks(mass.astype(float), [(0, 0), (3, 3), (6, 8)])
    assert {cell for path in paths for cell in path} >= {(int(row), int(col)) for row, col in np.argwhere(mass)}


def test_no_probability_gives_no_way():
    assert plan_tours(np.zeros((3, 3)), [(1, 1)], [9.0]) == [[(1, 1)]]
    assert parallel_tracks(np.zeros((3, 3)), [(1, 1)]) == [[(1, 1)]]
    with pytest.raises(ValueError, match="zip"):
        plan_tours(np.ones((3, 3)), [(1, 1)], [])


@pytest.mark.no_cover
def test_the_search_finds_more_than_the_tour_that_it_begins_with(monkeypatch: pytest.MonkeyPatch):
    mass = np.random.default_rng(3).random((12, 12)) ** 3
    mass[0, 0] = 0
    first = [[(0, 0), *((0, col) for col in range(1, 12))]]
    monkeypatch.setattr("airloc.missions.tour_search.ROUNDS_PER_CELL", 16)
    better = improve_tours(mass, first, [30.0], filmed=False)[0]
    assert length(better) == pytest.approx(30, abs=3)
    assert sum(mass[cell] for cell in better) > 1.8 * sum(mass[cell] for cell in first[0])


def test_a_film_misses_the_outer_corner_of_a_turn():
    table = seen_fractions([(0, 1), (0, -1), (1, 0), (1, 1), (-1, -1)])
    assert table[(0, 1), (0, -1)] == 1.0
    assert table[(0, 1), (1, 0)] == pytest.approx(1 - (1 - math.pi / 4) / 4, abs=0.01)
    assert table[(1, 1), (-1, -1)] == pytest.approx(1 - (math.sqrt(2) - 1) ** 2 / 2, abs=0.02)


def test_the_same_seed_gives_the_same_tours():
    mass = np.random.default_rng(5).random((8, 8))
    assert plan_tours(mass, [(0, 0)], [20.0], seed=3) == plan_tours(mass, [(0, 0)], [20.0], seed=3)
