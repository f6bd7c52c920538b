"""Read image files of many kinds as RGB arrays, with errors that name the file and a remedy."""

import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from airloc.areas.area import Mask, Pixels
from airloc.errors import AirlocError

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
    image = _decode(path)
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
        try:
            rotated = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
        except READ_ERRORS as error:
            raise _unreadable(path, error) from error
        return image.size if rotated else image.size[::-1]


def _open(path: Path) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Image.open(path)
    except FileNotFoundError:
        raise AirlocError(f"There is no image {path}", "Check the path") from None
    except Image.DecompressionBombError:
        raise AirlocError(
            f"The image {path} has more than {MAX_PIXELS / 1e6:.0f} million pixels according to its header",
            "Cut it into smaller images first",
        ) from None
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error


def _decode(path: Path) -> Image.Image:
    """Decode an image and apply its EXIF orientation."""
    with _open(path) as image:
        try:
            image.load()
            return ImageOps.exif_transpose(image)
        except READ_ERRORS as error:
            raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> AirlocError:
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    if isinstance(error, UnidentifiedImageError):
        reason = "it is not an image in a known format"
    return AirlocError(f"Cannot read the image {path}: {reason}", "Replace the file, or remove it from the folder")


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
