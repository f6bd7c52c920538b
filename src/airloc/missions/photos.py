"""Photos of any size become glimpses: cropped to the footprint of a cell, rotated to the grid, 48 x 48 pixels.

A photo usually shows more than a cell. Its view is the square of two cells around the cell; the goal is located there.
`make_goal` prepares the picture of the goal.

A photo looks straight down and is assumed to be free of lens distortion. If the pose of the camera is known, the photo
is cropped to the cell. If not, its central square is taken to be the cell.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

import io
import math
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from airloc.agents.pretrained import pretrained_locator
from airloc.areas.area import MAX_PIXELS as DECOMPRESSION_LIMIT
from airloc.areas.area import READ_ERRORS, Mask, Pixels, to_rgb
from airloc.areas.changes import turn_upright
from airloc.errors import AirlocError, reason_of
from airloc.vision.locator import FLAT_STD, GoalViews
from airloc.vision.sentences import check_description, clean, embed_descriptions

__all__ = [
    "Goal",
    "PhotoPose",
    "View",
    "centre_crop",
    "crop_to_cell",
    "crop_to_view",
    "describe_goal",
    "description_warnings",
    "find_flaw",
    "is_uniform",
    "make_goal",
    "read_photo",
]

SIDE = 48
"""Side of a glimpse in pixels."""
MAX_PIXELS = 120_000_000
FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "TIFF", "WEBP")
"""Formats of photos. Pillow reads others too, and runs Ghostscript on some."""
MIN_COVERAGE = 0.5
"""Smallest fraction of a cell that a photo must show to count as a photo of it."""
MAX_OVERSAMPLING = 16
VIEW_SIDE = 2 * SIDE
"""Side of a view in pixels."""
LARGEST_PICTURE = 1.5
"""Largest side of the picture of a goal, in cells; what lies beyond is not used."""
MIN_PICTURE = 16
"""Smallest side of the picture of a goal at the scale of the cells, in pixels."""
MIN_WIDTH = 1 / 8
"""Smallest width of a goal, in cells: in photos of the cells a narrower one has too few pixels to be recognised."""
MAX_WIDTH_RATIO = 4.0
"""Largest ratio of the bounds of a goal's width: a sighting takes time and memory for every scale."""
WIDTH_ERROR = 0.06
"""Relative error of the bounds of a goal's width."""
HEADING_ERROR = 6.0
"""Error of a known heading, in degrees."""
BLACK, CLIPPED_DARK, CLIPPED_BRIGHT = 16, 3, 250
"""Largest value of a black photo, and the values, of 255, from which on a pixel is clipped."""
SHARPNESS_LAG, MIN_CONTRAST = 6, 2.0
"""Distance of the pixels whose difference is the contrast of a photo, and the contrast of ground without structure."""
MIN_SHARPNESS = 0.22
"""Ratio of the contrast at one pixel to that at `SHARPNESS_LAG` pixels, below which a photo is blurred.

Of 1280 views of Massachusetts, Dubai, NAIP and xBD, fewer than 1 % have less than 0.25. Blurred by a Gaussian of three
pixels, a sixteenth of a cell, 99 % have less.
"""


class View(NamedTuple):
    """A photo around a cell: a square of two cells, centred on the cell and turned like the grid."""

    pixels: Pixels
    """RGB bytes, (96, 96, 3)."""
    seen: Mask
    """Pixels that the photo shows, (96, 96)."""


@dataclass(frozen=True, eq=False)
class Goal:
    """A goal to search for."""

    patch: Pixels
    """The goal as agents observe it, turned like the grid if its heading is known, (48, 48, 3)."""
    picture: Pixels
    """The goal as it was photographed, square, 48 px a cell."""
    turn: float | None = 0.0
    """Compass direction of the picture's upper edge minus the heading of the grid; None if it is unknown."""
    scale: tuple[float, float] = (1.0, 1.0)
    """Smallest and largest ratio of the true width of the picture to the assumed one."""
    same_day: bool = False
    """The picture is from the day of the flight."""
    text: str = ""
    """Description of the goal in words, if there is one. Without a picture, patch and picture are black."""

    @property
    def pictured(self) -> bool:
        """True if there is a picture of the goal."""
        return bool(self.picture.any())

    def views(self) -> GoalViews:
        """Return the goal at all turns and scales that are possible."""
        turn = (-180.0, 180.0) if self.turn is None else (self.turn - HEADING_ERROR, self.turn + HEADING_ERROR)
        return GoalViews(self.picture, pretrained_locator(), turn, self.scale)


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
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise _too_large(name, image.width * image.height)
            image.draft("RGB", (1024, 1024))  # decodes large JPEGs at a fraction of their size
            image.load()
            return to_rgb(ImageOps.exif_transpose(image))
    except Image.DecompressionBombError:
        raise _too_large(name, DECOMPRESSION_LIMIT) from None
    except READ_ERRORS as error:
        reason = "unknown image format" if isinstance(error, UnidentifiedImageError) else reason_of(error)[:120]
        raise AirlocError(f"Cannot read the {name}: {reason}", "Send it again as JPEG or PNG") from error


