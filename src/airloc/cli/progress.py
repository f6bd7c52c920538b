"""Progress bars on the error stream, so that results can be piped; none where nobody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
