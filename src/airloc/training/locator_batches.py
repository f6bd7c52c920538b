"""Training batches of the locator: photos, and goals that lie anywhere in them.

A crop of the imagery shows a place on two days. One day becomes a photo, as the locator crops it: two cells wide, of
which the camera shows a part. The other day becomes the goal as the locator turns and scales it: upright up to the
steps of turns and scales, and shown in a square of any heading and of 2/3 to 3/2 cells. Goal and photo have their own
light, errors and compression, and in some crops one is changed as by a season or a disaster.

Legend: B crops, each with a photo and a goal; 48 px are the side of a cell.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.functional import grid_sample

from airloc.areas.changes import MAX_SCALE
from airloc.task.photos import draw_quality, expose, jpeg
from airloc.training.atlas import CropSampler
from airloc.training.augment import SYMMETRIES, apply_symmetry, colour_jitter, temporal_augmentation
from airloc.training.photos import QUALITY, soften
from airloc.training.runs import NON_NEGATIVE, PROBABILITY, Bounds, check_settings
from airloc.vision.locator import CANVAS, CELL

PHOTO = 2 * CELL
"""Pixels along the side of a photo."""
CROP = 176
"""Pixels along the side of a crop, which shows the photo and most goals."""
_RENDERED = 80
"""Pixels along the side of a goal before it is cropped to the canvas: whole blocks of JPEG."""


@dataclass(frozen=True)
class LocatorAugmentation:
    """Differences between goals and photos."""

    offset: float = 0.65
    """Largest offset of a goal from the middle of the photo, in cells, in each direction."""
    turn: float = 5.0
    """Largest error of the goal's turn, in degrees: about half a step of the locator."""
    scale: float = 1.07
    """Largest error of the goal's scale, a factor."""
    footprint: tuple[float, float] = (1.1, 2.0)
    """Smallest and largest side of what a photo shows, in cells."""
    change_probability: float = 0.5
    """Probability that the days of a crop differ by a simulated season, damage, shadows or camera too."""
    change: float = 0.6
    """Strength of these changes, 0 to 1."""
    jitter: float = 0.8
    """Strength of the colour jitter of goals and photos, each its own, 0 to 1."""
    error: float = 1.2
    """Largest strength of the errors of lens, light and sensor."""

    def __post_init__(self) -> None:
        check_settings(
            self,
            offset=Bounds(low=0, high=1),
            turn=Bounds(low=0, high=45),
            scale=Bounds(low=1, high=2),
            footprint=Bounds(low=0.5, high=2),
            change_probability=PROBABILITY,
            change=PROBABILITY,
            jitter=PROBABILITY,
            error=NON_NEGATIVE,
        )


class LocatorBatch(NamedTuple):
    """Photos and goals. Goal i lies in photo i."""

    photos: torch.Tensor
    """RGB in [0, 1], (B, 3, 96, 96)."""
    photos_seen: torch.Tensor
    """Pixels that the photos show, zeros and ones, (B, 1, 96, 96)."""
    goals: torch.Tensor
    """RGB in [0, 1], (B, 3, 72, 72)."""
    goals_seen: torch.Tensor
    """Pixels that the goals show, zeros and ones, (B, 1, 72, 72)."""
    offset: torch.Tensor
    """Row and column of the goal's centre, from the centre of the photo, in pixels, (B, 2)."""
    image: torch.Tensor
    """Number of the image that the crop is from, (B,)."""


def sample_batch(crops: CropSampler, count: int, augmentation: LocatorAugmentation) -> LocatorBatch:
    """Draw photos and goals."""
    device = crops.imagery.pixels.device
    images, _, index = crops.draw(torch.zeros(count, device=device))
    images = apply_symmetry(images, torch.randint(SYMMETRIES, (count,), device=device))
    swapped, changed = torch.rand(2, count, 1, 1, 1, device=device)
    first, second = images[:, :3], images[:, 3:]
    days = [torch.where(swapped < 0.5, first, second), torch.where(swapped < 0.5, second, first)]
    chosen = changed < augmentation.change_probability
    days = [torch.where(chosen, temporal_augmentation(day, augmentation.change), day) for day in days]
    level = 2 * torch.rand(5, count, device=device) - 1
    offset = level[:2].T * augmentation.offset * CELL  # (B, 2)
    angle, zoom = level[2] * math.radians(augmentation.turn), augmentation.scale ** level[3]
    zero = torch.zeros_like(angle)
    photos = _photograph(_cut(days[0], 0 * offset, zero, zero + 1, PHOTO), augmentation)
    goals = _photograph(_cut(days[1], offset, angle, zoom, _RENDERED), augmentation)
    margin = (_RENDERED - CANVAS) // 2
    width = CELL * MAX_SCALE ** level[4]
    return LocatorBatch(
        photos,
        _footprint(count, augmentation, device),
        goals[:, :, margin:-margin, margin:-margin],
        _turned_square(width, torch.rand(count, device=device) * math.pi),
        offset,
        index,
    )


def _cut(
    images: torch.Tensor, offset: torch.Tensor, angle: torch.Tensor, zoom: torch.Tensor, side: int
) -> torch.Tensor:
    """Cut squares (B, 3, side, side) from crops, around an offset (B, 2) from their centres, mirrored beyond them."""
    step = torch.arange(side, device=images.device) - (side - 1) / 2
    cos, sin = ((zoom * part)[:, None, None] for part in (angle.cos(), angle.sin()))
    row = offset[:, 0, None, None] + cos * step[:, None] - sin * step
    col = offset[:, 1, None, None] + sin * step[:, None] + cos * step
    where = torch.stack([col, row], dim=3) * 2 / images.shape[3]
    squares: torch.Tensor = grid_sample(images, where, "bicubic", "reflection", align_corners=False).clamp(0, 1)
    return squares


def _photograph(images: torch.Tensor, augmentation: LocatorAugmentation) -> torch.Tensor:
    """Give images (B, 3, side, side) their own light, errors and, mostly, compression; soften a third of them."""
    count, device = len(images), images.device
    softened, strength, compressed = torch.rand(3, count, device=device)
    images = torch.where((softened < 1 / 3)[:, None, None, None], soften(images), images)
    images = colour_jitter(images[:, None], augmentation.jitter)[:, 0]
    images = expose(images, strength * augmentation.error)
    encoded = jpeg(images, *draw_quality(count, *QUALITY, device))
    return torch.where((compressed < 0.8)[:, None, None, None], encoded, images)


def _footprint(count: int, augmentation: LocatorAugmentation, device: torch.device) -> torch.Tensor:
    """Draw what photos show: a rectangle in their middle, (B, 1, 96, 96)."""
    low, high = augmentation.footprint
    half = (low + (high - low) * torch.rand(2, count, 1, device=device)) * CELL / 2
    away = (torch.arange(PHOTO, device=device) - (PHOTO - 1) / 2).abs()
    rows, cols = away <= half
    shown: torch.Tensor = (rows[:, None, :, None] & cols[:, None, None, :]).float()
    return shown


def _turned_square(width: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Return squares of a width (B,) in pixels, turned by an angle (B,), as masks (B, 1, 72, 72)."""
    step = torch.arange(CANVAS, device=width.device) - (CANVAS - 1) / 2
    cos, sin = (part[:, None, None] for part in (angle.cos(), angle.sin()))
    along, across = cos * step + sin * step[:, None], cos * step[:, None] - sin * step
    return (torch.maximum(along.abs(), across.abs()) <= width[:, None, None] / 2).float()[:, None]
