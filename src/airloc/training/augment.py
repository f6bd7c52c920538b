"""Augmentations: symmetries of the square, colour jitter, chromatic aberration, and temporal augmentation.

Temporal augmentation simulates an image of another day. Season, damage, clouds, sun and camera differ: woods turn from
green to brown while roads stay grey, and a storm changes some places and not others. Fine detail does not persist: it
is displaced by some pixels, because two cameras do not look from the same angle, and softened. Each change is drawn for
every image independently, and most images get only some of the changes.

`airloc.areas.changes` changes the goal images of an evaluation, one 48 px patch at a time, in NumPy and with other
distributions; the augmentations here run on batches on the device.

Legend: B patches, squares or groups of patches, A images, S side, C channels; RGB in [0, 1].
"""

from typing import Literal

import torch
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample, interpolate

from airloc.task.photos import blur

SYMMETRIES = 8
"""Symmetries of the square: bit 0 flips left and right, bit 1 flips up and down, bit 2 transposes."""
FLIPS = 4
"""The first of them: flips left to right and top to bottom, the paper's augmentation."""
Augmentation = Literal["full", "flips"]
"""Augmentation of patches: all eight symmetries and colour jitter, or flips alone."""
TONES = 8
"""Number of basis functions of the colour map of a season."""
FIELD_SIDE = 6
"""Control points along a side of the smooth random fields for clouds and damage."""
SMALLEST_VIEW = 0.6
"""Smallest side of the part of an image that a random view shows."""
DISPLACEMENT = 1.8
"""Largest standard deviation of the displacement of detail between two days, in pixels."""
DISPLACEMENT_PX = 20
"""Distance of the control points of the displacement, in pixels."""


def apply_symmetry(patches: torch.Tensor, symmetry: torch.Tensor) -> torch.Tensor:
    """Flip and transpose patches (B, C, S, S), each by its own symmetry (B,)."""
    bits = [(symmetry & bit > 0)[:, None, None, None] for bit in (1, 2, 4)]
    patches = torch.where(bits[0], patches.flip(-1), patches)
    patches = torch.where(bits[1], patches.flip(-2), patches)
    return torch.where(bits[2], patches.transpose(-1, -2), patches)


def colour_jitter(groups: torch.Tensor, strength: float) -> torch.Tensor:
    """Jitter saturation, contrast, brightness, channel gains and gamma, equally for all patches of a group.

    Groups are RGB, (B, patches, 3, S, S). A strength of 0 changes nothing, 1 is strong.
    """
    if not strength:
        return groups
    count, device = len(groups), groups.device

    def factor(spread: float, channels: int = 1) -> torch.Tensor:
        exponent = torch.empty(count, 1, channels, 1, 1, device=device).uniform_(-spread, spread) * strength
        return exponent.exp()

    grey = groups.mean(dim=2, keepdim=True)
    groups = grey + (groups - grey) * factor(0.4)
    mean = groups.mean(dim=(1, 3, 4), keepdim=True)
    groups = mean + (groups - mean) * factor(0.35)
    groups = groups * factor(0.25) * factor(0.1, channels=3)
    return groups.clamp(1e-4, 1.0) ** factor(0.3)


