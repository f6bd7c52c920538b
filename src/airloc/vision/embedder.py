"""The segmentation unit: a U-net for patches of 48 x 48 that marks buildings.

Four down blocks halve the patch to 3 x 3 x 64, four up blocks bring it back, each joined with the map of the same size
on the way down; one logit a pixel comes out. The paper adapts the U-net of Ronneberger et al. in the same way.

Legend: B patches, S side of a patch (48, or any multiple of 16).
"""

from itertools import pairwise

import torch
from torch import nn

SEGMENTER_WIDTHS = (8, 8, 16, 32, 64)
"""Feature maps at full size and after each down block."""


class Segmenter(nn.Module):
    """Gives the logit of being a building for every pixel of RGB patches."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = _block(3, SEGMENTER_WIDTHS[0])
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), _block(a, b)) for a, b in pairwise(SEGMENTER_WIDTHS))
        self.up = nn.ModuleList(_block(a + b, a) for a, b in pairwise(SEGMENTER_WIDTHS))
        self.leave = nn.Conv2d(SEGMENTER_WIDTHS[0], 1, kernel_size=1)

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


# ---------- The patch embedder: how two patches lie to each other, after Doersch et al. and the paper.
# ~
# ~ Two branches of four convolutions with ReLU and max pooling between them, one for the current patch and one for the
# ~ goal's, not sharing weights. After the second convolution the branches' maps are concatenated and go through the rest
# ~ of each branch. Two embeddings of 128 numbers come out, are joined and pass a dense layer to c (256), and from there
# ~ another to u: eight logits, the exploitation prior, which say where the goal lies if it is adjacent. Batch
# ~ normalisation after each convolution and of the two embeddings is added to the paper's description: without the former,
# ~ and with RGB that was not standardised either, training did not leave chance level (docs/log.md).
# ~
# ~ A convolution of concatenated maps is the sum of two convolutions, one of each patch's maps. Everything up to that sum
# ~ sees one patch alone: it is computed once per patch and shared by all its pairs, and a pair costs little.
# ~
# ~ Legend: B patches or pairs, C input channels (RGB, or RGB and the building mask), S = 48 side of a patch.

EMBEDDING = 256
HALF = 128
DIRECTIONS = 8
WIDTHS = (24, 40, 64, 64)
"""Feature maps of a branch's four convolutions, of 48, 24, 12 and 6 pixels a side."""


class PatchEmbedder(nn.Module):
    """Embeds pairs of patches.

    Args:
        channels: 3 for RGB, 4 for RGB and the building mask.
    """

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.current_first = _first_half(channels)
        self.goal_first = _first_half(channels)
        self.meet = nn.Sequential(nn.BatchNorm2d(2 * WIDTHS[2]), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        # Both branches' fourth convolutions side by side, each on its own maps.
        self.fourth = nn.Sequential(*_convolution(2 * WIDTHS[2], 2 * WIDTHS[3], 3, groups=2))
        self.current_last = nn.Sequential(nn.Linear(WIDTHS[3] * 36, HALF), nn.BatchNorm1d(HALF))
        self.goal_last = nn.Sequential(nn.Linear(WIDTHS[3] * 36, HALF), nn.BatchNorm1d(HALF))
        self.join = nn.Linear(2 * HALF, EMBEDDING)
        self.prior = nn.Linear(EMBEDDING, DIRECTIONS)

    def forward(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs of patches, each (B, C, S, S): c (B, 256) and u (B, 8)."""
        return self.relate(self.current_first(current), self.goal_first(goal))

    def relate(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs from what `current_first` and `goal_first` gave, each (B, 128, 12, 12)."""
        maps = self.fourth(self.meet(current + goal))  # (B, 128, 6, 6)
        mine, other = maps.flatten(2).chunk(2, dim=1)
        halves = torch.cat([self.current_last(mine.flatten(1)), self.goal_last(other.flatten(1))], dim=1)
        embedding: torch.Tensor = self.join(halves.relu())
        prior: torch.Tensor = self.prior(embedding.relu())
        return embedding, prior


def _first_half(channels: int) -> nn.Sequential:
    """Two convolutions, and this patch's share of the third convolution of both branches."""
    return nn.Sequential(
        *_convolution(channels, WIDTHS[0], 5),
        nn.MaxPool2d(2),
        *_convolution(WIDTHS[0], WIDTHS[1], 5),
        nn.MaxPool2d(2),
        nn.Conv2d(WIDTHS[1], 2 * WIDTHS[2], 3, padding=1, bias=False),
    )


def _convolution(inputs: int, outputs: int, kernel: int, groups: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    ]


# ---------- The two frozen units of AiRLoc together: what is seen of a patch, and of a pair of patches.
# ~
# ~ Legend: B patches or pairs, S = 48 side of a patch, C channels: RGB, or RGB and the building mask.

MEAN, SPREAD = 0.4, 0.2
"""What RGB in [0, 1] is standardised with."""


class PatchEncoder(nn.Module):
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
