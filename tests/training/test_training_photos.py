import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.training.atlas import CropSampler, Imagery
from airloc.training.photos import PhotoAugmentation, compress_areas, cut_cells, photograph_cells, take_photos
from airloc.training.relation_batches import GoalAugmentation, RelationBatch, sample_batch

GRID = Grid(3, 3)
SIDE = GRID.size[0] + 2 * MARGIN
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
ALL = PhotoAugmentation(
    flight_probability=0.5,
    cell_compression_probability=0.5,
    area_compression_probability=0.5,
    saved_probability=0.5,
    degraded_probability=0.5,
)


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return generate(3, size=(SIDE + 8, SIDE + 8), regime="suburb").image


def sample(
    image: np.ndarray, areas: int, goals: int, change: GoalAugmentation, photos: PhotoAugmentation, clean: bool = True
) -> RelationBatch:
    """Sample areas of an image that was never compressed, or was."""
    imagery = Imagery.from_pairs([(image, image)], [(1.0, 1.0)], [1.0], "cpu", clean=[clean])
    crops = CropSampler(imagery, GRID.size[0], MARGIN)
    return sample_batch(crops, GRID, torch.arange(GRID.count).expand(areas, -1), goals, change, photos)


def as_tensor(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float() / 255


def save_jpeg(image: np.ndarray, quality: int, subsampling: int = 0) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, subsampling=subsampling)
    return np.asarray(Image.open(file))


def test_areas_of_any_size_are_compressed_at_different_phases(image: np.ndarray):
    torch.manual_seed(0)
    images = as_tensor(image[:150, :131]).expand(6, -1, -1, -1)
    done = compress_areas(images)
    assert done.shape == images.shape
    assert len({phase(patch) for patch in done}) > 1


def test_photos_without_errors_are_the_cells(image: np.ndarray):
    area = as_tensor(image[:SIDE, :SIDE])
    cells = torch.arange(GRID.count)[None]
    corner = torch.stack([cells // 3, cells % 3]) * float(GRID.pitch)
    none = torch.zeros(1, 1, dtype=torch.bool)
    photos = take_photos(
        area, GRID, corner, torch.zeros(1, 9), strength=torch.zeros(1, 1), compressed=none, degraded=none
    )
    for number, (row, col) in enumerate(GRID.cells()):
        top, left = MARGIN + row * GRID.pitch, MARGIN + col * GRID.pitch
        torch.testing.assert_close(photos[0, number], area[0, :, top : top + 48, left : left + 48], atol=1e-4, rtol=0)


def test_a_share_of_the_areas_is_photographed_with_errors_and_the_others_are_exact(image: np.ndarray):
    torch.manual_seed(0)
    areas = as_tensor(image[:SIDE, :SIDE]).expand(60, -1, -1, -1)
    photos = photograph_cells(areas, GRID, 0.4)
    cells = areas[:, :, MARGIN:-MARGIN, MARGIN:-MARGIN].unfold(2, 48, 52).unfold(3, 48, 52)  # (A, 3, row, col, S, S)
    difference = (photos - cells.flatten(2, 3).transpose(1, 2)).abs().amax(dim=(2, 3, 4))  # (A, C)
    exact = difference < 1e-3
    assert torch.equal(exact.any(dim=1), exact.all(dim=1)), "all cells of an area, or none"
    assert 0.4 < float(exact.float().mean()) < 0.8


def test_photos_in_flight_differ_from_the_cells_and_still_show_them(image: np.ndarray):
    torch.manual_seed(0)
    batch = sample(image, 4, 9, STILL, replace(CLEAR, flight_probability=1.0, flight_strength=(1, 1)))
    cells = torch.stack([batch.glimpses[n, cell] for n, cell in enumerate(batch.cell)])
    goals = batch.goals
    assert (cells - goals).abs().mean() > 0.05
    same, other = (correlation(cells, part).mean() for part in (goals, goals.roll(1, 1)))
    assert same > other + 0.2


def test_without_probabilities_batches_are_exact_crops(image: np.ndarray):
    on_the_ground = replace(ALL, flight_probability=0.0)  # the margin of a flight moves the crop
    torch.manual_seed(1)
    exact = sample(image, 2, 4, replace(STILL, exact_probability=1.0), on_the_ground)
    torch.manual_seed(1)
    off = sample(image, 2, 4, STILL, CLEAR)
    for one, other in zip(exact, off, strict=True):
        torch.testing.assert_close(one, other)


def test_all_augmentations_give_finite_patches(image: np.ndarray):
    for seed in range(3):
        torch.manual_seed(seed)
        batch = sample(image, 3, 5, GoalAugmentation(exact_probability=0.0, off_grid_probability=1.0), ALL)
        assert batch.glimpses.shape == (3, 9, 3, 48, 48)
        assert batch.goals.shape == (3, 5, 3, 48, 48)
        assert all(part.isfinite().all() for part in batch)


def test_compression_of_single_cells_hides_the_block_grid_of_the_image(image: np.ndarray):
    saved = save_jpeg(image, 35)

    def share(photos: PhotoAugmentation) -> float:
        """Share of neighbours in a row whose block grids lie four columns apart, as 52 columns modulo 8 say."""
        torch.manual_seed(2)
        batch = sample(saved, 12, 1, STILL, photos, clean=False)
        phases = torch.tensor([[phase(patch) for patch in cells] for cells in batch.glimpses]).view(12, 3, 3)
        return float(((phases[..., 1:] - phases[..., :-1]) % 8 == 4).float().mean())

    exact = share(CLEAR)
    assert exact > 0.6  # crops lie between pixels, which blurs the block grid
    assert share(replace(CLEAR, cell_compression_probability=1.0, area_compression_probability=1.0)) < 0.35
    assert share(replace(CLEAR, block_grid_strength=PhotoAugmentation.block_grid_strength)) < 0.35


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("flight_probability", float("nan")),
        ("degraded_probability", -0.1),
        ("flight_strength", (0.0, 1e9)),
        ("block_grid_strength", -0.1),
        ("aligned_probability", 1.5),
        ("saved_probability", 2.0),
    ],
)
def test_impossible_settings_are_refused(field: str, value: object):
    with pytest.raises(AirlocError, match=field):
        PhotoAugmentation(**{field: value})


