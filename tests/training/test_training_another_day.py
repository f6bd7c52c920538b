import pytest
import torch

from airloc.training.augment import reseason, shade, strike, temporal_change, through_another_camera

CHANGES = [temporal_change, reseason, strike, shade, through_another_camera]


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(0)).clamp(1e-4, 1)


@pytest.mark.parametrize("change", CHANGES)
def test_without_strength_nothing_changes(change, images):
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
    twice = reseason(torch.cat([half, half], dim=3), 1.0)
    torch.testing.assert_close(twice[..., :8], twice[..., 8:])


def test_a_strike_leaves_some_ground_nearly_as_it_was():
    torch.manual_seed(1)
    images = torch.rand(4, 3, 128, 128)
    change = (strike(images, 1.0) - images).abs().mean(dim=1).flatten(1)
    assert (change.quantile(0.1, dim=1) < 0.3 * change.quantile(0.9, dim=1)).all()
