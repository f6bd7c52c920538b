"""Photo augmentation: glimpses and goals are photos with their own errors and compression, as in a flight.

Crops of one image share more than the ground: the phase of JPEG's block grid, the resampling kernel, the sharpening of
the mosaic. A relation network learns these shortcuts. Photos (`airloc.task.photos`) do not share them. Areas can also
be compressed as a whole, at a random phase.

All operations have static shapes, so that a training step can be captured as a CUDA graph.

Legend: A areas, P photos of an area, N images or photos, H, W height and width of an image, S = 48 side of a patch.
"""

from dataclasses import dataclass
from typing import Annotated

import torch

from airloc.grid import Grid
from airloc.task.photos import BLOCK, MARGIN, capture, compress, crop, draw_quality, jpeg, reflect
from airloc.training.augment import aberrate, colour_jitter, soften
from airloc.training.runs import Bounds, Probability, check_settings

QUALITY = (35.0, 96.0)
"""Lowest and highest JPEG quality."""


MAX_STRENGTH = 1.6
"""Largest strength of the errors of photos. One stands for 3 % of a cell, 4 degrees and 4 % of the height."""


@dataclass(frozen=True)
class PhotoAugmentation:
    """Probabilities of photo augmentations, per area that is augmented."""

    flight_probability: Probability = 0.45
    """Probability that every glimpse and goal of an area is a photo with its own errors, as in flight."""
    flight_strength: Annotated[tuple[float, float], Bounds(low=0, high=10)] = (0.2, MAX_STRENGTH)
    """Smallest and largest strength of these errors. One stands for 3 % of a cell, 4 degrees and 4 % of the height."""
    block_grid_strength: Annotated[float, Bounds(low=0, high=10)] = 0.3
    """Smallest strength of these errors in areas of images that show a block grid, whose cells are also always
    compressed one by one. Zero treats them like the others."""
    cell_compression_probability: Probability = 0.25
    """Probability that the cells of another area without such errors are compressed one by one."""
    area_compression_probability: Probability = 0.5
    """Probability that an area is compressed as a whole."""
    aligned_probability: Probability = 0.4
    """Probability that the photos of an area begin with a whole block if they are compressed one by one. Patches that
    are cut first and saved then do so."""
    saved_probability: Probability = 0.12
    """Probability that the glimpses and goals of an area are saved as JPEG files of their own after they are cut. A
    decoder has no neighbours there to interpolate chroma with, so that the colours of the last pixels differ."""
    degraded_probability: Probability = 0.35
    """Probability that the goals of an area are blurred, at a lower resolution and in another light."""

    def __post_init__(self) -> None:
        check_settings(self)


def compress_areas(images: torch.Tensor) -> torch.Tensor:
    """Compress images (N, 3, H, W) of any size at random qualities, each on a block grid of random phase."""
    height, width = images.shape[2:]
    top, left = (torch.rand(2, len(images), device=images.device) * BLOCK).long()
    index = [
        reflect(torch.arange(side + BLOCK + -side % BLOCK, device=images.device) - corner[:, None], side)
        for side, corner in ((height, top), (width, left))
    ]
    number = torch.arange(len(images), device=images.device)[:, None, None]
    padded = images.permute(0, 2, 3, 1)[number, index[0][:, :, None], index[1][:, None]].permute(0, 3, 1, 2)
    return crop(jpeg(padded, *draw_quality(len(images), *QUALITY, images.device)), top, left, height, width)


