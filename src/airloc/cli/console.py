"""Parts of airloc that need packages of an extra: asked for by name, never an ImportError."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

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

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.files import check_writable


def need(extra: str, *packages: str) -> None:
    """Make sure that the packages of an extra are installed.

    Raises:
        AirlocError: When one is missing.
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise AirlocError(
            f"This needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            f"Run: pip install 'airloc[{extra}]'",
        )


# ---------- The files that a command is to write: checked before the work, and no trace of them where it fails.
# ~


@contextmanager
def promised(paths: Sequence[Path]) -> Iterator[None]:
    """Make sure that files can be written, and do the work; folders made for them go again where it fails."""
    real = [path.absolute() for path in paths]
    twice = next((path for path in paths if real.count(path.absolute()) > 1), None)
    if twice is not None:
        raise AirlocError(f"Two outputs are to be written to {str(twice)!r}", "Give each a name of its own")
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


# ---------- Progress bars on the error stream, so that results can be piped; none where nobody watches.
# ~


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while something runs; gives the function that advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _progress(*columns) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)


def reading(areas: Iterator[SearchArea]) -> list[SearchArea]:
    """Collect areas while counting them on the error stream."""
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:.0f}"))
    with _progress(*columns) as progress:
        task = progress.add_task("reading areas", total=None)
        collected = []
        for area in areas:
            collected.append(area)
            progress.advance(task)
    return collected


def _progress(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