def temporal_augmentation(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Simulate images (A, 3, H, W) of another day; strength 0 changes nothing, 1 is strong."""
    images = _apply_to_some(0.5, images, change_season(images, strength))
    images = _apply_to_some(0.3, images, overlay_damage(images, strength))
    images = _apply_to_some(0.3, images, shade(images, strength))
    images = _apply_to_some(0.3, images, turn_sun(images, 0.7 * strength))
    images = _apply_to_some(0.6, images, displace(images, strength * DISPLACEMENT))
    images = _apply_to_some(0.35, images, images + strength * (soften(images) - images))
    return change_camera(images, strength)


def change_appearance(images: torch.Tensor, strength: float = 0.9) -> torch.Tensor:
    """Change colours, light, sharpness and noise of images (A, 3, H, W), so that real images differ less from them."""
    images = _apply_to_some(0.5, images, change_season(images, strength))
    images = _apply_to_some(0.3, images, shade(images, strength))
    return change_camera(images, strength)


def random_views(images: torch.Tensor) -> torch.Tensor:
    """Turn, flip and crop square images (M, 3, H, H), each in its own way; crops keep the size in pixels."""
    count, device = len(images), images.device
    angle, scale, *shift = torch.rand(4, count, device=device)
    angle, scale = 2 * torch.pi * angle, SMALLEST_VIEW + (1 - SMALLEST_VIEW) * scale
    flip = torch.where(torch.rand(count, device=device) < 0.5, -1.0, 1.0)
    down, right = ((1 - scale) * (2 * part - 1) for part in shift)
    rows = [
        scale * angle.cos() * flip,
        -scale * angle.sin(),
        right,
        scale * angle.sin() * flip,
        scale * angle.cos(),
        down,
    ]
    grid = affine_grid(torch.stack(rows, dim=1).view(-1, 2, 3), list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def change_camera(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Change colours, sharpness, resolution and noise."""
    images = colour_jitter(images[:, None], strength)[:, 0]
    blurred = avg_pool2d(images, 3, stride=1, padding=1, count_include_pad=False)
    coarse = interpolate(avg_pool2d(images, 2), size=images.shape[2:], mode="bilinear", align_corners=False)
    kind, amount = _uniform(images), _uniform(images) * strength
    images = torch.where(kind < 0.3, images + amount * (blurred - images), images)
    images = torch.where(kind > 0.75, images + amount * (coarse - images), images)
    images = images + torch.randn_like(images) * _uniform(images) ** 2 * 0.04 * strength
    return images.clamp(0, 1)


def aberrate(images: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """Simulate lateral chromatic aberration in square images (A, 3, S, S).

    Red moves outwards and blue inwards, by `shift` (A,) pixels at the border; a negative shift does the opposite.
    """
    side, device = images.shape[-1], images.device
    scale = 1 + shift[:, None] * torch.linspace(-2, 2, 3, device=device) / side  # (A, 3), one for green
    centre = (torch.arange(side, device=device) + 0.5) * 2 / side - 1
    where = torch.stack(torch.meshgrid(centre, centre, indexing="xy"), dim=2) * scale.flatten()[:, None, None, None]
    planes = images.reshape(-1, 1, side, side)
    return grid_sample(planes, where, padding_mode="border", align_corners=False).view_as(images)


def change_season(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Apply a smooth random colour map, one per image, so that equal colours change equally."""
    count, device = len(images), images.device
    tones = torch.randn(count, TONES, 3, device=device) * 4
    shifts = torch.randn(count, 1, TONES, device=device) * 0.04 + torch.randn(count, 3, TONES, device=device) * 0.03
    middle = torch.rand(count, TONES, 1, device=device) * 2 - 1
    basis = torch.tanh(tones @ (images.flatten(2) - 0.4) + middle)  # (A, tones, pixels)
    change = (shifts @ basis).view_as(images)
    return (images + strength * _uniform(images) * change).clamp(0, 1)


def overlay_damage(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Blend another image over parts of every image, to simulate floods, fires and fallen trees."""
    where = (_smooth_field(images) * 6 - 2).sigmoid()
    other = images.roll(1, 0).flip(3)
    return images + strength * _uniform(images) * where * (other - images)


def shade(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Darken and brighten parts of every image, to simulate haze and the shadows of clouds."""
    return (images * (1 + 0.35 * strength * _uniform(images) * _smooth_field(images))).clamp(0, 1)


def turn_sun(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Light the edges of every image from a random direction: add the slope of its brightness along this direction."""
    grey = images.mean(dim=1, keepdim=True)
    down, right = (grey.roll(-2, axis) - grey.roll(2, axis) for axis in (2, 3))
    slope = torch.randn(2, len(images), 1, 1, 1, device=images.device) * 0.4 * strength
    return (images + slope[0] * down + slope[1] * right).clamp(0, 1)


def displace(images: torch.Tensor, largest: float) -> torch.Tensor:
    """Warp square images (A, 3, S, S) by smooth random displacements of up to `largest` pixels (`draw_warp`)."""
    side = images.shape[-1]
    warp = draw_warp(len(images), side, largest, DISPLACEMENT_PX, images.device)
    centre = torch.arange(side, device=images.device) + 0.5
    where = torch.stack([centre + warp[:, 1], centre[:, None] + warp[:, 0]], dim=3) * 2 / side - 1
    return grid_sample(images, where, mode="bicubic", padding_mode="border", align_corners=False).clamp(0, 1)


def soften(images: torch.Tensor) -> torch.Tensor:
    """Blur images (A, 3, H, W) and halve their resolution, each by its own random amount."""
    softness, coarse = torch.rand(2, len(images), 1, 1, 1, device=images.device).unbind()
    soft = blur(blur(blur(images)))  # standard deviation of about 1.2 px
    images = images + softness * (soft - images)
    half: torch.Tensor = interpolate(avg_pool2d(images, 2), size=images.shape[2:], mode="bilinear", align_corners=False)
    return images + coarse * (half - images)


def draw_field(images: torch.Tensor, distance: int, channels: int = 1) -> torch.Tensor:
    """Draw smooth random fields with control points a distance in pixels apart, (A, channels, H, W)."""
    points = [side // distance + 2 for side in images.shape[2:]]
    field = torch.randn(len(images), channels, *points, device=images.device)
    return interpolate(field, size=images.shape[2:], mode="bicubic", align_corners=False)


def draw_warp(count: int, side: int, largest: float, distance: int, device: torch.device) -> torch.Tensor:
    """Draw smooth displacements of squares in pixels, (A, 2, side, side), zero on average.

    Their standard deviation is up to `largest`, and small for most squares. Control points are a distance apart.
    """
    amount = largest * torch.rand(count, 1, 1, 1, device=device) ** 2
    field = draw_field(torch.empty(count, 1, side, side, device=device), distance, channels=2)
    return amount * (field - field.mean(dim=(2, 3), keepdim=True))


def _smooth_field(images: torch.Tensor) -> torch.Tensor:
    """Draw a smooth random field around zero for every image, (A, 1, H, W)."""
    points = torch.randn(len(images), 1, FIELD_SIDE, FIELD_SIDE, device=images.device)
    return interpolate(points, size=images.shape[2:], mode="bicubic", align_corners=False)


def _uniform(images: torch.Tensor) -> torch.Tensor:
    """Draw one uniform number per image, (A, 1, 1, 1)."""
    return torch.rand(len(images), 1, 1, 1, device=images.device)


def _apply_to_some(probability: float, images: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    """Take the changed version of each image with a probability."""
    return torch.where(_uniform(images) < probability, changed, images)
