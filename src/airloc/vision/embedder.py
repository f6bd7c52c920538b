"""AiRLoc's vision: the segmentation unit, the patch embedder, and both together as the patch encoder.

The segmentation unit is a U-Net for patches of 48 x 48 px that predicts buildings. Four down blocks reduce the patch to
3 x 3 x 64. Four up blocks restore its size; each takes the map of the same size from the way down as a second input.
The output is one logit per pixel. The paper adapts the U-Net of Ronneberger et al. in the same way.

The patch embedder relates two patches, after Doersch et al. and the paper. It has two branches of four convolutions
with ReLU and max pooling, one for the current patch and one for the goal, which share no weights. After the second
convolution the maps of both branches are concatenated and go through the rest of each branch. The two resulting
embeddings of 128 numbers are concatenated and mapped to c (256), and c is mapped to u: eight logits, the exploitation
prior, for the direction of an adjacent goal. The paper has no batch normalisation; here it follows each convolution and
the two embeddings. Without it, training does not leave chance level (docs/log.md).

A convolution of concatenated maps is the sum of two convolutions, one for each patch. Everything before that sum
depends on one patch alone: it is computed once for each patch and shared by all pairs with that patch.

Legend: B patches or pairs, C input channels (RGB, or RGB and the building mask), S side of a patch (48 px; the
segmentation unit takes any multiple of 16).
"""

from itertools import pairwise

import torch
from torch import nn

RGB_MEAN, RGB_STD = 0.4, 0.2
"""Mean and standard deviation by which RGB in [0, 1] is standardised."""
SEGMENTER_WIDTHS = (8, 8, 16, 32, 64)
"""Channels of the segmentation unit at full size and after each down block."""
WIDTHS = (24, 40, 64, 64)
"""Channels of the four convolutions of an embedder branch, on maps of 48, 24, 12 and 6 px."""
EMBEDDING = 256
"""Size of the pair embedding c."""
HALF = 128
"""Size of the embedding of one branch."""
DIRECTIONS = 8
"""Size of the exploitation prior u."""


class PatchEncoder(nn.Module):
    """The segmentation unit and the patch embedder.

    Args:
        sem_seg: Use the segmentation unit. Without it the input of the embedder is RGB.
    """

    def __init__(self, sem_seg: bool = True) -> None:
        super().__init__()
        self.segmenter = Segmenter() if sem_seg else None
        self.embedder = PatchEmbedder(channels=4 if sem_seg else 3)

    def preprocess(self, patches: torch.Tensor) -> torch.Tensor:
        """Turn patches (B, S, S, 3) uint8 into inputs of the embedder, (B, C, S, S)."""
        return self.add_mask(standardise(patches.permute(0, 3, 1, 2).float() / 255))

    def add_mask(self, standardised: torch.Tensor) -> torch.Tensor:
        """Append the predicted building mask to standardised RGB (B, 3, S, S), if there is a segmentation unit."""
        if self.segmenter is None:
            return standardised
        with torch.no_grad():
            mask = self.segmenter(standardised).sigmoid()
        return torch.cat([standardised, mask], dim=1)


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
        # The fourth convolutions of both branches as one grouped convolution.
        self.fourth = nn.Sequential(*_convolution(2 * WIDTHS[2], 2 * WIDTHS[3], 3, groups=2))
        self.current_last = nn.Sequential(nn.Linear(WIDTHS[3] * 36, HALF), nn.BatchNorm1d(HALF))
        self.goal_last = nn.Sequential(nn.Linear(WIDTHS[3] * 36, HALF), nn.BatchNorm1d(HALF))
        self.join = nn.Linear(2 * HALF, EMBEDDING)
        self.prior = nn.Linear(EMBEDDING, DIRECTIONS)

    def forward(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs of patches, each (B, C, S, S): c (B, 256) and u (B, 8)."""
        return self.relate(self.current_first(current), self.goal_first(goal))

    def relate(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs from the outputs of `current_first` and `goal_first`, each (B, 128, 12, 12)."""
        maps = self.fourth(self.meet(current + goal))  # (B, 128, 6, 6)
        first, second = maps.flatten(2).chunk(2, dim=1)
        halves = torch.cat([self.current_last(first.flatten(1)), self.goal_last(second.flatten(1))], dim=1)
        embedding: torch.Tensor = self.join(halves.relu())
        prior: torch.Tensor = self.prior(embedding.relu())
        return embedding, prior


class Segmenter(nn.Module):
    """Predicts the logit of a building for every pixel of RGB patches."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = _convolution_block(3, SEGMENTER_WIDTHS[0])
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), _convolution_block(a, b)) for a, b in pairwise(SEGMENTER_WIDTHS)
        )
        self.up = nn.ModuleList(_convolution_block(a + b, a) for a, b in pairwise(SEGMENTER_WIDTHS))
        self.leave = nn.Conv2d(SEGMENTER_WIDTHS[0], 1, kernel_size=1)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """Segment standardised patches (B, 3, S, S): logits (B, 1, S, S)."""
        skipped = [self.enter(patches)]
        for block in self.down:
            skipped.append(block(skipped[-1]))
        maps = skipped.pop()  # (B, 64, S / 16, S / 16)
        for block, skip in zip(reversed(self.up), reversed(skipped), strict=True):
            larger = nn.functional.interpolate(maps, scale_factor=2.0, mode="nearest")
            maps = block(torch.cat([skip, larger], dim=1))
        logits: torch.Tensor = self.leave(maps)
        return logits


def standardise(rgb: torch.Tensor) -> torch.Tensor:
    """Standardise RGB in [0, 1] to about zero mean and unit variance."""
    return (rgb - RGB_MEAN) / RGB_STD


def _first_half(channels: int) -> nn.Sequential:
    """Return two convolutions, and this patch's term of the third convolution of both branches."""
    return nn.Sequential(
        *_convolution(channels, WIDTHS[0], 5),
        nn.MaxPool2d(2),
        *_convolution(WIDTHS[0], WIDTHS[1], 5),
        nn.MaxPool2d(2),
        nn.Conv2d(WIDTHS[1], 2 * WIDTHS[2], 3, padding=1, bias=False),
    )


def _convolution_block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(*_convolution(inputs, outputs, 3))


def _convolution(inputs: int, outputs: int, kernel: int, groups: int = 1) -> list[nn.Module]:
    """Return a convolution with batch normalisation and ReLU."""
    return [
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    ]
