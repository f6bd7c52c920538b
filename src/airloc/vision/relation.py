"""The relation network: the probability of each offset from a glimpse to the goal.

The network predicts how well two patches join at each offset, as in a jigsaw puzzle. It compares the pair in four
frames, each rotated by another quarter turn:

- the side: features along the eastern edge of the glimpse against those along the western edge of the goal. Fine
  features cover the last few pixels, which continue across the gap; deep features cover a broad band;
- the corner: the same for the south-eastern corner of the glimpse and the north-western corner of the goal;
- the whole: texture and land use of both patches, which also inform about goals farther away;
- the place: both patches on top of each other, for the case that glimpse and goal are the same place.

`encode` computes everything that depends on one patch alone, including the dense layers that the joins begin with. A
new glimpse is encoded once, and `relate` is cheap for each pair. The western edge of a goal is the eastern edge of the
goal rotated by two quarter turns, so that one encoder serves both patches. What continues across the gap has similar
features on both sides from the start of training: joins begin with differences. The outputs are logits over all
offsets, exact up to four cells and in rings beyond. They are differences of log-likelihoods, which a belief over cells
can add up over glimpses.

Legend: N patches, B pairs, S = 48 side of a patch, K = 4 rotations, L = 24 features along a side, O offsets, C
cells, W and F features, raw and prepared for a join.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import torch
from torch import nn

from airloc.grid import MOVES, Grid
from airloc.task.photos import average_chroma, blur
from airloc.vision.embedder import standardise
from airloc.vision.offsets import (
    NUM_ROTATIONS,
    SECTOR,
    ZERO_OFFSET,
    offset_index,
    offset_table,
    sector_positions,
)

SIDE = 48
"""Side of a patch in pixels."""
BAND = 32
"""Pixels from the edge that the deep features of sides and corners cover."""
EDGE = 8
"""Pixels from the edge that the fine features cover."""
LENGTH = SIDE // 2
"""Number of features along a side."""
ChromaScale = Literal[1, 2, 3, 4, 6, 8]
"""Pixels over which the chroma of patches can be averaged: divisors of their side."""
BRANCH_DROPOUT = 0.05
"""Fraction of the training pairs that are predicted without sides and corners, and fraction without the whole."""


class Encoding(NamedTuple):
    """Features of single patches in all four frames."""

    edge: torch.Tensor
    """Fine features along the eastern edge, from north to south, (N, K, S, W)."""
    side: torch.Tensor
    """Deep features along the eastern edge, (N, K, L, F)."""
    corner: torch.Tensor
    """Fine and deep features of the south-eastern corner, (N, K, F)."""
    whole: torch.Tensor
    """Features of the whole patch, (N, K, F)."""
    place: torch.Tensor
    """A small map of the patch, (N, K, 36, W). It is stored raw, because it would be four times as large prepared."""

    def at(self, which: torch.Tensor) -> "Encoding":
        """Return the encodings of selected patches."""
        return Encoding(*(part[which] for part in self))


class RelationNetwork(nn.Module):
    """Predicts the offset between the patches of a pair.

    Args:
        width: Channels of the first layers; later layers have two to four times as many.
        blocks: Residual blocks of the whole patch and of its sides.
        chroma_scale: Side of the squares over which the chroma of a patch is averaged before it is encoded, in pixels.
            A patch that is saved as a JPEG file of its own has no finer chroma, least of all in its last pixels.

    Attributes:
        seams: Use sides and corners. Without them only the whole counts.
        textures: Use the whole. Without it only sides and corners count.
        blurred: Blur patches before they are encoded. Fine detail tells neighbours of one day apart; between days, and
            in goals off the grid, it misleads.
    """

    def __init__(self, width: int = 32, blocks: int = 0, chroma_scale: int = 1) -> None:
        super().__init__()
        self.width = width
        self.blocks = blocks
        self.chroma_scale = chroma_scale
        self.seams = self.textures = True
        self.blurred = False
        middle, last, dense = 2 * width, 3 * width, 4 * width
        self.edge = nn.Sequential(nn.Conv2d(3, width, (5, EDGE), padding=(2, 0), bias=False), nn.BatchNorm2d(width))
        self.tip = nn.Sequential(nn.Conv2d(3, width, EDGE, bias=False), nn.BatchNorm2d(width), nn.Flatten())
        self.side = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(inplace=True),
            *_convolution(width, middle, stride=(2, 2)),
            *_convolution(middle, middle),
            *_convolution(middle, last, stride=(1, 2)),
            *_convolution(last, last, stride=(1, 2)),
            nn.Conv2d(last, last, (1, BAND // 8), bias=False),
            nn.BatchNorm2d(last),
        )
        self.corner = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(inplace=True),
            *_convolution(width, middle, stride=(2, 2)),
            *_convolution(middle, middle, stride=(2, 2)),
            *_convolution(middle, last, stride=(2, 2)),
            nn.Flatten(),
            nn.Linear(last * (BAND // 8) ** 2, dense, bias=False),
            nn.BatchNorm1d(dense),
        )
        self.map = nn.Sequential(
            *_convolution(3, width, stride=(2, 2)),
            *_convolution(width, middle, stride=(2, 2)),
            *_convolution(middle, middle),
            *_convolution(middle, last, stride=(2, 2)),
            *_convolution(last, last),
        )
        self.side_blocks = nn.Sequential(*(_Residual(last, (3, 1)) for _ in range(blocks)))
        self.map_blocks = nn.Sequential(*(_Residual(last, (3, 3)) for _ in range(blocks)))
        self.whole = nn.Sequential(
            nn.AvgPool2d(2), nn.Flatten(), nn.Linear(last * 9, dense, bias=False), nn.BatchNorm1d(dense)
        )
        self.place = nn.Conv2d(last, width, 1)
        self.join_side = _Join(last, last, middle, width)
        self.along = _Along(2 * width + last + middle + width, dense)
        self.join_corner = _Join(dense + width, dense, middle, middle)
        self.join_whole = _Join(dense, dense, middle, middle)
        self.join_place = _Join(width, width, width, width)
        self.judge = nn.Sequential(
            nn.Linear(2 * dense + 2 * (dense + 2 * middle), dense), nn.ReLU(inplace=True), nn.Linear(dense, len(SECTOR))
        )
        self.same = nn.Sequential(nn.Linear(6 * width, middle), nn.ReLU(inplace=True), nn.Linear(middle, 1))
        joined = [(LENGTH, self.join_side.prepared), (self.join_corner.prepared,), (self.join_whole.prepared,)]
        self.shapes = tuple(torch.Size((NUM_ROTATIONS, *shape)) for shape in ((SIDE, width), *joined, (36, width)))

    def forward(self, glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        """Relate pairs of standardised patches, each (B, 3, S, S): logits (B, O)."""
        return self.relate(self.encode(glimpse), self.encode(goal))

    def encode_patches(self, patches: torch.Tensor) -> Encoding:
        """Encode patches (N, S, S, 3) uint8."""
        return self.encode(standardise(patches.permute(0, 3, 1, 2).float() / 255))

    def encode(self, standardised: torch.Tensor) -> Encoding:
        """Encode standardised patches (N, 3, S, S), each in four frames."""
        if self.chroma_scale > 1:
            standardised = average_chroma(standardised, self.chroma_scale)
        standardised = blur(standardised) if self.blurred else standardised
        frames = torch.stack([standardised.rot90(turn, (2, 3)) for turn in range(NUM_ROTATIONS)], dim=1)
        frames = frames.flatten(0, 1).contiguous(memory_format=torch.channels_last)  # (N K, 3, S, S)
        band, maps = frames[..., -BAND:], self.map_blocks(self.map(frames))
        tip, corner = self.tip(frames[..., -EDGE:, -EDGE:]), self.corner(band[..., -BAND:, :])
        parts = (
            self.edge(frames[..., -EDGE:]).squeeze(3).transpose(1, 2),
            self.join_side.prepare(self.side_blocks(self.side(band)).squeeze(3).transpose(1, 2)),
            self.join_corner.prepare(torch.cat([tip, corner], dim=1)),
            self.join_whole.prepare(self.whole(maps)),
            self.place(maps).flatten(2).transpose(1, 2),
        )
        return Encoding(*(part.reshape(len(standardised), NUM_ROTATIONS, *part.shape[1:]) for part in parts))

    def relate(self, glimpse: Encoding, goal: Encoding) -> torch.Tensor:
        """Relate pairs of encoded patches: logits (B, O)."""
        # The facing edge and corner of the goal are its own after two quarter turns.
        edge, side, corner = (part.roll(2, dims=1) for part in (goal.edge.flip(2), goal.side.flip(2), goal.corner))
        fine = (glimpse.edge - edge).abs().reshape(*edge.shape[:2], LENGTH, 2 * self.width)  # (B, K, L, 2 W)
        rows = self.along(torch.cat([fine, self.join_side(glimpse.side, side)], dim=3))
        corners = self.join_corner(glimpse.corner, corner)
        whole = self.join_whole(glimpse.whole, goal.whole)
        seams, textures = self._branch_weights(rows)
        parts = [rows * seams, corners * seams, whole * textures]
        sectors: torch.Tensor = self.judge(torch.cat(parts, dim=2))  # (B, K, J)
        over = self.join_place(*(self.join_place.prepare(patch.place) for patch in (glimpse, goal)))  # (B, K, 36, 3 W)
        same = self.same(torch.cat([over.mean(dim=2), over.amax(dim=2)], dim=2)).mean(dim=1)  # (B, 1)
        others = sectors.flatten(1)[:, _sector_positions(sectors.device)]
        return torch.cat([others[:, :ZERO_OFFSET], same, others[:, ZERO_OFFSET:]], dim=1)

    def _branch_weights(self, rows: torch.Tensor) -> tuple[torch.Tensor | float, torch.Tensor | float]:
        """Return the weights (0 or 1) of seams and of textures, each (B, 1, 1) or one number for all pairs."""
        if self.training:
            drawn = torch.rand(len(rows), 1, 1, device=rows.device)
            return (drawn >= BRANCH_DROPOUT).to(rows.dtype), (drawn < 1 - BRANCH_DROPOUT).to(rows.dtype)
        return float(self.seams), float(self.textures)


def offsets_from(position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Return the index of the offset from cells (B, 2) to every cell of the grid, (B, C)."""
    reach = max(grid.shape)
    row, col = (
        torch.arange(side, device=position.device) - position[:, axis, None] + reach - 1
        for axis, side in enumerate(grid.shape)
    )
    return _offset_table(reach, position.device)[row[:, :, None], col[:, None]].flatten(1)


