"""Consistency of the relation network: the same answers under conditions that carry no information about place.

Labels do not teach a network to ignore a condition: one that reads the fringes of a lens or the blocks of a file
predicts them better. A teacher does. It is a trained network that sees glimpses and goals as they are. The network that
learns sees the same ground under conditions, and learns the answers of the teacher (distillation, arXiv 1503.02531).
The teacher answers with the mean of its logits for a pair and for the mirrored pair, which is better than either.
What a condition hides comes out less sure.

The conditions of an area are drawn independently, so that several come together:

- of the whole area: chromatic aberration, blur or sharpening, a shift by half a pixel, JPEG;
- of each photo: the errors of a flight, an own lens, and JPEG of the patch as a file of its own;
- of the goal: another day, from the second image of a pair or augmented, before a disaster, and a worse camera.

Goals lie on the grid or off it, and both networks see the same ones. The areas may be exact in images that show a block
grid: a teacher that does not read it cannot teach it.

The loss is `airloc.training.relation_losses.consistency_loss`.

Legend: A areas, V glimpses and G goals of an area, S = 48 side of a patch.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from airloc.grid import Grid
from airloc.task.photos import MARGIN, blur
from airloc.training.atlas import CropSampler
from airloc.training.augment import aberrate, colour_jitter, temporal_augmentation
from airloc.training.damage import damage
from airloc.training.photos import MAX_STRENGTH, cell_corners, compress_alone, compress_areas, take_photos
from airloc.training.relation_batches import GoalAugmentation, RelationBatch, goal_views
from airloc.training.runs import Probability, check_settings
from airloc.vision.embedder import standardise

LENS = 1.3
"""Largest chromatic aberration, in pixels at the border."""
SHARPNESS = 0.9
"""Largest share of blur that is added, or taken away."""


@dataclass(frozen=True)
class ConditionAugmentation:
    """Probabilities of conditions, per area."""

    plain_condition: Probability = 0.25
    """Probability that an area has no condition at all: the network keeps its answers."""
    aberration_condition: Probability = 0.25
    """Probability of chromatic aberration of the whole area."""
    sharpness_condition: Probability = 0.3
    """Probability that the whole area is blurred or sharpened."""
    half_pixel_condition: Probability = 0.12
    """Probability that the whole area is moved by half a pixel."""
    area_jpeg_condition: Probability = 0.2
    """Probability that the whole area is compressed."""
    patch_jpeg_condition: Probability = 0.5
    """Probability that every patch is compressed as a file of its own, from its first pixel on or at any phase."""
    flight_condition: Probability = 0.2
    """Probability that every glimpse and goal is a photo with its own errors."""
    lens_condition: Probability = 0.2
    """Probability of chromatic aberration of each photo."""
    day_condition: Probability = 0.5
    """Probability that the goals of an image pair are from the other day."""
    temporal_condition: Probability = 0.15
    """Probability of the temporal augmentation of glimpses and goals."""
    damage_condition: Probability = 0.1
    """Probability that parts of the ground vanish between goals and flight, as in a disaster."""
    degraded_condition: Probability = 0.1
    """Probability that the goals are blurred, at a lower resolution and in another light."""

    def __post_init__(self) -> None:
        check_settings(self)


class TwinBatch(NamedTuple):
    """A training batch as both networks see it."""

    glimpses: torch.Tensor
    """Standardised glimpses under conditions, (A, V, 3, S, S)."""
    goals: torch.Tensor
    """Standardised goals under conditions, (A, G, 3, S, S)."""
    observed: torch.Tensor
    """Index of the cell of every glimpse, (A, V)."""
    cell: torch.Tensor
    """Index of the cell of every goal, (A, G)."""
    plain_glimpses: torch.Tensor
    """Standardised glimpses as they are, (A, V, 3, S, S)."""
    plain_goals: torch.Tensor
    """Standardised goals as they are, (A, G, 3, S, S)."""

    def plain(self) -> RelationBatch:
        """Return the batch as the teacher sees it."""
        return RelationBatch(self.plain_glimpses, self.plain_goals, self.observed, self.cell)


def sample_twins(
    crops: CropSampler,
    grid: Grid,
    observed: torch.Tensor,
    goals: int,
    augmentation: GoalAugmentation,
    conditions: ConditionAugmentation,
) -> TwinBatch:
    """Crop an area for each row of `observed`, the cells of the glimpses (A, V), and draw goals and conditions."""
    areas, device = len(observed), observed.device

    def drawn(probability: float) -> torch.Tensor:
        return torch.rand(areas, 1, device=device) < probability

    images, _, _ = crops.draw(torch.full((areas,), float(MARGIN), device=device))
    images = torch.where(drawn(0.5)[..., None, None], images.flip(3), images)
    both_days = torch.stack([images[:, :3], images[:, 3:]], dim=1)
    both_days = colour_jitter(both_days, augmentation.shared_jitter).transpose(0, 1)
    flight_day, other_day = torch.where(drawn(0.5)[..., None, None], both_days.flip(0), both_days)
    # Where the patches lie.
    corner = cell_corners(observed, grid)
    cell = torch.rand(areas, grid.count, device=device).argsort(dim=1)[:, :goals]
    off_grid, none = drawn(augmentation.off_grid_probability), drawn(0.0)
    goal_corner, angle, zoom = goal_views(grid, cell, augmentation, off_grid, none)
    upright = torch.zeros_like(corner[0])
    # What the teacher sees.
    plain = {"strength": none.float(), "compressed": none, "degraded": none}
    plain_glimpses = take_photos(flight_day, grid, corner, upright, **plain)
    plain_goals = take_photos(flight_day, grid, goal_corner, angle, **plain, zoom=zoom)
    # What the network sees.
    goal_day = torch.where(drawn(conditions.day_condition)[..., None, None], other_day, flight_day)
    damaged = drawn(conditions.damage_condition)[..., None, None]
    after = torch.where(damaged, damage(flight_day), flight_day)
    flight_day, goal_day = _change_areas(torch.stack([after, goal_day]), conditions)
    flying = drawn(conditions.flight_condition)
    level, lens = torch.rand(2, areas, 1, device=device)
    errors: dict[str, Any] = {
        "strength": flying * (0.2 + (MAX_STRENGTH - 0.2) * level),
        "compressed": flying,
        "aberration": drawn(conditions.lens_condition) * (2 * lens - 1),
    }
    degraded = drawn(conditions.degraded_condition)
    glimpses = take_photos(flight_day, grid, corner, upright, **errors, degraded=none)
    patches = take_photos(goal_day, grid, goal_corner, angle, **errors, degraded=degraded, zoom=zoom)
    alone, moved = drawn(conditions.patch_jpeg_condition), drawn(0.5)
    unchanged = drawn(conditions.plain_condition)[..., None, None, None]
    glimpses = torch.where(unchanged, plain_glimpses, compress_alone(glimpses, alone, moved))
    patches = torch.where(unchanged, plain_goals, compress_alone(patches, alone, moved))
    return TwinBatch(
        standardise(glimpses),
        standardise(patches),
        observed,
        cell,
        standardise(plain_glimpses),
        standardise(plain_goals),
    )


def _change_areas(days: torch.Tensor, conditions: ConditionAugmentation) -> torch.Tensor:
    """Return areas on both days, (2, A, 3, H, W), under conditions that both days share, and as other days."""
    areas, device = days.shape[1], days.device
    level = torch.rand(2, areas, device=device)
    temporal, lens, sharp, moved, compressed = torch.rand(5, areas, device=device)

    def where(chosen: torch.Tensor, changed: torch.Tensor, days: torch.Tensor) -> torch.Tensor:
        return torch.where(chosen[:, None, None, None], changed, days)

    changed = torch.stack([temporal_augmentation(day, 1.0) for day in days])
    days = where(temporal < conditions.temporal_condition, changed, days)
    shift = LENS * (2 * level[0] - 1)
    days = where(lens < conditions.aberration_condition, torch.stack([aberrate(day, shift) for day in days]), days)
    softer = torch.stack([blur(day) for day in days]) - days
    sharpness = SHARPNESS * (2 * level[1] - 1) * (sharp < conditions.sharpness_condition)
    days = (days + sharpness[:, None, None, None] * softer).clamp(0, 1)
    beside = (days + days.roll(1, 3) + days.roll(1, 4) + days.roll((1, 1), (3, 4))) / 4
    days = where(moved < conditions.half_pixel_condition, beside, days)
    encoded = compress_areas(days.flatten(0, 1)).view_as(days)
    return where(compressed < conditions.area_jpeg_condition, encoded, days)
