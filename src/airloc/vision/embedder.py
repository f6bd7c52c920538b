"""The patch embedder: how two patches lie to each other, after Doersch et al. and the paper.

Two branches of four convolutions with ReLU and max pooling between them, one for the current patch and one for the
goal's, not sharing weights. After the second convolution the branches' maps are concatenated and go through the rest
of each branch. Two embeddings of 128 numbers come out, are joined and pass a dense layer to c (256), and from there
another to u: eight logits, the exploitation prior, which say where the goal lies if it is adjacent. Batch
normalisation after each convolution and of the two embeddings is added to the paper's description: without the former,
and with RGB that was not standardised either, training did not leave chance level (docs/log.md).

A convolution of concatenated maps is the sum of two convolutions, one of each patch's maps. Everything up to that sum
sees one patch alone: it is computed once per patch and shared by all its pairs, and a pair costs little.

Legend: B patches or pairs, C input channels (RGB, or RGB and the building mask), S = 48 side of a patch.
"""

import torch
from torch import nn

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
