"""The network of the locator: a dense feature map that stays the same across days, and a verifier of alignments.

`encode` maps an image to features at a quarter of its resolution. Goal and photo are encoded alike; the locator
(`airloc.vision.locator`) correlates the features of both at all shifts. `verify` compares the features of an aligned
pair and returns the log-odds that it shows the same place.

The locator itself runs the network in NumPy (`airloc.vision.feature_map`), on vehicles without PyTorch too. This module
is for training. Both have the same layers, and a test compares them.

Legend: N images or pairs, H, W height and width of an image, h, w = H / 4, W / 4, D features, T = 18 side of a goal's
feature map.
"""

import torch
from torch import nn
from torch.nn.functional import avg_pool2d, pixel_unshuffle, relu

from airloc.vision.feature_map import MIN_DEVIATION, STRIDE

VERIFIER = (48, 2)
"""Channels and convolutions of the verifier, if a checkpoint does not say."""


class LocatorNetwork(nn.Module):
    """Features for the locator, and the verifier of its alignments.

    Args:
        width: Channels of the first layer; later layers have twice as many.
        channels: Number of features.
        verifier: Channels and convolutions of the verifier.
    """

    def __init__(self, width: int = 32, channels: int = 16, verifier: tuple[int, int] = VERIFIER) -> None:
        super().__init__()
        self.width, self.channels, self.verifier_size = width, channels, verifier
        self.stem = nn.Conv2d(16, width, 3, padding=1)
        self.widen = nn.Conv2d(4 * width, 2 * width, 3, padding=1)
        blocks = [nn.Conv2d(2 * width, 2 * width, 3, padding=1) for _ in range(4)]
        for block in blocks[1::2]:
            nn.init.zeros_(block.weight)  # residual blocks change nothing at first
        self.blocks = nn.ModuleList(blocks)
        self.features = nn.Conv2d(2 * width, channels, 1)
        inner, layers = verifier
        inputs = [2 * channels + 1] + [inner] * (layers - 1)
        self.verifier = nn.ModuleList(nn.Conv2d(given, inner, 3, padding=1) for given in inputs)
        self.dense = nn.Linear(2 * inner + 2, inner)
        self.answer = nn.Linear(inner, 1)

    def encode(self, images: torch.Tensor, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode images (N, 3, H, W) in [0, 1] where they are `seen`, (N, 1, H, W) of zeros and ones.

        Returns:
            Features (N, D, h, w), zero where less than half of a pixel is seen, and what is seen, (N, 1, h, w).
        """
        total = seen.sum(dim=(2, 3), keepdim=True).clamp(min=1)
        centred = (images - (images * seen).sum(dim=(2, 3), keepdim=True) / total) * seen
        variance = (centred * centred).sum(dim=(1, 2, 3), keepdim=True) / (3 * total)
        normalised = torch.cat([centred / variance.sqrt().clamp(min=MIN_DEVIATION), seen], dim=1)
        x = relu(self.stem(pixel_unshuffle(normalised, 2)))
        x = relu(self.widen(pixel_unshuffle(x, 2)))
        for first, second in zip(self.blocks[::2], self.blocks[1::2], strict=True):
            x = relu(x + second(relu(first(x))))
        valid = (avg_pool2d(seen, STRIDE) > 0.5).float()
        return self.features(x).float() * valid, valid

    def verify(
        self, goal: torch.Tensor, goal_seen: torch.Tensor, photo: torch.Tensor, photo_seen: torch.Tensor
    ) -> torch.Tensor:
        """Return the log-odds (N,) that aligned features (N, D, T, T) show the same place; `seen` are (N, 1, T, T)."""
        both = goal_seen * photo_seen
        count = both.sum(dim=(1, 2, 3)).clamp(min=1)
        goal, photo = (_normalised(features * both, count) for features in (goal, photo))
        product = goal * photo
        x = torch.cat([product, (goal - photo).abs(), both], dim=1)
        for layer in self.verifier:
            x = relu(layer(x)) * both
        score = product.sum(dim=(1, 2, 3)) / (count * product.shape[1])
        share = count / goal_seen.sum(dim=(1, 2, 3)).clamp(min=1)
        pooled = [x.sum(dim=(2, 3)) / count[:, None], x.amax(dim=(2, 3)), score[:, None], share[:, None]]
        answer: torch.Tensor = self.answer(relu(self.dense(torch.cat(pooled, dim=1))))[:, 0]
        return answer


def _normalised(features: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Scale features (N, D, T, T) to a root mean square of one over `count` (N,) pixels."""
    square = (features * features).sum(dim=(1, 2, 3)) / (count * features.shape[1])
    return features / square.clamp(min=1e-6).sqrt()[:, None, None, None]
