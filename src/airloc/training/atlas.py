"""Training images on the device, at several scales, and square crops at any offset.

Images are resampled beforehand, exactly as evaluation resamples them, so that training patches equal
those that agents observe. All images lie in one row of pixels on the device, and a crop is one gather.

Legend: N images (an image counts once per scale), B crops, S side of a crop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from airloc.areas import SearchArea
from airloc.areas.area import Mask, Pixels
from airloc.errors import AirlocError
from airloc.grid import Grid

CELL_METRES = 100.0
"""Side of a cell on the ground, in the paper."""


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
    """RGB, RGB and building mask, or RGB of two days: (pixels of all images, 3, 4 or 6) uint8."""
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
        if not images or not sum(weights):
            raise AirlocError(
                "There are no images to train on", "Give --root a folder with larger images, or --synthetic 500"
            )
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

    def with_pairs(self, pairs: "Atlas", share: float) -> "Atlas":
        """Return an atlas of pairs: these images, each paired with itself, and `pairs` with the probability `share`."""
        return Atlas(
            torch.cat([self.pixels.repeat(1, 2), pairs.pixels]),
            torch.cat([self.first, pairs.first + len(self.pixels)]),
            torch.cat([self.height, pairs.height]),
            torch.cat([self.width, pairs.width]),
            torch.cat([self.cumulative * (1 - share), 1 - share + pairs.cumulative * share]),
        )

    def sample(self, count: int, side: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw images (B,) by weight, and in each the top (B,) and left (B,) of a square of `side` pixels."""
        level = torch.rand(3, count, device=self.first.device)
        index = torch.searchsorted(self.cumulative, level[0]).clamp(max=len(self.cumulative) - 1)
        top, left = (
            (part * (length[index] - side + 1)).long().clamp(min=0)
            for part, length in ((level[1], self.height), (level[2], self.width))
        )
        return index, top, left

    def crop(self, index: torch.Tensor, top: torch.Tensor, left: torch.Tensor, side: int) -> torch.Tensor:
        """Crop squares, (B, S, S, channels) uint8."""
        step = torch.arange(side, device=index.device)
        row = (top[:, None] + step)[:, :, None] * self.width[index][:, None, None]
        pixel = self.first[index][:, None, None] + row + (left[:, None] + step)[:, None, :]
        return self.pixels[pixel]


def resample(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resample an image to (height, width), antialiased as evaluation does."""
    if pixels.shape[:2] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.LANCZOS))


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
