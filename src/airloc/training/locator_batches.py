"""Training batches of the locator: photos, and goals that lie anywhere in them.

A crop of the imagery shows a place on two days. One day becomes two photos side by side, as the locator crops them: two
cells wide, of which the camera shows a part. The other day becomes a goal for each, as the locator turns and scales it:
upright up to the steps of turns and scales, and shown in a square of any heading and of 2/3 to 3/2 cells. Goal and
photo have their own light, errors and compression, and in some crops one is changed as by a season or a disaster.

The photo beside is what a search compares a goal with most of the time: the same day, the same camera, the same kind of
ground, but not the goal.

Legend: B photos and as many goals, two of each from a crop; 48 px are the side of a cell.
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch.nn.functional import grid_sample

from airloc.areas.changes import MAX_SCALE
from airloc.task.photos import draw_quality, expose, jpeg
from airloc.training.atlas import CropSampler
from airloc.training.augment import SYMMETRIES, apply_symmetry, colour_jitter, draw_warp, soften, temporal_augmentation
from airloc.training.damage import damage
from airloc.training.photos import QUALITY
from airloc.training.runs import Bounds, NonNegativeFloat, Probability, check_settings
from airloc.vision.locator import CANVAS, CELL

PHOTO = 2 * CELL
"""Pixels along the side of a photo."""
CROP = 200
"""Pixels along the side of a crop, which shows two photos and most goals."""
_APART = (CELL, CROP / 2 - CELL)
"""Smallest and largest distance of the photos from the middle of the crop: they do not overlap, and the centre of a
goal never lies in the photo beside it."""
_ASIDE = 0.4 * CELL
"""Largest distance of the photos from the middle of the crop in the other direction."""
_RENDERED = 80
"""Pixels along the side of a goal before it is cropped to the canvas: whole blocks of JPEG."""


@dataclass(frozen=True)
class LocatorAugmentation:
    """Differences between goals and photos."""

    offset: Probability = 0.65
    """Largest offset of a goal from the middle of the photo, in cells, in each direction."""
    turn: Annotated[float, Bounds(low=0, high=45)] = 5.0
    """Largest error of the goal's turn, in degrees: about half a step of the locator."""
    scale: Annotated[float, Bounds(low=1, high=2)] = 1.07
    """Largest error of the goal's scale, a factor."""
    footprint: Annotated[tuple[float, float], Bounds(low=0.5, high=2)] = (1.1, 2.0)
    """Smallest and largest side of what a photo shows, in cells."""
    change_probability: Probability = 0.5
    """Probability that the days of a crop differ by a simulated season, damage, shadows or camera too."""
    change: Probability = 0.6
    """Strength of these changes, 0 to 1."""
    damage_probability: Probability = 0.35
    """Probability that parts of the photo's day are replaced too, as by a disaster or years of building."""
    warp: NonNegativeFloat = 2.5
    """Largest standard deviation of a smooth displacement of the goal's pixels, as of two angles of view."""
    jitter: Probability = 0.8
    """Strength of the colour jitter of goals and photos, each its own, 0 to 1."""
    error: NonNegativeFloat = 1.2
    """Largest strength of the errors of lens, light and sensor."""

    def __post_init__(self) -> None:
        check_settings(self)


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
    place: torch.Tensor
    """Number of the place that the crop shows, (B,)."""
    crop: torch.Tensor
    """Number of the crop in the batch, (B,)."""


def sample_batch(crops: CropSampler, count: int, augmentation: LocatorAugmentation) -> LocatorBatch:
    """Draw photos and goals, an even number of each."""
    imagery, device, half = crops.imagery, crops.imagery.pixels.device, count // 2
    images, _, index = crops.draw(torch.zeros(half, device=device))
    images = apply_symmetry(images, torch.randint(SYMMETRIES, (half,), device=device))
    days = [_twice(part) for part in _change_days(images, augmentation)]
    level = 2 * torch.rand(5, count, device=device) - 1
    offset = level[:2].T * augmentation.offset * CELL  # (B, 2)
    angle, zoom = level[2] * math.radians(augmentation.turn), augmentation.scale ** level[3]
    zero, still = torch.zeros_like(angle), torch.zeros(count, 2, PHOTO, PHOTO, device=device)
    middle = _middles(half, device)
    photos = _photograph(_cut(days[0], middle, zero, zero + 1, still), augmentation)
    warp = draw_warp(count, _RENDERED, augmentation.warp, _RENDERED // 3, device)
    goals = _photograph(_cut(days[1], middle + offset, angle, zoom, warp), augmentation)
    margin = (_RENDERED - CANVAS) // 2
    width = CELL * MAX_SCALE ** level[4]
    return LocatorBatch(
        photos,
        _footprint(count, augmentation, device),
        goals[:, :, margin:-margin, margin:-margin],
        _turned_square(width, torch.rand(count, device=device) * math.pi),
        offset,
        _twice(imagery.place[index]),
        _twice(torch.arange(half, device=device)),
    )


def _twice(parts: torch.Tensor) -> torch.Tensor:
    """Repeat what belongs to crops (A, ...) for both photos of each, (2 A, ...)."""
    return parts[:, None].expand(-1, 2, *parts.shape[1:]).flatten(0, 1)


def _change_days(images: torch.Tensor, augmentation: LocatorAugmentation) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the days of photos and goals (A, 3, S, S) of crops (A, 6, S, S), in random order, some of them changed."""
    swapped, changed, damaged = torch.rand(3, len(images), 1, 1, 1, device=images.device)
    first, second = images[:, :3], images[:, 3:]
    days = [torch.where(swapped < 0.5, first, second), torch.where(swapped < 0.5, second, first)]
    chosen = changed < augmentation.change_probability
    days = [torch.where(chosen, temporal_augmentation(day, augmentation.change), day) for day in days]
    return torch.where(damaged < augmentation.damage_probability, damage(days[0]), days[0]), days[1]


def _middles(crops: int, device: torch.device) -> torch.Tensor:
    """Draw the centres of two photos of every crop, from its middle, in pixels, (2 A, 2)."""
    down, right = torch.rand(2, crops, 2, device=device)
    side = 2 * torch.arange(2, device=device) - 1
    right = side * (_APART[0] + right * (_APART[1] - _APART[0]))
    return torch.stack([(2 * down - 1) * _ASIDE, right], dim=2).flatten(0, 1)


def _cut(
    images: torch.Tensor, centre: torch.Tensor, angle: torch.Tensor, zoom: torch.Tensor, warp: torch.Tensor
) -> torch.Tensor:
    """Cut squares (B, 3, side, side) from crops, around a centre (B, 2) from their middles, mirrored beyond them.

    The pixels of a square are displaced by `warp` (B, 2, side, side).
    """
    step = torch.arange(warp.shape[3], device=images.device) - (warp.shape[3] - 1) / 2
    cos, sin = ((zoom * part)[:, None, None] for part in (angle.cos(), angle.sin()))
    row = centre[:, 0, None, None] + cos * step[:, None] - sin * step + warp[:, 0]
    col = centre[:, 1, None, None] + sin * step[:, None] + cos * step + warp[:, 1]
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