def compress_alone(patches: torch.Tensor, alone: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """Compress each patch of areas (A, P, 3, S, S) as a file of its own.

    Args:
        patches: RGB in [0, 1].
        alone: Areas whose patches are compressed, bool (A, 1).
        moved: Areas whose block grids have a random phase, with the edge pixels repeated before them, bool (A, 1).
            Others begin with the first pixel.
    """
    flat = patches.flatten(0, 1)
    count, side, device = len(flat), flat.shape[-1], flat.device
    top, left = (torch.rand(2, count, device=device) * BLOCK * moved.expand(-1, patches.shape[1]).flatten()).long()
    step = torch.arange(side + BLOCK + -side % BLOCK, device=device)
    rows, cols = ((step - first[:, None]).clamp(0, side - 1) for first in (top, left))
    number = torch.arange(count, device=device)[:, None, None]
    padded = flat.permute(0, 2, 3, 1)[number, rows[:, :, None], cols[:, None]].permute(0, 3, 1, 2)
    encoded = crop(jpeg(padded, *draw_quality(count, *QUALITY, device)), top, left, side, side)
    return torch.where(alone[..., None, None, None], encoded.view_as(patches), patches)


def take_photos(
    images: torch.Tensor,
    grid: Grid,
    corner: torch.Tensor,
    angle: torch.Tensor,
    *,
    strength: torch.Tensor,
    compressed: torch.Tensor,
    degraded: torch.Tensor,
    zoom: torch.Tensor | float = 1.0,
    aligned: torch.Tensor | None = None,
    aberration: torch.Tensor | None = None,
) -> torch.Tensor:
    """Take photos of places in areas, (A, P, 3, S, S).

    Args:
        images: Areas with `MARGIN` pixels around the grid, RGB in [0, 1], (A, 3, H, W).
        grid: The grid.
        corner: Row and column of the upper left pixel of each place in the grid, (2, A, P).
        angle: Rotation of each place in radians, (A, P).
        strength: Strength of the errors of an area's photos, (A, 1). Zero gives exact crops.
        compressed: Areas whose photos are compressed one by one, bool (A, 1).
        degraded: Areas whose photos are blurred, at a lower resolution and in another light, bool (A, 1).
        zoom: Side of the ground that each photo shows, in cells, (A, P) or one number.
        aligned: Areas whose photos begin with a whole JPEG block, bool (A, 1). Default: none.
        aberration: Chromatic aberration of an area's photos, in pixels at the border of each, (A, 1). Default: none.
    """
    areas, photos = angle.shape
    shots, phase = capture(images, grid, corner + MARGIN, angle, strength, zoom=zoom, aligned=aligned)
    if aberration is not None:
        lens = aberration.expand(-1, photos).flatten()
        shots = torch.where(lens[:, None, None, None] != 0, aberrate(shots, lens), shots)
    worse = degraded.expand(-1, photos).flatten()[:, None, None, None]
    shots = torch.where(worse, colour_jitter(soften(shots)[:, None], 1.0)[:, 0], shots)
    quality, subsampled = draw_quality(len(shots), *QUALITY, images.device)
    shots = compress(shots, phase, grid.cell, quality, subsampled, compressed.expand(-1, photos).flatten())
    return shots.view(areas, photos, 3, grid.cell, grid.cell)


def cell_corners(cells: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Return row and column of the upper left pixel of cells (...), given as indices: (2, ...)."""
    return torch.stack([cells // grid.cols, cells % grid.cols]) * float(grid.pitch)


def cut_cells(images: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Cut the cells of areas (A, 3, H, W) at the size of the grid: (A, C, 3, S, S)."""
    cells = images.unfold(2, grid.cell, grid.pitch).unfold(3, grid.cell, grid.pitch)  # (A, 3, rows, cols, S, S)
    return cells.permute(0, 2, 3, 1, 4, 5).flatten(1, 2)


def photograph_cells(images: torch.Tensor, grid: Grid, share: float) -> torch.Tensor:
    """Photograph all cells of areas (A, 3, H, W) with `MARGIN` pixels around the grid, (A, C, 3, S, S).

    In a share of the areas the photos have errors and compression of their own. The others show the exact cells.
    """
    areas, device = len(images), images.device
    chosen, strength, aligned = torch.rand(3, areas, 1, device=device)
    chosen = chosen < share
    cells = torch.arange(grid.count, device=device).expand(areas, -1)
    corner = cell_corners(cells, grid)
    return take_photos(
        images,
        grid,
        corner,
        torch.zeros_like(corner[0]),
        strength=chosen * strength * MAX_STRENGTH,
        compressed=chosen,
        degraded=torch.zeros_like(chosen),
        aligned=aligned < PhotoAugmentation.aligned_probability,
    )
