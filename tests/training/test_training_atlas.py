import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from airloc.areas.area import SearchArea, fit
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training.atlas import COPIED_SHARE, MAX_WINDOW, Atlas, CropSampler, Imagery, resample, rotate

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


SIDE, MARGIN = 60, 10
KINDS = {"lanczos": 0.3, "bicubic": 0.8, "bilinear": 0.9}


def imagery(*images: np.ndarray, steps: tuple[float, float] = (1.0, 1.0)) -> Imagery:
    return Imagery.from_pairs([(image, image) for image in images], [steps] * len(images), [1.0] * len(images), "cpu")


def positions(height: int, width: int) -> Imagery:
    """A pair of images of which the first has the row of every pixel as its colour and the second the column."""
    rows, cols = np.mgrid[:height, :width].astype(np.uint8)
    pair = tuple(np.repeat(channel[..., None], 3, axis=2) for channel in (rows, cols))
    return Imagery.from_pairs([pair], [(0.6, 2.0)], [1.0], "cpu")


@pytest.fixture
def set_levels(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the random levels of the next crop: image, scale, row, column and kernel."""

    def set_to(*levels: float) -> None:
        monkeypatch.setattr(torch, "rand", lambda *_, device: torch.tensor(levels)[:, None])

    return set_to


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scale=st.floats(0, 1), row=st.floats(0.1, 0.9), col=st.floats(0.1, 0.9), kind=st.sampled_from(sorted(KINDS)))
def test_rendered_crops_equal_those_of_pillow(set_levels, scale: float, row: float, col: float, kind: str):
    image = generate(2, (300, 340)).image
    smallest, largest = 0.6, 3.0
    set_levels(0.0, scale, row, col, KINDS[kind])
    sampler = CropSampler(imagery(image, steps=(smallest, largest)), SIDE, MARGIN)
    (crop,), (drawn,), _ = sampler.draw(torch.full((1,), MARGIN * 1.0))
    side = SIDE + 2 * MARGIN
    step = largest * (smallest / largest) ** scale
    assert float(drawn) == pytest.approx(step)
    top, left = row * (300 - step * side), col * (340 - step * side)
    # Beyond the edges of an image Pillow reads nothing, where edge pixels are repeated here.
    support = 3 * max(step, 1)
    assume(min(top, left) >= support)
    assume(top + step * side <= 300 - support and left + step * side <= 340 - support)
    box = (left, top, left + step * side, top + step * side)
    expected = np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling[kind.upper()], box=box))
    error = np.abs(crop[:3].permute(1, 2, 0).numpy() * 255 - expected.astype(float))
    assert error.max() <= 1.01


def test_crops_lie_where_they_are_drawn(set_levels):
    images = positions(200, 240)
    set_levels(0.0, 0.5, 0.25, 0.75, 0.0)
    (crop,) = CropSampler(images, SIDE, MARGIN).draw(torch.zeros(1))[0] * 255
    step = 2.0 * (0.6 / 2.0) ** 0.5
    for values, size, level in ((crop[0, :, 0], 200, 0.25), (crop[3, 0], 240, 0.75)):
        start = level * (size - step * SIDE) - step * MARGIN
        expected = start + step * (np.arange(SIDE + 2 * MARGIN) + 0.5) - 0.5
        assert values.numpy() == pytest.approx(expected, abs=0.6)  # colours are whole numbers


def test_crops_stay_in_the_image_and_reach_its_edges_at_all_scales():
    torch.manual_seed(0)
    crops = CropSampler(positions(150, 200), SIDE, 0).draw(torch.zeros(500))[0] * 255
    row, col = crops[:, 0, :, 0], crops[:, 3, 0]
    for values, size in ((row, 150), (col, 200)):
        assert float(values.min()) <= 1
        assert float(values.max()) >= size - 2
    steps = (row[:, -10] - row[:, 9]) / (SIDE - 19)
    assert float(steps.min()) == pytest.approx(0.6, abs=0.05)
    assert float(steps.max()) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize(("inner", "real"), [(0.0, False), (float(MARGIN), True)])
def test_the_margin_shows_the_ground_of_the_image_where_it_is_asked_for(inner: float, real: bool):
    """Beyond the image the edge pixels are repeated, so that neighbouring rows are equal."""
    torch.manual_seed(0)
    crops = CropSampler(positions(130, 130), SIDE, MARGIN).draw(torch.full((200,), inner))[0] * 255
    for axis in (0, 3):
        values = crops[:, 0, :, 0] if axis == 0 else crops[:, 3, 0]
        outside = (values[:, 5] == values[:, 0]) | (values[:, -1] == values[:, -6])
        assert bool(outside.any()) is not real


def test_both_days_of_a_pair_show_the_same_ground():
    image = generate(4, (200, 200)).image
    pair = Imagery.from_pairs([(image, 255 - image)], [(0.5, 1.5)], [1.0], "cpu")
    torch.manual_seed(0)
    # Where neither is clipped, the rendered negative is the negative of the rendered image.
    crops = CropSampler(pair, SIDE, MARGIN).draw(torch.zeros(20))[0] * 255
    first, second = crops[:, :3], crops[:, 3:]
    inner = (first > 0) & (first < 255) & (second > 0) & (second < 255)
    assert inner.float().mean() > 0.5
    assert float((first + second - 255)[inner].abs().max()) <= 1.01


def test_images_are_rendered_by_weight_and_those_too_small_are_not_used():
    images = [np.full((side, side, 3), colour, dtype=np.uint8) for side, colour in ((50, 10), (80, 20), (90, 30))]
    stored = Imagery.from_pairs([(image, image) for image in images], [(1.0, 2.0)] * 3, [6.0, 3.0, 1.0], "cpu")
    torch.manual_seed(0)
    colours = (CropSampler(stored, SIDE, MARGIN).draw(torch.zeros(300))[0][:, 0, 0, 0] * 255).round()
    assert set(colours.tolist()) == {20.0, 30.0}
    assert float((colours == 20).float().mean()) == pytest.approx(0.75, abs=0.08)


def test_imagery_that_is_too_small_is_refused_with_the_side_and_a_cure():
    small = imagery(np.zeros((100, 59, 3), dtype=np.uint8))
    assert not small.fits(SIDE, 0)
    assert small.fits(SIDE - 1, 0)
    with pytest.raises(AirlocError, match=r"no images of 60 px.*--root"):
        CropSampler(small, SIDE, MARGIN)


def test_no_crop_shows_more_source_pixels_than_the_largest_window():
    wide = imagery(np.zeros((2000, 2000, 3), dtype=np.uint8), steps=(1.0, 20.0))
    sampler = CropSampler(wide, SIDE, MARGIN)
    assert float(sampler.largest) == pytest.approx(MAX_WINDOW / (SIDE + 2 * MARGIN))
    assert sampler.draw(torch.zeros(2))[0].shape == (2, 6, SIDE + 2 * MARGIN, SIDE + 2 * MARGIN)


def test_rotated_copies_are_clean_and_share_the_weight_and_the_place_of_their_image():
    image = generate(4, (200, 200)).image
    stored = Imagery.from_pairs(
        [(image, 255 - image), (image, image)], [(1.0, 1.0)] * 2, [1.0, 3.0], "cpu", [7, 8], [False, True], copies=2
    )
    assert stored.clean.tolist() == [False, True, True, True]
    assert stored.place.tolist() == [7, 8, 7, 7]
    assert stored.weights.tolist() == pytest.approx([1 - COPIED_SHARE, 3.0, COPIED_SHARE / 2, COPIED_SHARE / 2])
    height, width = stored.size[:, 2].tolist()
    assert height == width
    assert 200 / 2**0.5 - 3 < height < 200 / (math.cos(math.radians(15)) + math.sin(math.radians(15)))
    copy = stored.pixels[stored.first[2] : stored.first[2] + height * width].int()
    assert int((copy[:, :3] + copy[:, 3:] - 255).abs().max()) <= 1, "both days are rotated alike"


def test_a_rotated_image_shows_the_ground_around_its_centre_turned():
    image = torch.from_numpy(generate(5, (301, 301)).image.copy())
    quarter = rotate(image, math.pi / 2)
    assert quarter.shape == (299, 299, 3)
    difference = (quarter.int() - image.rot90(1)[1:-1, 1:-1].int()).abs()
    other = (quarter.int() - image.rot90(-1)[1:-1, 1:-1].int()).abs()
    assert min(int(difference.max()), int(other.max())) <= 1


def test_distorted_copies_differ_in_shape_and_colour_and_both_days_alike():
    image = generate(4, (200, 200)).image
    colour = image.reshape(-1, 3).mean(axis=0)
    stored = Imagery.from_pairs([(image, image)], [(1.0, 1.0)], [1.0], "cpu", copies=6, distortion=1.0)
    copies = [
        stored.pixels[first : first + height * width].float()
        for first, (height, width) in zip(stored.first.tolist()[1:], stored.size.T.tolist()[1:], strict=True)
    ]
    assert all(torch.equal(copy[:, :3], copy[:, 3:]) for copy in copies)
    assert max(float((copy[:, :3].mean(dim=0) - torch.from_numpy(colour)).abs().max()) for copy in copies) > 2


def test_a_stretched_image_keeps_its_area_and_has_another_aspect():
    row, col = np.mgrid[:301, :301] - 150
    disc = torch.from_numpy(np.where(row**2 + col**2 < 40**2, 255, 0).astype(np.uint8))[..., None].repeat(1, 1, 3)
    stretched = rotate(disc, 0.7, stretch=1.5, along=0.0)[..., 0] > 127
    rows, cols = (int(stretched.any(dim=axis).sum()) for axis in (1, 0))
    assert rows / cols == pytest.approx(1.5, rel=0.05)
    assert int(stretched.sum()) == pytest.approx(int((disc[..., 0] > 127).sum()), rel=0.02)
