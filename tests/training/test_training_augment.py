import numpy as np
import pytest
import torch

from airloc.training.augment import (
    aberrate,
    apply_symmetry,
    change_camera,
    change_season,
    colour_jitter,
    displace,
    draw_warp,
    overlay_damage,
    shade,
    soften,
    temporal_augmentation,
    turn_sun,
)

SIDE = 6


@pytest.mark.parametrize(
    ("symmetry", "expected"),
    [
        (0, [[0, 1], [2, 3]]),
        (1, [[1, 0], [3, 2]]),
        (2, [[2, 3], [0, 1]]),
        (3, [[3, 2], [1, 0]]),
        (4, [[0, 2], [1, 3]]),
        (5, [[1, 3], [0, 2]]),
        (6, [[2, 0], [3, 1]]),
        (7, [[3, 1], [2, 0]]),
    ],
)
def test_the_eight_symmetries_on_a_worked_square(symmetry, expected):
    square = torch.tensor([[[[0, 1], [2, 3]]]])
    assert apply_symmetry(square, torch.tensor([symmetry]))[0, 0].tolist() == expected


def test_every_patch_is_turned_by_its_own_symmetry():
    patches = torch.randn(8, 4, SIDE, SIDE)
    together = apply_symmetry(patches, torch.arange(8))
    for n in range(8):
        assert torch.equal(together[n], apply_symmetry(patches[n : n + 1], torch.tensor([n]))[0])
    assert np.array_equal(together[1], np.flip(patches[1].numpy(), axis=-1))


def test_no_strength_changes_nothing():
    pairs = torch.rand(3, 2, 3, SIDE, SIDE)
    torch.testing.assert_close(colour_jitter(pairs, 0.0), pairs, rtol=1e-5, atol=1e-4)


def test_both_patches_of_a_pair_are_recoloured_alike_and_pairs_differently():
    torch.manual_seed(1)
    patch = torch.rand(1, 1, 3, SIDE, SIDE) * 0.5 + 0.2
    out = colour_jitter(patch.expand(4, 2, -1, -1, -1), 1.0)
    torch.testing.assert_close(out[:, 0], out[:, 1], rtol=1e-4, atol=1e-6)
    assert all(not torch.allclose(out[0], out[n], atol=0.01) for n in range(1, 4))
    assert out.min() >= 0
    assert out.max() <= 1
    assert colour_jitter(torch.randint(0, 2, (50, 2, 3, 4, 4)).float(), 1.0).isfinite().all()


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0, -2.0])
def test_aberration_moves_red_outwards_and_blue_inwards_and_leaves_green_alone(shift: float):
    """The colours are the distances to the centre, in pixels."""
    ramp = torch.arange(64.0) - 31.5
    for rows in (False, True):
        images = (ramp[:, None] if rows else ramp).expand(1, 3, 64, 64)
        red, green, blue = aberrate(images, torch.tensor([shift]))[0].unbind()
        moved = [(ramp - (part[:, 32] if rows else part[32])) for part in (red, green, blue)]
        assert float(moved[0][-4]) == pytest.approx(shift * 28.5 / 32, abs=1e-3)
        inner = slice(3, -3)  # beyond the border its pixels are repeated
        for part, sign in zip(moved, (1, 0, -1), strict=True):
            torch.testing.assert_close(part[inner], sign * shift * ramp[inner] / 32, atol=1e-3, rtol=0)


CHANGES = [temporal_augmentation, change_season, overlay_damage, shade, change_camera]


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(0)).clamp(1e-4, 1)


@pytest.mark.parametrize("change", CHANGES)
def test_a_temporal_change_of_strength_0_changes_nothing(change, images):
    torch.testing.assert_close(change(images, 0.0), images)


@pytest.mark.parametrize("change", CHANGES)
def test_changed_images_differ_and_stay_images(change, images):
    torch.manual_seed(0)
    changed = change(images, 1.0)
    assert changed.shape == images.shape
    assert 0 <= changed.min() <= changed.max() <= 1
    assert not torch.allclose(changed, images, atol=0.01)


def test_a_season_changes_equal_colours_equally():
    torch.manual_seed(0)
    half = torch.rand(2, 3, 8, 8)
    twice = change_season(torch.cat([half, half], dim=3), 1.0)
    torch.testing.assert_close(twice[..., :8], twice[..., 8:])


def test_damage_leaves_some_ground_nearly_as_it_was():
    torch.manual_seed(1)
    images = torch.rand(4, 3, 128, 128)
    change = (overlay_damage(images, 1.0) - images).abs().mean(dim=1).flatten(1)
    assert (change.quantile(0.1, dim=1) < 0.3 * change.quantile(0.9, dim=1)).all()


def test_a_warp_has_no_mean_displacement_and_is_smooth():
    torch.manual_seed(2)
    warp = draw_warp(50, 80, 2.5, 26, torch.device("cpu"))
    assert warp.shape == (50, 2, 80, 80)
    assert float(warp.mean(dim=(2, 3)).abs().max()) < 1e-4
    assert 0.5 < float(warp.abs().amax(dim=(1, 2, 3)).max()) < 12
    assert float(warp.diff(dim=3).abs().max()) < 1, "the image does not fold"


def test_displaced_detail_moves_by_some_pixels_and_stays_in_its_place_on_average():
    torch.manual_seed(3)
    ramp = torch.linspace(0.1, 0.9, 96).expand(20, 3, 96, 96)  # brightness tells the column
    shift = ((displace(ramp, 2.0) - ramp) * 95 / 0.8)[..., 8:-8, 8:-8]
    assert 0.5 < float(shift.abs().amax()) < 10
    assert float(shift.mean().abs()) < 0.2
    torch.testing.assert_close(displace(ramp, 0.0), ramp, atol=1e-4, rtol=0)


@pytest.mark.parametrize("change", [soften, lambda images: turn_sun(images, 1.0)])
def test_softening_and_another_sun_keep_the_mean_brightness(change):
    torch.manual_seed(4)
    images = torch.rand(8, 3, 40, 40) * 0.4 + 0.3
    changed = change(images)
    assert changed.shape == images.shape
    assert float((changed - images).abs().mean()) > 0.01
    torch.testing.assert_close(changed.mean(dim=(1, 2, 3)), images.mean(dim=(1, 2, 3)), atol=0.02, rtol=0)
