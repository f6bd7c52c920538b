import numpy as np
import pytest
import torch

from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.training.features import Features, tabulate
from airloc.vision.position import encode_position
from untrained import made_eyes

CPU = torch.device("cpu")


def images(grid: Grid, count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *grid.size, 3), dtype=np.uint8)


def table(grid: Grid, count: int = 2, budget: int = 3, sem_seg: bool = True) -> Features:
    return tabulate(made_eyes(sem_seg), images(grid, count), grid, budget, device=CPU)


@pytest.mark.parametrize("sem_seg", [True, False])
@pytest.mark.parametrize("shape", [(1, 2), (3, 3), (2, 4)])
def test_what_is_looked_up_is_what_the_eyes_say(shape, sem_seg):
    grid, budget = Grid(*shape), 3
    features, eyes, pictures = table(grid, budget=budget, sem_seg=sem_seg), made_eyes(sem_seg), images(grid, 2)
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
        c, u = eyes.embedder(*(eyes.look(torch.from_numpy(np.stack(some))) for some in (here, there)))
    seen, prior = features.look(area, position, goal)
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
    seen, prior = features.look(area, position, goal)
    assert (seen.shape, prior.shape) == ((2, 2, 256), (2, 2, 8))
    assert torch.equal(seen[0, 1], seen[1, 0])
    assert not torch.equal(seen[0, 0], seen[0, 1])


def test_the_table_holds_one_row_a_pair_and_is_told_area_by_area():
    grid, told = Grid(2, 3), []
    features = tabulate(made_eyes(), images(grid, 2), grid, 4, device=CPU, on_area=told.append)
    assert features.table.shape == (2 * 7 * 6, 264)
    assert (features.areas, told) == (2, [1, 1])
    assert not features.table.requires_grad
