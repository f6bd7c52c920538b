import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.task.rules import inside
from airloc.training.atlas import CropSampler, Imagery
from airloc.training.data import DataConfig, PairConfig, load_imagery
from airloc.training.photos import PhotoAugmentation
from airloc.training.relation import SCALES
from airloc.training.relation_batches import INNER, GoalAugmentation, RelationBatch, random_walks, sample_batch

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
    block_grid_strength=0.0,
    cell_compression_probability=0.0,
    area_compression_probability=0.0,
    saved_probability=0.0,
    degraded_probability=0.0,
)
ALWAYS = PhotoAugmentation(
    flight_probability=1.0,
    cell_compression_probability=1.0,
    area_compression_probability=1.0,
    saved_probability=1.0,
    degraded_probability=1.0,
)


class RecordingSampler(CropSampler):
    """Keeps the margins that were asked for, and the last crops."""

    margins: torch.Tensor
    crops: torch.Tensor

    def draw(self, inner: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        self.margins, (self.crops, step, image) = inner, super().draw(inner)
        return self.crops, step, image


@pytest.fixture(scope="module")
def crops(world) -> RecordingSampler:
    imagery = load_imagery(DataConfig(root=world, synthetic=0), PairConfig(), CPU, SCALES)
    return RecordingSampler(imagery, GRID.size[0], MARGIN)


@cache
def suburb() -> np.ndarray:
    return generate(2, (400, 400), regime="suburb").image


def at_step(step: float, image: np.ndarray | None = None, *, clean: bool = True) -> RecordingSampler:
    """Render areas at one scale, in pixels per rendered pixel, of an image that was never compressed, or was."""
    image = suburb() if image is None else image
    imagery = Imagery.from_pairs([(image, image)], [(step, step)], [1.0], "cpu", clean=[clean])
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


def exact_cells(batch: RelationBatch, crops: RecordingSampler) -> torch.Tensor:
    """Return which glimpses of all cells are those of the crops, mirrored or not, (A, C)."""
    images = crops.crops[:, :3, MARGIN:-MARGIN, MARGIN:-MARGIN]
    assert images.shape[1:] == (3, *GRID.size)
    cuts = [
        torch.stack([side[..., row * 52 : row * 52 + 48, col * 52 : col * 52 + 48] for row, col in GRID.cells()], dim=1)
        for side in (images, images.flip(3))
    ]
    alike = [((cut - 0.4) / 0.2 - batch.glimpses).abs().amax(dim=(2, 3, 4)) < 1e-2 for cut in cuts]
    return alike[0] | alike[1]


def test_cells_lie_in_the_area_as_the_grid_says(crops: RecordingSampler):
    torch.manual_seed(3)
    assert exact_cells(sample(crops, 1, 1, STILL), crops).all()


def test_glimpses_show_the_observed_cells_in_their_order(crops: CropSampler):
    observed = torch.tensor([[7, 0, 24], [3, 3, 12]])
    torch.manual_seed(4)
    whole = sample_batch(crops, GRID, EVERY.expand(2, -1), 4, STILL, CLEAR)
    torch.manual_seed(4)
    some = sample_batch(crops, GRID, observed, 4, STILL, CLEAR)
    assert torch.equal(some.observed, observed)
    torch.testing.assert_close(some.glimpses, picked(whole.glimpses, observed))


def test_exact_areas_are_exact_crops_whatever_else_is_likely():
    torch.manual_seed(2)
    crops = at_step(1.2)
    every = replace(STILL, exact_probability=1.0, goal_jitter_probability=1.0)
    batch = sample(crops, 2, 5, every, ALWAYS)
    assert exact_cells(batch, crops).all()
    torch.testing.assert_close(batch.goals, picked(batch.glimpses, batch.cell))


def test_goals_of_exact_areas_may_lie_off_the_grid():
    torch.manual_seed(2)
    crops = at_step(1.2)
    batch = sample(crops, 1, 5, replace(STILL, exact_probability=1.0, off_grid_probability=1.0), ALWAYS)
    assert exact_cells(batch, crops).all()
    assert ((batch.goals - picked(batch.glimpses, batch.cell)).abs().amax(dim=(2, 3, 4)) > 0.1).all()


def test_some_areas_are_exact_and_the_rest_are_augmented():
    torch.manual_seed(0)
    crops = at_step(1.2)
    batch = sample(crops, 8, 1, replace(STILL, exact_probability=0.5, goal_jitter_probability=1.0), ALWAYS)
    exact = exact_cells(batch, crops)
    assert torch.equal(exact.any(dim=1), exact.all(dim=1)), "all cells of an area, or none"
    assert 0 < float(exact.float().mean()) < 1


@pytest.mark.parametrize("step", [0.7, 1.0, 1.4])
def test_areas_of_compressed_images_are_never_exact_and_always_compressed_cell_by_cell(
    monkeypatch: pytest.MonkeyPatch, step: float
):
    torch.manual_seed(0)
    crops = at_step(step, clean=False)
    exact = replace(STILL, exact_probability=1.0)
    assert not exact_cells(sample(crops, 1, 1, exact, replace(CLEAR, block_grid_strength=0.3)), crops).any()
    # Errors too small to see, and so little quality that every cell shows the blocks, which begin with the cell.
    monkeypatch.setattr("airloc.training.photos.QUALITY", (4.0, 4.0))
    batch = sample(crops, 1, 1, exact, replace(CLEAR, block_grid_strength=1e-6, aligned_probability=1.0))
    assert block_steps(batch.glimpses).min() > 1.5
    assert block_steps(batch.goals).min() > 1.5


def block_steps(patches: torch.Tensor) -> torch.Tensor:
    """Mean difference across the edges of 8 px blocks that begin with the patch, relative to that of all columns."""
    steps = patches.mean(dim=2).diff(dim=3).abs().mean(dim=2)
    return steps[..., 7::8].mean(dim=2) / steps.mean(dim=2)


def test_patches_saved_alone_show_their_own_blocks_which_begin_with_the_patch_or_anywhere(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("airloc.training.photos.QUALITY", (4.0, 4.0))
    torch.manual_seed(0)
    crops = at_step(1.2)
    batch = sample(crops, 8, 1, STILL, replace(CLEAR, saved_probability=1.0))
    assert not exact_cells(batch, crops).any()
    begins_with_block = block_steps(batch.glimpses).mean(dim=1) > 1.5
    assert torch.equal(begins_with_block, block_steps(batch.goals).mean(dim=1) > 1.5), "all patches of an area, or none"
    assert 0 < int(begins_with_block.sum()) < 8


def test_areas_of_images_that_were_never_compressed_need_not_be_compressed():
    torch.manual_seed(0)
    crops = at_step(1.2)
    assert exact_cells(sample(crops, 2, 1, STILL, replace(CLEAR, block_grid_strength=0.3)), crops).all()


@pytest.mark.parametrize(("probability", "margin"), [(0.0, INNER), (1.0, float(MARGIN))])
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


@pytest.mark.parametrize(("scale", "deviation"), [(1.0, 0.0), (1.2, 0.105)])
def test_goals_off_the_grid_are_scaled(scale: float, deviation: float):
    """Over a ramp the slope of a goal is the side of the ground that it shows; its logarithm is uniform."""
    torch.manual_seed(0)
    ramp = np.arange(400, dtype=np.float64)[None, :, None] / 400 * 255
    crops = at_step(1.0, np.broadcast_to(ramp, (400, 400, 3)).round().astype(np.uint8))
    batch = sample(crops, 3, 25, replace(STILL, off_grid_probability=1.0, shift=0.0, turn=0.0, scale=scale))
    inner = ((batch.cell % 5 > 0) & (batch.cell % 5 < 4)).flatten()
    goals, cells = (part.flatten(0, 1)[inner] for part in (batch.goals, picked(batch.glimpses, batch.cell)))
    slope = ((each[..., -8:].mean(dim=(1, 2, 3)) - each[..., :8].mean(dim=(1, 2, 3))) for each in (goals, cells))
    zoom = torch.div(*slope).log()
    assert zoom.abs().max() < math.log(scale) + 0.01
    assert float(zoom.std()) == pytest.approx(deviation, abs=0.015)  # log(1.2) / sqrt(3)


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
        ("scale", 0.9),
        ("aberration_probability", 1.5),
    ],
)
def test_invalid_settings_are_refused(setting, value):
    with pytest.raises(AirlocError, match=f"{setting} = {value}"):
        GoalAugmentation(**{setting: value})
