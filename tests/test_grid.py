"""Geometry of the grid in worked numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid, distance

grids = st.builds(Grid, st.integers(1, 9), st.integers(2, 9), st.integers(1, 60), st.integers(0, 9))


def test_five_and_seven_cells_make_256_and_360_pixels():
    assert Grid(5, 5).size == (256, 256)
    assert Grid(7, 7).size == (360, 360)
    assert Grid(3, 5).size == (152, 256)


def test_default_budget_is_twice_the_longer_side():
    assert Grid(5, 5).default_budget == 10
    assert Grid(7, 7).default_budget == 14
    assert Grid(3, 8).default_budget == 16


def test_box_of_a_cell_in_worked_numbers():
    assert Grid(5, 5).box((0, 0)) == (0, 0, 48, 48)
    assert Grid(5, 5).box((1, 2)) == (104, 52, 152, 100)
    assert Grid(5, 5).box((-1, 0)) == (0, -52, 48, -4)


def test_pixels_in_a_gap_belong_to_no_cell():
    grid = Grid(5, 5)
    assert grid.cell_at(47, 0) == (0, 0)
    assert grid.cell_at(48, 0) is None
    assert grid.cell_at(52, 0) == (0, 1)
    assert grid.cell_at(-1, 0) is None
    assert grid.cell_at(256, 0) is None


@given(grids)
def test_every_cell_contains_its_centre_and_has_its_index(grid: Grid):
    for number, cell in enumerate(grid.cells()):
        assert grid.index(cell) == number
        assert grid.cell_of(number) == cell
        assert grid.cell_at(*grid.centre(cell)) == cell
        left, top, right, bottom = grid.box(cell)
        assert 0 <= left < right <= grid.size[1]
        assert 0 <= top < bottom <= grid.size[0]


def test_the_eight_moves_are_distinct_and_a_right_turn_adds_two():
    assert len({tuple(move) for move in MOVES.tolist()}) == 8
    for number, (row, col) in enumerate(MOVES.tolist()):
        assert max(abs(row), abs(col)) == 1
        assert MOVES[(number + 2) % 8].tolist() == [col, -row]


@given(grids)
def test_neighbours_are_exactly_the_cells_at_distance_one(grid: Grid):
    for cell in grid.cells():
        assert set(grid.neighbours(cell)) == {other for other in grid.cells() if distance(cell, other) == 1}


@given(grids)
def test_distances_table_agrees_with_distance(grid: Grid):
    table = grid.distances()
    cells = list(grid.cells())
    assert table.max() == grid.max_distance
    assert np.array_equal(table, [[distance(a, b) for b in cells] for a in cells])


@pytest.mark.parametrize("text", ["5", "5x", "x5", "5x5x5", "-1x5", "five", "", "0x5", "1x1"])
def test_a_text_that_is_no_grid_is_refused_with_a_cure(text: str):
    with pytest.raises(AirlocError, match=r"\. .+\.$"):
        Grid.parse(text)


def test_a_grid_is_read_as_rows_by_columns():
    assert Grid.parse(" 3X7 ") == Grid(3, 7)
    assert str(Grid(3, 7)) == "3x7"


def test_impossible_cells_are_refused():
    with pytest.raises(AirlocError):
        Grid(5, 5, cell=0)


@given(st.integers(1, 9), st.integers(2, 9))
def test_with_four_moves_distance_is_the_manhattan_distance(rows: int, cols: int):
    grid = Grid(rows, cols, moves=4)
    cells = np.array(list(grid.cells()))
    table = np.abs(cells[:, None] - cells[None]).sum(axis=2)
    assert np.array_equal(grid.distances(), table)
    assert grid.max_distance == table.max()
    for index, cell in enumerate(grid.cells()):
        assert {grid.index(to) for to in grid.neighbours(cell)} == set(np.flatnonzero(table[index] == 1).tolist())


@pytest.mark.parametrize("moves", [0, 5, 16])
def test_other_numbers_of_moves_are_refused(moves: int):
    with pytest.raises(AirlocError, match="4 or 8"):
        Grid(5, 5, moves=moves)  # type: ignore[arg-type]
