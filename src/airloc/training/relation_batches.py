"""Training batches of the relation network: areas cut into cells, goals among the cells, and random walks.

An area is cropped from the imagery at a random scale. Its goals are cells as they are, or the same cells on another
day: from the second image of a pair, or augmented (`temporal_augmentation`), in which case the two images are also
misregistered by some pixels. In some areas the goals are cut off the grid and rotated. With `PhotoAugmentation`,
glimpses and goals are photos with their own errors and compression instead of exact crops.

Legend: A areas, V glimpses and G goals of an area, S side of a cell, W walks, T length of a walk.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch

from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.task.rules import inside, moves_on
from airloc.training.atlas import CropSampler
from airloc.training.augment import colour_jitter, temporal_augmentation
from airloc.training.photos import PhotoAugmentation, compress_areas, take_photos
from airloc.training.runs import NON_NEGATIVE, PROBABILITY, Bounds, check_settings
from airloc.vision.embedder import standardise


@dataclass(frozen=True)
class GoalAugmentation:
    """Differences between the image of the goal and the glimpses of the flight."""

    exact_probability: float = 0.35
    """Probability that an area is not augmented, but for the colour jitter that glimpses and goal share."""
    shared_jitter: float = 0.6
    """Strength of the colour jitter that glimpses and goal share, 0 to 1."""
    goal_jitter: float = 0.8
    """Strength of the temporal augmentation of glimpses and goal, each its own, 0 to 1."""
    goal_jitter_probability: float = 0.65
    """Probability of that augmentation, per area that is augmented."""
    misregistration: float = 3.0
    """Largest shift between augmented images, in pixels."""
    off_grid_probability: float = 0.35
    """Probability that the goals of an augmented area are cut off the grid and rotated."""
    shift: float = 0.5
    """Largest shift of goals off the grid, in cells."""
    turn: float = 10.0
    """Largest rotation of goals off the grid, in degrees."""

    def __post_init__(self) -> None:
        check_settings(
            self,
            exact_probability=PROBABILITY,
            shared_jitter=PROBABILITY,
            goal_jitter=PROBABILITY,
            goal_jitter_probability=PROBABILITY,
            misregistration=NON_NEGATIVE,
            off_grid_probability=PROBABILITY,
            shift=NON_NEGATIVE,
            turn=Bounds(low=0, high=180),
        )


class RelationBatch(NamedTuple):
    """Areas with glimpses of some of their cells, and some cells as goals."""

    glimpses: torch.Tensor
    """Standardised glimpses, (A, V, 3, S, S)."""
    goals: torch.Tensor
    """Standardised goals, (A, G, 3, S, S)."""
    observed: torch.Tensor
    """Index of the cell of every glimpse, (A, V)."""
    cell: torch.Tensor
    """Index of the cell of every goal, (A, G)."""


def sample_batch(
    crops: CropSampler,
    grid: Grid,
    observed: torch.Tensor,
    goals: int,
    augmentation: GoalAugmentation,
    photos: PhotoAugmentation,
) -> RelationBatch:
    """Crop an area for each row of `observed`, the cells of the glimpses (A, V), flip half of them, and draw goals.

    In areas with flight errors a photo can show the ground around the grid. The crop then shows real ground there.
    """
    areas, device = len(observed), observed.device
    level = torch.rand(6, areas, 1, 1, 1, device=device)
    exact = torch.rand(areas, 1, 1, 1, device=device) < augmentation.exact_probability
    level = level.masked_fill(exact, 1.0)  # no probability reaches it
    flying = level[0] < photos.flight_probability
    images = crops.draw(flying.flatten() * float(MARGIN))
    flipped, swapped = torch.rand(2, areas, 1, 1, 1, device=device) < 0.5
    images = torch.where(flipped, images.flip(3), images)
    both_days = torch.stack([images[:, :3], images[:, 3:]], dim=1)
    first, second = colour_jitter(both_days, augmentation.shared_jitter).unbind(dim=1)
    days = torch.where(swapped, first, second), torch.where(swapped, second, first)
    differs = level[1] < augmentation.goal_jitter_probability
    both = torch.stack(
        [torch.where(differs, temporal_augmentation(day, augmentation.goal_jitter), day) for day in days]
    )
    compressed = compress_areas(both.flatten(0, 1)).view_as(both)
    glimpse_day, goal_day = torch.where(level[2] < photos.area_compression_probability, compressed, both)
    # Photos of the cells, and of the goals.
    flying, alone, degraded = (part.view(areas, 1) for part in (flying, level[3], level[4]))
    low, high = photos.flight_strength
    strength = flying * (low + (high - low) * torch.rand(areas, 1, device=device))
    common = {"strength": strength, "compressed": flying | (alone < photos.cell_compression_probability)}
    corner = torch.stack([observed // grid.cols, observed % grid.cols]) * float(grid.pitch)
    upright, sharp = torch.zeros_like(corner[0]), torch.zeros_like(flying)
    glimpses = take_photos(glimpse_day, grid, corner, upright, **common, degraded=sharp)
    cell = torch.rand(areas, grid.count, device=device).argsort(dim=1)[:, :goals]
    off_grid = level[5].view(areas, 1) < augmentation.off_grid_probability
    corner, angle = _goal_corners(grid, cell, augmentation, off_grid, differs.view(areas, 1))
    patches = take_photos(goal_day, grid, corner, angle, **common, degraded=degraded < photos.degraded_probability)
    return RelationBatch(standardise(glimpses), standardise(patches), observed, cell)


def _goal_corners(
    grid: Grid, cell: torch.Tensor, augmentation: GoalAugmentation, off_grid: torch.Tensor, differs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw where goals are cut: row and column of the corner in pixels, (2, A, G), and the rotation, (A, G).

    In areas whose days differ, (A, 1), all goals are misregistered by the same shift.
    """
    areas, goals = cell.shape
    level = torch.rand(4, areas, goals, device=cell.device)
    misregistration = (2 * torch.rand(2, areas, 1, device=cell.device) - 1) * augmentation.misregistration * differs
    corner = [
        (
            index * grid.pitch + misregistration[n] + off_grid * (2 * level[n] - 1) * augmentation.shift * grid.pitch
        ).clamp(0, grid.size[0] - grid.cell)
        for n, index in enumerate((cell // grid.cols, cell % grid.cols))
    ]
    return torch.stack(corner), off_grid * (2 * level[2] - 1) * math.radians(augmentation.turn)


def random_walks(grid: Grid, count: int, length: int, device: torch.device) -> torch.Tensor:
    """Draw random walks that prefer unvisited cells: indices of cells in the order of the visits, (W, T)."""
    cells = torch.tensor(list(grid.cells()), device=device)
    here = torch.randint(grid.count, (count,), device=device)
    visited = torch.zeros(count, grid.count, dtype=torch.bool, device=device)
    walk = [here]
    for _ in range(length - 1):
        visited[torch.arange(count, device=device), here] = True
        to = cells[here][:, None] + moves_on(device)  # (W, 8, 2)
        index = (to[..., 0] * grid.cols + to[..., 1]).clamp(0, grid.count - 1)
        score = torch.rand(count, len(moves_on(device)), device=device) - visited.gather(1, index).float()
        here = index.gather(1, score.masked_fill(~inside(to, grid), -9.0).argmax(dim=1, keepdim=True))[:, 0]
        walk.append(here)
    return torch.stack(walk, dim=1)
