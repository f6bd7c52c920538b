"""Training batches of the relation network: areas cut into cells, goals among the cells, and random walks.

An area is cropped from the imagery at a random scale. Its goals are cells as they are, or the same cells on another
day: from the second image of a pair, or augmented (`temporal_augmentation`), in which case the two images are also
misregistered by some pixels. In some areas the goals are cut off the grid, rotated and scaled. With
`PhotoAugmentation`, glimpses and goals are photos with their own errors and compression instead of exact crops.

An image that was compressed shows its block grid at any scale. Areas are therefore exact only in images without a block
grid along their rows and columns: rotated copies and procedural images (`Imagery.clean`).

Legend: A areas, V glimpses and G goals of an area, S side of a cell, W walks, T length of a walk.
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch

from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.task.rules import inside, moves_on
from airloc.training.atlas import CropSampler
from airloc.training.augment import colour_jitter, temporal_augmentation
from airloc.training.photos import PhotoAugmentation, cell_corners, compress_alone, compress_areas, take_photos
from airloc.training.runs import Bounds, NonNegativeFloat, Probability, check_settings
from airloc.vision.embedder import standardise

INNER = 4.0
"""Real ground around the grid of areas without flight errors, in pixels."""


@dataclass(frozen=True)
class GoalAugmentation:
    """Differences between the image of the goal and the glimpses of the flight."""

    exact_probability: Probability = 0.55
    """Probability that an area of a clean image has glimpses and goals cut from one rendering, without errors and
    compression of their own. Areas of images that show a block grid are never exact."""
    shared_jitter: Probability = 0.6
    """Strength of the colour jitter that glimpses and goal share, 0 to 1."""
    aberration_probability: Probability = 0.15
    """Probability of chromatic aberration in the photos of an area that is augmented, up to one pixel at their border.
    Aberration of a whole area tells where in it a patch lies, and a network learns to read that."""
    goal_jitter: Probability = 0.9
    """Strength of the temporal augmentation of glimpses and goal, each its own, 0 to 1."""
    goal_jitter_probability: Probability = 0.65
    """Probability of that augmentation, per area that is augmented."""
    misregistration: NonNegativeFloat = 3.0
    """Largest shift between augmented images, in pixels."""
    off_grid_probability: Probability = 0.35
    """Probability that the goals of an area are cut off the grid, rotated and scaled."""
    shift: NonNegativeFloat = 0.5
    """Largest shift of goals off the grid, in cells."""
    turn: Annotated[float, Bounds(low=0, high=180)] = 12.0
    """Largest rotation of goals off the grid, in degrees."""
    scale: Annotated[float, Bounds(low=1, high=2)] = 1.2
    """Largest factor by which goals off the grid show more or less ground than a cell."""

    def __post_init__(self) -> None:
        check_settings(self)


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
    flying = torch.rand(areas, 1, device=device) < photos.flight_probability
    images, _, index = crops.draw(torch.where(flying.flatten(), float(MARGIN), INNER))
    blocks = ~crops.imagery.clean[index].view(areas, 1) & (photos.block_grid_strength > 0)
    exact = (torch.rand(areas, 1, device=device) < augmentation.exact_probability) & ~blocks

    def augmented(probability: float) -> torch.Tensor:
        return (torch.rand(areas, 1, device=device) < probability) & ~exact

    flying = flying & ~exact
    differs = augmented(augmentation.goal_jitter_probability)
    whole = augmented(photos.area_compression_probability)
    alone = augmented(photos.cell_compression_probability)
    degraded = augmented(photos.degraded_probability)
    aberrated = augmented(augmentation.aberration_probability)
    glimpse_day, goal_day = _two_days(images, differs, whole, augmentation)
    # Photos of the cells, and of the goals.
    low, high = photos.flight_strength
    strength = flying * (low + (high - low) * torch.rand(areas, 1, device=device))
    common = {
        "strength": torch.where(blocks, strength.clamp(min=photos.block_grid_strength), strength),
        "compressed": flying | alone | blocks,
        "aligned": torch.rand(areas, 1, device=device) < photos.aligned_probability,
        "aberration": aberrated * (2 * torch.rand(areas, 1, device=device) - 1),
    }
    corner = cell_corners(observed, grid)
    upright, sharp = torch.zeros_like(corner[0]), torch.zeros_like(flying)
    glimpses = take_photos(glimpse_day, grid, corner, upright, **common, degraded=sharp)
    cell = torch.rand(areas, grid.count, device=device).argsort(dim=1)[:, :goals]
    off_grid = torch.rand(areas, 1, device=device) < augmentation.off_grid_probability
    corner, angle, zoom = goal_views(grid, cell, augmentation, off_grid, differs)
    patches = take_photos(goal_day, grid, corner, angle, **common, degraded=degraded, zoom=zoom)
    saved, moved = augmented(photos.saved_probability), torch.rand(areas, 1, device=device) < 0.5
    glimpses, patches = (compress_alone(part, saved, moved) for part in (glimpses, patches))
    return RelationBatch(standardise(glimpses), standardise(patches), observed, cell)


def _two_days(
    images: torch.Tensor, differs: torch.Tensor, compressed: torch.Tensor, augmentation: GoalAugmentation
) -> torch.Tensor:
    """Return the areas on the day of the flight and on the day of the goal, (2, A, 3, H, W).

    Args:
        images: Areas on two days, (A, 6, H, W).
        differs: Areas whose days differ more than the images do, bool (A, 1).
        compressed: Areas that are compressed as a whole, bool (A, 1).
        augmentation: Differences between the days.
    """
    areas, device = len(images), images.device
    flipped, swapped = torch.rand(2, areas, 1, 1, 1, device=device)
    images = torch.where(flipped < 0.5, images.flip(3), images)
    both_days = torch.stack([images[:, :3], images[:, 3:]], dim=1)
    both_days = colour_jitter(both_days, augmentation.shared_jitter).transpose(0, 1)
    both_days = torch.where(swapped < 0.5, both_days.flip(0), both_days)
    changed = torch.stack([temporal_augmentation(day, augmentation.goal_jitter) for day in both_days])
    both_days = torch.where(differs[..., None, None], changed, both_days)
    encoded = compress_areas(both_days.flatten(0, 1)).view_as(both_days)
    return torch.where(compressed[..., None, None], encoded, both_days)


def goal_views(
    grid: Grid, cell: torch.Tensor, augmentation: GoalAugmentation, off_grid: torch.Tensor, differs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw where goals are cut: row and column of the corner in pixels, (2, A, G), rotation and scale, each (A, G).

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
    angle = off_grid * (2 * level[2] - 1) * math.radians(augmentation.turn)
    zoom = (off_grid * (2 * level[3] - 1) * math.log(augmentation.scale)).exp()
    return torch.stack(corner), angle, zoom


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