def _too_large(name: str, pixels: int) -> AirlocError:
    problem = f"The {name} has more than {pixels // 1_000_000} million pixels"
    return AirlocError(problem, f"Send at most {MAX_PIXELS // 1_000_000} million")


def centre_crop(photo: Pixels) -> Pixels:
    """Return the central square of a photo as a glimpse, (48, 48, 3)."""
    return _resize_square(photo, SIDE, 1.0)


def crop_to_cell(photo: Pixels, cell_m: float, pose: PhotoPose) -> tuple[Pixels, float]:
    """Crop a photo to a cell.

    Args:
        photo: The photo.
        cell_m: Side of the cell in metres.
        pose: Pose of the photo relative to the cell.

    Returns:
        The glimpse (48, 48, 3), black outside the photo, and the fraction of the cell that the photo shows.
    """
    glimpse, seen = _crop_square(photo, cell_m, SIDE, pose)
    return glimpse, float(seen.mean())


def crop_to_view(photo: Pixels, cell_m: float, pose: PhotoPose) -> View:
    """Crop a photo to the view around a cell, two cells wide; `crop_to_cell` describes the arguments."""
    pixels, seen = _crop_square(photo, 2 * cell_m, VIEW_SIDE, pose)
    return View(pixels, seen > 0.99)


def _crop_square(photo: Pixels, side_m: float, side: int, pose: PhotoPose) -> tuple[Pixels, npt.NDArray[np.float64]]:
    """Crop a square of ground to (side, side, 3), and return what fraction of each pixel the photo shows."""
    height, width = photo.shape[:2]
    scale = width / pose.width_m  # pixels per metre
    angle = math.radians(pose.rotation)
    # Corners of the square, counterclockwise from the upper left, relative to the photo's centre.
    half = side_m / 2
    right = np.array([-half, -half, half, half]) - pose.right_m
    up = np.array([half, -half, -half, half]) - pose.up_m
    x = width / 2 + scale * (right * math.cos(angle) - up * math.sin(angle))
    y = height / 2 - scale * (up * math.cos(angle) + right * math.sin(angle))
    data = tuple(np.stack([x, y], axis=1).ravel().tolist())
    oversampling = min(MAX_OVERSAMPLING, max(1, math.ceil(scale * side_m / side)))
    size = (oversampling * side, oversampling * side)
    quad, method = Image.Transform.QUAD, Image.Resampling.BILINEAR
    crop = Image.fromarray(photo).transform(size, quad, data, method).resize((side, side), Image.Resampling.BOX)
    inside = Image.new("L", (width, height), 255).transform(size, quad, data, Image.Resampling.NEAREST)
    seen = np.asarray(inside).reshape(side, oversampling, side, oversampling) > 0
    return np.asarray(crop), seen.mean(axis=(1, 3))


