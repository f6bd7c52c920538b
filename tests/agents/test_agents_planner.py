import math
import time
from collections.abc import Iterator
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.planner import PLANNERS, Away, Lookahead, worth
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


def worth_of(
    planner: Lookahead, path: list[tuple[int, int]], goal: tuple[int, int], left: int, moves: int = 8
) -> float:
    """What a path, as steps from the start, is worth for a goal there."""
    away = [Away.of(*torch.tensor([[goal[0] - row], [goal[1] - col]]), moves) for row, col in path]
    return float(worth(planner, away, left))


def test_a_goal_at_a_side_is_counted_on_more_than_one_at_a_corner():
    planner = Lookahead(discount=0.8, at_side=0.6, at_corner=0.2, beyond=0.5)
    north = [(-1, 0)]
    assert worth_of(planner, north, (-1, 0), 5) == pytest.approx(0.8)
    assert worth_of(planner, north, (-2, 0), 5) == pytest.approx(0.6 * 0.8**2 + 0.4 * 0.8 * 0.5)
    assert worth_of(planner, north, (-2, 1), 5) == pytest.approx(0.2 * 0.8**2 + 0.8 * 0.8 * 0.5)
    assert worth_of(planner, north, (-2, 1), 5, moves=4) == pytest.approx(0.2 * 0.8**3 + 0.8 * 0.8 * 0.5**2)
    assert worth_of(planner, north, (-3, 0), 5) == pytest.approx(0.8 * 0.5**2)


def test_what_one_glimpse_did_not_tell_the_next_one_may():
    planner = Lookahead(discount=0.8, at_side=0.6, at_corner=0.2, beyond=0.5)
    expected = 0.6 * 0.8**2 + 0.4 * 0.2 * 0.8**3 + 0.4 * 0.8 * 0.8**2 * 0.5
    assert worth_of(planner, [(0, 1), (0, 2)], (1, 1), 5) == pytest.approx(expected)


@pytest.mark.parametrize("goal", [(-2, 0), (-2, 1), (-3, 0)])
def test_a_goal_that_is_recognised_with_the_last_move_is_worth_nothing(goal: tuple[int, int]):
    assert worth_of(Lookahead(), [(-1, 0)], goal, left=1) == 0


@given(seed=st.integers(0, 10_000), left=st.integers(1, 3), moves=st.sampled_from([4, 8]))
@settings(max_examples=30, deadline=None)
def test_without_recognition_and_haste_the_plan_is_the_path_that_collects_most_belief(seed: int, left: int, moves: int):
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
    assert float(planner(belief, torch.tensor([start]), left, grid).max()) == pytest.approx(best, rel=1e-3)


@given(seed=st.integers(0, 10_000), left=st.integers(1, 10), name=st.sampled_from(list(PLANNERS)))
@settings(max_examples=30, deadline=None)
def test_turned_beliefs_give_turned_plans(seed: int, left: int, name: str):
    generator = torch.Generator().manual_seed(seed)
    belief = torch.rand(1, GRID.count, generator=generator).mul(4).softmax(dim=1)
    row, col = torch.randint(5, (2,), generator=generator).tolist()
    straight = PLANNERS[name](belief, torch.tensor([[row, col]]), left, GRID)[0]
    turned = belief.view(5, 5).rot90().reshape(1, -1)
    left_turned = PLANNERS[name](turned, torch.tensor([[4 - col, row]]), left, GRID)[0]
    # A quarter to the left takes north to west, two moves back; the small preference for some moves does not turn.
    torch.testing.assert_close(left_turned, straight.roll(-2), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("size", [5, 15])
def test_a_move_is_planned_in_two_milliseconds(size: int):
    grid = Grid(size, size)
    belief = torch.rand(1, grid.count, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    position = torch.tensor([[size // 2, 1]])
    PLANNERS["lookahead"](belief, position, 2 * size, grid)  # lays the tables out
    times = []
    for _ in range(100):
        began = time.perf_counter()
        PLANNERS["lookahead"](belief, position, 2 * size, grid)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.002


@pytest.fixture
def one_core() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_core")
def test_the_first_move_of_a_search_waits_for_its_tables_no_longer_than_a_blink():
    times = []
    for turn, left in enumerate((10, 8, 7, 6, 5) * 3, start=1):
        planner = Lookahead(at_side=turn / 100)  # whose tables nobody has laid out
        began = time.thread_time()  # other work on the machine does not count
        planner(torch.full((1, 25), 1 / 25), torch.tensor([[2, 2]]), left, GRID)
        times.append(time.thread_time() - began)
    assert min(times) < 0.045


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
        away = [Away.of(*(cells - cell).T[:, None], moves) for cell in path]
        first = choice[0] * 8 // moves
        best[first] = max(best[first], float(worth(planner, away, left)[0] @ belief[0]))
    place = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    torch.testing.assert_close(given, torch.tensor(best) * (1 - 1e-4 * place), rtol=1e-5, atol=1e-7)