def upgrade_weights(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Convert the weights of earlier versions.

    Before there were rings, the farthest offsets stood for them. Convolutions along seams were one-dimensional.
    """
    near = sum(ring == 0 for ring, _, _ in SECTOR)
    source = [SECTOR.index((0, row, col)) for _, row, col in SECTOR]

    def upgrade(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name.startswith("judge.2.") and len(tensor) == near:
            return tensor[source]
        return tensor.unsqueeze(2) if name.startswith("along.") and tensor.dim() == 3 else tensor

    return {name: upgrade(name, tensor) for name, tensor in tensors.items()}


@lru_cache
def offsets_between_cells(grid: Grid, device: torch.device) -> torch.Tensor:
    """Return the index of the offset from every cell to every cell, (C, C)."""
    with torch.inference_mode(False):
        return offsets_from(torch.tensor(list(grid.cells()), device=device), grid)


@lru_cache
def adjacent_offsets(device: torch.device) -> torch.Tensor:
    """Return the indices of the offsets of the eight moves, (8,)."""
    return _constant([offset_index(row, col) for row, col in MOVES.tolist()], device)


@lru_cache
def _offset_table(reach: int, device: torch.device) -> torch.Tensor:
    return _constant(offset_table(reach).tolist(), device)


@lru_cache
def _sector_positions(device: torch.device) -> torch.Tensor:
    return _constant(sector_positions(), device)


def _constant(values: list[int] | list[list[int]], device: torch.device) -> torch.Tensor:
    """Return a cached tensor that training can use even if inference mode creates it."""
    with torch.inference_mode(False):
        return torch.tensor(values, device=device)


class _Join(nn.Module):
    """Joins the features of two patches: differences and products of shared features, and a hidden layer of both.

    The dense layers depend on one patch alone; `prepare` applies them beforehand.
    """

    def __init__(self, inputs: int, differences: int, products: int, hidden: int) -> None:
        super().__init__()
        self.sizes = [differences, products, hidden, hidden]
        self.prepared = sum(self.sizes)
        self.like = nn.Linear(inputs, differences + products)
        self.glimpse = nn.Linear(inputs, hidden)
        self.goal = nn.Linear(inputs, hidden, bias=False)

    def prepare(self, features: torch.Tensor) -> torch.Tensor:
        """Return the features of a patch to compare, and its terms of the hidden layer as glimpse and as goal."""
        return torch.cat([self.like(features), self.glimpse(features), self.goal(features)], dim=-1)

    def forward(self, glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        term1, factor1, hidden1, _ = torch.split(glimpse, self.sizes, dim=-1)
        term2, factor2, _, hidden2 = torch.split(goal, self.sizes, dim=-1)
        return torch.cat([(term1 - term2).abs(), factor1 * factor2, (hidden1 + hidden2).relu()], dim=-1)


class _Residual(nn.Module):
    """Adds two convolutions of the features to the features. At first it changes nothing."""

    def __init__(self, channels: int, kernel: tuple[int, int]) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2)
        last = nn.BatchNorm2d(channels)
        nn.init.zeros_(last.weight)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, channels, kernel, padding=padding, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, kernel, padding=padding, bias=False),
            last,
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        change: torch.Tensor = self.layers(features)
        return features + change


class _Along(nn.Module):
    """Convolves joined features along a seam, (B, K, L, inputs), and pools them, (B, K, 2 hidden)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Sequential(nn.Conv2d(channels, hidden, (1, 3), padding=(0, 1), bias=False), nn.BatchNorm2d(hidden))
            for channels in (inputs, hidden)
        )

    def forward(self, joined: torch.Tensor) -> torch.Tensor:
        first = self.first(joined.flatten(0, 1).transpose(1, 2).unsqueeze(2)).relu()  # (B K, hidden, 1, L)
        rows = (first + self.second(first)).relu()
        return torch.cat([rows.mean(dim=(2, 3)), rows.amax(dim=(2, 3))], dim=1).view(*joined.shape[:2], -1)


def _convolution(inputs: int, outputs: int, stride: tuple[int, int] = (1, 1)) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    ]
