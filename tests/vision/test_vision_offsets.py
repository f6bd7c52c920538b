import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.grid import MOVES, Grid
from airloc.vision.offsets import COUNT, RADIUS, SAME, SECTOR, TURNS, adjacent, between, number, sectors, turned

CPU = torch.device("cpu")
steps = st.integers(-30, 30)


def test_every_offset_but_zero_is_judged_in_exactly_one_frame():
    judged = [number(*turned(row, col, -turn)) for turn in range(TURNS) for row, col in SECTOR]
    assert sorted([*judged, SAME]) == list(range(COUNT))
    assert sorted(sectors(CPU).tolist()) == list(range(COUNT - 1))


@given(steps, steps)
def test_four_quarter_turns_bring_an_offset_back(row: int, col: int):
    assert turned(row, col, 4) == (row, col)
    assert turned(*turned(row, col, 1), 3) == (row, col)


def test_a_quarter_turn_to_the_left_brings_east_to_north():
    assert turned(0, 1, 1) == (-1, 0)


@given(steps, steps)
def test_far_offsets_count_as_one_at_the_radius_in_about_their_direction(row: int, col: int):
    near_row, near_col = (part - RADIUS for part in divmod(number(row, col), 2 * RADIUS + 1))
    reach = max(abs(row), abs(col))
    if reach <= RADIUS:
        assert (near_row, near_col) == (row, col)
    else:
        assert max(abs(near_row), abs(near_col)) == RADIUS
        assert abs(near_row - row * RADIUS / reach) <= 0.5
        assert abs(near_col - col * RADIUS / reach) <= 0.5


@pytest.mark.parametrize("grid", [Grid(3, 3), Grid(5, 5), Grid(2, 7), Grid(9, 4)])
def test_between_gives_the_offset_from_the_first_cell_to_the_second(grid: Grid):
    table = between(grid, CPU)
    for one in grid.cells():
        for other in grid.cells():
            expected = number(other[0] - one[0], other[1] - one[1])
            assert table[grid.index(one), grid.index(other)] == expected


def test_the_adjacent_offsets_are_the_eight_moves_in_order():
    assert adjacent(CPU).tolist() == [number(row, col) for row, col in MOVES.tolist()]
