"""Training batches of the relation network: areas cut into cells, goals among the cells, and random walks.

An area is cropped from the atlas and cut into cells. Its goals are the cells themselves, or the same cells on another
day: from the second image of a pair, or augmented (`temporal_augmentation`), in which case the two images are also
misregistered by some pixels. In some areas the goals are cut off the grid and rotated. With `PhotoAugmentation`,
glimpses and goals are photos with their own errors and compression instead of crops.

Legend: A areas, C cells of the grid, G goals of an area, S side of a cell, W walks, T length of a walk.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.functional import affine_grid, grid_sample

from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.task.rules import inside, moves_on
from airloc.training.atlas import Atlas
from airloc.training.augment import colour_jitter, temporal_augmentation
from airloc.training.photos import PhotoAugmentation, compress_areas, take_photos
from airloc.training.runs import NON_NEGATIVE, PROBABILITY, Bounds, check_settings
from airloc.vision.embedder import standardise


@dataclass(frozen=True)
class GoalAugmentation:
    """Differences between the image of the goal and the glimpses of the flight."""

    shared_jitter: float = 0.6
    """Strength of the colour jitter that glimpses and goal share, 0 to 1."""
    goal_jitter: float = 0.8
    """Strength of the temporal augmentation of glimpses and goal, each its own, 0 to 1."""
    goal_jitter_probability: float = 0.5
    """Probability of that augmentation, per area."""
    misregistration: float = 3.0
    """Largest shift between augmented images, in pixels."""
    off_grid_probability: float = 0.1
    """Probability that the goals of an area are cut off the grid and rotated."""
    shift: float = 0.5
    """Largest shift of goals off the grid, in cells."""
    turn: float = 10.0
    """Largest rotation of goals off the grid, in degrees."""

    def __post_init__(self) -> None:
        check_settings(
            self,
            shared_jitter=PROBABILITY,
            goal_jitter=PROBABILITY,
            goal_jitter_probability=PROBABILITY,
            misregistration=NON_NEGATIVE,
            off_grid_probability=PROBABILITY,
            shift=NON_NEGATIVE,
            turn=Bounds(low=0, high=180),
        )


class RelationBatch(NamedTuple):
    """Areas cut into cells, and some of their cells as goals."""

    glimpses: torch.Tensor
    """Standardised cells, (A, C, 3, S, S)."""
    goals: torch.Tensor
    """Standardised goals, (A, G, 3, S, S)."""
    cell: torch.Tensor
    """Index of the cell of every goal, (A, G)."""


def sample_batch(
    atlas: Atlas,
    grid: Grid,
    areas: int,
    goals: int,
    augmentation: GoalAugmentation,
    photos: PhotoAugmentation | None = None,
) -> RelationBatch:
    """Crop areas at random places, flip half of them, and draw their goals.

    With photos, areas are cropped with a margin around the grid, so that a photo with errors shows the ground there.
    """
    device = atlas.first.device
    side = area_side(grid, photos)
    images = atlas.crop(*atlas.sample(areas, side), side).permute(0, 3, 1, 2).float() / 255
    flipped, swapped, changed = torch.rand(3, areas, 1, 1, 1, device=device)
    differs = changed < augmentation.goal_jitter_probability
    images = torch.where(flipped < 0.5, images.flip(3), images)
    both_days = torch.stack([images[:, :3], images[:, -3:]], dim=1)  # without pairs, the same day twice
    first, second = colour_jitter(both_days, augmentation.shared_jitter).unbind(dim=1)
    days = torch.where(swapped < 0.5, first, second), torch.where(swapped < 0.5, second, first)
    glimpse_day, goal_day = (
        torch.where(differs, temporal_augmentation(day, augmentation.goal_jitter), day) for day in days
    )
    cell = torch.rand(areas, grid.count, device=device).argsort(dim=1)[:, :goals]
    if photos is not None and photos.enabled:
        return _draw_photos((glimpse_day, goal_day), grid, cell, augmentation, differs.view(areas, 1), photos)
    goal_patches = _cut_goals(goal_day, grid, cell, augmentation, differs.view(areas, 1))
    return RelationBatch(standardise(_cut_cells(glimpse_day, grid)), standardise(goal_patches), cell)


def area_side(grid: Grid, photos: PhotoAugmentation | None = None) -> int:
    """Return the side of the square that is cropped for an area, in pixels."""
    return grid.size[0] + (2 * MARGIN if photos is not None and photos.enabled else 0)


def _draw_photos(
    days: tuple[torch.Tensor, torch.Tensor],
    grid: Grid,
    cell: torch.Tensor,
    augmentation: GoalAugmentation,
    differs: torch.Tensor,
    photos: PhotoAugmentation,
) -> RelationBatch:
    """Take photos of all cells of the first day, and of the goals on the second day."""
    areas, device = len(cell), cell.device
    level = torch.rand(4, areas, 1, device=device)
    compressed = compress_areas(torch.cat(days)).view(2, *days[0].shape)
    chosen = (level[0] < photos.area_compression_probability)[..., None, None]
    glimpse_day, goal_day = (torch.where(chosen, after, before) for before, after in zip(days, compressed, strict=True))
    flying = level[1] < photos.flight_probability
    low, high = photos.flight_strength
    strength = flying * (low + (high - low) * torch.rand(areas, 1, device=device))
    alone = flying | (level[2] < photos.cell_compression_probability)
    cells = torch.arange(grid.count, device=device).expand(areas, -1)
    corner = torch.stack([cells // grid.cols, cells % grid.cols]) * float(grid.pitch)
    exact = torch.zeros_like(cells, dtype=torch.float32)
    common = {"strength": strength, "compressed": alone}
    glimpses = take_photos(glimpse_day, grid, corner, exact, **common, degraded=torch.zeros_like(flying))
    corner, angle = _goal_corners(grid, cell, augmentation, differs)
    degraded = level[3] < photos.degraded_probability
    goals = take_photos(goal_day, grid, corner, angle, **common, degraded=degraded)
    return RelationBatch(standardise(glimpses), standardise(goals), cell)


def _cut_cells(images: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Cut images (A, 3, H, W) into all cells, (A, C, 3, S, S)."""
    cells = images.unfold(2, grid.cell, grid.pitch).unfold(3, grid.cell, grid.pitch)  # (A, 3, rows, cols, S, S)
    return cells.flatten(2, 3).transpose(1, 2)


