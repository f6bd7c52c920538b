"""A search area: one aerial image as an array, how areas are cut from larger images, and how image files are read.

The paper's cells cover about 100 x 100 m, which is 100 x 100 px of its images: a 5 x 5 area is cut from 500 x 500 px, a
7 x 7 area from 700 x 700 px. Pieces lie edge to edge from the top left corner; the rest at the right and at the bottom
is not used.

Legend: H, W: height and width in pixels; images are uint8 RGB (H, W, 3), masks are bool (H, W). A size is
(height, width) and a corner is (top, left), both in pixels.
"""

import re
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from airloc.errors import AirlocError, reason_of
from airloc.grid import Grid

Pixels: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

CELL_PIXELS = 100
"""Side of one cell of the paper's areas, in pixels of its images."""

MAX_WHITE = 100
"""Pieces with this many pure white pixels or more are dropped: white marks missing imagery."""

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp"})
"""File name suffixes of images."""

READ_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    SyntaxError,
    TypeError,
    LookupError,
    ArithmeticError,
    struct.error,
    zlib.error,
)
"""Errors that decoders raise on damaged files, depending on the format and on the damage."""

MAX_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 0)
"""Larger images are refused before they are decoded: a small file can unpack to more than the memory holds."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchArea:
    """One aerial image over which a search runs."""

    name: str
    """Name of the area; for files, the file name."""
    image: Pixels
    """RGB, (H, W, 3)."""
    mask: Mask | None = None
    """True on buildings, (H, W); None if the image has no labels."""
    ground_m: tuple[float, float] | None = None
    """Height and width on the ground in metres, if known."""
    tile: str = ""
    """The source image that the area was cut from; areas of one tile are not independent. Empty for its own tile."""
    split: str = ""
    """`train`, `val` or `test`; empty if the dataset has no splits."""

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != np.uint8:
            raise AirlocError(
                f"Area {self.name!r} has an image of shape {self.image.shape} and type {self.image.dtype}",
                "Give RGB bytes of shape (height, width, 3)",
            )
        if self.mask is not None and self.mask.shape != self.image.shape[:2]:
            height, width = self.image.shape[:2]
            raise AirlocError(
                f"The mask of area {self.name!r} is {self.mask.shape[1]} x {self.mask.shape[0]} px, "
                f"its image {width} x {height} px",
                "Give a mask of the size of the image, or none",
            )

    @property
    def source(self) -> str:
        """The tile, or the area itself if it has none: the unit that a bootstrap resamples."""
        return self.tile or self.name


def fit(area: SearchArea, grid: Grid) -> SearchArea:
    """Crop an area at its centre to the grid's aspect and resample it (antialiased) to the grid's size."""
    height, width = area.image.shape[:2]
    if min(height, width) < grid.cell:
        raise AirlocError(
            f"Area {area.name!r} is {width} x {height} px, smaller than one cell of {grid.cell} px",
            "Use a larger image, or smaller cells",
        )
    to_height, to_width = grid.size
    if (height, width) == (to_height, to_width):
        return area
    scale = min(height / to_height, width / to_width)
    crop_height, crop_width = scale * to_height, scale * to_width
    top, left = max(0.0, (height - crop_height) / 2), max(0.0, (width - crop_width) / 2)
    box = (left, top, min(float(width), left + crop_width), min(float(height), top + crop_height))
    ground = area.ground_m and (area.ground_m[0] * crop_height / height, area.ground_m[1] * crop_width / width)
    return replace(
        area,
        image=resample(area.image, grid.size, box),
        mask=None if area.mask is None else resample(area.mask.astype(np.uint8) * 255, grid.size, box) >= 128,
        ground_m=ground,
    )


def resample(pixels: Pixels, size: tuple[int, int], box: tuple[float, float, float, float] | None = None) -> Pixels:
    """Resample (antialiased) an image, or a box (left, top, right, bottom) of it, to `size` (height, width)."""
    if box is None and pixels.shape[:2] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.LANCZOS, box=box))


def crop_ground(area: SearchArea, metres: tuple[float, float]) -> SearchArea | None:
    """Crop the centre that covers (height, width) metres; None if the area is smaller or its size is unknown."""
    if area.ground_m is None or area.ground_m[0] < metres[0] or area.ground_m[1] < metres[1]:
        return None
    height, width = area.image.shape[:2]
    size = round(height * metres[0] / area.ground_m[0]), round(width * metres[1] / area.ground_m[1])
    corner = (height - size[0]) // 2, (width - size[1]) // 2
    return replace(_crop(area, corner, size), ground_m=metres)


def cut_pieces(area: SearchArea, size: tuple[int, int]) -> Iterator[SearchArea]:
    """Cut an area into all pieces of a size that fit into it."""
    height, width = area.image.shape[:2]
    return (cut_piece(area, corner, size) for corner in corners((height, width), size))


def cut_piece(area: SearchArea, corner: tuple[int, int], size: tuple[int, int]) -> SearchArea:
    """Cut one piece out of an area; the corner is added to its name, and its tile is the area's source."""
    height, width = area.image.shape[:2]
    ground = area.ground_m and (area.ground_m[0] * size[0] / height, area.ground_m[1] * size[1] / width)
    piece = _crop(area, corner, size)
    return replace(piece, name=piece_name(area.name, corner), ground_m=ground, tile=area.source)


def _crop(area: SearchArea, corner: tuple[int, int], size: tuple[int, int]) -> SearchArea:
    """Crop the image and the mask of an area."""
    rows, cols = slice(corner[0], corner[0] + size[0]), slice(corner[1], corner[1] + size[1])
    mask = None if area.mask is None else np.ascontiguousarray(area.mask[rows, cols])
    return replace(area, image=np.ascontiguousarray(area.image[rows, cols]), mask=mask)


