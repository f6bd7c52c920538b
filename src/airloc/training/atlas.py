"""Training pictures on the device, at several scales, and patches cut from them at any offset.

Every picture is resampled beforehand, antialiased and exactly as evaluation does it, to a ladder of scales; patches are
then cut at whole pixels, so that a training patch is what an agent would see. All pixels lie in one long row, and a cut
is one gather.

Legend: N pictures (a picture at each of its scales counts), B cuts, S side of a patch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from airloc.areas.area import Mask, Pixels
from airloc.errors import AirlocError


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    """Pictures of any size in one row of pixels."""

    pixels: torch.Tensor
    """RGB and, where marked, the building mask, or of pairs RGB twice: (pixels of all pictures, 3, 4 or 6) uint8."""
    first: torch.Tensor
    """Where each picture begins in the row, (N,)."""
    height: torch.Tensor
    width: torch.Tensor
    share: torch.Tensor
    """How often each picture or one before it is drawn, (N,), rising to one."""

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
        rows = [picture.reshape(-1, picture.shape[2]) for picture in pictures]
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
            (torch.tensor(weights, dtype=torch.float64).cumsum(0) / sum(weights)).float().to(device),
        )

    def beside(self, pairs: "Atlas", share: float) -> "Atlas":
        """These pictures, each a pair with itself, and pairs of pictures, which are drawn so often."""
        return Atlas(
            torch.cat([self.pixels.repeat(1, 2), pairs.pixels]),
            torch.cat([self.first, pairs.first + len(self.pixels)]),
            torch.cat([self.height, pairs.height]),
            torch.cat([self.width, pairs.width]),
            torch.cat([self.share * (1 - share), 1 - share + pairs.share * share]),
        )

    def draw(self, count: int, span: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw pictures (B,) by weight and in each the corner, top (B,) and left (B,), of a square that fits."""
        level = torch.rand(3, count, device=self.first.device)
        which = torch.searchsorted(self.share, level[0]).clamp(max=len(self.share) - 1)
        top, left = (
            (part * (side[which] - span + 1)).long().clamp(min=0)
            for part, side in ((level[1], self.height), (level[2], self.width))
        )
        return which, top, left

    def cut(self, which: torch.Tensor, top: torch.Tensor, left: torch.Tensor, side: int) -> torch.Tensor:
        """Cut patches, (B, S, S, channels) uint8."""
        step = torch.arange(side, device=which.device)
        row = (top[:, None] + step)[:, :, None] * self.width[which][:, None, None]
        index = self.first[which][:, None, None] + row + (left[:, None] + step)[:, None, :]
        return self.pixels[index]


def resample(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resample an image to (height, width), antialiased as evaluation does."""
    if pixels.shape[:2] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.LANCZOS))
