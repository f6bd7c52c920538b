"""Training pictures on the device, at several scales, and patches cut from them at any offset.

Every picture is resampled beforehand, antialiased and exactly as evaluation does it, to a ladder of scales; patches are
then cut at whole pixels, so that a training patch is what an agent would see. All pixels lie in one long row, and a cut
is one gather.

Legend: N pictures (a picture at each of its scales counts), B cuts, S side of a patch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from airloc.areas.area import Mask, Pixels, SearchArea
from airloc.errors import AirlocError


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    """Pictures of any size in one row of pixels."""

    pixels: torch.Tensor
    """RGB and, where marked, the building mask: (pixels of all pictures, 3 or 4) uint8."""
    first: torch.Tensor
    """Where each picture begins in the row, (N,)."""
    height: torch.Tensor
    width: torch.Tensor
    weight: torch.Tensor
    """How often each picture is drawn, (N,)."""

    @classmethod
    def of(
        cls,
        pictures: Sequence[Pixels],
        weights: Sequence[float],
        device: torch.device | str,
        masks: Sequence[Mask] = (),
    ) -> "Atlas":
        """Lay pictures (and their masks, if given for all) out in one row."""
        if not pictures:
            raise AirlocError("There are no pictures to train on", "Give a folder with pictures large enough")
        rows = [picture.reshape(-1, 3) for picture in pictures]
        if masks:
            marks = (mask.reshape(-1, 1).astype(np.uint8) * 255 for mask in masks)
            rows = [np.hstack([row, mark]) for row, mark in zip(rows, marks, strict=True)]
        sizes = torch.tensor([picture.shape[:2] for picture in pictures])
        lengths = sizes.prod(dim=1)
        return cls(
            torch.from_numpy(np.concatenate(rows)).to(device),
            (lengths.cumsum(0) - lengths).to(device),
            sizes[:, 0].to(device),
            sizes[:, 1].to(device),
            torch.tensor(weights, dtype=torch.float32).to(device),
        )

    def draw(self, count: int, span: torch.Tensor | int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw pictures (B,) by weight and in each the corner, top (B,) and left (B,), of a span that fits."""
        which = torch.multinomial(self.weight, count, replacement=True)
        top, left = (
            (torch.rand(count, device=which.device) * (side[which] - span + 1)).long().clamp(min=0)
            for side in (self.height, self.width)
        )
        return which, top, left

    def cut(self, which: torch.Tensor, top: torch.Tensor, left: torch.Tensor, side: int) -> torch.Tensor:
        """Cut patches, (B, S, S, channels) uint8."""
        step = torch.arange(side, device=which.device)
        row = (top[:, None] + step)[:, :, None] * self.width[which][:, None, None]
        index = self.first[which][:, None, None] + row + (left[:, None] + step)[:, None, :]
        return self.pixels[index]


def ladder(
    areas: Iterable[SearchArea], metres_per_px: Sequence[float], smallest: int, weight: float = 1.0
) -> tuple[list[Pixels], list[float], list[Mask | None]]:
    """Resample areas of known ground size to scales; those that become smaller than `smallest` px are left out.

    Gives pictures, their weights (the area's share of `weight`, in proportion to the places a patch can be cut) and
    masks.
    """
    pictures, weights, masks = [], [], []
    for area in areas:
        if area.ground_m is None:
            raise AirlocError(f"The ground size of {area.name!r} is not known", "Give it in windows.csv")
        for scale in metres_per_px:
            size = (round(area.ground_m[0] / scale), round(area.ground_m[1] / scale))
            if min(size) < smallest:
                continue
            pictures.append(resample(area.image, size))
            weights.append(float((size[0] - smallest + 1) * (size[1] - smallest + 1)))
            mask = area.mask
            masks.append(None if mask is None else resample(mask.astype(np.uint8) * 255, size) >= 128)
    total = sum(weights) or 1.0
    return pictures, [weight * value / total for value in weights], masks


def resample(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resample an image to (height, width), antialiased as evaluation does."""
    if pixels.shape[:2] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.LANCZOS))
