"""Training images on the device, and square crops of them.

All images lie in one row of pixels on the device, and a crop is one gather. An `Atlas` holds images at several scales,
resampled beforehand, exactly as evaluation resamples them, so that training patches equal those that agents observe.
`Imagery` holds images at their own resolution and renders crops at any scale and at any sub-pixel position, so that
nothing is locked to the pixels of an image. It resamples as evaluation does, and sometimes with another kernel.

Compressed images show their block grid at any scale. `Imagery` can hold rotated copies of them: the block grid does not
run along the rows and columns of a crop there, and a linear probe (`airloc.training.block_probe`) does not find it. The
copies can also be stretched and recoloured, so that a network sees more ground than there is.

Legend: N images (an image of an atlas counts once per scale), B crops, S side of a crop, K side of the window of source
pixels that a crop is rendered from.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import grid_sample

from airloc.areas import SearchArea
from airloc.areas.area import Mask, Pixels, resample
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.seeding import stream
from airloc.training.augment import change_season

CELL_METRES = 100.0
"""Side of a cell on the ground, in the paper."""
SUPPORT = 3
"""Radius of the Lanczos kernel, in rendered pixels."""
MAX_WINDOW = 832
"""Largest side of the source pixels that a crop shows."""
ROTATION = (15.0, 75.0)
"""Smallest and largest rotation of copies in degrees. At less than 15 a linear probe still finds the block grid."""
COPIED_SHARE = 0.6
"""Share of the rotated copies in the crops of an image that has some."""
STRETCH = 0.25
"""Largest logarithm of the ratio by which a distorted copy is longer than wide, in a random direction."""


@dataclass(frozen=True)
class Scales:
    """Scales that images are resampled to."""

    cell_widths: tuple[float, ...] = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
    """Cell widths in units of 100 m, for images of known ground size."""
    resolutions: tuple[float, ...] = (1.0, 0.75, 0.5, 0.35)
    """Resolutions in units of the image's own, for other images."""


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    """Images of any size, stored as one row of pixels."""

    pixels: torch.Tensor
    """RGB, or RGB and building mask: (pixels of all images, 3 or 4) uint8."""
    first: torch.Tensor
    """Index of the first pixel of each image, (N,)."""
    height: torch.Tensor
    width: torch.Tensor
    cumulative: torch.Tensor
    """Cumulative sampling probability of the images, (N,), ending with one."""

    @classmethod
    def from_images(
        cls,
        images: Sequence[Pixels],
        weights: Sequence[float],
        device: torch.device | str,
        masks: Sequence[Mask] = (),
    ) -> "Atlas":
        """Store images and, optionally, the masks of all of them."""
        check_images(weights)
        rows = [image.reshape(-1, image.shape[2]) for image in images]
        if masks:
            channels = (mask.reshape(-1, 1).astype(np.uint8) * 255 for mask in masks)
            rows = [np.hstack([row, channel]) for row, channel in zip(rows, channels, strict=True)]
        sizes = torch.tensor([image.shape[:2] for image in images])
        lengths = sizes.prod(dim=1)
        return cls(
            torch.from_numpy(np.concatenate(rows)).to(device),
            (lengths.cumsum(0) - lengths).to(device),
            sizes[:, 0].to(device),
            sizes[:, 1].to(device),
            (torch.tensor(weights, dtype=torch.float64).cumsum(0) / sum(weights)).float().to(device),
        )

    def sample(self, count: int, side: int, step: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw images (B,) by weight, and in each the top (B,) and left (B,) of a square of `side` pixels.

        Offsets are multiples of `step`.
        """
        level = torch.rand(3, count, device=self.first.device)
        index = torch.searchsorted(self.cumulative, level[0]).clamp(max=len(self.cumulative) - 1)
        top, left = (
            (part * ((length[index] - side) // step + 1)).long().clamp(min=0) * step
            for part, length in ((level[1], self.height), (level[2], self.width))
        )
        return index, top, left

    def crop(self, index: torch.Tensor, top: torch.Tensor, left: torch.Tensor, side: int) -> torch.Tensor:
        """Crop squares, (B, S, S, channels) uint8."""
        step = torch.arange(side, device=index.device)
        row = (top[:, None] + step)[:, :, None] * self.width[index][:, None, None]
        pixel = self.first[index][:, None, None] + row + (left[:, None] + step)[:, None, :]
        return self.pixels[pixel]


@dataclass(frozen=True, slots=True, eq=False)
class Imagery:
    """Pairs of images of the same place, at their own resolution; images of one day are paired with themselves.

    A step is the number of source pixels per rendered pixel.
    """

    pixels: torch.Tensor
    """RGB of two days, (pixels of all images, 6) uint8."""
    first: torch.Tensor
    """Index of the first pixel of each image, (N,)."""
    size: torch.Tensor
    """Height and width, (2, N)."""
    steps: torch.Tensor
    """Smallest and largest step, (2, N)."""
    weights: torch.Tensor
    """Sampling weights, (N,)."""
    place: torch.Tensor
    """Number of the place that an image shows, (N,). Several pairs of days can show one place."""
    clean: torch.Tensor
    """Whether no block grid runs along the rows and columns of an image, bool (N,): it is rotated, or procedural."""

    @classmethod
    def from_pairs(
        cls,
        pairs: Sequence[tuple[Pixels, Pixels]],
        steps: Sequence[tuple[float, float]],
        weights: Sequence[float],
        device: torch.device | str,
        places: Sequence[int] | None = None,
        clean: Sequence[bool] | None = None,
        copies: int = 0,
        distortion: float = 0.0,
    ) -> "Imagery":
        """Store pairs of images.

        Args:
            pairs: Images of the same place and size on two days.
            steps: Smallest and largest step of each pair.
            weights: Sampling weight of each pair, including its copies.
            device: Device of the images.
            places: Number of the place that each pair shows. Default: every pair shows another place.
            clean: Whether a pair was never compressed. Default: none.
            copies: Number of rotated copies of each pair that is not clean.
            distortion: How much the copies are stretched and recoloured, 0 to 1. Both days change alike.
        """
        clean = [False] * len(pairs) if clean is None else clean
        images = [torch.from_numpy(np.concatenate(pair, axis=2)).to(device) for pair in pairs]
        random = stream(0, "rotated copies")
        stored = list(enumerate(images)) + [
            (index, _distorted_copy(images[index], distortion, random))
            for index, free in enumerate(clean)
            if not free
            for _ in range(copies)
        ]
        size = torch.tensor([image.shape[:2] for _, image in stored], device=device).T
        lengths = size.prod(dim=0)
        source = torch.tensor([index for index, _ in stored], device=device)
        rotated = torch.arange(len(stored), device=device) >= len(pairs)
        own = torch.where(rotated, COPIED_SHARE / max(copies, 1), 1 - COPIED_SHARE)
        never_compressed = torch.tensor(clean, device=device)[source]
        share = torch.where(never_compressed | (copies == 0), 1.0, own)
        return cls(
            torch.cat([image.reshape(-1, 6) for _, image in stored]),
            lengths.cumsum(0) - lengths,
            size,
            torch.tensor(steps, device=device)[source].T.contiguous(),
            torch.tensor(weights, device=device)[source] * share,
            torch.tensor(range(len(pairs)) if places is None else places, device=device)[source],
            never_compressed | rotated,
        )

    def fits(self, side: int, margin: int) -> bool:
        """Return True if crops of a side with a margin can be rendered from some image."""
        return bool((self.largest_steps(side, margin) >= self.steps[0]).any())

    def largest_steps(self, side: int, margin: int) -> torch.Tensor:
        """Return the largest step of crops of a side with a margin from each image, (N,)."""
        largest = torch.minimum(self.steps[1], self.size.amin(dim=0) / side)
        return largest.clamp(max=MAX_WINDOW / (side + 2 * margin))


class CropSampler:
    """Renders random square crops of a side, with a margin around them, from imagery.

    Args:
        imagery: The images. Those that are too small at their smallest step are not used.
        side: Side of a crop without its margin, in pixels.
        margin: Margin on each side of a crop, in pixels.
    """

    def __init__(self, imagery: Imagery, side: int, margin: int) -> None:
        self.imagery, self.side, self.margin = imagery, side, margin
        self.largest = imagery.largest_steps(side, margin)
        usable = self.largest >= imagery.steps[0]
        if not usable.any():
            raise AirlocError(
                f"There are no images of {side} px to train on",
                "Give --root a folder with larger images, or --synthetic 500",
            )
        weights = (imagery.weights * usable).double()
        self.cumulative = (weights.cumsum(0) / weights.sum()).float()
        step = float(self.largest[usable].max())
        self.window = math.ceil((side + 2 * margin) * step + 2 * SUPPORT * max(step, 1.0)) + 2

    def draw(self, inner: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Render crops, RGB of two days in [0, 1], (B, 6, S, S) with S the side and both margins.

        The part `inner` (B,) of the margin shows the image. The edge pixels of the image may be repeated beyond it.

        Returns:
            The crops, the step of each, in source pixels per rendered pixel, and the number of its image, (B,) each.
        """
        images, count, device = self.imagery, len(inner), inner.device
        level = torch.rand(5, count, device=device)
        index = torch.searchsorted(self.cumulative, level[0]).clamp(max=len(self.cumulative) - 1)
        extent = self.side + 2 * inner
        size = images.size[:, index]
        largest = torch.minimum(self.largest[index], size.amin(dim=0) / extent)
        step = largest * (torch.minimum(images.steps[0, index], largest) / largest) ** level[1]
        corner = level[2:4] * (size - step * extent) - step * (self.margin - inner)  # (2, B)
        origin = (corner - SUPPORT * step.clamp(min=1)).floor()
        rows, cols = _resampling_weights(corner - origin, step, level[4], self.side + 2 * self.margin, self.window)
        where = origin.long()[..., None] + torch.arange(self.window, device=device)  # (2, B, K)
        row, col = where.clamp(min=0).minimum(size[..., None] - 1)
        pixel = (images.first[index][:, None] + row * size[1][:, None])[:, :, None] + col[:, None]
        window = images.pixels[pixel].permute(0, 3, 1, 2).float()  # (B, 6, K, K)
        rendered: torch.Tensor = rows[:, None] @ window @ cols[:, None].transpose(2, 3)
        return rendered.round().clamp(0, 255) / 255, step, index


def check_images(weights: Sequence[float]) -> None:
    """Raise an error if there are no images to train on, or none with a sampling weight."""
    if not any(weights):
        raise AirlocError(
            "There are no images to train on", "Give --root a folder with larger images, or --synthetic 500"
        )


def _distorted_copy(image: torch.Tensor, distortion: float, random: np.random.Generator) -> torch.Tensor:
    """Return a rotated copy of an image of two days (H, W, 6) uint8, stretched and recoloured by a random amount."""
    angle, along = math.radians(random.uniform(*ROTATION)), random.uniform(0, math.pi)
    copy = rotate(image, angle, math.exp(random.uniform(0, STRETCH) * distortion), along)
    if not distortion:
        return copy
    # Both days side by side, so that their colours change alike.
    days = torch.cat([copy[..., :3], copy[..., 3:]], dim=1).permute(2, 0, 1)[None].float() / 255
    recoloured = (change_season(days, 2 * distortion)[0] * 255).round().to(torch.uint8).permute(1, 2, 0)
    return torch.cat(recoloured.chunk(2, dim=1), dim=2)


def rotate(image: torch.Tensor, angle: float, stretch: float = 1.0, along: float = 0.0) -> torch.Tensor:
    """Rotate an image (H, W, channels) uint8 by radians, and crop the largest square around its centre.

    The copy is longer by the factor `stretch` in the direction `along`, in radians, than across it.
    """
    height, width = image.shape[:2]
    # The place of a pixel (row, col) of the copy in the image: stretched, then rotated.
    turned = _rotation(angle) @ _rotation(along) @ np.diag([stretch**-0.5, stretch**0.5]) @ _rotation(-along)
    reach = np.abs(turned).sum(axis=1)
    side = max(1, int(min(height / reach[0], width / reach[1])) - 2)
    step = torch.arange(side, device=image.device) - (side - 1) / 2
    row = height / 2 + turned[0, 0] * step[:, None] + turned[0, 1] * step
    col = width / 2 + turned[1, 0] * step[:, None] + turned[1, 1] * step
    where = torch.stack([col * 2 / width - 1, row * 2 / height - 1], dim=2)[None]
    planes = image.permute(2, 0, 1)[None].float()
    copy = grid_sample(planes, where.float(), mode="bicubic", padding_mode="reflection", align_corners=False)
    return copy[0].round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0)