def _cut_goals(
    images: torch.Tensor, grid: Grid, cell: torch.Tensor, augmentation: GoalAugmentation, differs: torch.Tensor
) -> torch.Tensor:
    """Cut the goals, (A, G, 3, S, S): cells, in some areas shifted off the grid and rotated.

    In areas whose days differ, (A, 1), all goals are misregistered by the same shift.
    """
    areas, goals = cell.shape
    height = images.shape[2]
    (row, col), angle = _goal_corners(grid, cell, augmentation, differs)
    scale = grid.cell / height
    centre = [(corner + grid.cell / 2) * 2 / height - 1 for corner in (col, row)]
    rows = [
        torch.stack([angle.cos() * scale, -angle.sin() * scale, centre[0]], dim=2),
        torch.stack([angle.sin() * scale, angle.cos() * scale, centre[1]], dim=2),
    ]
    where = affine_grid(
        torch.stack(rows, dim=2).flatten(0, 1), [areas * goals, 3, grid.cell, grid.cell], align_corners=False
    )
    where = where.view(areas, goals * grid.cell, grid.cell, 2)  # all goals of an area in one sample
    patches = grid_sample(images, where, mode="bilinear", padding_mode="border", align_corners=False)
    return patches.view(areas, 3, goals, grid.cell, grid.cell).transpose(1, 2)


def _goal_corners(
    grid: Grid, cell: torch.Tensor, augmentation: GoalAugmentation, differs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw where goals are cut: row and column of the corner in pixels, (2, A, G), and the rotation, (A, G)."""
    areas, goals = cell.shape
    level = torch.rand(4, areas, goals, device=cell.device)
    off_grid = (torch.rand(areas, 1, device=cell.device) < augmentation.off_grid_probability).float()
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
