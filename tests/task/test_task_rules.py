import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid
from airloc.task import rules

cells = st.tuples(st.integers(-12, 12), st.integers(-12, 12))


def play_one(position, steps, goal, action, budget=10):
    arrays = (np.array(position), np.array(steps), np.array(goal), np.array(action))
    return rules.move(*arrays, moves=MOVES, budget=budget)


def test_reaching_the_goal_earns_two_and_ends_the_episode():
    out = play_one((2, 2), 3, (2, 3), 2)
    assert (int(out.reward), bool(out.found), bool(out.truncated)) == (2, True, False)


def test_any_other_move_earns_minus_one():
    out = play_one((2, 2), 3, (2, 3), 6)
    assert (int(out.reward), bool(out.found), bool(out.truncated)) == (-1, False, False)


def test_the_last_move_of_the_budget_truncates_unless_it_finds():
    assert bool(play_one((2, 2), 9, (0, 0), 0).truncated)
    found = play_one((1, 0), 9, (0, 0), 0)
    assert bool(found.found)
    assert not bool(found.truncated)


def test_moves_outside_are_allowed_and_counted():
    out = play_one((0, 0), 0, (4, 4), 7)
    assert out.position.tolist() == [-1, -1]
    assert int(out.steps) == 1
    assert not rules.inside(out.position, Grid(5, 5))


@given(cells, st.integers(0, 9), cells, st.integers(0, 7))
def test_numpy_and_torch_play_alike(position, steps, goal, action):
    numpy = play_one(position, steps, goal, action)
    arrays = [torch.tensor(value) for value in (position, steps, goal, action)]
    tensor = rules.move(*arrays, moves=torch.from_numpy(MOVES), budget=10)
    for a, b in zip(numpy, tensor, strict=True):
        assert np.array_equal(a, b.numpy())


@given(cells)
def test_moves_inside_are_those_whose_target_is_in_the_grid(position):
    grid = Grid(4, 6)
    allowed = rules.moves_inside(np.array(position), grid, MOVES)
    for number, (row, col) in enumerate(MOVES.tolist()):
        assert allowed[number] == grid.contains((position[0] + row, position[1] + col))


def test_a_budget_without_a_move_is_refused():
    with pytest.raises(AirlocError):
        rules.check_budget(0)
