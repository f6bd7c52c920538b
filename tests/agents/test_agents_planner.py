import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.planner import PLANNERS, Lookahead
from airloc.grid import MOVE_NAMES, Grid
from airloc.task.rules import inside, moves_on

GRID = Grid(5, 5)


def belief_at(grid: Grid, *cells: tuple[int, int, float]) -> torch.Tensor:
    belief = torch.zeros(1, grid.count)
    for row, col, share in cells:
        belief[0, grid.index((row, col))] = share
    return belief


def move(planner, belief: torch.Tensor, position: tuple[int, int], left: int, grid: Grid = GRID) -> str:
    return MOVE_NAMES[int(planner(belief, torch.tensor([position]), left, grid).argmax())]


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize(("cell", "expected"), [((2, 3), "E"), ((0, 0), "NW"), ((4, 2), "S"), ((0, 4), "NE")])
def test_a_certain_goal_is_flown_to_on_a_shortest_path(name: str, cell: tuple[int, int], expected: str):
    assert move(PLANNERS[name], belief_at(GRID, (*cell, 1.0)), (2, 2), 5) == expected


@pytest.mark.parametrize("name", PLANNERS)
def test_of_two_cells_at_equal_distance_the_more_probable_is_preferred(name: str):
    assert move(PLANNERS[name], belief_at(GRID, (2, 0, 0.45), (2, 4, 0.55)), (2, 2), 2) == "E"


@pytest.mark.parametrize("name", PLANNERS)
def test_what_lies_beyond_the_budget_is_worth_nothing(name: str):
    assert move(PLANNERS[name], belief_at(GRID, (2, 4, 0.9), (1, 1, 0.1)), (2, 2), 1) == "NW"


def test_looking_ahead_takes_a_probable_cell_on_the_way():
    # North-east and east are equally near to the far cell; only one of them is probable itself.
    assert move(Lookahead(), belief_at(GRID, (1, 3, 0.2), (1, 4, 0.5), (3, 3, 0.1)), (2, 2), 4) == "NE"


def test_looking_ahead_collects_a_chain_that_greed_would_cut():
    # Two cells in a row to the west weigh more than one to the east when there is time for one side alone.
    belief = belief_at(GRID, (2, 1, 0.3), (2, 0, 0.3), (2, 3, 0.4))
    assert move(Lookahead(discount=1.0), belief, (2, 2), 2) == "W"


@pytest.mark.parametrize("name", PLANNERS)
def test_where_there_are_four_moves_a_goal_around_the_corner_takes_two(name: str):
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
def test_no_planner_leaves_the_grid_or_makes_a_move_that_the_task_has_not(seed: int, left: int, name: str, moves: int):
    generator = torch.Generator().manual_seed(seed)
    grid = Grid(3, 4, moves=moves)
    belief = torch.rand(6, grid.count, generator=generator).softmax(dim=1)
    position = torch.stack([torch.randint(size, (6,), generator=generator) for size in grid.shape], dim=1)
    action = PLANNERS[name](belief, position, left, grid).argmax(dim=1)
    assert inside(position + moves_on(position.device)[action], grid).all()
    assert moves == 8 or (action % 2 == 0).all()


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize("moves", [4, 8])
@pytest.mark.parametrize("left", [1, 2, 3, 4, 6, 9, 20])
def test_the_two_tables_give_what_every_path_is_worth_cell_by_cell(name: str, moves: int, left: int):
    planner, grid = PLANNERS[name], Grid(6, 9, moves=moves)
    belief = torch.rand(1, grid.count, generator=torch.Generator().manual_seed(left)).softmax(dim=1)
    given = planner(belief, torch.tensor([[2, 7]]), left, grid)[0]
    best = [-math.inf] * 8
    cells = torch.tensor(list(grid.cells()))
    steps = moves_on(cells.device)[:: 8 // moves]
    for choice in product(range(moves), repeat=min(left, getattr(planner, "horizon", 1))):
        path = torch.tensor([2, 7]) + steps[list(choice)].cumsum(dim=0)  # (H, 2)
        if not inside(path, grid).all():
            continue
        between = (cells - path[:, None]).abs()
        away = between.amax(dim=2) if moves == 8 else between.sum(dim=2)
        first = choice[0] * 8 // moves
        best[first] = max(best[first], float(planner.worth(away[None], left)[0] @ belief[0]))
    place = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    torch.testing.assert_close(given, torch.tensor(best) * (1 - 1e-4 * place), rtol=1e-5, atol=1e-7)
