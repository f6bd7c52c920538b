from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.agent import privileged_moves, unvisited, visit
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import rules
from airloc.task.cells import cut_patches
from airloc.training import features
from airloc.training.features import FeatureTable, PaddedGrid, PrivilegedMoves, default_limit, tabulate
from airloc.vision.position import encode_position
from untrained import untrained_encoder

CPU = torch.device("cpu")


def images(grid: Grid, count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *grid.size, 3), dtype=np.uint8)


def look(
    features: FeatureTable, area: torch.Tensor, position: torch.Tensor, goal: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Look up features at positions (..., 2) with goals (..., 2) in areas (...): c + p and u."""
    cols = features.grid.cols
    place = (position[..., 0] + features.reach) * features.padded.width + position[..., 1] + features.reach
    return features.lookup(features.row_offset(area, goal[..., 0] * cols + goal[..., 1]), place)


def table(grid: Grid, count: int = 2, budget: int = 3, sem_seg: bool = True) -> FeatureTable:
    return tabulate(untrained_encoder(sem_seg), images(grid, count), grid, budget, device=CPU)


@pytest.mark.parametrize("sem_seg", [True, False])
@pytest.mark.parametrize("shape", [(1, 2), (3, 3), (2, 4)])
def test_lookups_are_the_outputs_of_the_encoder(shape, sem_seg):
    grid, budget = Grid(*shape), 3
    features, encoder, all_images = (
        table(grid, budget=budget, sem_seg=sem_seg),
        untrained_encoder(sem_seg),
        images(grid, 2),
    )
    chance = torch.Generator().manual_seed(0)
    area = torch.randint(2, (40,), generator=chance)
    position = torch.stack([torch.randint(-budget, n + budget, (40,), generator=chance) for n in shape], dim=1)
    goal = torch.stack([torch.randint(n, (40,), generator=chance) for n in shape], dim=1)
    patches = [cut_patches(image, grid) for image in all_images]
    black = np.zeros((48, 48, 3), dtype=np.uint8)
    here, there = [], []
    for a, p, g in zip(area.tolist(), position.tolist(), goal.tolist(), strict=True):
        here.append(patches[a][grid.index(tuple(p))] if grid.contains(tuple(p)) else black)
        there.append(patches[a][grid.index(tuple(g))])
    with torch.no_grad():
        c, u = encoder.embedder(*(encoder.preprocess(torch.from_numpy(np.stack(some))) for some in (here, there)))
    seen, prior = look(features, area, position, goal)
    assert not all(grid.contains(tuple(p)) for p in position.tolist())
    torch.testing.assert_close(seen, c + encode_position(position), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(prior, u, rtol=1e-4, atol=1e-3)


def test_policies_and_episodes_may_be_stacked():
    grid = Grid(2, 2)
    features = table(grid)
    area, position, goal = (
        torch.tensor([[0, 1], [1, 0]]),
        torch.zeros(2, 2, 2, dtype=torch.long),
        torch.ones(2, 2, 2).long(),
    )
    seen, prior = look(features, area, position, goal)
    assert (seen.shape, prior.shape) == ((2, 2, 256), (2, 2, 8))
    assert torch.equal(seen[0, 1], seen[1, 0])
    assert not torch.equal(seen[0, 0], seen[0, 1])


def test_in_a_share_of_the_areas_glimpses_and_goals_are_photos_drawn_by_the_seed():
    grid = Grid(2, 2)

    def table(photos: float) -> torch.Tensor:
        torch.manual_seed(1)
        found = tabulate(untrained_encoder(), images(grid, 12), grid, 4, device=CPU, photos=photos)
        return found.table.view(12, -1)

    exact, some, all_photos = table(0.0), table(0.5), table(1.0)
    same = (exact == some).all(dim=1)
    assert 2 <= int(same.sum()) <= 10
    assert not (exact == all_photos).all(dim=1).any()
    assert torch.equal(table(0.5), some)
    assert some.isfinite().all()


@pytest.mark.parametrize("photos", [0.0, 0.5])
def test_areas_computed_at_once_have_the_features_of_areas_computed_alone(monkeypatch, photos):
    grid = Grid(2, 2)

    def table() -> torch.Tensor:
        torch.manual_seed(3)
        return tabulate(untrained_encoder(), images(grid, 5), grid, 4, device=CPU, photos=photos).table.view(5, -1)

    alone = table()
    monkeypatch.setattr(features, "AREAS_AT_ONCE", {"cpu": 2})
    together = table()
    if photos:  # the photos are drawn in another order, exact areas stay the same
        assert together.isfinite().all()
        assert together.shape == alone.shape
    else:
        assert torch.allclose(together, alone, atol=1e-5)


def test_the_table_holds_one_row_per_pair():
    features = table(Grid(2, 3))
    assert (features.table.shape, features.areas) == ((2 * 7 * 6, 264), 2)
    assert not features.table.requires_grad


def test_a_table_that_does_not_fit_is_mapped_from_a_file_without_a_trace(tmp_path):
    grid, size = Grid(2, 3), 2 * 7 * 6 * 264 * 4
    mapped, fitting, unlimited = (
        tabulate(untrained_encoder(), images(grid, 2), grid, 4, device=CPU, folder=tmp_path, limit=limit)
        for limit in (size - 1, size, None)
    )
    mappings = Path("/proc/self/maps").read_text()
    assert mappings.count(f"{tmp_path}/.airloc-") == 1, "one of the three is mapped"
    assert list(tmp_path.iterdir()) == []
    for other in (fitting, unlimited):
        assert torch.equal(mapped.table, other.table)


def test_a_table_that_cannot_be_written_is_an_error_with_a_cure(tmp_path):
    with pytest.raises(AirlocError, match=r"absent.*--areas"):
        tabulate(
            untrained_encoder(), images(Grid(1, 2), 1), Grid(1, 2), 4, device=CPU, folder=tmp_path / "absent", limit=0
        )


def test_by_default_a_table_may_take_half_of_the_memory():
    total = 1024 * int(Path("/proc/meminfo").read_text().split()[1])
    assert default_limit(CPU) == pytest.approx(total / 2, rel=0.01)


@pytest.mark.gpu
def test_on_a_gpu_a_mapped_table_is_read_to_the_same_numbers(tmp_path):
    grid, device = Grid(2, 3), torch.device("cuda")
    mapped, fitting = (
        tabulate(untrained_encoder(), images(grid, 2), grid, 4, device=device, folder=tmp_path, limit=limit)
        for limit in (0, None)
    )
    assert (mapped.on_device, fitting.on_device) == (False, True)
    area, position = torch.tensor([0, 1], device=device), torch.tensor([[0, 1], [-1, 2]], device=device)
    for one, other in zip(*(look(table, area, position, position.abs()) for table in (mapped, fitting)), strict=True):
        assert one.device == other.device
        assert torch.equal(one, other)


GRIDS = st.builds(Grid, rows=st.integers(1, 4), cols=st.integers(2, 5))


def padded(grid: Grid, reach: int) -> PaddedGrid:
    return PaddedGrid.around(grid, (grid.rows + 2 * reach, grid.cols + 2 * reach), reach, CPU)


@settings(max_examples=30, deadline=None)
@given(grid=GRIDS, reach=st.integers(1, 5))
def test_every_move_from_every_place_leads_where_the_rules_say(grid, reach):
    places = padded(grid, reach)
    place = padded(grid, reach - 1).positions.add(reach) @ torch.tensor([places.width, 1])  # all but the outermost
    for action in range(8):
        moved = rules.move(
            places.positions[place],
            torch.zeros_like(place),
            places.positions[place],
            torch.full_like(place, action),
            moves=rules.moves_on(CPU),
            budget=10,
        )
        assert torch.equal(places.positions[place + places.strides[action]], moved.position)


@settings(max_examples=30, deadline=None)
@given(grid=GRIDS, reach=st.integers(0, 5))
def test_places_and_cells_name_each_other(grid, reach):
    places = padded(grid, reach)
    assert places.positions[places.places].tolist() == [list(cell) for cell in grid.cells()]
    assert torch.equal(places.cells[places.places], torch.arange(grid.count))
    outside = ~rules.inside(places.positions, grid)
    assert (places.cells[outside] == grid.count).all()
    assert len(places.places) + int(outside.sum()) == len(places.positions)


@settings(max_examples=60, deadline=None)
@given(grid=GRIDS, seed=st.integers(0, 2**32 - 1), budget=st.integers(1, 12))
def test_privileges_are_those_of_the_agents_everywhere(grid, seed, budget):
    """Also for agents that ignore them and leave the grid."""
    chance, shape = torch.Generator().manual_seed(seed), (2, 5)
    places = padded(grid, budget)
    place = places.places[torch.randint(grid.count, shape, generator=chance)]
    privileges, visited = PrivilegedMoves(places, *shape), unvisited(10, grid, CPU)
    for _ in range(budget):
        position = places.positions[place].flatten(0, 1)
        visited = visit(visited, position, grid)
        allowed = privileged_moves(position, visited, grid)
        assert torch.equal(~privileges.forbidden(place).flatten(0, 1), allowed)
        place = place + places.strides[torch.randint(8, shape, generator=chance)]