def paper_size(grid: Grid) -> tuple[int, int]:
    """Return the size of the piece that the paper cuts for a grid.

    >>> paper_size(Grid(5, 5)), paper_size(Grid(7, 7))
    ((500, 500), (700, 700))
    """
    return grid.rows * CELL_PIXELS, grid.cols * CELL_PIXELS


def piece_size(longer_side: int, grid: Grid) -> tuple[int, int]:
    """Return the size of a piece with a longer side of so many pixels and the grid's aspect.

    >>> piece_size(500, Grid(5, 5)), piece_size(400, Grid(2, 4))
    ((500, 500), (196, 400))
    """
    height, width = grid.size
    longer = max(height, width)
    return max(1, round(longer_side * height / longer)), max(1, round(longer_side * width / longer))


def corners(image: tuple[int, int], piece: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the corners of the pieces of a size that fit into an image, row by row.

    >>> corners((1100, 1000), (500, 500))
    [(0, 0), (0, 500), (500, 0), (500, 500)]
    """
    tops = range(0, image[0] - piece[0] + 1, piece[0])
    lefts = range(0, image[1] - piece[1] + 1, piece[1])
    return [(top, left) for top in tops for left in lefts]


def white_pixels(image: Pixels) -> int:
    """Count the pure white pixels of an image."""
    return int(np.count_nonzero(image[..., 0] & image[..., 1] & image[..., 2] == 255))


def piece_name(name: str, corner: tuple[int, int]) -> str:
    """Return the name of the piece at a corner of an image.

    >>> piece_name("town.tiff", (0, 500))
    'town_0_500.tiff'
    """
    path = PurePath(name)
    return f"{path.stem}_{corner[0]}_{corner[1]}{path.suffix}"


def tile_of(name: str) -> str:
    """Return the tile in the name of a piece: what precedes two final integers; empty if there are none.

    >>> tile_of("23129065_0_100.jpg"), tile_of("town.jpg")
    ('23129065', '')
    """
    match = re.fullmatch(r"(.+)_\d+_\d+", PurePath(name).stem)
    return match[1] if match else ""


def list_images(folder: Path) -> list[Path]:
    """List the image files of a folder, without its subfolders, in the order of their names."""
    try:
        if not folder.is_dir():
            raise AirlocError(f"There is no folder {folder}", "Check the path, or make the folder and put images in it")
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    except OSError as error:
        raise AirlocError(f"Cannot list the folder {folder}: {error}", "Check the permissions of the folder") from error
    if not found:
        raise AirlocError(
            f"The folder {folder} holds no images", "Put JPEG, PNG, TIFF or WebP files in it, or give another folder"
        )
    return found


def read_image(path: Path) -> Pixels:
    """Read an image as RGB bytes (H, W, 3); grey, RGBA, palette, CMYK and 16-bit images are converted."""
    return to_rgb(_decode(path))


def to_rgb(image: Image.Image) -> Pixels:
    """Convert a decoded image of any mode to RGB bytes (H, W, 3), black where it is transparent."""
    if image.mode.startswith("I") or image.mode == "F":
        return _to_bytes(np.asarray(image))
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        image = Image.new("RGBA", rgba.size, "black")
        image.alpha_composite(rgba)
    return np.asarray(image.convert("RGB"))


def read_mask(path: Path) -> Mask:
    """Read a building mask (H, W): True where a channel is at least 128, or 1 in a mask of zeros and ones."""
    brightest: Pixels = read_image(path).max(axis=2)
    threshold = 1 if brightest.max() == 1 else 128
    mask: Mask = brightest >= threshold
    return mask


def image_size(path: Path) -> tuple[int, int]:
    """Return (height, width) from the header alone, after the rotation of the EXIF orientation."""
    with _open(path) as image:
        rotated = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
        return image.size if rotated else image.size[::-1]


@contextmanager
def _open(path: Path) -> Iterator[Image.Image]:
    """Open an image; errors of the decoder, also those inside the context, name the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(path)
        with image:
            yield image
    except FileNotFoundError:
        raise AirlocError(f"There is no image {path}", "Check the path") from None
    except Image.DecompressionBombError:
        raise AirlocError(
            f"The image {path} has more than {MAX_PIXELS / 1e6:.0f} million pixels according to its header",
            "Cut it into smaller images first",
        ) from None
    except READ_ERRORS as error:
        reason = reason_of(error)
        if isinstance(error, UnidentifiedImageError):
            reason = "it is not an image in a known format, such as JPEG, PNG, WebP, or TIFF with 8 bits a band"
        elif isinstance(error, OSError) and error.strerror:
            reason = error.strerror.lower()
        problem = f"Cannot read the image {path}: {reason}"
        raise AirlocError(problem, "Give another file, or leave this one out") from error


def _decode(path: Path) -> Image.Image:
    """Decode an image and apply its EXIF orientation."""
    with _open(path) as image:
        image.load()
        return ImageOps.exif_transpose(image)


def _to_bytes(deep: npt.NDArray[Any]) -> Pixels:
    """Convert grey values of more than 8 bits to RGB bytes (H, W, 3).

    Sensors have 10 to 16 bits, so white is the next power of two above the largest value; for floating-point values up
    to 1, white is 1.
    """
    values = np.nan_to_num(deep.astype(np.float64), posinf=0.0, neginf=0.0).clip(min=0.0)
    brightest = float(values.max())
    white = max(255.0, 2.0 ** np.ceil(np.log2(brightest + 1.0)) - 1.0)
    if deep.dtype.kind == "f" and brightest <= 1.0:
        white = 1.0
    grey = np.round(values * (255.0 / white)).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)
