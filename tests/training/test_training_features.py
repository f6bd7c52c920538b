from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.training.features import Features, memory_share, tabulate
from airloc.vision.position import encode_position
from untrained import untrained_encoder

CPU = torch.device("cpu")


def images(grid: Grid, count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *grid.size, 3), dtype=np.uint8)


def look(
    features: Features, area: torch.Tensor, position: torch.Tensor, goal: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What is looked up at positions (..., 2) with goals (..., 2) in areas (...): c + p and u."""
    frame, cols = features.frame, features.grid.cols
    place = (position[..., 0] + features.reach) * frame.width + position[..., 1] + features.reach
    seen = torch.empty(*area.shape, 264, device=features.device)
    features.look(features.quest(area, goal[..., 0] * cols + goal[..., 1]), place, out=seen)
    return seen[..., :256], seen[..., 256:]


def table(grid: Grid, count: int = 2, budget: int = 3, sem_seg: bool = True) -> Features:
    return tabulate(untrained_encoder(sem_seg), images(grid, count), grid, budget, device=CPU)


@pytest.mark.parametrize("sem_seg", [True, False])
@pytest.mark.parametrize("shape", [(1, 2), (3, 3), (2, 4)])
def test_what_is_looked_up_is_what_the_eyes_say(shape, sem_seg):
    grid, budget = Grid(*shape), 3
    features, encoder, pictures = (
        table(grid, budget=budget, sem_seg=sem_seg),
        untrained_encoder(sem_seg),
        images(grid, 2),
    )
    chance = torch.Generator().manual_seed(0)
    area = torch.randint(2, (40,), generator=chance)
    position = torch.stack([torch.randint(-budget, n + budget, (40,), generator=chance) for n in shape], dim=1)
    goal = torch.stack([torch.randint(n, (40,), generator=chance) for n in shape], dim=1)
    patches = [cut_patches(picture, grid) for picture in pictures]
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


def test_the_table_holds_one_row_a_pair_and_is_told_area_by_area():
    grid, told = Grid(2, 3), []
    features = tabulate(untrained_encoder(), images(grid, 2), grid, 4, device=CPU, on_area=told.append)
    assert features.table.shape == (2 * 7 * 6, 264)
    assert (features.areas, told) == (2, [1, 1])
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
    with pytest.raises(AirlocError, match=r"Cannot keep a table of 0.0 GB in .*absent.*--areas"):
        tabulate(
            untrained_encoder(), images(Grid(1, 2), 1), Grid(1, 2), 4, device=CPU, folder=tmp_path / "absent", limit=0
        )


def test_unless_told_a_table_may_take_half_of_the_memory():
    total = 1024 * int(Path("/proc/meminfo").read_text().split()[1])
    assert memory_share(CPU) == pytest.approx(total / 2, rel=0.01)


@pytest.mark.gpu
def test_on_a_gpu_a_mapped_table_is_read_to_the_same_numbers(tmp_path):
    grid, device = Grid(2, 3), torch.device("cuda")
    mapped, fitting = (
        tabulate(untrained_encoder(), images(grid, 2), grid, 4, device=device, folder=tmp_path, limit=limit)
        for limit in (0, None)
    )
    assert (mapped.fits, fitting.fits) == (False, True)
    area, position = torch.tensor([0, 1], device=device), torch.tensor([[0, 1], [-1, 2]], device=device)
    for one, other in zip(*(look(table, area, position, position.abs()) for table in (mapped, fitting)), strict=True):
        assert one.device == other.device
        assert torch.equal(one, other)
