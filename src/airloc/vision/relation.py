"""The relation network: how probable is each offset from a glimpse to the goal?

Two patches are laid side by side as they would lie in the area, and the network judges how well they join. What it
looks at, in each of four frames that are turned on by a quarter:

- the side: features along the eastern edge of the glimpse, laid against those of the goal's western edge; fine ones of
  the last few pixels, which carry on across the gap, and deep ones of a broad band;
- the corner: the same of the south-eastern corner, against the goal's north-western one;
- the whole: what both patches show, their textures and land use, which also speaks of goals farther away;
- the place: both patches laid over each other, for the case that glimpse and goal are the same place.

All that sees one patch alone is done once a patch (`encode`), down to the dense layers that joins begin with, so that
a new glimpse is encoded once and each pair costs little (`relate`). A goal's western edge is the eastern edge of the
goal turned by two quarters, so one encoder serves both patches, and what continues across the gap has like features on
both sides from the first day of training: joins begin with differences. Answers are logits over all offsets up to four
cells: differences of log-likelihoods, which a belief over cells may add up over glimpses.

Legend: N patches, B pairs, S = 48 side of a patch, K = 4 turns, L = 24 features along a side, O = 81 offsets, W and F
features, as they are and prepared for a join.
"""

from typing import NamedTuple

import torch
from torch import nn

from airloc.vision.embedder import standardise
from airloc.vision.offsets import SAME, SECTOR, TURNS, sectors

SIDE = 48
"""Side of the patches that the network sees."""
BAND = 32
"""Pixels from the edge that the deep features of sides and corners see."""
EDGE = 8
"""Pixels from the edge that the fine features see."""
LENGTH = SIDE // 2
"""Features along a side."""
DROPPED = 0.05
"""Share of the pairs, in training, that must be judged without seams, and of those without the whole."""


class Encoding(NamedTuple):
    """What is seen of patches alone, in all four frames."""

    edge: torch.Tensor
    """Fine features along the eastern edge, from north to south, (N, K, S, W)."""
    side: torch.Tensor
    """Deep ones, (N, K, L, F)."""
    corner: torch.Tensor
    """Of the south-eastern corner, fine and deep, (N, K, F)."""
    whole: torch.Tensor
    """Of the patch as such, (N, K, F)."""
    place: torch.Tensor
    """A small map of the patch, (N, K, 36, W): not prepared, which would take four times the room."""

    def at(self, which: torch.Tensor) -> "Encoding":
        """The encodings of some patches."""
        return Encoding(*(part[which] for part in self))


