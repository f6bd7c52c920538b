"""AiRLoc's vision: the segmentation unit, the patch embedder, and both together as the patch encoder.

The segmentation unit is a U-Net for patches of 48 x 48 px that predicts buildings. Four down blocks reduce the patch to
3 x 3 x 64. Four up blocks restore its size; each takes the map of the same size from the way down as a second input.
The output is one logit per pixel. The paper adapts the public implementation that it names in the same way: blocks of
two convolutions with batch normalisation, whose widths double at each down block, and transposed convolutions on the
way up. The light U-Net, which the shipped agents use, has one convolution in a block and repeats pixels on the way up.

The patch embedder relates two patches, after Doersch et al. and the paper. It has two branches of four convolutions
with ReLU and max pooling, one for the current patch and one for the goal, which share no weights. After the second
convolution the maps of both branches are concatenated and go through the rest of each branch. The two resulting
embeddings of 128 numbers are concatenated and mapped to c (256), and c is mapped to u: eight logits, the exploitation
prior, for the direction of an adjacent goal. The paper states neither channels nor kernels; its branches here have
those of the authors' published code, which pools after each of the four convolutions and gives c after its ReLU. The
paper has no batch normalisation; in the shipped agents it follows each convolution and the two embeddings. Without it,
the weights before a ReLU start as He et al. propose, because the paper does not say how they start, and PyTorch's
default shrinks the signal at each layer. `Layers` selects the forms.

A convolution of concatenated maps is the sum of two convolutions, one for each patch. Everything before that sum
depends on one patch alone: it is computed once for each patch and shared by all pairs with that patch.

Legend: B patches or pairs, C input channels (RGB, or RGB and the building mask), S side of a patch (48 px; the
segmentation unit takes any multiple of 16).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

RGB_MEAN, RGB_STD = 0.4, 0.2
"""Mean and standard deviation by which RGB in [0, 1] is standardised."""
SEGMENTER_WIDTHS = (8, 8, 16, 32, 64)
"""Channels of the light segmentation unit at full size and after each down block."""
PAPER_SEGMENTER_WIDTHS = (4, 8, 16, 32, 64)
"""Channels of the paper's segmentation unit: doubled at each down block, as in its source, up to the stated 64."""
Branches = Literal["wide", "paper"]
Widths = tuple[int, int, int, int]
WIDTHS: Widths = (24, 40, 64, 64)
"""Channels of the four convolutions of a wide embedder branch, on maps of 48, 24, 12 and 6 px."""
PAPER_WIDTHS: Widths = (2, 3, 12, 18)
"""Channels of the paper's branch for each channel of its input. All the paper's networks together take less than 4 MB
of memory, as it says."""
EMBEDDING = 256
"""Size of the pair embedding c."""
HALF = 128
"""Size of the embedding of one branch."""
DIRECTIONS = 8
"""Size of the exploitation prior u."""


@dataclass(frozen=True)
class Layers:
    """Layers of the segmentation unit and the embedder, by default those of the shipped agents."""

    batch_norm: bool = True
    """Normalise batches after the convolutions of the embedder. Without it, as in the paper."""
    branches: Branches = "wide"
    """Convolutions of the embedder's branches: those of the shipped agents, or of the paper's published code."""
    unet: Literal["light", "paper"] = "light"
    """Segmentation unit: blocks of one convolution, or those of the U-net that the paper adapts."""
    mask: Literal["probability", "binary"] = "probability"
    """Input of the embedder: the predicted probability of a building, or the binary mask of the paper."""


PAPER_LAYERS = Layers(batch_norm=False, branches="paper", unet="paper", mask="binary")


class PatchEncoder(nn.Module):
    """The segmentation unit and the patch embedder.

    Args:
        sem_seg: Use the segmentation unit. Without it the input of the embedder is RGB.
        layers: The layers of both.
    """

    def __init__(self, sem_seg: bool = True, layers: Layers | None = None) -> None:
        super().__init__()
        self.layers = layers or Layers()
        self.segmenter = Segmenter(self.layers.unet) if sem_seg else None
        self.embedder = PatchEmbedder(4 if sem_seg else 3, self.layers.batch_norm, self.layers.branches)

    def preprocess(self, patches: torch.Tensor) -> torch.Tensor:
        """Turn patches (B, S, S, 3) uint8 into inputs of the embedder, (B, C, S, S)."""
        return self.add_mask(standardise(patches.permute(0, 3, 1, 2).float() / 255))

    def add_mask(self, standardised: torch.Tensor) -> torch.Tensor:
        """Append the predicted building mask to standardised RGB (B, 3, S, S), if there is a segmentation unit."""
        if self.segmenter is None:
            return standardised
        with torch.no_grad():
            logits = self.segmenter(standardised)
            mask = logits.sigmoid() if self.layers.mask == "probability" else (logits > 0).to(standardised.dtype)
        return torch.cat([standardised, mask], dim=1)


