"""Atomic writes of text, bytes and images.

A reader finds the old file or the new one, never a part of it. All output of airloc is written here.

Legend: pixels are uint8: grey (H, W), RGB (H, W, 3) or RGBA (H, W, 4).
"""

import contextlib
import errno
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.errors import AirlocError

_ANOTHER_FOLDER = "Choose a folder with write permission"
_CURES = {
    errno.ENOSPC: "Free some space, or choose another disk",
    errno.EDQUOT: "Free some space, or choose another disk",
    errno.ENOTDIR: "A part of the path is a file: choose another folder",
    errno.EEXIST: "A part of the path is a file: choose another folder",
    errno.EISDIR: "A folder has this name: choose another name",
    errno.ENAMETOOLONG: "Choose a shorter name",
}


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a file atomically. Create its folder if necessary.

    The content is written to a temporary file in the same folder, flushed to the disk and renamed. The temporary file
    is removed after errors and interrupts. A link is followed: the file behind it is replaced. A device such as
    `/dev/stdout` is written to directly.

    Args:
        path: The file to write.
        content: Bytes, or text for UTF-8. Line ends are kept; characters that UTF-8 cannot encode become escapes.

    Returns:
        The path.

    Raises:
        AirlocError: If the file cannot be written.
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


def write_json(path: str | os.PathLike[str], value: object) -> Path:
    """Write a value as indented JSON, atomically."""
    return write_atomically(path, json.dumps(value, indent=1) + "\n")


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Check before long work that its result can be written. Create the folder if necessary.

    Returns:
        The path.

    Raises:
        AirlocError: If the file cannot be written.
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


@contextlib.contextmanager
def replacing_together(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a folder to write files to, which then replace those of the same names in `folder`.

    After an error or an interrupt before the end of the context, `folder` is as before. Links are followed: the files
    behind them are replaced.

    Raises:
        AirlocError: If the files cannot be written.
    """
    target = Path(folder)
    stage = target / f".airloc-{secrets.token_hex(8)}.tmp"
    with contextlib.ExitStack() as temporaries:
        temporaries.callback(shutil.rmtree, stage, ignore_errors=True)
        with _explained(target):
            stage.mkdir(parents=True)
        yield stage
        moves = []
        for staged in stage.iterdir():
            path = target / staged.name
            with _explained(path):
                real = path.resolve()
                _refuse_folder(real)
                if path.is_symlink():  # the file behind it may be on another file system
                    real.parent.mkdir(parents=True, exist_ok=True)
                    beside = temporaries.enter_context(_temporary_beside(real))
                    _write_synced(beside, staged.read_bytes())
                    staged = beside
                moves.append((staged, real))
        for staged, real in moves:
            with _explained(real):
                staged.replace(real)


def save_png(pixels: npt.NDArray[np.uint8], path: str | os.PathLike[str]) -> Path:
    """Write an image as PNG, atomically."""
    return write_atomically(path, encode_png(pixels))


def save_picture(pixels: npt.NDArray[np.uint8], path: str | os.PathLike[str]) -> Path:
    """Write an image as JPEG if the name ends in .jpg or .jpeg, else as PNG."""
    if Path(path).suffix.lower() not in (".jpg", ".jpeg"):
        return save_png(pixels, path)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert("RGB").save(buffer, "JPEG", quality=88, optimize=True)
    return write_atomically(path, buffer.getvalue())


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return the bytes of a PNG file.

    Raises:
        AirlocError: If the array is not an image.
    """
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.ndim not in (2, 3) or channels not in (1, 3, 4) or pixels.dtype != np.uint8 or pixels.size == 0:
        raise AirlocError(
            f"An array of shape {pixels.shape} and type {pixels.dtype} is not an image",
            "Pass a uint8 array of shape (height, width), or with a last axis of 3 or 4",
        )
    buffer = io.BytesIO()
    Image.fromarray(pixels.squeeze(2) if pixels.ndim == 3 and channels == 1 else pixels).save(buffer, "PNG")
    return buffer.getvalue()


def _replace(path: Path, data: bytes) -> None:
    """Write a temporary file beside `path` and rename it."""
    with _temporary_beside(path) as temporary:
        _write_synced(temporary, data)
        os.replace(temporary, path)  # noqa: PTH105 - the one call that tests make fail


def _write_synced(path: Path, data: bytes) -> None:
    """Write a new file and flush it to the disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _temporary_beside(path: Path) -> Iterator[Path]:
    """Yield the name of a temporary file in the same folder. Remove the file in any case."""
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
    """Turn system errors into an error with the path and the cure."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        cure = _CURES.get(number or 0, _ANOTHER_FOLDER)
        raise AirlocError(f"Cannot write {str(path)!r}: {reason[:1].lower()}{reason[1:]}", cure) from error
