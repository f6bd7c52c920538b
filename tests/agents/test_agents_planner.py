import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents import planner as planner_module
from airloc.agents.belief import move_values
from airloc.agents.planner import KING_MOVES, PLANNERS, Planner
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
    assert move(Planner(), belief_at(GRID, (1, 3, 0.2), (1, 4, 0.5), (3, 3, 0.1)), (2, 2), 4) == "NE"


def test_looking_ahead_collects_a_chain_that_greed_would_cut():
    # Two cells in a row to the west weigh more than one to the east when there is time for one side alone.
    belief = belief_at(GRID, (2, 1, 0.3), (2, 0, 0.3), (2, 3, 0.4))
    assert move(Planner(discount=1.0), belief, (2, 2), 2) == "W"


def value_of(planner: Planner, start: tuple[int, int], goal: tuple[int, int], left: int, moves: int = 8) -> float:
    """Return the value of the best path from a cell of 7 x 7 cells for a certain goal."""
    grid = Grid(7, 7, moves=moves)
    return float(move_values(planner, belief_at(grid, (*goal, 1.0)), torch.tensor([start]), left, grid).max())


def value_of_path(planner: Planner, path: list[tuple[int, int]], goal: tuple[int, int], left: int, moves: int) -> float:
    """Return the value of one path for one goal, cell by cell, as the docstring of the planner states it."""
    value, hidden = 0.0, 1.0
    for made, cell in enumerate(path, start=1):
        down, across = abs(goal[0] - cell[0]), abs(goal[1] - cell[1])
        king, straight = max(down, across), down + across
        distance = king if moves == 8 else straight
        shown = 1.0 if king == 0 else planner.at_side if straight == 1 else planner.at_corner if king == 1 else 0.0
        revealed = hidden * shown * (made + distance <= left)
        value += revealed * planner.discount ** (made + distance)
        hidden -= revealed
    in_time = len(path) + distance <= left
    return value + hidden * in_time * planner.discount ** len(path) * planner.beyond**distance


def test_a_goal_at_a_side_is_revealed_more_often_than_one_at_a_corner():
    planner = Planner(horizon=1, discount=0.8, at_side=0.6, at_corner=0.2, beyond=0.5)
    assert value_of(planner, (3, 3), (2, 3), 5) == pytest.approx(0.8)
    assert value_of(planner, (3, 3), (1, 3), 5) == pytest.approx(0.6 * 0.8**2 + 0.4 * 0.8 * 0.5)
    assert value_of(planner, (5, 0), (3, 6), 9) == pytest.approx(0.8 * 0.5**5, rel=1e-3)
    straight = value_of_path(planner, [(-1, 0)], (-2, 1), 5, moves=8)
    assert straight == pytest.approx(0.2 * 0.8**2 + 0.8 * 0.8 * 0.5)
    assert value_of_path(planner, [(-1, 0)], (-2, 1), 5, moves=4) == pytest.approx(0.2 * 0.8**3 + 0.8 * 0.8 * 0.5**2)


def test_the_next_glimpse_can_reveal_what_the_last_one_missed():
    planner = Planner(discount=0.8, at_side=0.6, at_corner=0.2, beyond=0.5)
    expected = 0.6 * 0.8**2 + 0.4 * 0.2 * 0.8**3 + 0.4 * 0.8 * 0.8**2 * 0.5
    assert value_of_path(planner, [(0, 1), (0, 2)], (1, 1), 5, moves=8) == pytest.approx(expected)


@pytest.mark.parametrize("goal", [(1, 3), (1, 4), (0, 3)])
def test_a_goal_revealed_with_the_last_move_has_no_value(goal: tuple[int, int]):
    assert value_of(Planner(), (3, 3), goal, left=1) == 0


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
    planner = Planner(horizon=3, width=512, discount=1.0, at_side=0.0, at_corner=0.0)
    assert float(move_values(planner, belief, torch.tensor([start]), left, grid).max()) == pytest.approx(best, rel=1e-3)


ALL_PATHS = Planner(horizon=3, width=512)


