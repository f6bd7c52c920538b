import math
from dataclasses import replace

import pytest
import torch

from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.task.rules import inside
from airloc.training.atlas import CropSampler
from airloc.training.data import DataConfig, PairConfig, load_imagery
from airloc.training.photos import PhotoAugmentation
from airloc.training.relation import SCALES
from airloc.training.relation_batches import GoalAugmentation, RelationBatch, random_walks, sample_batch

CPU = torch.device("cpu")
GRID = Grid(5, 5)
EVERY = torch.arange(GRID.count)
STILL = GoalAugmentation(
    exact_probability=0.0,
    shared_jitter=0.0,
    goal_jitter_probability=0.0,
    off_grid_probability=0.0,
    aberration_probability=0.0,
)
CLEAR = PhotoAugmentation(
    flight_probability=0.0,
    native_strength=0.0,
    cell_compression_probability=0.0,
    area_compression_probability=0.0,
    degraded_probability=0.0,
)
ALWAYS = PhotoAugmentation(
    flight_probability=1.0,
    cell_compression_probability=1.0,
    area_compression_probability=1.0,
    degraded_probability=1.0,
)


class RecordingSampler(CropSampler):
    """Keeps the margins that were asked for, and the last crops."""

    margins: torch.Tensor
    crops: torch.Tensor

    def draw(self, inner: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.margins, (self.crops, step) = inner, super().draw(inner)
        return self.crops, step


@pytest.fixture(scope="module")
def crops(world) -> RecordingSampler:
    imagery = load_imagery(DataConfig(root=world, synthetic=0), PairConfig(), CPU, SCALES)
    return RecordingSampler(imagery, GRID.size[0], MARGIN)


def sample(
    crops: CropSampler, areas: int, goals: int, augmentation: GoalAugmentation, photos: PhotoAugmentation = CLEAR
) -> RelationBatch:
    return sample_batch(crops, GRID, EVERY.expand(areas, -1), goals, augmentation, photos)


def picked(glimpses: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
    return torch.stack([glimpses[n, cells] for n, cells in enumerate(cell)])


def test_without_change_goals_are_cells_of_their_area(crops: CropSampler):
    torch.manual_seed(0)
    batch = sample(crops, 4, 6, STILL)
    assert batch.glimpses.shape == (4, 25, 3, 48, 48)
    assert batch.goals.shape == (4, 6, 3, 48, 48)
    torch.testing.assert_close(batch.goals, picked(batch.glimpses, batch.cell))
    assert all(len(set(cells.tolist())) == 6 for cells in batch.cell)


def test_cells_lie_in_the_area_as_the_grid_says(crops: RecordingSampler):
    torch.manual_seed(3)
    batch = sample(crops, 1, 1, STILL)
    image = crops.crops[0, :3, MARGIN:-MARGIN, MARGIN:-MARGIN]
    assert image.shape == (3, *GRID.size)
    for number, (row, col) in enumerate(GRID.cells()):
        cuts = [
            ((side[:, row * 52 : row * 52 + 48, col * 52 : col * 52 + 48] - 0.4) / 0.2)
            for side in (image, image.flip(2))
        ]
        assert any(torch.allclose(batch.glimpses[0, number], cut, atol=1e-2) for cut in cuts)


def test_glimpses_show_the_observed_cells_in_their_order(crops: CropSampler):
    observed = torch.tensor([[7, 0, 24], [3, 3, 12]])
    torch.manual_seed(4)
    whole = sample_batch(crops, GRID, EVERY.expand(2, -1), 4, STILL, CLEAR)
    torch.manual_seed(4)
    some = sample_batch(crops, GRID, observed, 4, STILL, CLEAR)
    assert torch.equal(some.observed, observed)
    torch.testing.assert_close(some.glimpses, picked(whole.glimpses, observed))


def test_exact_areas_are_exact_crops_whatever_else_is_likely(crops: RecordingSampler):
    torch.manual_seed(2)
    every = GoalAugmentation(
        exact_probability=1.0, shared_jitter=0.0, goal_jitter_probability=1.0, off_grid_probability=1.0
    )
    batch = sample(crops, 4, 5, every, ALWAYS)
    assert not crops.margins.any()
    torch.testing.assert_close(batch.goals, picked(batch.glimpses, batch.cell))
    corner = crops.crops[:, :3, MARGIN : MARGIN + 48, MARGIN : MARGIN + 48]
    mirrored = crops.crops.flip(3)[:, :3, MARGIN : MARGIN + 48, MARGIN : MARGIN + 48]
    for number in range(4):
        cuts = [(part[number] - 0.4) / 0.2 for part in (corner, mirrored)]
        assert any(torch.allclose(batch.glimpses[number, 0], cut, atol=1e-2) for cut in cuts)


def test_some_areas_are_exact_and_the_rest_are_augmented(crops: CropSampler):
    torch.manual_seed(0)
    half = GoalAugmentation(exact_probability=0.5, off_grid_probability=1.0)
    batch = sample(crops, 16, 2, half)
    exact = torch.isclose(batch.goals, picked(batch.glimpses, batch.cell), atol=1e-4).flatten(1).all(dim=1)
    assert 0.25 < float(exact.float().mean()) < 0.75


@pytest.mark.parametrize(("probability", "margin"), [(0.0, 0.0), (1.0, float(MARGIN))])
def test_areas_in_flight_show_the_ground_around_the_grid(crops: RecordingSampler, probability: float, margin: float):
    torch.manual_seed(0)
    sample(crops, 3, 1, STILL, replace(CLEAR, flight_probability=probability))
    assert crops.margins.tolist() == [margin] * 3


def test_goals_of_another_day_differ_and_still_show_the_same_place(crops: CropSampler):
    torch.manual_seed(1)
    another_day = GoalAugmentation(
        exact_probability=0.0, goal_jitter_probability=1.0, misregistration=0.0, off_grid_probability=0.0
    )
    batch = sample(crops, 6, 5, another_day)
    cells, goals = picked(batch.glimpses, batch.cell).flatten(0, 1), batch.goals.flatten(0, 1)
    assert not torch.allclose(cells, goals)

    def grey(patches: torch.Tensor) -> torch.Tensor:
        flat = patches.mean(dim=1).flatten(1)
        return (flat - flat.mean(dim=1, keepdim=True)) / flat.std(dim=1, keepdim=True)

    alike = (grey(cells) * grey(goals)).mean(dim=1)
    others = (grey(cells) * grey(goals).roll(1, 0)).mean(dim=1)
    assert alike.median() > 0.7 > 0.5 > others.median()


def test_goals_off_the_grid_are_cut_elsewhere(crops: CropSampler):
    torch.manual_seed(1)
    batch = sample(crops, 3, 5, replace(STILL, off_grid_probability=1.0))
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
        ("exact_probability", 1.5),
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
