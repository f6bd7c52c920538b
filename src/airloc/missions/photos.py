"""Photos of any size become glimpses: cropped to the footprint of a cell, rotated to the grid, 48 x 48 pixels.

A photo looks straight down and is assumed to be free of lens distortion. If the pose of the camera is known, the photo
is cropped to the cell. If not, its central square is taken to be the cell.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

import io
import math
import warnings
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from airloc.agents.belief import FLAT_STD
from airloc.areas.area import MAX_PIXELS as DECOMPRESSION_LIMIT
from airloc.areas.area import READ_ERRORS, Pixels
from airloc.errors import AirlocError

__all__ = ["PhotoPose", "centre_crop", "crop_to_cell", "goal_patch", "is_uniform", "read_photo"]

SIDE = 48
"""Side of a glimpse in pixels."""
MAX_PIXELS = 120_000_000
MIN_COVERAGE = 0.5
"""Smallest fraction of a cell that a photo must show to count as a photo of it."""
MAX_OVERSAMPLING = 16


@dataclass(frozen=True, slots=True)
class PhotoPose:
    """Pose of a photo relative to its cell, in metres and degrees."""

    width_m: float
    """Width of the footprint."""
    right_m: float = 0.0
    """Offset of the photo's centre to the right of the cell's centre, along the rows of the grid."""
    up_m: float = 0.0
    """Offset of the photo's centre above the cell's centre, along the columns of the grid."""
    rotation: float = 0.0
    """Compass direction of the photo's upper edge minus the heading of the grid."""


def read_photo(data: bytes, name: str = "photo") -> Pixels:
    """Decode a photo and apply its EXIF orientation.

    Args:
        data: The file, JPEG or PNG.
        name: Name of the photo in error messages.

    Raises:
        AirlocError: If the data is not an image, is damaged, or has too many pixels.
    """
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise _too_large(name, image.width * image.height)
            image.draft("RGB", (1024, 1024))  # decodes large JPEGs at a fraction of their size
            image.load()
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except Image.DecompressionBombError:
        raise _too_large(name, DECOMPRESSION_LIMIT) from None
    except READ_ERRORS as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        if isinstance(error, UnidentifiedImageError):
            reason = "unknown image format"
        raise AirlocError(f"Cannot read the {name}: {reason}", "Send it again as JPEG or PNG") from error


def _too_large(name: str, pixels: int) -> AirlocError:
    problem = f"The {name} has more than {pixels // 1_000_000} million pixels"
    return AirlocError(problem, f"Send at most {MAX_PIXELS // 1_000_000} million")


def centre_crop(photo: Pixels) -> Pixels:
    """Return the central square of a photo as a glimpse, (48, 48, 3)."""
    height, width = photo.shape[:2]
    side = min(height, width)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    return np.asarray(Image.fromarray(photo).resize((SIDE, SIDE), Image.Resampling.LANCZOS, box=box))


def crop_to_cell(photo: Pixels, cell_m: float, pose: PhotoPose) -> tuple[Pixels, float]:
    """Crop a photo to a cell.

    Args:
        photo: The photo.
        cell_m: Side of the cell in metres.
        pose: Pose of the photo relative to the cell.

    Returns:
        The glimpse (48, 48, 3), black outside the photo, and the fraction of the cell that the photo shows.
    """
    height, width = photo.shape[:2]
    scale = width / pose.width_m  # pixels per metre
    angle = math.radians(pose.rotation)
    # Corners of the cell, counterclockwise from the upper left, relative to the photo's centre.
    half = cell_m / 2
    right = np.array([-half, -half, half, half]) - pose.right_m
    up = np.array([half, -half, -half, half]) - pose.up_m
    x = width / 2 + scale * (right * math.cos(angle) - up * math.sin(angle))
    y = height / 2 - scale * (up * math.cos(angle) + right * math.sin(angle))
    data = tuple(np.stack([x, y], axis=1).ravel().tolist())
    oversampling = min(MAX_OVERSAMPLING, max(1, math.ceil(scale * cell_m / SIDE)))
    size = (oversampling * SIDE, oversampling * SIDE)
    quad, method = Image.Transform.QUAD, Image.Resampling.BILINEAR
    crop = Image.fromarray(photo).transform(size, quad, data, method).resize((SIDE, SIDE), Image.Resampling.BOX)
    inside = Image.new("L", (width, height), 255).transform(size, quad, data, Image.Resampling.NEAREST)
    return np.asarray(crop), float(np.mean(np.asarray(inside) > 0))


def goal_patch(image: Pixels, cell_m: float | None = None, width_m: float | None = None) -> Pixels:
    """Return the image of a goal as a patch, (48, 48, 3).

    An image that shows more than a cell is cropped. One that shows less is padded with its mean colour.

    Args:
        image: Image of the goal, of any size.
        cell_m: Side of a cell in metres.
        width_m: Width of the footprint of the image; one cell if None.
    """
    if width_m is None or cell_m is None:
        return centre_crop(image)
    patch, _ = crop_to_cell(image, cell_m, PhotoPose(width_m))
    coverage, _ = crop_to_cell(np.full_like(image, 255), cell_m, PhotoPose(width_m))
    mean = image.reshape(-1, 3).mean(axis=0)
    return np.asarray(np.round(patch + (1 - coverage.astype(np.float64) / 255) * mean), dtype=np.uint8)


def is_uniform(patch: Pixels) -> bool:
    """Return True if a patch has one colour, so that agents cannot recognise it."""
    return bool(patch.reshape(-1, 3).std(axis=0).max() < FLAT_STD)