class PatchEmbedder(nn.Module):
    """Embeds pairs of patches.

    Args:
        channels: 3 for RGB, 4 for RGB and the building mask.
        batch_norm: Normalise batches after each convolution and after the two embeddings.
        branches: Form of the branches; in that of the paper, c is rectified.
    """

    def __init__(self, channels: int = 4, batch_norm: bool = True, branches: Branches = "wide") -> None:
        super().__init__()
        self.rectified = branches == "paper"
        widths, kernel, side = WIDTHS, 5, 6
        if branches == "paper":
            first, second, third, fourth = PAPER_WIDTHS
            widths, kernel, side = (first * channels, second * channels, third * channels, fourth * channels), 3, 3
        self.current_first = _first_half(channels, widths, kernel, batch_norm)
        self.goal_first = _first_half(channels, widths, kernel, batch_norm)
        between: list[nn.Module] = [nn.BatchNorm2d(2 * widths[2])] if batch_norm else []
        self.meet = nn.Sequential(*between, nn.ReLU(inplace=True), nn.MaxPool2d(2))
        # The fourth convolutions of both branches as one grouped convolution.
        self.fourth = nn.Sequential(
            *_convolution(2 * widths[2], 2 * widths[3], 3, groups=2, batch_norm=batch_norm),
            *([nn.MaxPool2d(2)] if side == 3 else []),
        )
        self.current_last = _last(widths[3] * side**2, batch_norm)
        self.goal_last = _last(widths[3] * side**2, batch_norm)
        self.join = nn.Linear(2 * HALF, EMBEDDING)
        self.prior = nn.Linear(EMBEDDING, DIRECTIONS)
        if not batch_norm:
            for name, part in self.named_children():
                if name != "prior":  # no ReLU follows
                    part.apply(_keep_variance)

    def forward(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs of patches, each (B, C, S, S): c (B, 256) and u (B, 8)."""
        return self.relate(self.current_first(current), self.goal_first(goal))

    def relate(self, current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed pairs from the outputs of `current_first` and `goal_first`, each (B, 2 widths[2], 12, 12)."""
        maps = self.fourth(self.meet(current + goal))  # (B, 2 widths[3], side, side)
        first, second = maps.flatten(2).chunk(2, dim=1)
        halves = torch.cat([self.current_last(first.flatten(1)), self.goal_last(second.flatten(1))], dim=1)
        embedding: torch.Tensor = self.join(halves.relu())
        rectified = embedding.relu()
        prior: torch.Tensor = self.prior(rectified)
        return rectified if self.rectified else embedding, prior


class Segmenter(nn.Module):
    """Predicts the logit of a building for every pixel of RGB patches.

    Args:
        unet: The light U-Net or the paper's.
    """

    def __init__(self, unet: Literal["light", "paper"] = "light") -> None:
        super().__init__()
        light = unet == "light"
        widths = SEGMENTER_WIDTHS if light else PAPER_SEGMENTER_WIDTHS
        block = _convolution_block if light else _double_convolution_block
        self.enter = block(3, widths[0])
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), block(a, b)) for a, b in pairwise(widths))
        self.up = nn.ModuleList(block(a + b if light else 2 * a, a) for a, b in pairwise(widths))
        if not light:
            self.enlarge = nn.ModuleList(nn.ConvTranspose2d(b, a, kernel_size=2, stride=2) for a, b in pairwise(widths))
        self.leave = nn.Conv2d(widths[0], 1, kernel_size=1)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """Segment standardised patches (B, 3, S, S): logits (B, 1, S, S)."""
        skipped = [self.enter(patches)]
        for block in self.down:
            skipped.append(block(skipped[-1]))
        maps = skipped.pop()  # (B, 64, S / 16, S / 16)
        for level in reversed(range(len(self.up))):
            larger = (
                self.enlarge[level](maps)
                if hasattr(self, "enlarge")
                else nn.functional.interpolate(maps, scale_factor=2.0, mode="nearest")
            )
            maps = self.up[level](torch.cat([skipped[level], larger], dim=1))
        logits: torch.Tensor = self.leave(maps)
        return logits


def standardise(rgb: torch.Tensor) -> torch.Tensor:
    """Standardise RGB in [0, 1] to about zero mean and unit variance."""
    return (rgb - RGB_MEAN) / RGB_STD


def _first_half(channels: int, widths: Widths, kernel: int, batch_norm: bool) -> nn.Sequential:
    """Return two convolutions, and this patch's term of the third convolution of both branches."""
    return nn.Sequential(
        *_convolution(channels, widths[0], kernel, batch_norm=batch_norm),
        nn.MaxPool2d(2),
        *_convolution(widths[0], widths[1], kernel, batch_norm=batch_norm),
        nn.MaxPool2d(2),
        nn.Conv2d(widths[1], 2 * widths[2], 3, padding=1, bias=not batch_norm),
    )


def _last(numbers: int, batch_norm: bool) -> nn.Sequential:
    """Return the layer that maps the numbers of the last maps of a branch to its embedding."""
    linear = nn.Linear(numbers, HALF)
    return nn.Sequential(linear, nn.BatchNorm1d(HALF)) if batch_norm else nn.Sequential(linear)


def _convolution_block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(*_convolution(inputs, outputs, 3))


def _double_convolution_block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(*_convolution(inputs, outputs, 3), *_convolution(outputs, outputs, 3))


def _convolution(
    inputs: int, outputs: int, kernel: int, groups: int = 1, *, batch_norm: bool = True
) -> list[nn.Module]:
    """Return a convolution with ReLU and, if wanted, batch normalisation before it."""
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=not batch_norm)
    return [convolution, *([nn.BatchNorm2d(outputs)] if batch_norm else []), nn.ReLU(inplace=True)]


def _keep_variance(module: nn.Module) -> None:
    """Draw the weights of a layer so that it keeps the variance of the signal through ReLU (He et al., 2015)."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
