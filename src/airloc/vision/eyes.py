"""The two frozen units of AiRLoc together: what is seen of a patch, and of a pair of patches.

Legend: B patches or pairs, S = 48 side of a patch, C channels: RGB, or RGB and the building mask.
"""

import torch
from torch import nn

from airloc.vision.embedder import PatchEmbedder
from airloc.vision.segmenter import Segmenter

MEAN, SPREAD = 0.4, 0.2
"""What RGB in [0, 1] is standardised with."""


class Eyes(nn.Module):
    """The segmentation unit and the patch embedder.

    Args:
        sem_seg: With the segmentation unit; without it the embedder sees RGB alone.
    """

    def __init__(self, sem_seg: bool = True) -> None:
        super().__init__()
        self.segmenter = Segmenter() if sem_seg else None
        self.embedder = PatchEmbedder(channels=4 if sem_seg else 3)

    def look(self, patches: torch.Tensor) -> torch.Tensor:
        """Standardise patches (B, S, S, 3) uint8 and mark their buildings: (B, C, S, S)."""
        return self.mark(standardise(patches.permute(0, 3, 1, 2).float() / 255))

    def mark(self, standardised: torch.Tensor) -> torch.Tensor:
        """Add the building mask to standardised RGB (B, 3, S, S), where there is a segmentation unit."""
        if self.segmenter is None:
            return standardised
        with torch.no_grad():
            mask = self.segmenter(standardised).sigmoid()
        return torch.cat([standardised, mask], dim=1)


def standardise(rgb: torch.Tensor) -> torch.Tensor:
    """Bring RGB in [0, 1] to about zero mean and unit spread."""
    return (rgb - MEAN) / SPREAD
