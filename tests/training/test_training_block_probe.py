"""The linear probe reads the block grid of compressed images, and hardly does in puzzles of the training."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.area import SearchArea
from airloc.areas.registry import load_dataset
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import MOVES
from airloc.training.block_probe import (
    CHANCE,
    PuzzleRecipe,
    block_profile,
    correlate_profiles,
    fit_ridge,
    probe_puzzles,
)
from airloc.training.relation_batches import GoalAugmentation

pytestmark = pytest.mark.long

AUGMENTED, EXACT = (PuzzleRecipe(GoalAugmentation(exact_probability=probability)) for probability in (0.0, 1.0))


def save_jpeg(image: np.ndarray, quality: int = 75) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


@pytest.fixture(scope="module")
def images() -> list[np.ndarray]:
    """Procedural images, which were never compressed."""
    return [generate(n, size=(224, 224)).image for n in range(16)]


def as_areas(images: list[np.ndarray]) -> list[SearchArea]:
    return [SearchArea(str(number), image) for number, image in enumerate(images)]


def as_patch(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float() / 255


def test_the_profile_peaks_at_the_block_boundary(images):
    compressed = save_jpeg(images[0], quality=20)
    luma_rows = block_profile(as_patch(compressed[3:51, :48]))[0]
    assert luma_rows.argmax() == 4  # row 7 to row 8 of the image are rows 4 and 5 of the patch
    assert luma_rows.norm() == pytest.approx(1)


def test_correlations_have_their_peak_at_the_lag_of_the_phase(images):
    compressed = save_jpeg(images[0], quality=20)
    glimpse, goal = as_patch(compressed[:48, :48]), as_patch(compressed[52:100, :48])
    assert correlate_profiles(glimpse, goal)[0, :8].argmax() == 4  # 52 px are 4 px modulo 8


def test_ridge_regression_names_separable_classes():
    torch.manual_seed(0)
    labels = torch.randint(len(MOVES), (400,))
    inputs = torch.nn.functional.one_hot(labels, len(MOVES)).double() + 0.1 * torch.randn(400, 8)
    weights = fit_ridge(inputs, labels)
    assert ((inputs @ weights[:-1] + weights[-1]).argmax(dim=1) == labels).all()


def test_the_probe_repeats_with_its_seed_and_leaves_the_global_one_alone(images):
    state = torch.random.get_rng_state()
    for recipe in (None, PuzzleRecipe()):
        one, two = (probe_puzzles(as_areas(images[:4]), areas=4, recipe=recipe, seed=3) for _ in range(2))
        assert one == two
    assert torch.equal(torch.random.get_rng_state(), state)


def test_crops_of_compressed_images_give_the_direction_away(images):
    compressed = probe_puzzles(as_areas([save_jpeg(image) for image in images]), areas=48)
    assert compressed.ci95[0] > 3 * CHANCE


def test_images_that_are_too_small_are_not_cropped(images):
    small = as_areas([image[:140] for image in images[:2]])
    large = as_areas(images[:4])
    assert probe_puzzles([*large, *small], areas=4) == probe_puzzles(large, areas=4)
    with pytest.raises(AirlocError, match="no images"):
        probe_puzzles(small, areas=4)


@pytest.mark.slow
def test_exact_areas_of_compressed_images_tell_no_more_than_of_images_that_were_never_compressed(images):
    compressed, plain = (
        probe_puzzles(as_areas(some), areas=48, recipe=EXACT)
        for some in ([save_jpeg(image) for image in images], images)
    )
    assert compressed.accuracy < plain.accuracy + 0.03
    assert compressed.accuracy < CHANCE + 0.06


def test_exact_areas_tell_less_than_crops(images):
    areas = as_areas([save_jpeg(image) for image in images])
    assert probe_puzzles(areas, areas=16, recipe=EXACT).accuracy < probe_puzzles(areas, areas=16).accuracy - 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "crops"), [("masa", 0.8), ("naip", 0.3)])
def test_real_images_leak_in_crops_and_hardly_in_the_training(dataset: str, crops: float, data_root):
    source = load_dataset(data_root / dataset)
    records = source.records()
    images = [source.read(record) for record in records[:: max(1, len(records) // 48)]]
    assert probe_puzzles(images, areas=96).accuracy > crops
    assert probe_puzzles(images, areas=96, recipe=AUGMENTED).accuracy < CHANCE + 0.05
    assert probe_puzzles(images, areas=96, recipe=PuzzleRecipe()).accuracy < CHANCE + 0.06