@given(seed=st.integers(0, 10_000), left=st.integers(1, 10), planner=st.sampled_from([PLANNERS["greedy"], ALL_PATHS]))
@settings(max_examples=30, deadline=None)
def test_rotated_beliefs_give_rotated_plans(seed: int, left: int, planner: Planner):
    generator = torch.Generator().manual_seed(seed)
    belief = torch.rand(1, GRID.count, generator=generator).mul(4).softmax(dim=1)
    row, col = torch.randint(5, (2,), generator=generator).tolist()
    straight = move_values(planner, belief, torch.tensor([[row, col]]), left, GRID)[0]
    turned = belief.view(5, 5).rot90().reshape(1, -1)
    left_turned = move_values(planner, turned, torch.tensor([[4 - col, row]]), left, GRID)[0]
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


@pytest.mark.parametrize("moves", [4, 8])
@pytest.mark.parametrize("left", [1, 2, 3, 6, 20])
def test_a_search_that_keeps_all_paths_finds_the_best_of_them(moves: int, left: int):
    planner, grid = ALL_PATHS, Grid(6, 9, moves=moves)
    belief = torch.rand(1, grid.count, generator=torch.Generator().manual_seed(left)).softmax(dim=1)
    values = move_values(planner, belief, torch.tensor([[2, 7]]), left, grid)[0]
    best = [-math.inf] * 8
    steps = moves_on(belief.device)[:: 8 // moves]
    for choice in product(range(moves), repeat=min(left, planner.horizon)):
        path = [(row, col) for row, col in (torch.tensor([2, 7]) + steps[list(choice)].cumsum(dim=0)).tolist()]
        if all(map(grid.contains, path)):
            values_of_cells = [value_of_path(planner, path, cell, left, moves) for cell in grid.cells()]
            first = choice[0] * 8 // moves
            best[first] = max(best[first], float(belief[0].double() @ torch.tensor(values_of_cells).double()))
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    torch.testing.assert_close(values, torch.tensor(best) * (1 - 1e-4 * order), rtol=1e-5, atol=1e-7)


def test_a_search_that_keeps_few_paths_finds_nearly_the_best():
    generator = torch.Generator().manual_seed(3)
    belief = torch.rand(40, GRID.count, generator=generator).mul(4).softmax(dim=1)
    position = torch.randint(5, (40, 2), generator=generator)
    few, all_paths = (
        move_values(Planner(horizon=4, width=width), belief, position, 10, GRID).amax(dim=1) for width in (64, 4096)
    )
    assert (few <= all_paths * (1 + 1e-6)).all()
    assert (few >= 0.97 * all_paths).all()


def test_a_batch_is_planned_like_each_of_its_beliefs():
    generator = torch.Generator().manual_seed(4)
    belief = torch.rand(9, GRID.count, generator=generator).mul(4).softmax(dim=1)
    position = torch.randint(5, (9, 2), generator=generator)
    together = move_values(Planner(), belief, position, 10, GRID)
    alone = [move_values(Planner(), belief[i : i + 1], position[i : i + 1], 10, GRID) for i in range(9)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-5, atol=1e-7)


def test_a_large_grid_is_searched_around_the_agent_with_the_values_of_the_whole(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    belief = rng.dirichlet(np.full(30 * 40, 0.05), size=4).reshape(4, 30, 40)
    position = rng.integers(30, size=(4, 2))
    around = planner_module.move_values(Planner(), belief, position, 60)
    monkeypatch.setattr(planner_module, "_BORDER", 40)
    np.testing.assert_allclose(around, planner_module.move_values(Planner(), belief, position, 60), rtol=1e-4)


@pytest.mark.parametrize(("goal", "expected"), [((5, 50), "E"), ((55, 5), "S"), ((50, 50), "SE")])
def test_a_goal_far_away_in_a_large_grid_is_flown_to(goal: tuple[int, int], expected: str):
    grid = Grid(60, 60)
    assert move(Planner(), belief_at(grid, (*goal, 1.0)), (5, 5), 80, grid) == expected


def test_the_moves_are_those_of_the_grid():
    assert np.array(KING_MOVES).tolist() == MOVES.tolist()
