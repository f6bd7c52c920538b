"""Writing files so that a reader finds the old one or the new one, never half of one.

Everything airloc writes goes through here: JSON, CSV, HTML, pictures.

Legend: pixels are uint8, grey (H, W), RGB (H, W, 3) or RGBA (H, W, 4).
"""

import contextlib
import errno
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.errors import AirlocError

_ANOTHER_FOLDER = "Choose a folder that you may write to"
_CURES = {
    errno.ENOSPC: "Free some space, or choose another disk",
    errno.EDQUOT: "Free some space, or choose another disk",
    errno.ENOTDIR: "A part of the path is a file; choose another folder",
    errno.EEXIST: "A part of the path is a file; choose another folder",
    errno.EISDIR: "There is a folder of that name; choose another name",
    errno.ENAMETOOLONG: "Choose a shorter name",
}


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a file whole or not at all, and create its folder where there is none.

    The content goes to a temporary file in the same folder, is flushed to the disk and takes its place in one step.
    No temporary file is left behind, also when interrupted. Where the path is a link, the file it points to is
    replaced; a device such as `/dev/stdout` is written to directly.

    Args:
        path: The file.
        content: Bytes, or text to be written in UTF-8 with its line ends as they are (characters that UTF-8 cannot
            hold, such as those of a broken file name, are written as escapes).

    Returns:
        The path as given.

    Raises:
        AirlocError: When the file cannot be written.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    target = Path(path)
    with _explained(target):
        real = target.resolve()
        _refuse_folder(real)
        if real.exists() and not real.is_file():
            real.write_bytes(data)
        else:
            real.parent.mkdir(parents=True, exist_ok=True)
            _replace(real, data)
    return target


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Find out before long work whether its result can be written; creates the folder where there is none.

    Returns:
        The path as given.

    Raises:
        AirlocError: When the file could not be written.
    """
    target = Path(path)
    with _explained(target):
        real = target.resolve()
        _refuse_folder(real)
        if not real.exists() or real.is_file():
            real.parent.mkdir(parents=True, exist_ok=True)
            with _temporary_beside(real) as temporary:
                temporary.touch(exist_ok=False)
    return target


def save_png(pixels: npt.NDArray[np.uint8], path: str | os.PathLike[str]) -> Path:
    """Write a picture as PNG, whole or not at all."""
    return write_atomically(path, encode_png(pixels))


def save_picture(pixels: npt.NDArray[np.uint8], path: str | os.PathLike[str]) -> Path:
    """Write a picture as JPEG where the name ends in .jpg or .jpeg, and as PNG otherwise."""
    if Path(path).suffix.lower() not in (".jpg", ".jpeg"):
        return save_png(pixels, path)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert("RGB").save(buffer, "JPEG", quality=88, optimize=True)
    return write_atomically(path, buffer.getvalue())


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """The bytes of a PNG file.

    Raises:
        AirlocError: When the array is no picture.
    """
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.ndim not in (2, 3) or channels not in (1, 3, 4) or pixels.dtype != np.uint8 or pixels.size == 0:
        raise AirlocError(
            f"An array of shape {pixels.shape} and type {pixels.dtype} is no picture",
            "Give bytes (uint8) of shape (height, width), or with a last axis of 3 or 4",
        )
    buffer = io.BytesIO()
    Image.fromarray(pixels.squeeze(2) if pixels.ndim == 3 and channels == 1 else pixels).save(
        buffer, "PNG", optimize=True
    )
    return buffer.getvalue()


def _replace(path: Path, data: bytes) -> None:
    """Write to a temporary file beside `path` and put it in its place."""
    with _temporary_beside(path) as temporary:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - the one call that tests make fail


@contextlib.contextmanager
def _temporary_beside(path: Path) -> Iterator[Path]:
    """Give the name of a temporary file in the same folder, which is gone afterwards whatever happens."""
    temporary = path.parent / f".airloc-{secrets.token_hex(8)}.tmp"
    try:
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the system says into an error that names the path and the cure."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        cure = _CURES.get(number or 0, _ANOTHER_FOLDER)
        raise AirlocError(f"Cannot write {str(path)!r}: {reason[:1].lower()}{reason[1:]}", cure) from error
