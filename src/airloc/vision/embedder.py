"""The patch embedder: how two patches lie to each other, after Doersch et al. and the paper.

Two branches of four convolutions with ReLU and max pooling between them, one for the current patch and one for the
goal's, not sharing weights. After the second convolution each branch also sees the other's maps. Two embeddings of 128
numbers come out, are joined and pass a dense layer to c (256), and from there another to u: eight logits, the
exploitation prior, which say where the goal lies if it is adjacent.

The first half of a branch sees one patch alone, so it is computed once per patch and shared by all pairs.

Legend: B pairs, C input channels (RGB, or RGB and the building mask), S side of a patch, h = S / 4.
"""

import torch
from torch import nn

EMBEDDING = 256
HALF = 128
DIRECTIONS = 8


class PatchEmbedder(nn.Module):
    """Embeds pairs of patches.

    Args:
        channels: 3 for RGB, 4 for RGB and the building mask.
        widths: Feature maps of the four convolutions.
    """

    def __init__(self, channels: int = 4, widths: tuple[int, int, int, int] = (24, 40, 64, 32)) -> None:
        super().__init__()
        self.current_first = _first_half(channels, widths)
        self.goal_first = _first_half(channels, widths)
        self.current_second = _second_half(widths)
        self.goal_second = _second_half(widths)
        self.join = nn.Linear(2 * HALF, EMBEDDING)
        self.prior = nn.Linear(EMBEDDING, DIRECTIONS)

    def forward(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs of patches, each (B, C, S, S): c (B, 256) and u (B, 8)."""
        return self.relate(self.current_first(current), self.goal_first(goal))

    def relate(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs from what the first halves of the branches gave, each (B, widths[1], h, h)."""
        both = torch.cat([current, goal], dim=1)
        halves = torch.cat([self.current_second(both), self.goal_second(both)], dim=1)  # (B, 256)
        embedding: torch.Tensor = self.join(halves)
        prior: torch.Tensor = self.prior(torch.relu(embedding))
        return embedding, prior


def _first_half(channels: int, widths: tuple[int, int, int, int]) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, widths[0], 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(widths[0], widths[1], 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


def _second_half(widths: tuple[int, int, int, int]) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(2 * widths[1], widths[2], 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(widths[2], widths[3], 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(9 * widths[3], HALF),  # 48 px halved four times are 3 x 3
        nn.ReLU(),
    )
