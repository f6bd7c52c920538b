"""Turning and recolouring of patches and of squares that patches are cut from.

Legend: B patches, squares or groups of patches, S side, C channels.
"""

import torch
from torch.nn.functional import avg_pool2d, interpolate

SYMMETRIES = 8
"""Of the square: bit 0 flips left and right, bit 1 up and down, bit 2 transposes."""


def turn_patches(patches: torch.Tensor, symmetry: torch.Tensor) -> torch.Tensor:
    """Turn patches (B, C, S, S), each by its own symmetry (B,)."""
    bits = [(symmetry & bit > 0)[:, None, None, None] for bit in (1, 2, 4)]
    patches = torch.where(bits[0], patches.flip(-1), patches)
    patches = torch.where(bits[1], patches.flip(-2), patches)
    return torch.where(bits[2], patches.transpose(-1, -2), patches)


def recolour(pairs: torch.Tensor, strength: float) -> torch.Tensor:
    """Change brightness, contrast, saturation, channel gains and gamma, alike for all patches of an entry.

    Args:
        pairs: RGB in [0, 1], (B, patches, 3, S, S).
        strength: How much; 0 changes nothing, 1 is strong.
    """
    count, device = len(pairs), pairs.device

    def around_one(spread: float, channels: int = 1) -> torch.Tensor:
        exponent = torch.empty(count, 1, channels, 1, 1, device=device).uniform_(-spread, spread) * strength
        return exponent.exp()

    grey = pairs.mean(dim=2, keepdim=True)
    pairs = grey + (pairs - grey) * around_one(0.4)
    middle = pairs.mean(dim=(1, 3, 4), keepdim=True)
    pairs = middle + (pairs - middle) * around_one(0.35)
    pairs = pairs * around_one(0.25) * around_one(0.1, channels=3)
    return pairs.clamp(1e-4, 1.0) ** around_one(0.3)


# ---------- What an image looks like on another day: through another camera, in another season, after something has happened.
# ~
# ~ Between two days more changes than the light. Woods turn from green to brown while roads stay grey, a storm leaves some
# ~ ground as it was and other ground not to be known again, and two pictures never lie on each other to the pixel. Each
# ~ change is drawn for every image on its own, and most images get only some of them.
# ~
# ~ Legend: A images, RGB in [0, 1], (A, 3, H, W).

TONES = 8
"""Colours that a season tells apart."""
PATCHES = 6
"""Places along a side at which weather and damage are drawn; between them they change smoothly."""


def temporal_change(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Let every image look as on another day; strength 0 changes nothing, 1 is strong."""
    images = _sometimes(0.5, images, reseason(images, strength))
    images = _sometimes(0.3, images, strike(images, strength))
    images = _sometimes(0.3, images, shade(images, strength))
    return through_another_camera(images, strength)


def through_another_camera(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Other light and haze, another sharpness, resolution and noise."""
    images = recolour(images[:, None], strength)[:, 0]
    blurred = avg_pool2d(images, 3, stride=1, padding=1, count_include_pad=False)
    coarse = interpolate(avg_pool2d(images, 2), size=images.shape[2:], mode="bilinear", align_corners=False)
    kind, amount = _drawn(images), _drawn(images) * strength
    images = torch.where(kind < 0.3, images + amount * (blurred - images), images)
    images = torch.where(kind > 0.75, images + amount * (coarse - images), images)
    images = images + torch.randn_like(images) * _drawn(images) ** 2 * 0.04 * strength
    return images.clamp(0, 1)


def reseason(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Change every colour in its own way: a smooth random map of colours, one an image."""
    count, device = len(images), images.device
    tones = torch.randn(count, TONES, 3, device=device) * 4
    shifts = torch.randn(count, 1, TONES, device=device) * 0.04 + torch.randn(count, 3, TONES, device=device) * 0.03
    middle = torch.rand(count, TONES, 1, device=device) * 2 - 1
    felt = torch.tanh(tones @ (images.flatten(2) - 0.4) + middle)  # (A, tones, pixels)
    change = (shifts @ felt).view_as(images)
    return (images + strength * _drawn(images) * change).clamp(0, 1)


def strike(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Lay other ground over parts of every image, as floods, fires and fallen trees do."""
    where = (_field(images) * 6 - 2).sigmoid()
    other = images.roll(1, 0).flip(3)
    return images + strength * _drawn(images) * where * (other - images)


def shade(images: torch.Tensor, strength: float) -> torch.Tensor:
    """Let haze and the shadows of clouds lie over parts of every image."""
    return (images * (1 + 0.35 * strength * _drawn(images) * _field(images))).clamp(0, 1)


def _field(images: torch.Tensor) -> torch.Tensor:
    """A smooth random field around zero over every image, (A, 1, H, W)."""
    points = torch.randn(len(images), 1, PATCHES, PATCHES, device=images.device)
    return interpolate(points, size=images.shape[2:], mode="bicubic", align_corners=False)


def _drawn(images: torch.Tensor) -> torch.Tensor:
    return torch.rand(len(images), 1, 1, 1, device=images.device)


def _sometimes(share: float, images: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    return torch.where(_drawn(images) < share, changed, images)
