import numpy as np
import pytest
import torch

from airloc.areas.area import SearchArea, fit
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training.atlas import Atlas, resample

SIZES = [(60, 80), (50, 50), (200, 52)]


@pytest.fixture(scope="module")
def images() -> list[np.ndarray]:
    chance = np.random.default_rng(0)
    return [chance.integers(0, 256, (*size, 3), dtype=np.uint8) for size in SIZES]


def test_a_cut_is_a_slice(images):
    masks = [image[..., 0] > 128 for image in images]
    plain, marked = Atlas.from_images(images, [1, 1, 1], "cpu"), Atlas.from_images(images, [1, 1, 1], "cpu", masks)
    torch.manual_seed(0)
    which, top, left = plain.sample(200, 48)
    cuts, marks = plain.crop(which, top, left, 48).numpy(), marked.crop(which, top, left, 48).numpy()
    for n, (number, row, col) in enumerate(zip(which.tolist(), top.tolist(), left.tolist(), strict=True)):
        part = slice(row, row + 48), slice(col, col + 48)
        assert np.array_equal(cuts[n], images[number][part])
        assert np.array_equal(marks[n][..., :3], cuts[n])
        assert np.array_equal(marks[n][..., 3], masks[number][part] * 255)


def test_draws_always_fit_and_reach_every_corner(images):
    atlas = Atlas.from_images(images, [1, 1, 1], "cpu")
    torch.manual_seed(0)
    which, top, left = atlas.sample(20_000, 48)
    for number, (height, width) in enumerate(SIZES):
        mine = which == number
        for at, side in ((top[mine], height), (left[mine], width)):
            assert (int(at.min()), int(at.max())) == (0, side - 48)


def test_images_are_sampled_by_their_weights(images):
    atlas = Atlas.from_images(images, [3.0, 0.0, 1.0], "cpu")
    torch.manual_seed(0)
    which, _, _ = atlas.sample(20_000, 48)
    share = torch.bincount(which, minlength=3) / len(which)
    assert share.tolist() == pytest.approx([0.75, 0.0, 0.25], abs=0.02)


def test_an_atlas_without_images_is_refused():
    with pytest.raises(AirlocError, match="--root"):
        Atlas.from_images([], [], "cpu")


def test_resampling_is_what_evaluation_does():
    image = np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    assert np.array_equal(resample(image, (256, 256)), fit(SearchArea("a", image), Grid(5, 5)).image)
    assert resample(image, (300, 300)) is image
    assert resample(image, (100, 150)).shape == (100, 150, 3)