def _rotation(angle: float) -> Any:
    """Return the matrix (2, 2) that rotates (row, col) by radians."""
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, sin], [-sin, cos]])


def _resampling_weights(
    corner: torch.Tensor, step: torch.Tensor, kind: torch.Tensor, side: int, window: int
) -> torch.Tensor:
    """Return the weights of source pixels for rendered pixels, (2, B, side, K), for corners (2, B) in the window.

    Kernels are antialiased, as Pillow's are: Lanczos for 70 % of the levels `kind` (B,), bicubic and bilinear for 15 %.
    """
    device = corner.device
    centre = corner[..., None] + step[:, None] * (torch.arange(side, device=device) + 0.5)  # (2, B, side)
    source = torch.arange(window, device=device) + 0.5
    distance = ((source - centre[..., None]) / step.clamp(min=1)[:, None, None]).abs()  # (2, B, side, K)
    lanczos = torch.where(distance < SUPPORT, torch.sinc(distance) * torch.sinc(distance / SUPPORT), 0.0)
    inner = (1.5 * distance - 2.5) * distance * distance + 1
    outer = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    cubic = torch.where(distance < 1, inner, torch.where(distance < 2, outer, 0.0))
    kind = kind[:, None, None]
    weights = torch.where(kind < 0.7, lanczos, torch.where(kind < 0.85, cubic, (1 - distance).clamp(min=0)))
    return weights / weights.sum(dim=3, keepdim=True)


def rescale(area: SearchArea, min_side: int, scales: Scales) -> Iterator[tuple[Pixels, Mask | None]]:
    """Yield the image and the mask of an area at every scale at which it is large enough."""
    height, width = area.image.shape[:2]
    if area.ground_m is not None:
        pitch, (high, wide) = Grid().pitch, area.ground_m
        cells = [CELL_METRES * factor for factor in scales.cell_widths]
        sizes = [(round(high * pitch / cell), round(wide * pitch / cell)) for cell in cells]
    else:
        sizes = [(round(height * factor), round(width * factor)) for factor in scales.resolutions]
    for size in sizes:
        if min(size) >= min_side:
            mask = area.mask
            resized = None if mask is None else resample(mask.astype(np.uint8) * 255, size) >= 128
            yield resample(area.image, size), resized
