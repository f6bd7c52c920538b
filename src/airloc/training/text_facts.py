"""Facts as targets of the text network: what covers each zone of a cell, and what a caption states.

The main losses of the text network tell only which cell a caption belongs to. That teaches a glimpse's content and a
clause's meaning slowly, and hardly beyond the images of the training. Two linear layers, which are not saved, therefore
predict facts: from the feature map of a patch the share of each class of land cover in each of its zones, the number of
buildings and the size of the largest; from the encoding of a caption the value that it states for each topic.

Legend: A areas, C cells, K captions of a cell, Z zones along a side, L = 16 classes, T topics, N patches, B captions.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from airloc.areas.captions.facts import AROUND, BUILT, COLOURS, LANDMARKS, SIDES, Facts
from airloc.areas.captions.land_cover import Cover, LandCover
from airloc.grid import Grid
from airloc.vision.text import ZONES, TextNetwork

_EXITS = ("none", "inside", *("".join(some) for count in range(1, 5) for some in combinations(SIDES, count)))
_PLACES = (*AROUND, "C")
_AMOUNTS = ("none", "some", "much", "all")
_COVERS = ("water", "fields", "trees", *BUILT, "sand", "open", "empty")
_LINES = ("road", "highway", "railway", "river")
_SHARES = ("water", "trees", "field", "grass", "sand")
VALUES: dict[str, tuple[str, ...]] = {
    "buildings": ("0", "1", "2", "3", "few", "several", "many", "dozens"),
    "building size": ("large", "small"),
    "built": tuple(BUILT),
    "roofs": tuple(COLOURS),
    "water kind": ("sea", "lake", "river"),
    **dict.fromkeys(("pitch", "pool", "car park"), ("yes",)),
    **dict.fromkeys(_LINES, _EXITS),
    **dict.fromkeys(_SHARES, _AMOUNTS),
    **dict.fromkeys((f"{topic} at" for topic in (*_SHARES, *_LINES, "buildings", "open", "hall")), _PLACES),
    **dict.fromkeys((*AROUND, *(f"far {side}" for side in AROUND)), _COVERS),
    **dict.fromkeys((f"{where} {side}" for where in ("by", "beyond") for side in AROUND), LANDMARKS),
    **dict.fromkeys(("denser", "sparser"), SIDES),
}
"""Values of every topic."""
_NUMBERS = {topic: {value: place + 1 for place, value in enumerate(values)} for topic, values in VALUES.items()}
_MOST = 1 + max(len(values) for values in VALUES.values())


class Ground(NamedTuple):
    """What is known about the ground of an area."""

    shares: npt.NDArray[np.float16]
    """Share of each class in each zone of each cell, (C, Z Z, L)."""
    known: npt.NDArray[np.bool_]
    """Classes that the source knows, (L,)."""
    buildings: npt.NDArray[np.float32]
    """log(1 + number of buildings) of each cell and the square root of the largest one's size, (C, 2)."""


def stated_values(facts: Facts) -> npt.NDArray[np.uint8]:
    """Return the number of the value of every topic, (T,); 0 where none is stated."""
    return np.array([numbers.get(facts.get(topic, ""), 0) for topic, numbers in _NUMBERS.items()], dtype=np.uint8)


def measure_ground(land: LandCover, grid: Grid) -> Ground:
    """Measure the zones and the buildings of every cell."""
    scale = land.classes.shape[0] / grid.size[0]
    shares = np.zeros((grid.count, ZONES**2, len(Cover)), dtype=np.float16)
    built = np.zeros((grid.count, 2), dtype=np.float32)
    one_of = np.eye(len(Cover), dtype=np.float32)
    for number, cell in enumerate(grid.cells()):
        left, top, right, bottom = (round(edge * scale) for edge in grid.box(cell))
        rows, cols = (np.linspace(*ends, ZONES + 1).round().astype(int) for ends in ((top, bottom), (left, right)))
        for zone in range(ZONES**2):
            row, col = divmod(zone, ZONES)
            part = land.classes[rows[row] : rows[row + 1], cols[col] : cols[col + 1]]
            shares[number, zone] = one_of[part].mean(axis=(0, 1))
        at = land.buildings
        inside = (at.row >= top) & (at.row < bottom) & (at.col >= left) & (at.col < right)
        built[number] = np.log1p(inside.sum()), np.sqrt(at.size[inside].max(initial=0.0))
    return Ground(shares, np.isin(np.arange(len(Cover)), list(land.known)), built)


class FactHeads(nn.Module):
    """Predicts facts from feature maps of patches and from encodings of captions."""

    def __init__(self, network: TextNetwork) -> None:
        super().__init__()
        self.zone = nn.Conv2d(network.channels, len(Cover), 1)
        self.buildings = nn.Linear(network.channels * ZONES**2, 2)
        self.stated = nn.Linear(network.features, len(VALUES) * _MOST)
        impossible = torch.tensor([[place > len(values) for place in range(_MOST)] for values in VALUES.values()])
        self.register_buffer("impossible", impossible, persistent=False)

    def ground_loss(
        self, maps: torch.Tensor, shares: torch.Tensor, known: torch.Tensor, buildings: torch.Tensor
    ) -> torch.Tensor:
        """Return the loss of what covers patches and of their buildings.

        Args:
            maps: Feature maps of patches, (N, channels, Z, Z).
            shares: Share of each class in each zone, (N, Z Z, L).
            known: Classes that the source knows, bool (N, L).
            buildings: Number and size of buildings, (N, 2), see `Ground`.
        """
        logits = self.zone(maps).flatten(2).transpose(1, 2).float()
        counts = known[:, None].float().expand_as(logits)
        cover = (binary_cross_entropy_with_logits(logits, shares.float(), reduction="none") * counts).sum()
        error: torch.Tensor = (self.buildings(maps.flatten(1)).float() - buildings).square().mean()
        return len(Cover) * cover / counts.numel() + error  # nats of all classes together

    def stated_loss(self, text: torch.Tensor, stated: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
        """Return the loss of the values (B, T) that captions with these encodings (B, F) state, summed over topics.

        Only captions count that are whole, bool (B,).
        """
        impossible = self.get_buffer("impossible")
        logits = self.stated(text).float().view(len(text), len(VALUES), _MOST).masked_fill(impossible, -1e4)
        loss = cross_entropy(logits.flatten(0, 1), stated.flatten().long(), reduction="none").view_as(stated)
        return (loss.sum(dim=1) * whole).sum() / whole.sum().clamp(min=1)
