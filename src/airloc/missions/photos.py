"""From photos of any size to glimpses of a cell: cropped to the footprint, turned to the grid, 48 x 48.

A photo looks straight down, without a lens to undo. Where its height or footprint is known it is cut to the cell; where
it is not known, its middle square is taken to be the cell.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

import io
import math
import warnings
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from airloc.agents.belief import FLAT_STD
from airloc.areas.area import Pixels
from airloc.areas.images import DAMAGE
from airloc.areas.images import MAX_PIXELS as LARGEST
from airloc.errors import AirlocError

SIDE = 48
MAX_PIXELS = 120_000_000
MIN_SEEN = 0.5
"""A photo that shows less of the cell than this is none of it."""


@dataclass(frozen=True, slots=True)
class Pose:
    """How a photo lies over its cell, in metres and degrees."""

    width_m: float
    """Width of the ground that the photo shows."""
    right_m: float = 0.0
    """How far the middle of the photo lies to the right of the cell's, in the grid's directions."""
    up_m: float = 0.0
    """How far it lies above."""
    turn: float = 0.0
    """Compass direction of the photo's upper edge minus that of the grid's columns."""


def read_photo(data: bytes, what: str = "photo") -> Pixels:
    """Decode a photo, called `what` where it is refused, and turn it as its EXIF says.

    Raises:
        AirlocError: When it is no picture, or damaged, or of unreasonable size.
    """
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise _too_large(what, picture.width * picture.height)
            picture.draft("RGB", (1024, 1024))  # a JPEG is decoded at a fraction of its size where that is enough
            picture.load()
            return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    except Image.DecompressionBombError:
        raise _too_large(what, LARGEST) from None
    except DAMAGE as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        if isinstance(error, UnidentifiedImageError):
            reason = "it is no picture in a known format"
        raise AirlocError(f"The {what} cannot be read: {reason}", "Take it again, as JPEG or PNG") from error


def _too_large(what: str, pixels: int) -> AirlocError:
    problem = f"The {what} claims more than {pixels // 1_000_000} million pixels"
    return AirlocError(problem, f"Send at most {MAX_PIXELS // 1_000_000} million")


def centre_square(photo: Pixels) -> Pixels:
    """The middle square of a photo as a glimpse; it is taken to be the cell."""
    height, width = photo.shape[:2]
    side = min(height, width)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    picture = Image.fromarray(photo).resize((SIDE, SIDE), Image.Resampling.LANCZOS, box=box)
    return np.asarray(picture)


def cut_to_cell(photo: Pixels, cell_m: float, pose: Pose) -> tuple[Pixels, float]:
    """The cell as a photo shows it, black where it does not, and the share that it shows."""
    height, width = photo.shape[:2]
    scale = width / pose.width_m  # pixels a metre
    turn = math.radians(pose.turn)
    # The cell's corners, counterclockwise from the upper left, as seen from the photo's middle.
    half = cell_m / 2
    right = np.array([-half, -half, half, half]) - pose.right_m
    up = np.array([half, -half, -half, half]) - pose.up_m
    x = width / 2 + scale * (right * math.cos(turn) - up * math.sin(turn))
    y = height / 2 - scale * (up * math.cos(turn) + right * math.sin(turn))
    data = tuple(np.stack([x, y], axis=1).ravel().tolist())
    fine = min(16, max(1, math.ceil(scale * cell_m / SIDE)))
    size = (fine * SIDE, fine * SIDE)
    quad, method = Image.Transform.QUAD, Image.Resampling.BILINEAR
    cut = Image.fromarray(photo).transform(size, quad, data, method).resize((SIDE, SIDE), Image.Resampling.BOX)
    inside = Image.new("L", (width, height), 255).transform(size, quad, data, Image.Resampling.NEAREST)
    return np.asarray(cut), float(np.mean(np.asarray(inside) > 0))


def goal_patch(picture: Pixels, cell_m: float | None = None, width_m: float | None = None) -> Pixels:
    """The picture of a goal as a patch: larger ones are cut to the cell, smaller ones set in their mean colour.

    Args:
        picture: The picture, of any size.
        cell_m: Side of a cell.
        width_m: Width of the ground that the picture shows; a cell unless given.
    """
    if width_m is None or cell_m is None:
        return centre_square(picture)
    patch, _ = cut_to_cell(picture, cell_m, Pose(width_m))
    known = np.full_like(picture, 255)
    shown, _ = cut_to_cell(known, cell_m, Pose(width_m))
    share = shown.astype(np.float64) / 255
    mean = picture.reshape(-1, 3).mean(axis=0)
    return np.asarray(np.round(patch + (1 - share) * mean), dtype=np.uint8)


def shows_nothing(patch: Pixels) -> bool:
    """Whether a patch is of one colour, so that agents see nothing in it."""
    return bool(patch.reshape(-1, 3).std(axis=0).max() < FLAT_STD)
