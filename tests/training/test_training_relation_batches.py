import math

import pytest
import torch

from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.rules import inside
from airloc.training.atlas import Atlas
from airloc.training.data import DataConfig, load_atlas
from airloc.training.relation_batches import GoalAugmentation, random_walks, sample_batch

CPU = torch.device("cpu")
GRID = Grid(5, 5)
STILL = GoalAugmentation(shared_jitter=0.0, goal_jitter_probability=0.0, off_grid_probability=0.0)


@pytest.fixture(scope="module")
def atlas(world) -> Atlas:
    return load_atlas(DataConfig(root=world, synthetic=0), GRID.size[0], CPU)


def picked(glimpses: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
    return torch.stack([glimpses[n, cells] for n, cells in enumerate(cell)])


def test_without_change_goals_are_cells_of_their_area(atlas: Atlas):
    torch.manual_seed(0)
    batch = sample_batch(atlas, GRID, 4, 6, STILL)
    assert batch.glimpses.shape == (4, 25, 3, 48, 48)
    assert batch.goals.shape == (4, 6, 3, 48, 48)
    torch.testing.assert_close(batch.goals, picked(batch.glimpses, batch.cell))
    assert all(len(set(cells.tolist())) == 6 for cells in batch.cell)


def test_cells_lie_in_the_area_as_the_grid_says(atlas: Atlas):
    torch.manual_seed(3)
    batch = sample_batch(atlas, GRID, 1, 1, STILL)
    torch.manual_seed(3)
    image = atlas.crop(*atlas.sample(1, 256), 256)[0].float() / 255
    mirrored = image.flip(1)
    for number, (row, col) in enumerate(GRID.cells()):
        cuts = [
            (((side[row * 52 : row * 52 + 48, col * 52 : col * 52 + 48]).permute(2, 0, 1) - 0.4) / 0.2)
            for side in (image, mirrored)
        ]
        assert any(torch.allclose(batch.glimpses[0, number], cut, atol=1e-2) for cut in cuts)


def test_goals_of_another_day_differ_and_still_show_the_same_place(atlas: Atlas):
    torch.manual_seed(1)
    batch = sample_batch(
        atlas, GRID, 6, 5, GoalAugmentation(goal_jitter_probability=1.0, misregistration=0.0, off_grid_probability=0.0)
    )
    cells, goals = picked(batch.glimpses, batch.cell).flatten(0, 1), batch.goals.flatten(0, 1)
    assert not torch.allclose(cells, goals)

    def grey(patches: torch.Tensor) -> torch.Tensor:
        flat = patches.mean(dim=1).flatten(1)
        return (flat - flat.mean(dim=1, keepdim=True)) / flat.std(dim=1, keepdim=True)

    alike = (grey(cells) * grey(goals)).mean(dim=1)
    others = (grey(cells) * grey(goals).roll(1, 0)).mean(dim=1)
    assert alike.median() > 0.7 > 0.5 > others.median()


def test_goals_off_the_grid_are_cut_elsewhere(atlas: Atlas):
    torch.manual_seed(1)
    change = GoalAugmentation(shared_jitter=0.0, goal_jitter_probability=0.0, off_grid_probability=1.0)
    batch = sample_batch(atlas, GRID, 3, 5, change)
    assert not torch.allclose(batch.goals, picked(batch.glimpses, batch.cell), atol=0.1)


@pytest.mark.parametrize("grid", [Grid(3, 3), GRID, Grid(2, 6)])
def test_walks_make_single_moves_inside_and_seldom_return(grid: Grid):
    torch.manual_seed(0)
    walks = random_walks(grid, 200, min(8, grid.count - 1), CPU)
    cells = torch.stack([walks // grid.cols, walks % grid.cols], dim=2)
    assert inside(cells, grid).all()
    assert ((cells[:, 1:] - cells[:, :-1]).abs().amax(dim=2) == 1).all()
    fresh = [len(set(walk.tolist())) / len(walk) for walk in walks]
    assert sum(fresh) / len(fresh) > 0.9


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("shared_jitter", math.nan),
        ("goal_jitter", -0.1),
        ("goal_jitter_probability", 1.5),
        ("misregistration", -1.0),
        ("off_grid_probability", math.nan),
        ("shift", math.inf),
        ("turn", -10.0),
    ],
)
def test_invalid_settings_are_refused(setting, value):
    with pytest.raises(AirlocError, match=f"{setting} = {value}"):
        GoalAugmentation(**{setting: value})
