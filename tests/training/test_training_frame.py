import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.agent import privileged_moves, unvisited, visit
from airloc.grid import Grid
from airloc.task import rules
from airloc.training.features import Frame, Privileges

CPU = torch.device("cpu")
GRIDS = st.builds(Grid, rows=st.integers(1, 4), cols=st.integers(2, 5))


def framed(grid: Grid, reach: int) -> Frame:
    return Frame.around(grid, (grid.rows + 2 * reach, grid.cols + 2 * reach), reach, CPU)


@settings(max_examples=30, deadline=None)
@given(grid=GRIDS, reach=st.integers(1, 5))
def test_every_move_from_every_place_leads_where_the_rules_say(grid, reach):
    frame = framed(grid, reach)
    place = framed(grid, reach - 1).positions.add(reach) @ torch.tensor([frame.width, 1])  # all but the outermost
    for action in range(8):
        moved = rules.move(
            frame.positions[place],
            torch.zeros_like(place),
            frame.positions[place],
            torch.full_like(place, action),
            moves=rules.moves_on(CPU),
            budget=10,
        )
        assert torch.equal(frame.positions[place + frame.strides[action]], moved.position)


@settings(max_examples=30, deadline=None)
@given(grid=GRIDS, reach=st.integers(0, 5))
def test_places_and_cells_name_each_other(grid, reach):
    frame = framed(grid, reach)
    assert frame.positions[frame.places].tolist() == [list(cell) for cell in grid.cells()]
    assert torch.equal(frame.cells[frame.places], torch.arange(grid.count))
    outside = ~rules.inside(frame.positions, grid)
    assert (frame.cells[outside] == grid.count).all()
    assert len(frame.places) + int(outside.sum()) == len(frame.positions)


@settings(max_examples=60, deadline=None)
@given(grid=GRIDS, seed=st.integers(0, 2**32 - 1), budget=st.integers(1, 12))
def test_privileges_are_those_of_the_agents_wherever_one_flies(grid, seed, budget):
    """Also for those who do not heed them, and stray far outside."""
    chance, shape = torch.Generator().manual_seed(seed), (2, 5)
    frame = framed(grid, budget)
    place = frame.places[torch.randint(grid.count, shape, generator=chance)]
    privileges, visited = Privileges(frame, *shape), unvisited(10, grid, CPU)
    for _ in range(budget):
        position = frame.positions[place].flatten(0, 1)
        visited = visit(visited, position, grid)
        allowed = privileged_moves(position, visited, grid)
        assert torch.equal(~privileges.forbidden(place).flatten(0, 1), allowed)
        place = place + frame.strides[torch.randint(8, shape, generator=chance)]