class RelationNetwork(nn.Module):
    """Judges offsets between pairs of patches.

    Args:
        width: Feature maps of the first layers; later layers have two to four times as many.

    Attributes:
        seams: Look at sides and corners; without them only the whole counts.
        textures: Look at the whole; without it only sides and corners count.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.seams = self.textures = True
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
        self.shapes = tuple(torch.Size((TURNS, *shape)) for shape in ((SIDE, width), *joined, (36, width)))

    def forward(self, glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        """Judge pairs of standardised patches, each (B, 3, S, S): logits (B, O)."""
        return self.relate(self.encode(glimpse), self.encode(goal))

    def look(self, patches: torch.Tensor) -> Encoding:
        """Encode patches (N, S, S, 3) uint8 as they are observed."""
        return self.encode(standardise(patches.permute(0, 3, 1, 2).float() / 255))

    def encode(self, standardised: torch.Tensor) -> Encoding:
        """Encode standardised patches (N, 3, S, S), each in four frames."""
        frames = torch.stack([standardised.rot90(turn, (2, 3)) for turn in range(TURNS)], dim=1)
        frames = frames.flatten(0, 1).contiguous(memory_format=torch.channels_last)  # (N K, 3, S, S)
        band, maps = frames[..., -BAND:], self.map(frames)
        tip, corner = self.tip(frames[..., -EDGE:, -EDGE:]), self.corner(band[..., -BAND:, :])
        parts = (
            self.edge(frames[..., -EDGE:]).squeeze(3).transpose(1, 2),
            self.join_side.prepare(self.side(band).squeeze(3).transpose(1, 2)),
            self.join_corner.prepare(torch.cat([tip, corner], dim=1)),
            self.join_whole.prepare(self.whole(maps)),
            self.place(maps).flatten(2).transpose(1, 2),
        )
        return Encoding(*(part.reshape(len(standardised), TURNS, *part.shape[1:]) for part in parts))

    def relate(self, glimpse: Encoding, goal: Encoding) -> torch.Tensor:
        """Judge pairs of encoded patches: logits (B, O)."""
        # The goal's facing edge and corner are those it has when turned by two quarters.
        edge, side, corner = (part.roll(2, dims=1) for part in (goal.edge.flip(2), goal.side.flip(2), goal.corner))
        fine = (glimpse.edge - edge).abs().reshape(*edge.shape[:2], LENGTH, 2 * self.width)  # (B, K, L, 2 W)
        rows = self.along(torch.cat([fine, self.join_side(glimpse.side, side)], dim=3))
        corners = self.join_corner(glimpse.corner, corner)
        whole = self.join_whole(glimpse.whole, goal.whole)
        seams, textures = self._kept(rows)
        parts = [rows * seams, corners * seams, whole * textures]
        answers: torch.Tensor = self.judge(torch.cat(parts, dim=2))  # (B, K, J)
        over = self.join_place(*(self.join_place.prepare(patch.place) for patch in (glimpse, goal)))  # (B, K, 36, 3 W)
        same = self.same(torch.cat([over.mean(dim=2), over.amax(dim=2)], dim=2)).mean(dim=1)  # (B, 1)
        others = answers.flatten(1)[:, sectors(answers.device)]
        return torch.cat([others[:, :SAME], same, others[:, SAME:]], dim=1)

    def _kept(self, rows: torch.Tensor) -> tuple[torch.Tensor | float, torch.Tensor | float]:
        """Whether each pair is judged by its seams, and whether by the whole, each (B, 1, 1) or one for all."""
        if self.training:
            drawn = torch.rand(len(rows), 1, 1, device=rows.device)
            return (drawn >= DROPPED).to(rows.dtype), (drawn < 1 - DROPPED).to(rows.dtype)
        return float(self.seams), float(self.textures)


class _Join(nn.Module):
    """Joins two patches' features: differences and products of like features, and a hidden layer of both.

    Its dense layers see one patch alone and are applied beforehand, by `prepare`.
    """

    def __init__(self, inputs: int, differences: int, products: int, hidden: int) -> None:
        super().__init__()
        self.sizes = [differences, products, hidden, hidden]
        self.prepared = sum(self.sizes)
        self.like = nn.Linear(inputs, differences + products)
        self.glimpse = nn.Linear(inputs, hidden)
        self.goal = nn.Linear(inputs, hidden, bias=False)

    def prepare(self, features: torch.Tensor) -> torch.Tensor:
        """What is to be compared of a patch, and its share of the hidden layer as a glimpse and as a goal."""
        return torch.cat([self.like(features), self.glimpse(features), self.goal(features)], dim=-1)

    def forward(self, glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        mine, my_factor, my_share, _ = torch.split(glimpse, self.sizes, dim=-1)
        other, its_factor, _, its_share = torch.split(goal, self.sizes, dim=-1)
        return torch.cat([(mine - other).abs(), my_factor * its_factor, (my_share + its_share).relu()], dim=-1)


class _Along(nn.Module):
    """Reads joined features along a seam, (B, K, L, inputs), and sums them up, (B, K, 2 hidden)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(inputs, hidden, 3, padding=1, bias=False), nn.BatchNorm1d(hidden))
        self.second = nn.Sequential(nn.Conv1d(hidden, hidden, 3, padding=1, bias=False), nn.BatchNorm1d(hidden))

    def forward(self, joined: torch.Tensor) -> torch.Tensor:
        first = self.first(joined.flatten(0, 1).transpose(1, 2)).relu()
        rows = (first + self.second(first)).relu()
        return torch.cat([rows.mean(dim=2), rows.amax(dim=2)], dim=1).view(*joined.shape[:2], -1)


def _convolution(inputs: int, outputs: int, stride: tuple[int, int] = (1, 1)) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    ]
