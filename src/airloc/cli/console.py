"""Helpers of the verbs: checks of optional packages and output files, and progress.

Progress goes to the error stream, so that results can be piped. Progress bars are shown on a terminal only.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from tyro.conf import DisallowNone
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError, printable
from airloc.files import check_writable

EXTRAS: dict[str, tuple[str, ...]] = {
    "web": ("fastapi", "pydantic", "python_multipart", "starlette", "uvicorn"),
    "field": ("pyproj", "rasterio", "shapely", "affine", "pymavlink", "pyogrio"),
    "export": ("onnx", "onnxruntime", "onnxscript"),
    "cluster": ("ray",),
    "train": ("tensorboard",),
}
"""Modules that each extra of `pip install 'airloc[EXTRA]'` installs."""


def need(extra: str, *modules: str) -> None:
    """Raise an error if an extra is not installed. Only `modules` are checked if they are given."""
    missing = [module for module in modules or EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise _missing(missing, extra)


def explain_missing(error: ModuleNotFoundError) -> AirlocError | None:
    """Return the error that names the extra with the missing module, or None if no extra has it."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), None)
    return None if extra is None else _missing([module], extra)


def _missing(modules: Sequence[str], extra: str) -> AirlocError:
    verb = "is" if len(modules) == 1 else "are"
    return AirlocError(
        f"This command needs {', '.join(modules)}, which {verb} not installed", f"Run: pip install 'airloc[{extra}]'"
    )


PICTURES = (".png", ".jpg", ".jpeg")
"""Endings of the pictures that airloc writes."""


def check_suffix(path: Path | None, *suffixes: str) -> None:
    """Refuse a file whose name promises another format than the one that is written. Devices may have any name.

    Raises:
        AirlocError: If the name does not end in one of the suffixes.
    """
    if path is not None and path.suffix.lower() not in suffixes and (path.is_file() or not path.exists()):
        allowed = " or ".join(suffixes)
        raise AirlocError(f"The file {str(path)!r} does not end in {allowed}", f"Give a name that ends in {allowed}")


def device_name(name: str) -> str:
    """Return the name of a device with its model, for records."""
    import torch

    device = torch.device(name)
    return f"{name} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else name


@contextmanager
def writable_outputs(*outputs: Path | None) -> Iterator[None]:
    """Check that files can be written before the work that makes them. Outputs that are None are ignored.

    If the work fails, folders created for the files are removed again.

    Raises:
        AirlocError: If a file cannot be written, or if two of them are the same.
    """
    paths = [path for path in outputs if path is not None]
    real = [path.absolute() for path in paths]
    twice = next((path for path in paths if real.count(path.absolute()) > 1), None)
    if twice is not None:
        raise AirlocError(f"Two outputs have the same path {str(twice)!r}", "Choose different names")
    missing = [folder for path in real for folder in path.parents if not folder.exists()]
    try:
        for path in paths:
            check_writable(path)
        yield
    except BaseException:
        for folder in sorted(missing, key=lambda folder: len(folder.parts), reverse=True):
            with suppress(OSError):
                folder.rmdir()
        raise


def option_rules() -> AbstractContextManager[object]:
    """Let options refuse empty paths, which otherwise stand for the current folder; `.` names it.

    The help of an option that may be left out does not offer the word None as a value.
    """
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def optional_rule(
        type_info: PrimitiveTypeInfo,
    ) -> PrimitiveConstructorSpec[object] | UnsupportedTypeAnnotationError | None:
        if type(None) not in get_args(type_info.type) or DisallowNone in type_info.markers:
            return None
        return ConstructorRegistry.get_primitive_spec(replace(type_info, markers=type_info.markers | {DisallowNone}))

    @registry.primitive_rule
    def path_rule(type_info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Path] | None:
        if type_info.type is not Path:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="PATH",
            instance_from_str=_path,
            is_instance=lambda value: isinstance(value, Path),
            str_from_instance=lambda path: [str(path)],
        )

    return registry


def _path(words: list[str]) -> Path:
    if not words[0]:
        raise ValueError("the path is empty; the current folder is '.'")
    return Path(words[0])


def plural(count: int, word: str, words: str = "") -> str:
    """Return a count with its noun.

    >>> plural(1, "person", "people"), plural(0, "game")
    ('1 person', '0 games')
    """
    return f"{count} {word if count == 1 else words or word + 's'}"


def say(text: str) -> None:
    """Print a line that may hold names of files."""
    print(printable(text), flush=True)


def status(text: str) -> None:
    """Print a line about work that takes more than a second or two."""
    print(printable(text), file=sys.stderr, flush=True)


class _WarningHandler(logging.Handler):
    """Prints warnings as `airloc: ...`."""

    def emit(self, record: logging.LogRecord) -> None:
        status(f"airloc: {record.getMessage()}")


@contextmanager
def logged_warnings() -> Iterator[None]:
    """Print the warnings that modules of airloc log."""
    logger, handler = logging.getLogger("airloc"), _WarningHandler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar. Yield the function that advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _progress(*columns) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)


def collect_areas(areas: Iterator[SearchArea]) -> list[SearchArea]:
    """Return all areas, and show how many were read."""
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:.0f}"))
    with _progress(*columns) as progress:
        task = progress.add_task("reading areas", total=None)
        collected = []
        for area in areas:
            collected.append(area)
            progress.advance(task)
    return collected


def collect_game_areas(areas: Iterator[SearchArea]) -> list[SearchArea]:
    """Return the areas of a game, whose names are stored and sent.

    Raises:
        AirlocError: If the name of an area is not UTF-8.
    """
    collected = collect_areas(areas)
    for area in collected:
        if area.name.encode(errors="ignore").decode() != area.name:
            raise AirlocError(f"The file name {area.name!r} is not UTF-8", "Rename the file")
    return collected


def _progress(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
