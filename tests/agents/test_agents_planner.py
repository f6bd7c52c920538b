import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents import planner as planner_module
from airloc.agents.belief import move_values
from airloc.agents.planner import KING_MOVES, PLANNERS, Distance, Lookahead, make_planner, path_value
from airloc.grid import MOVES, Grid
from airloc.task.rules import inside, moves_on

pytestmark = pytest.mark.long

MOVE_NAMES = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")

GRID = Grid(5, 5)


def belief_at(grid: Grid, *cells: tuple[int, int, float]) -> torch.Tensor:
    belief = torch.zeros(1, grid.count)
    for row, col, share in cells:
        belief[0, grid.index((row, col))] = share
    return belief


def move(planner, belief: torch.Tensor, position: tuple[int, int], left: int, grid: Grid = GRID) -> str:
    return MOVE_NAMES[int(move_values(planner, belief, torch.tensor([position]), left, grid).argmax())]


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize(("cell", "expected"), [((2, 3), "E"), ((0, 0), "NW"), ((4, 2), "S"), ((0, 4), "NE")])
def test_a_certain_goal_is_flown_to_on_a_shortest_path(name: str, cell: tuple[int, int], expected: str):
    assert move(PLANNERS[name], belief_at(GRID, (*cell, 1.0)), (2, 2), 5) == expected


@pytest.mark.parametrize("name", PLANNERS)
def test_of_two_cells_at_equal_distance_the_more_probable_is_preferred(name: str):
    assert move(PLANNERS[name], belief_at(GRID, (2, 0, 0.45), (2, 4, 0.55)), (2, 2), 2) == "E"


@pytest.mark.parametrize("name", PLANNERS)
def test_goals_beyond_the_budget_have_no_value(name: str):
    assert move(PLANNERS[name], belief_at(GRID, (2, 4, 0.9), (1, 1, 0.1)), (2, 2), 1) == "NW"


def test_looking_ahead_takes_a_probable_cell_on_the_way():
    # North-east and east are equally near to the far cell; only one of them is probable itself.
    assert move(Lookahead(), belief_at(GRID, (1, 3, 0.2), (1, 4, 0.5), (3, 3, 0.1)), (2, 2), 4) == "NE"


def test_looking_ahead_collects_a_chain_that_greed_would_cut():
    # Two cells in a row to the west weigh more than one to the east when there is time for one side alone.
    belief = belief_at(GRID, (2, 1, 0.3), (2, 0, 0.3), (2, 3, 0.4))
    assert move(Lookahead(discount=1.0), belief, (2, 2), 2) == "W"


def value_of(
    planner: Lookahead, path: list[tuple[int, int]], goal: tuple[int, int], left: int, moves: int = 8
) -> float:
    """Return the value of a path, as cells relative to the start, for a goal."""
    distances = [Distance.of(*np.array([[goal[0] - row], [goal[1] - col]]), moves) for row, col in path]
    return float(path_value(planner, distances, left)[0])


def test_a_goal_at_a_side_is_detected_more_often_than_one_at_a_corner():
    planner = Lookahead(discount=0.8, at_side=0.6, at_corner=0.2, beyond=0.5)
    north = [(-1, 0)]
    assert value_of(planner, north, (-1, 0), 5) == pytest.approx(0.8)
    assert value_of(planner, north, (-2, 0), 5) == pytest.approx(0.6 * 0.8**2 + 0.4 * 0.8 * 0.5)
    assert value_of(planner, north, (-2, 1), 5) == pytest.approx(0.2 * 0.8**2 + 0.8 * 0.8 * 0.5)
    assert value_of(planner, north, (-2, 1), 5, moves=4) == pytest.approx(0.2 * 0.8**3 + 0.8 * 0.8 * 0.5**2)
    assert value_of(planner, north, (-3, 0), 5) == pytest.approx(0.8 * 0.5**2)


def test_the_next_glimpse_can_detect_what_the_last_one_missed():
    planner = Lookahead(discount=0.8, at_side=0.6, at_corner=0.2, beyond=0.5)
    expected = 0.6 * 0.8**2 + 0.4 * 0.2 * 0.8**3 + 0.4 * 0.8 * 0.8**2 * 0.5
    assert value_of(planner, [(0, 1), (0, 2)], (1, 1), 5) == pytest.approx(expected)


@pytest.mark.parametrize("goal", [(-2, 0), (-2, 1), (-3, 0)])
def test_a_goal_detected_with_the_last_move_has_no_value(goal: tuple[int, int]):
    assert value_of(Lookahead(), [(-1, 0)], goal, left=1) == 0