def phase(patch: torch.Tensor) -> int:
    """Return the column modulo 8 at which the differences between neighbouring columns are largest."""
    grey = patch.mean(dim=0)
    second = (grey[:, 3:] - 3 * grey[:, 2:-1] + 3 * grey[:, 1:-2] - grey[:, :-3]).abs().mean(dim=0)
    length = len(second) // 8 * 8
    return int(second[:length].view(-1, 8).mean(dim=0).argmax())


def correlation(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    flat = [part.flatten(2) - part.flatten(2).mean(dim=2, keepdim=True) for part in (first, second)]
    return torch.nn.functional.cosine_similarity(*flat, dim=2)


def test_aberration_does_not_tell_where_in_the_area_a_photo_was_taken():
    period = torch.from_numpy(generate(3, size=(GRID.pitch, GRID.pitch)).image.copy()).permute(2, 0, 1).float() / 255
    area = period.repeat(1, 6, 6)[:, :SIDE, :SIDE][None]  # every cell shows the same ground
    corner = torch.stack(torch.meshgrid(*[torch.arange(3.0)] * 2, indexing="ij")).view(2, 1, 9) * GRID.pitch
    still = torch.zeros(1, 1)

    def photos(pixels: float) -> torch.Tensor:
        common = {"strength": still, "compressed": still > 0, "degraded": still > 0, "aligned": still == 0}
        return take_photos(area, GRID, corner, torch.zeros(1, 9), **common, aberration=torch.full((1, 1), pixels))[0]

    sharp, lens = photos(0.0), photos(1.0)
    assert float((lens - lens[:1]).abs().max()) < 1e-5
    assert float((lens - sharp).abs().mean()) > 0.01
    assert torch.equal(lens[:, 1], sharp[:, 1]), "green stays"


def test_cells_are_cut_as_everywhere():
    image = torch.arange(3 * 256 * 256).float().view(1, 3, 256, 256)
    cells = cut_cells(image, Grid())
    assert cells.shape == (1, 25, 3, 48, 48)
    assert torch.equal(cells[0, 7], image[0, :, 52:100, 104:152])
