"""The text network: where the goal lies, given a glimpse and a description of the goal in words.

The network encodes a patch as a small map of features, so that it knows what lies where in the cell, and a description
as the features of its rows: the whole and its clauses (`airloc.vision.sentences`). `relate` compares the two and
returns logits over the same offsets as the relation network. The logit of the zero offset says whether the glimpse
itself fits; the others say what the glimpse tells about cells nearby: what lies next to a pond is near the pond. They
are differences of log-likelihoods, which a belief adds to those of other glimpses and of a goal picture.

Patches and descriptions also have embeddings of length one whose product is high for those that belong together.

Legend: N patches, B pairs, S = 48 side of a patch, Z = 3 zones along a side, R rows of a description, D numbers of a
row, F features, O offsets.
"""

from functools import lru_cache

import torch
from torch import nn
from torch.nn.functional import normalize

from airloc.vision.embedder import standardise
from airloc.vision.offsets import NUM_NEAR, RADIUS, RINGS
from airloc.vision.sentences import DIM

ZONES = 3
"""Rows and columns of the map that a patch is reduced to."""
DROPOUT = 0.1


class TextNetwork(nn.Module):
    """Relates patches to descriptions.

    Args:
        width: Channels of the first layers; later layers have two to four times as many.
        features: Numbers of an encoding.
    """

    def __init__(self, width: int = 40, features: int = 192) -> None:
        super().__init__()
        self.width, self.features = width, features
        channels = [width, 2 * width, 3 * width, 4 * width]
        layers: list[nn.Module] = []
        inputs = 3
        for outputs in channels:
            layers += [*_convolution(inputs, outputs, stride=2), _Residual(outputs)]
            inputs = outputs
        self.channels = inputs
        self.maps = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(ZONES))
        self.patch = nn.Sequential(
            nn.Flatten(), nn.Dropout(DROPOUT), nn.Linear(inputs * ZONES**2, features), nn.LayerNorm(features)
        )
        self.row = nn.Sequential(nn.Linear(DIM, features), nn.LayerNorm(features))
        self.kind = nn.Parameter(torch.zeros(2, features))
        self.start = nn.Parameter(torch.zeros(1, 1, features))
        self.mix = nn.TransformerEncoderLayer(
            features, 4, 2 * features, dropout=DROPOUT, batch_first=True, norm_first=True
        )
        self.text = nn.Sequential(nn.LayerNorm(features), nn.Linear(features, features), nn.LayerNorm(features))
        self.gate = nn.Linear(features, 2 * features)
        self.value = nn.Linear(features, 2 * features)
        self.judge = nn.Sequential(
            nn.Linear(4 * features + 1, 2 * features),
            nn.ReLU(inplace=True),
            nn.Dropout(DROPOUT),
            nn.Linear(2 * features, NUM_NEAR),
        )
        self.to_patch, self.to_text = nn.Linear(features, 128), nn.Linear(features, 128)
        self.log_scale = nn.Parameter(torch.tensor(2.6))

    def encode_patches(self, patches: torch.Tensor) -> torch.Tensor:
        """Encode patches (N, S, S, 3) uint8: (N, F)."""
        return self.encode(standardise(patches.permute(0, 3, 1, 2).float() / 255))

    def encode(self, standardised: torch.Tensor) -> torch.Tensor:
        """Encode standardised patches (N, 3, S, S): (N, F)."""
        return self.summarise(self.encode_maps(standardised))

    def encode_maps(self, standardised: torch.Tensor) -> torch.Tensor:
        """Return the feature maps of standardised patches (N, 3, S, S): (N, channels, Z, Z)."""
        return self.maps(standardised.contiguous(memory_format=torch.channels_last))  # type: ignore[no-any-return]

    def summarise(self, maps: torch.Tensor) -> torch.Tensor:
        """Encode patches from their feature maps (N, channels, Z, Z): (N, F)."""
        return self.patch(maps)  # type: ignore[no-any-return]

    def encode_text(self, rows: torch.Tensor) -> torch.Tensor:
        """Encode descriptions (B, R, D): (B, F). Rows of zeros do not count."""
        missing = (rows == 0).all(dim=2)
        kind = torch.cat([self.kind[:1], self.kind[1:].expand(rows.shape[1] - 1, -1)])
        tokens = torch.cat([self.start.expand(len(rows), -1, -1), self.row(rows) + kind], dim=1)
        skipped = torch.cat([missing.new_zeros(len(rows), 1), missing], dim=1)
        mask = torch.zeros_like(skipped, dtype=tokens.dtype).masked_fill(skipped, -torch.inf)
        return self.text(self.mix(tokens, src_key_padding_mask=mask)[:, 0])  # type: ignore[no-any-return]

    def relate(self, patch: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """Relate pairs of encodings, each (B, F): logits (B, O)."""
        product = self.value(patch) * self.gate(text)
        similar = (self.embed_patch(patch) * self.embed_text(text)).sum(dim=1, keepdim=True) * self.log_scale.exp()
        near = self.judge(torch.cat([product, patch, text, similar], dim=1))
        # Beyond the radius a description says no more than at it, in every direction.
        edge = near[:, _perimeter(near.device)]
        return torch.cat([near, *[edge] * len(RINGS)], dim=1)

    def embed_patch(self, patch: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of encoded patches (N, F), of length one."""
        return normalize(self.to_patch(patch), dim=1)

    def embed_text(self, text: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of encoded descriptions (B, F), of length one."""
        return normalize(self.to_text(text), dim=1)


def is_blank(rows: torch.Tensor) -> torch.Tensor:
    """Return which descriptions (B, R, D) are empty, bool (B,)."""
    return (rows == 0).flatten(1).all(dim=1)


@lru_cache
def _perimeter(device: torch.device) -> torch.Tensor:
    """Return the indices of the offsets at the radius among those within it, row by row."""
    with torch.inference_mode(False):
        steps = torch.arange(-RADIUS, RADIUS + 1).abs()
        return (torch.maximum(steps[:, None], steps).flatten() == RADIUS).nonzero()[:, 0].to(device)


def _convolution(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
    """Return a convolution whose channels are normalised: no statistics of the training images are kept."""
    return [
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        _Norm(outputs),
        nn.ReLU(inplace=True),
    ]


class _Norm(nn.LayerNorm):
    """Normalises the channels of every pixel, (N, channels, H, W)."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _Residual(nn.Module):
    """Two convolutions whose result is added to their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_convolution(channels, channels), *_convolution(channels, channels)[:2])

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.relu(features + self.layers(features))
