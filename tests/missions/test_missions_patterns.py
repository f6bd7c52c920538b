"""Search patterns fly as the manual draws them, inside the search area and the budget."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.grid import Grid, distance
from airloc.missions.patterns import PATTERNS, plan_patterns

GRID = Grid(7, 9)
ALL = np.ones(GRID.shape, dtype=np.bool_)
FLAT = ALL / ALL.sum()


def planned(name: str, grid=GRID, searchable=ALL, prior=FLAT, start=(3, 4), budget=30):
    return plan_patterns([name], grid, searchable, prior, start, budget, 0.5)[0]


def test_the_expanding_square_turns_right_around_the_datum():
    cells = planned("expanding-square", budget=8).cells
    assert cells == [(3, 4), (2, 4), (2, 5), (3, 5), (4, 5), (4, 4), (4, 3), (3, 3), (2, 3)]


def test_the_datum_is_the_most_probable_cell():
    prior = FLAT.copy()
    prior[5, 7] = 0.9
    cells = planned("expanding-square", prior=prior / prior.sum(), budget=12).cells
    assert cells[:3] == [(3, 4), (5, 7), (4, 7)]


def test_parallel_tracks_follow_the_longer_side_and_creeping_lines_the_shorter_one():
    first = planned("parallel-track", start=(0, 0), budget=20).cells
    assert first[:9] == [(0, col) for col in range(9)]
    assert first[9] == (1, 8)
    second = planned("creeping-line", start=(0, 0), budget=20).cells
    assert second[:7] == [(row, 0) for row in range(7)]
    assert second[7] == (6, 1)


def test_a_sector_search_crosses_the_datum_in_three_directions():
    cells = planned("sector", grid=Grid(13, 13), searchable=np.ones((13, 13), dtype=np.bool_),
                    prior=np.full((13, 13), 1 / 169), start=(6, 6), budget=36).cells  # fmt: skip
    assert cells[:5] == [(6, 6), (5, 6), (4, 6), (3, 6), (2, 6)]  # north
    assert (4, 9) in cells  # 120 degrees later, north-east to south-east
    assert any(row > 7 and col < 6 for row, col in cells)
    assert distance((6, 6), max(cells, key=lambda cell: distance(cell, (6, 6)))) == 4


def test_the_best_blind_path_collects_at_least_as_much_as_every_other_pattern():
    prior = np.random.default_rng(3).dirichlet(np.full(GRID.count, 0.2)).reshape(GRID.shape)
    patterns = plan_patterns(PATTERNS, GRID, ALL, prior, (3, 4), 14, 0.5)
    best = {pattern.name: pattern.pos for pattern in patterns}
    assert max(best, key=best.__getitem__) == "best-blind"


def test_a_pattern_over_everything_finds_what_is_detected():
    pattern = planned("parallel-track", start=(0, 0), budget=62)
    assert (pattern.pod, pattern.pos, pattern.moves) == (pytest.approx(0.5), pytest.approx(0.5), 62)


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(sorted(PATTERNS)),
    seed=st.integers(0, 999),
    budget=st.integers(1, 60),
    shape=st.tuples(st.integers(1, 8), st.integers(2, 8)),
)
def test_every_pattern_stays_inside_the_search_area_and_the_budget(name, seed, budget, shape):
    rng = np.random.default_rng(seed)
    grid = Grid(*shape)
    searchable = rng.random(shape) < 0.7
    start = grid.cell_of(int(rng.integers(grid.count)))
    searchable[start] = True
    prior = rng.random(shape) * searchable
    pattern = planned(name, grid, searchable, prior / prior.sum(), start, budget)
    assert pattern.cells[0] == start
    assert len(set(pattern.cells)) == len(pattern.cells)
    assert all(searchable[cell] for cell in pattern.cells)
    assert sum(distance(a, b) for a, b in pairwise(pattern.cells)) <= budget
    assert 0 <= pattern.pos <= 0.5 + 1e-9
    assert 0 < pattern.pod <= 0.5 + 1e-9
