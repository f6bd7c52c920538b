"""The segmentation unit: a U-net for patches of 48 x 48 that marks buildings.

Four down blocks halve the patch to 3 x 3 x 64, four up blocks bring it back, each joined with the map of the same size
on the way down; one logit a pixel comes out. The paper adapts the U-net of Ronneberger et al. in the same way.

Legend: B patches, S side of a patch (48, or any multiple of 16).
"""

from itertools import pairwise

import torch
from torch import nn

WIDTHS = (8, 8, 16, 32, 64)
"""Feature maps at full size and after each down block."""


class Segmenter(nn.Module):
    """Gives the logit of being a building for every pixel of RGB patches."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = _block(3, WIDTHS[0])
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), _block(a, b)) for a, b in pairwise(WIDTHS))
        self.up = nn.ModuleList(_block(a + b, a) for a, b in pairwise(WIDTHS))
        self.leave = nn.Conv2d(WIDTHS[0], 1, kernel_size=1)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """Mark buildings in standardised patches, (B, 3, S, S): logits (B, 1, S, S)."""
        maps = [self.enter(patches)]
        for block in self.down:
            maps.append(block(maps[-1]))
        here = maps.pop()  # (B, 64, S / 16, S / 16)
        for block, beside in zip(reversed(self.up), reversed(maps), strict=True):
            larger = nn.functional.interpolate(here, scale_factor=2.0, mode="nearest")
            here = block(torch.cat([beside, larger], dim=1))
        logits: torch.Tensor = self.leave(here)
        return logits


def _block(inputs: int, outputs: int) -> nn.Sequential:
    """A convolution with batch normalisation and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )
