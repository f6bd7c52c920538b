"""A linear probe for the phase of block grids in training puzzles.

Compressed images have steps at the boundaries of their blocks. The profile of a patch is the mean absolute difference
of neighbouring rows, and of neighbouring columns, at each position modulo 8 and modulo 16, for luma and chroma. It says
where the boundaries lie and little about the ground. The probe predicts the direction between two adjacent cells from
the circular cross-correlations of their profiles, by ridge regression. Chance is one in eight; images that were never
compressed give 14 to 15 %. Puzzles that a probe solves better than that teach a relation network to read the block grid
instead of the ground.

Puzzles are those of the training, or plain crops: at the resolution of the image, at whole pixels, with goals that are
cells of the same crop. One probe serves all scales of the training. Block boundaries at lower resolutions have other
periods, so that a probe of one scale finds more of them.

Legend: A areas, C cells, G goals of an area, N patches or pairs, S side of a patch, F features, K = 8 directions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from airloc.areas.area import SearchArea
from airloc.grid import MOVES, Grid
from airloc.task.photos import MARGIN
from airloc.task.rules import inside
from airloc.training.atlas import Atlas, CropSampler, Imagery
from airloc.training.data import store_pair
from airloc.training.photos import PhotoAugmentation, cut_cells
from airloc.training.relation import SCALES, RelationConfig
from airloc.training.relation_batches import GoalAugmentation, RelationBatch, sample_batch
from airloc.vision.embedder import standardise

PERIODS = (8, 16)
"""Periods of JPEG's block grid: luma, and chroma where it is subsampled."""
GRID = Grid(3, 3)
CHANCE = 1 / len(MOVES)
_AREAS = 16
"""Areas per batch."""
_RIDGE = 1.0
"""Weight of the squared norm, in units of examples with standardised features."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Accuracy of the probe on puzzles of images that it was not fitted to."""

    accuracy: float
    error: float
    """Standard error of the accuracy, over areas."""
    pairs: int

    @property
    def ci95(self) -> tuple[float, float]:
        """95 % interval of the accuracy."""
        return self.accuracy - 1.96 * self.error, self.accuracy + 1.96 * self.error

    def record(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"accuracy": self.accuracy, "ci95": list(self.ci95), "chance": CHANCE, "pairs": self.pairs}


@dataclass(frozen=True)
class PuzzleRecipe:
    """Augmentations of training puzzles; the defaults are those of `airloc train belief`."""

    augmentation: GoalAugmentation = field(default_factory=GoalAugmentation)
    """Differences between goals and glimpses."""
    photos: PhotoAugmentation = field(default_factory=PhotoAugmentation)
    """Errors and compression of photos."""
    copies: int = RelationConfig.copies
    """Rotated copies of every image."""


def probe_puzzles(
    images: Sequence[SearchArea], *, areas: int, recipe: PuzzleRecipe | None = None, seed: int = 0
) -> ProbeResult:
    """Fit the probe to puzzles of every other image, and test it on puzzles of the rest.

    Args:
        images: The images; areas of 3 x 3 cells are cropped from them.
        areas: Areas to fit to, and as many to test on.
        recipe: Draw puzzles as the training does. None draws plain crops.
        seed: Random seed of the puzzles.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        (inputs, labels, _), (unseen, truth, area) = (
            _draw_pairs(_plain_puzzles(part) if recipe is None else _training_puzzles(part, recipe), areas)
            for part in (images[::2], images[1::2])
        )
    mean, std = inputs.mean(dim=0), inputs.std(dim=0) + 1e-8
    weights = fit_ridge((inputs - mean) / std, labels)
    right = ((unseen - mean) / std @ weights[:-1] + weights[-1]).argmax(dim=1) == truth
    # Pairs of one area are not independent, so that the error is that of the mean over areas.
    count = torch.bincount(area).clamp(min=1)
    by_area = torch.bincount(area, weights=right.double()) / count
    return ProbeResult(float(right.double().mean()), float(by_area.std() / len(by_area) ** 0.5), len(right))


def fit_ridge(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Fit one-hot labels (N,) by ridge regression on standardised inputs (N, F): weights and offset, (F + 1, K)."""
    inputs = torch.cat([inputs, torch.ones(len(inputs), 1, dtype=inputs.dtype)], dim=1)
    targets = torch.nn.functional.one_hot(labels, len(MOVES)).to(inputs.dtype)
    penalty = _RIDGE * torch.eye(inputs.shape[1], dtype=inputs.dtype)
    weights: torch.Tensor = torch.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ targets)
    return weights


def block_profile(patches: torch.Tensor) -> list[torch.Tensor]:
    """Return the profiles of standardised patches (N, 3, S, S): (N, period) for each axis, channel and period."""
    red, green, blue = patches.double().unbind(dim=1)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    profiles = []
    for planes in (luma[:, None], torch.stack([blue - luma, red - luma], dim=1)):
        for axis in (2, 3):
            steps = planes.diff(dim=axis).abs().mean(dim=(1, 5 - axis))  # (N, S - 1)
            for period in PERIODS:
                position = torch.arange(steps.shape[1]) % period
                total = torch.zeros(len(steps), period, dtype=steps.dtype).index_add_(1, position, steps)
                profile = total / torch.bincount(position, minlength=period)
                profile = profile - profile.mean(dim=1, keepdim=True)
                profiles.append(profile / profile.norm(dim=1, keepdim=True).clamp(min=1e-9))
    return profiles


def correlate_profiles(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """Return the circular cross-correlations of the profiles of pairs of standardised patches, (N, F)."""
    features = []
    for first, second in zip(block_profile(glimpse), block_profile(goal), strict=True):
        lags = [(first * second.roll(lag, dims=1)).sum(dim=1) for lag in range(first.shape[1])]
        features += lags
    return torch.stack(features, dim=1)


def _plain_puzzles(images: Sequence[SearchArea]) -> Callable[[int], RelationBatch]:
    """Return a function that crops a number of areas."""
    side = GRID.size[0]
    large = [area.image for area in images if min(area.image.shape[:2]) >= side]
    atlas = Atlas.from_images(large, [1.0] * len(large), "cpu")

    def draw(areas: int) -> RelationBatch:
        crops = atlas.crop(*atlas.sample(areas, side), side).permute(0, 3, 1, 2).float() / 255
        patches = standardise(cut_cells(crops, GRID))
        every = torch.arange(GRID.count).expand(areas, -1)
        return RelationBatch(patches, patches, every, every)

    return draw


def _training_puzzles(images: Sequence[SearchArea], recipe: PuzzleRecipe) -> Callable[[int], RelationBatch]:
    """Return a function that draws a number of areas as the training does."""
    pairs, steps = zip(*(store_pair(area, area, SCALES) for area in images), strict=True)
    imagery = Imagery.from_pairs(pairs, steps, [1.0] * len(pairs), "cpu", copies=recipe.copies)
    crops = CropSampler(imagery, GRID.size[0], MARGIN)

    def draw(areas: int) -> RelationBatch:
        every = torch.arange(GRID.count).expand(areas, -1)
        return sample_batch(crops, GRID, every, GRID.count, recipe.augmentation, recipe.photos)

    return draw


def _draw_pairs(draw: Callable[[int], RelationBatch], areas: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw puzzles: features (N, F), directions (N,) and areas (N,) of all adjacent pairs of glimpse and goal."""
    parts = []
    for first in range(0, areas, _AREAS):
        batch = draw(min(_AREAS, areas - first))
        area, glimpse, goal, direction = _adjacent(batch)
        features = correlate_profiles(batch.glimpses[area, glimpse], batch.goals[area, goal])
        parts.append((features, direction, area + first))
    features, direction, area = (torch.cat(column) for column in zip(*parts, strict=True))
    return features, direction, area


def _adjacent(batch: RelationBatch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return area, index of the glimpse, index of the goal and direction of all adjacent pairs, each (N,)."""
    cell = torch.stack([batch.cell // GRID.cols, batch.cell % GRID.cols], dim=2)  # (A, G, 2)
    beside = cell[:, :, None] - torch.from_numpy(MOVES)  # (A, G, K, 2), the glimpse from which the goal lies so
    area, goal, direction = inside(beside, GRID).nonzero(as_tuple=True)
    row, col = beside[area, goal, direction].unbind(dim=1)
    return area, row * GRID.cols + col, goal, direction
