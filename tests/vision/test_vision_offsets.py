import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.grid import MOVES, Grid
from airloc.vision.offsets import (
    NUM_OFFSETS,
    NUM_ROTATIONS,
    RADIUS,
    SECTOR,
    ZERO_OFFSET,
    offset_index,
    offset_table,
    rotate_offset,
    sector_positions,
)
from airloc.vision.relation import adjacent_offsets, offsets_between_cells, offsets_from

CPU = torch.device("cpu")
steps = st.integers(-30, 30)


def test_every_offset_but_zero_is_predicted_in_exactly_one_frame():
    predicted = [offset_index(*rotate_offset(row, col, -turn)) for turn in range(NUM_ROTATIONS) for row, col in SECTOR]
    assert sorted([*predicted, ZERO_OFFSET]) == list(range(NUM_OFFSETS))
    assert sorted(sector_positions()) == list(range(NUM_OFFSETS - 1))


@given(steps, steps)
def test_four_quarter_turns_bring_an_offset_back(row: int, col: int):
    assert rotate_offset(row, col, 4) == (row, col)
    assert rotate_offset(*rotate_offset(row, col, 1), 3) == (row, col)


def test_a_quarter_turn_to_the_left_brings_east_to_north():
    assert rotate_offset(0, 1, 1) == (-1, 0)


@given(steps, steps)
def test_far_offsets_count_as_one_at_the_radius_in_about_their_direction(row: int, col: int):
    near_row, near_col = (part - RADIUS for part in divmod(offset_index(row, col), 2 * RADIUS + 1))
    reach = max(abs(row), abs(col))
    if reach <= RADIUS:
        assert (near_row, near_col) == (row, col)
    else:
        assert max(abs(near_row), abs(near_col)) == RADIUS
        assert abs(near_row - row * RADIUS / reach) <= 0.5
        assert abs(near_col - col * RADIUS / reach) <= 0.5


@pytest.mark.parametrize("grid", [Grid(3, 3), Grid(5, 5), Grid(2, 7), Grid(9, 4)])
def test_the_table_between_cells_has_the_offset_from_the_first_to_the_second(grid: Grid):
    table = offsets_between_cells(grid, CPU)
    for one in grid.cells():
        for other in grid.cells():
            expected = offset_index(other[0] - one[0], other[1] - one[1])
            assert table[grid.index(one), grid.index(other)] == expected


def test_the_adjacent_offsets_are_the_eight_moves_in_order():
    assert adjacent_offsets(CPU).tolist() == [offset_index(row, col) for row, col in MOVES.tolist()]


@pytest.mark.parametrize("grid", [Grid(3, 3), Grid(2, 7), Grid(12, 12)])
def test_offsets_from_a_cell_are_a_window_of_the_offset_table(grid: Grid):
    reach, (row, col) = max(grid.shape), (1, 2)
    window = offset_table(reach)[reach - 1 - row :, reach - 1 - col :][: grid.rows, : grid.cols]
    assert offsets_from(torch.tensor([[row, col]]), grid)[0].tolist() == window.ravel().tolist()