@given(seed=st.integers(0, 10_000), left=st.integers(1, 3), moves=st.sampled_from([4, 8]))
@settings(max_examples=30, deadline=None)
def test_without_detection_and_discount_the_plan_is_the_path_with_most_belief(seed: int, left: int, moves: int):
    grid = Grid(4, 5, moves=moves)
    generator = torch.Generator().manual_seed(seed)
    belief = torch.rand(1, grid.count, generator=generator).mul(4).softmax(dim=1)
    start = tuple(int(torch.randint(side, (), generator=generator)) for side in grid.shape)
    best = 0.0
    for choice in product(moves_on(belief.device)[:: 8 // moves].tolist(), repeat=left):
        path = (torch.tensor(start) + torch.tensor(choice).cumsum(dim=0)).tolist()
        if all(grid.contains((row, col)) for row, col in path):
            best = max(best, sum(float(belief[0, number]) for number in {grid.index((r, c)) for r, c in path}))
    planner = Lookahead(horizon=3, discount=1.0, at_side=0.0, at_corner=0.0)
    assert float(move_values(planner, belief, torch.tensor([start]), left, grid).max()) == pytest.approx(best, rel=1e-3)


@given(seed=st.integers(0, 10_000), left=st.integers(1, 10), name=st.sampled_from(list(PLANNERS)))
@settings(max_examples=30, deadline=None)
def test_rotated_beliefs_give_rotated_plans(seed: int, left: int, name: str):
    generator = torch.Generator().manual_seed(seed)
    belief = torch.rand(1, GRID.count, generator=generator).mul(4).softmax(dim=1)
    row, col = torch.randint(5, (2,), generator=generator).tolist()
    straight = move_values(PLANNERS[name], belief, torch.tensor([[row, col]]), left, GRID)[0]
    turned = belief.view(5, 5).rot90().reshape(1, -1)
    left_turned = move_values(PLANNERS[name], turned, torch.tensor([[4 - col, row]]), left, GRID)[0]
    # A quarter to the left takes north to west, two moves back; the small preference for some moves does not turn.
    torch.testing.assert_close(left_turned, straight.roll(-2), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", PLANNERS)
def test_with_four_moves_a_diagonal_goal_takes_two_moves(name: str):
    grid = Grid(5, 5, moves=4)
    belief = belief_at(grid, (1, 3, 0.8), (2, 1, 0.2))
    assert move(PLANNERS[name], belief, (2, 2), 2, grid) in ("N", "E")
    assert move(PLANNERS[name], belief, (2, 2), 1, grid) == "W"


@given(
    seed=st.integers(0, 10_000),
    left=st.integers(1, 10),
    name=st.sampled_from(list(PLANNERS)),
    moves=st.sampled_from([4, 8]),
)
@settings(max_examples=60, deadline=None)
def test_no_planner_leaves_the_grid_or_makes_a_move_outside_the_task(seed: int, left: int, name: str, moves: int):
    generator = torch.Generator().manual_seed(seed)
    grid = Grid(3, 4, moves=moves)
    belief = torch.rand(6, grid.count, generator=generator).softmax(dim=1)
    position = torch.stack([torch.randint(size, (6,), generator=generator) for size in grid.shape], dim=1)
    action = move_values(PLANNERS[name], belief, position, left, grid).argmax(dim=1)
    assert inside(position + moves_on(position.device)[action], grid).all()
    assert moves == 8 or (action % 2 == 0).all()


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize("moves", [4, 8])
@pytest.mark.parametrize("left", [1, 2, 3, 4, 6, 9, 20])
def test_the_tables_equal_the_values_of_all_paths_cell_by_cell(name: str, moves: int, left: int):
    planner, grid = PLANNERS[name], Grid(6, 9, moves=moves)
    belief = torch.rand(1, grid.count, generator=torch.Generator().manual_seed(left)).softmax(dim=1)
    values = move_values(planner, belief, torch.tensor([[2, 7]]), left, grid)[0]
    best = [-math.inf] * 8
    cells = torch.tensor(list(grid.cells()))
    steps = moves_on(cells.device)[:: 8 // moves]
    for choice in product(range(moves), repeat=min(left, planner.horizon)):
        path = torch.tensor([2, 7]) + steps[list(choice)].cumsum(dim=0)  # (H, 2)
        if not inside(path, grid).all():
            continue
        distances = [Distance.of(*(cells - cell).numpy().T[:, None], moves) for cell in path]
        first = choice[0] * 8 // moves
        best[first] = max(best[first], float(path_value(planner, distances, left)[0] @ belief[0].numpy()))
    place = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    torch.testing.assert_close(values, torch.tensor(best) * (1 - 1e-4 * place), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize(
    ("shape", "position", "left"), [((5, 5), (0, 4), 10), ((3, 9), (2, 1), 3), ((20, 20), (7, 7), 1)]
)
def test_the_numpy_planner_of_runners_equals_the_batched_one(name: str, shape, position, left: int):
    grid = Grid(*shape)
    belief = torch.rand(1, grid.count, generator=torch.Generator().manual_seed(left)).softmax(dim=1)
    batched = move_values(PLANNERS[name], belief, torch.tensor([position]), left, grid)[0]
    single = planner_module.move_values(PLANNERS[name], belief.view(shape).numpy(), position, left)
    np.testing.assert_allclose(single, batched.numpy(), rtol=1e-5)
    assert single.argmax() == batched.argmax()


def test_the_moves_are_those_of_the_grid():
    assert np.array(KING_MOVES).tolist() == MOVES.tolist()


def test_a_planner_is_made_from_its_name_and_settings():
    assert make_planner("lookahead", at_side=0.5) == Lookahead(at_side=0.5)
    assert make_planner("greedy") == PLANNERS["greedy"]
