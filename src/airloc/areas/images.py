"""Reading pictures of any kind as RGB arrays, with errors that name the file and the cure."""

import struct
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from airloc.areas.area import Mask, Pixels
from airloc.errors import AirlocError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp"})
"""File name endings that count as pictures."""

DAMAGE = (OSError, EOFError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, struct.error, zlib.error)
"""What the decoders raise on damaged files, depending on the format and on where the damage is."""

MAX_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 0)
"""Pictures above this are refused unread: a small file can unpack to more than the memory holds."""


def list_images(folder: Path) -> list[Path]:
    """Give the pictures of a folder, not searched recursively, in the order of their names."""
    try:
        if not folder.is_dir():
            raise AirlocError(
                f"There is no folder {folder}", "Check the path, or make the folder and put pictures in it"
            )
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    except OSError as error:
        raise AirlocError(f"Cannot list the folder {folder}: {error}", "Check the rights on the folder") from error
    if not found:
        raise AirlocError(
            f"The folder {folder} holds no pictures", "Put JPEG, PNG, TIFF or WebP files in it, or name another folder"
        )
    return found


def pick(paths: Sequence[Path], only: Sequence[str] | None, folder: Path) -> list[Path]:
    """Pick the pictures called `only`, in the order of the folder; all of them for None."""
    if only is None:
        return list(paths)
    unknown = sorted(set(only) - {path.name for path in paths})
    if unknown:
        raise AirlocError(
            f"The folder {folder} has no picture {unknown[0]!r}"
            + (f" (nor {len(unknown) - 1} others)" if len(unknown) > 1 else ""),
            "Check the names, or give the folder that they are in",
        )
    wanted = set(only)
    return [path for path in paths if path.name in wanted]


def read_image(path: Path) -> Pixels:
    """Read a picture as RGB bytes (H, W, 3); grey, RGBA, palette, CMYK and 16-bit ones are converted."""
    picture = _open(path)
    if picture.mode.startswith("I") or picture.mode == "F":
        return _from_deep(np.asarray(picture))
    if picture.has_transparency_data:
        rgba = picture.convert("RGBA")
        picture = Image.new("RGBA", rgba.size, "black")
        picture.alpha_composite(rgba)
    return np.asarray(picture.convert("RGB"))


def read_mask(path: Path) -> Mask:
    """Read a building mask: True where the brightest channel is at least half, or 1 in a mask of zeros and ones."""
    brightest: Pixels = read_image(path).max(axis=2)
    threshold = 1 if brightest.max() == 1 else 128
    mask: Mask = brightest >= threshold
    return mask


def image_size(path: Path) -> tuple[int, int]:
    """(height, width) from the header alone, as the picture is meant to be seen."""
    with _header(path) as picture:
        try:
            turned = picture.getexif().get(0x0112, 1) in (5, 6, 7, 8)
        except DAMAGE as error:
            raise _unreadable(path, error) from error
        return picture.size if turned else picture.size[::-1]


def _header(path: Path) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Image.open(path)
    except FileNotFoundError:
        raise AirlocError(f"There is no picture {path}", "Check the path") from None
    except Image.DecompressionBombError:
        raise AirlocError(
            f"The picture {path} claims more than {MAX_PIXELS / 1e6:.0f} million pixels",
            "Cut it into smaller pictures first, if it is what it claims to be",
        ) from None
    except DAMAGE as error:
        raise _unreadable(path, error) from error


def _open(path: Path) -> Image.Image:
    """Decode a picture and turn it as its EXIF orientation says."""
    with _header(path) as picture:
        try:
            picture.load()
            return ImageOps.exif_transpose(picture)
        except DAMAGE as error:
            raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> AirlocError:
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    if isinstance(error, UnidentifiedImageError):
        reason = "it is no picture in a known format"
    return AirlocError(f"Cannot read the picture {path}: {reason}", "Replace the file, or take it out of the folder")


def _from_deep(deep: npt.NDArray[Any]) -> Pixels:
    """Turn grey values of more than 8 bits into RGB bytes.

    Sensors fill 10 to 16 bits, so the next power of two above the largest value is taken as white; fractions up
    to 1 are taken as such.
    """
    values = np.nan_to_num(deep.astype(np.float64), posinf=0.0, neginf=0.0).clip(min=0.0)
    brightest = float(values.max())
    white = max(255.0, 2.0 ** np.ceil(np.log2(brightest + 1.0)) - 1.0)
    if deep.dtype.kind == "f" and brightest <= 1.0:
        white = 1.0
    grey = np.round(values * (255.0 / white)).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)