def make_goal(
    image: Pixels,
    cell_m: float | None = None,
    width_m: tuple[float, float] | None = None,
    turn: float | None = None,
    *,
    same_day: bool = False,
    unit: str = "m",
) -> Goal:
    """Prepare the picture of a goal.

    Args:
        image: Picture of the goal, of any size; its central square is used.
        cell_m: Side of a cell in metres.
        width_m: Smallest and largest width of the ground that the square shows; one cell if None.
        turn: Compass direction of the picture's upper edge minus the heading of the grid; None if it is unknown.
        same_day: The picture is from the day of the flight.
        unit: Unit of the lengths in error messages.

    Raises:
        AirlocError: If the goal is much smaller than a cell, its width is too uncertain, or the turn is not finite.
    """
    if turn is not None and not math.isfinite(turn):
        raise AirlocError(f"A goal heading of {turn} degrees is not valid", "Give a compass direction, such as 30")
    if width_m is not None and cell_m is not None:
        _check_widths(*width_m, cell_m, unit)
    low, high = (1.0, 1.0) if width_m is None or cell_m is None else (width / cell_m for width in width_m)
    width = math.sqrt(low * high)
    side = max(MIN_PICTURE, round(SIDE * min(width, LARGEST_PICTURE)))
    picture = _resize_square(image, side, width / LARGEST_PICTURE)
    patch = turn_upright(picture, turn or 0.0, SIDE)
    scale = (low / width * (1 - WIDTH_ERROR), high / width * (1 + WIDTH_ERROR))
    return Goal(patch, picture, turn, scale if high > low else (1.0, 1.0), same_day)


def _check_widths(low: float, high: float, cell_m: float, unit: str) -> None:
    """Raise an error if a goal between two widths cannot be recognised."""
    if high > MAX_WIDTH_RATIO * low:
        problem = f"A width of the goal image from {low:g} to {high:g} {unit} is too uncertain"
        raise AirlocError(problem, f"Give a range of at most a factor of {MAX_WIDTH_RATIO:g}")
    if high < MIN_WIDTH * cell_m:
        problem = f"The goal image shows {high:g} {unit}, too little to be recognised in cells of {cell_m:g} {unit}"
        raise AirlocError(problem, "Check the width of the goal image, or use smaller cells")


def describe_goal(text: str, goal: Goal | None = None) -> Goal:
    """Return a goal that is described in words, without control characters, besides its picture if it has one.

    Raises:
        AirlocError: If the text is empty or too long, or the sentence encoder is not installed.
    """
    check_description(text)
    embed_descriptions([text])  # raises an error without the encoder, before a search begins
    black = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
    return replace(goal or Goal(black, black), text=clean(text))


def description_warnings(text: str, heading: float) -> list[str]:
    """Return warnings about the description of a goal, in a search whose grid has a heading."""
    turned = "Directions in the description of the goal are read as those of the grid, not of the compass"
    return [turned] * bool(heading % 360) + check_description(text)


def _resize_square(image: Pixels, side: int, surplus: float) -> Pixels:
    """Resize the central square of an image to (side, side, 3); with a surplus above one, only its middle."""
    height, width = image.shape[:2]
    square = min(height, width) / max(surplus, 1.0)
    left, top = (width - square) / 2, (height - square) / 2
    box = (left, top, left + square, top + square)
    return np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.LANCZOS, box=box))


def is_uniform(patch: Pixels) -> bool:
    """Return True if a patch has one colour, so that agents cannot recognise it."""
    return bool(patch.reshape(-1, 3).std(axis=0).max() < FLAT_STD)


def find_flaw(view: View) -> str | None:
    """Return what makes a photo useless: black, underexposed, overexposed or blurred; None if it can be used.

    Ground without structure, such as water, is not a flaw. A view that shows nothing is not judged.
    """
    pixels = view.pixels[view.seen]
    if not len(pixels):
        return None
    brightest, darkest = pixels.max(axis=1), pixels.min(axis=1)
    if np.percentile(brightest, 99) <= BLACK:
        return "black"
    if (brightest <= CLIPPED_DARK).mean() > 0.5:
        return "underexposed"
    if (darkest >= CLIPPED_BRIGHT).mean() > 0.5:
        return "overexposed"
    grey = view.pixels.mean(axis=2)
    contrast = _contrast(grey, view.seen, SHARPNESS_LAG)
    blurred = contrast >= MIN_CONTRAST and _contrast(grey, view.seen, 1) < MIN_SHARPNESS * contrast
    return "blurred" if blurred else None


def _contrast(grey: npt.NDArray[np.float64], seen: Mask, lag: int) -> float:
    """Return the root mean square difference of pixels a number of rows or columns apart, where both are seen."""
    squares = [
        ((values[lag:] - values[:-lag]) ** 2)[shown[lag:] & shown[:-lag]]
        for values, shown in ((grey, seen), (grey.T, seen.T))
    ]
    together = np.concatenate(squares)
    return math.sqrt(together.mean()) if len(together) else 0.0
