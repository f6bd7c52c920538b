import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.grid import MOVES, Grid
from airloc.vision.offsets import (
    NUM_NEAR,
    NUM_OFFSETS,
    NUM_ROTATIONS,
    RADIUS,
    RINGS,
    SECTOR,
    ZERO_OFFSET,
    mirrored_offsets,
    offset_index,
    offset_table,
    rotate_offset,
    sector_positions,
)
from airloc.vision.relation import adjacent_offsets, offsets_between_cells, offsets_from

CPU = torch.device("cpu")
steps = st.integers(-30, 30)


def test_every_offset_but_zero_is_predicted_in_exactly_one_frame():
    lengths = [RADIUS, *RINGS]
    offsets = [
        (row, col) if ring == 0 else (round(row * lengths[ring] / RADIUS), lengths[ring]) for ring, row, col in SECTOR
    ]
    predicted = [offset_index(*rotate_offset(*offset, -turn)) for turn in range(NUM_ROTATIONS) for offset in offsets]
    assert sorted([*predicted, ZERO_OFFSET]) == list(range(NUM_OFFSETS))
    assert sorted(sector_positions()) == list(range(NUM_OFFSETS - 1))


@given(steps, steps)
def test_four_quarter_turns_bring_an_offset_back(row: int, col: int):
    assert rotate_offset(row, col, 4) == (row, col)
    assert rotate_offset(*rotate_offset(row, col, 1), 3) == (row, col)


@given(steps, steps)
def test_a_mirrored_offset_points_to_the_other_side(row: int, col: int):
    assert mirrored_offsets()[offset_index(row, col)] == offset_index(row, -col)


def test_a_quarter_turn_to_the_left_brings_east_to_north():
    assert rotate_offset(0, 1, 1) == (-1, 0)


def ring_of(row: int, col: int) -> int:
    return sum(max(abs(row), abs(col)) >= start for start in RINGS)


def test_near_offsets_come_first_in_row_major_order():
    reach = range(-RADIUS, RADIUS + 1)
    assert [offset_index(row, col) for row in reach for col in reach] == list(range(NUM_NEAR))


@given(steps, steps)
def test_far_offsets_are_told_apart_by_ring_and_direction_alone(row: int, col: int):
    reach = max(abs(row), abs(col))
    index = offset_index(row, col)
    if reach <= RADIUS:
        assert (index // (2 * RADIUS + 1) - RADIUS, index % (2 * RADIUS + 1) - RADIUS) == (row, col)
        return
    directions = 8 * RADIUS
    ring, direction = divmod(index - NUM_NEAR, directions)
    assert ring + 1 == ring_of(row, col)
    perimeter = [
        (near_row, near_col)
        for near_row, near_col in itertools.product(range(-RADIUS, RADIUS + 1), repeat=2)
        if max(abs(near_row), abs(near_col)) == RADIUS
    ]
    near_row, near_col = perimeter[direction]
    assert abs(near_row - row * RADIUS / reach) <= 0.5
    assert abs(near_col - col * RADIUS / reach) <= 0.5


@given(steps, steps, st.integers(1, 3))
def test_a_rotated_offset_has_the_index_of_the_same_place_in_another_frame(row: int, col: int, turns: int):
    """The frames predict the same places, so that a rotated pair gives rotated predictions in rings too."""
    if (row, col) == (0, 0):
        return
    places = dict(zip((index for index in range(NUM_OFFSETS) if index != ZERO_OFFSET), sector_positions(), strict=True))
    frame, place = divmod(places[offset_index(row, col)], len(SECTOR))
    turned, same_place = divmod(places[offset_index(*rotate_offset(row, col, turns))], len(SECTOR))
    assert same_place == place
    assert turned == (frame - turns) % NUM_ROTATIONS


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
