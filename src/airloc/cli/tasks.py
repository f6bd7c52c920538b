"""Run the tasks of `airloc suites` and `airloc reproduce`, with one progress display."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from airloc import __version__
from airloc.experiments.graph import Task, package_digest
from airloc.experiments.runner import run_tasks
from airloc.experiments.store import Store


def check_ray(address: str | None) -> None:
    """Raise an error if there is no Ray cluster at the address."""
    if address is not None:
        from airloc.experiments.cluster import check_address

        check_address(address)


def run_missing(
    tasks: list[Task], store: Store, *, device: str, ray: str | None, command: str, threads: int | None = None
) -> None:
    """Run the tasks without a result, here or on the Ray cluster at the address `ray`.

    `tasks` are all tasks, each after its inputs. The caller has locked the store.
    """
    missing = store.missing(tasks)
    if not missing:
        return
    with _display(len(tasks), len(tasks) - len(missing)) as display:
        run_tasks(missing, store, display, device=device, ray=ray, threads=threads, command=command)


def made_with() -> str:
    """Return the version of airloc and the machine as a sentence."""
    return (
        f"Made with airloc {__version__}, code {package_digest()[:12]}, on {platform.machine()} with "
        f"{os.cpu_count()} CPU cores, Python {platform.python_version()}."
    )


class _Display:
    """A progress bar over all tasks on a terminal, or else a line per task."""

    def __init__(self, progress: Progress, total: int, done: int) -> None:
        self._progress = progress
        self._bar = progress.add_task("tasks", total=total, completed=done, now="")
        self._total, self._done = total, done
        self._task: Task | None = None

    def started(self, task: Task) -> None:
        """Show the name of the task."""
        self._task = task
        self._progress.update(self._bar, now=task.title)

    def message(self, text: str) -> None:
        """Show a message behind the name of the task."""
        assert self._task is not None
        self._progress.update(self._bar, now=f"{self._task.title}, {text}")

    def finished(self, task: Task) -> None:
        """Count the task."""
        self._done += 1
        self._progress.update(self._bar, advance=1)
        if not self._progress.console.is_terminal:
            line = f"{self._done}/{self._total} {task.title}"
            self._progress.console.print(line, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def _display(total: int, done: int) -> Iterator[_Display]:
    """Show progress on the error stream."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield _Display(progress, total, done)
