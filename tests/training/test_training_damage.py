"""Damage changes parts of an image and keeps its geometry; warps have no mean displacement."""

import pytest
import torch

from airloc.areas.synthetic import generate
from airloc.training.damage import damage, replace_parts


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    pictures = [torch.from_numpy(generate(seed, (128, 128)).image.copy()) for seed in range(4)]
    return (torch.stack(pictures).permute(0, 3, 1, 2) / 255).repeat(8, 1, 1, 1)


@pytest.mark.parametrize("change", [damage, replace_parts])
def test_changes_stay_in_range_and_differ_from_image_to_image(images: torch.Tensor, change):
    torch.manual_seed(0)
    changed = change(images)
    assert changed.shape == images.shape
    assert float(changed.min()) >= 0
    assert float(changed.max()) <= 1
    amounts = (changed - images).abs().mean(dim=(1, 2, 3))
    assert float(amounts.max()) > 3 * float(amounts.min())


def test_some_ground_stays_as_it_was(images: torch.Tensor):
    torch.manual_seed(1)
    kept = ((replace_parts(images) - images).abs().amax(dim=1) < 0.02).float().mean(dim=(1, 2))
    assert 0.1 < float(kept.median()) < 0.95
