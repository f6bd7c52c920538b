"""Changes between two days that are stronger than a season: what a disaster or years of building leave behind.

`airloc.training.augment.temporal_augmentation` changes an image as a season and another camera do. Here large parts of
the ground are replaced, by water, ash or the ground of another place, and the sun stands elsewhere.

All operations have static shapes, so that a training step can be captured as a CUDA graph.

Legend: A images, H, W height and width; RGB in [0, 1].
"""

from functools import lru_cache

import torch
from torch.nn.functional import avg_pool2d

from airloc.training.augment import change_season, draw_field, shade, turn_sun

SMOOTHED = 21
"""Side in pixels of the neighbourhood whose mean replaces what has vanished."""
WATER, ASH = (0.42, 0.36, 0.27), (0.30, 0.29, 0.28)
"""Mean colours of flooded and of burnt ground."""
CELL_PX = 24
"""Distance of the control points of the field that decides which parts are replaced, in pixels."""


def damage(images: torch.Tensor) -> torch.Tensor:
    """Simulate images (A, 3, H, W) after a disaster, or years later, each by its own random amount."""
    images = change_season(images, 1.5)
    images = turn_sun(images, 1.0)
    images = replace_parts(images)
    return shade(images, 1.0)


def replace_parts(images: torch.Tensor) -> torch.Tensor:
    """Replace parts of every image by its local mean, water, ash, or the ground of another image.

    In half of the images the parts are those of similar colour: a storm fells trees and leaves roads.
    """
    count, device = len(images), images.device
    kind, level, opacity, coloured = torch.rand(4, count, 1, 1, 1, device=device)
    smooth = avg_pool2d(images, SMOOTHED, stride=1, padding=SMOOTHED // 2, count_include_pad=False)
    grey = images.mean(dim=1, keepdim=True)
    other = images.roll(1, 0).flip(3)
    colours = _colours(device) + 0.08 * torch.randn(count, 2, 3, 1, 1, device=device)
    water = colours[:, 0] + 0.15 * (smooth - 0.4)
    ash = colours[:, 1] + 0.5 * (grey - grey.mean(dim=(2, 3), keepdim=True)) + 0.04 * torch.randn_like(grey)
    new = torch.where(kind < 0.3, smooth, torch.where(kind < 0.5, water, torch.where(kind < 0.7, ash, other)))
    # The field is above the level in none to three quarters of the image.
    field = torch.where(coloured < 0.5, _greenness(images), draw_field(images, CELL_PX))
    where = ((field - (1.8 - 2.3 * level)) * 4).sigmoid() * (0.5 + 0.5 * opacity)
    changed: torch.Tensor = (images + where * (new - images)).clamp(0, 1)
    return changed


def _greenness(images: torch.Tensor) -> torch.Tensor:
    """Return how far the colours of every image lie in a random direction, mostly green, (A, 1, H, W)."""
    smooth = avg_pool2d(images, 5, stride=1, padding=2, count_include_pad=False)
    green = 1 - 1.5 * (torch.arange(3, device=images.device) - 1).abs()  # (-1/2, 1, -1/2)
    direction = green + 0.5 * torch.randn(len(images), 3, device=images.device)
    values = (smooth * direction[..., None, None]).sum(dim=1, keepdim=True)
    centred = values - values.mean(dim=(2, 3), keepdim=True)
    return centred / centred.square().mean(dim=(2, 3), keepdim=True).sqrt().clamp(min=1e-3)


@lru_cache(maxsize=4)
def _colours(device: torch.device) -> torch.Tensor:
    """Return the mean colours of water and ash, (2, 3, 1, 1); cached, because a CUDA graph cannot copy from the CPU."""
    return torch.tensor([WATER, ASH], device=device)[..., None, None]
