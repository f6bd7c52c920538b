"""The rules in worked numbers, for NumPy arrays and torch tensors."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid
from airloc.task import rules

cells = st.tuples(st.integers(-12, 12), st.integers(-12, 12))


def move_once(position, steps, goal, action, budget=10):
    arrays = (np.array(position), np.array(steps), np.array(goal), np.array(action))
    return rules.move(*arrays, moves=MOVES, budget=budget)


def test_reaching_the_goal_earns_two_and_ends_the_episode():
    out = move_once((2, 2), 3, (2, 3), 2)
    assert (int(out.reward), bool(out.found), bool(out.truncated)) == (2, True, False)


def test_any_other_move_earns_minus_one():
    out = move_once((2, 2), 3, (2, 3), 6)
    assert (int(out.reward), bool(out.found), bool(out.truncated)) == (-1, False, False)


def test_the_last_move_of_the_budget_truncates_unless_it_finds():
    assert bool(move_once((2, 2), 9, (0, 0), 0).truncated)
    found = move_once((1, 0), 9, (0, 0), 0)
    assert bool(found.found)
    assert not bool(found.truncated)


def test_moves_outside_are_allowed_and_counted():
    out = move_once((0, 0), 0, (4, 4), 7)
    assert out.position.tolist() == [-1, -1]
    assert int(out.steps) == 1
    assert not rules.inside(out.position, Grid(5, 5))


@given(cells, st.integers(0, 9), cells, st.integers(0, 7))
def test_numpy_and_torch_give_the_same_result(position, steps, goal, action):
    numpy = move_once(position, steps, goal, action)
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


FOUR = Grid(5, 5, moves=4)


def test_with_four_moves_the_border_is_closed_and_diagonals_only_cost_a_move():
    corner, goal = np.zeros((8, 2), dtype=np.int64), np.full((8, 2), 2)
    out = rules.move(corner, np.zeros(8, dtype=np.int64), goal, np.arange(8), moves=MOVES, budget=10, grid=FOUR)
    assert {index for index in range(8) if out.position[index].any()} == {2, 4}
    assert out.steps.tolist() == [1] * 8


@given(st.tuples(st.integers(0, 4), st.integers(0, 4)))
def test_with_four_moves_the_allowed_ones_lead_to_the_neighbours(cell: tuple[int, int]):
    allowed = np.flatnonzero(rules.moves_allowed(np.array(cell), FOUR, MOVES))
    assert [tuple((np.array(cell) + MOVES[index]).tolist()) for index in allowed] == FOUR.neighbours(cell)
    tensor = rules.moves_allowed(torch.tensor(cell), FOUR, torch.from_numpy(MOVES))
    assert np.array_equal(np.flatnonzero(tensor.numpy()), allowed)


CASES = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=n, max_size=n)] * 2,
        st.lists(st.booleans(), min_size=n, max_size=n),
    )
)


@given(CASES)
def test_a_declaration_is_either_a_find_or_a_false_alarm(case):
    position, goal, declared = (np.array(part) for part in case)
    found, wrong, _ = rules.declare(position, goal, declared)
    assert not (found & wrong).any()
    np.testing.assert_array_equal(found | wrong, declared)
    tensors = rules.declare(*(torch.from_numpy(part) for part in (position, goal, declared)))
    np.testing.assert_array_equal(tensors.found.numpy(), found)


def test_a_position_reported_within_half_a_cell_of_the_goal_is_a_find_from_any_cell():
    position, goal = np.array([[1, 1], [1, 2], [1, 2], [1, 1]]), np.array([[1, 1]] * 4)
    declared, error = np.array([True, True, True, False]), np.array([3.0, 0.5, 0.51, 0.0])
    found, wrong, reward = rules.declare(position, goal, declared, cost=2.0, error=error)
    assert found.tolist() == [True, True, False, False]
    assert wrong.tolist() == [False, False, True, False]
    assert reward.tolist() == [3.0, 3.0, -6.0, 0.0]
    tensors = rules.declare(*map(torch.from_numpy, (position, goal, declared)), error=torch.from_numpy(error))
    assert tensors.found.tolist() == found.tolist()
