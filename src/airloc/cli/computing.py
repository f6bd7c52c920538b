"""Computing what is missing of a plan, here or on a cluster, with one progress display for everything."""

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from airloc import __version__
from airloc.reproduce.runner import Watcher, missing, run_here
from airloc.reproduce.store import Store
from airloc.reproduce.tasks import CODE, Task, code_digest


def compute(tasks: Sequence[Task], store: Store, *, device: str, ray: str | None, command: str) -> None:
    """Do what is missing of some tasks.

    Args:
        tasks: What is wanted, each after its inputs.
        store: Where results are and go; to be held by the caller.
        device: Where to compute here.
        ray: Address of a Ray cluster to compute on instead.
        command: The command that all this is for.
    """
    todo = missing(tasks, store)
    if not todo:
        return
    with _watch(len(tasks), len(tasks) - len(todo)) as watcher:
        if ray is not None:
            from airloc.reproduce.cluster import run_on_cluster  # ray is an extra

            run_on_cluster(todo, store, watcher, address=ray, command=command)
        else:
            run_here(todo, store, watcher, device=device, command=command)


def made_with() -> str:
    """Version, code and machine."""
    parts = tuple(sorted({part for parts in CODE.values() for part in parts}))
    return (
        f"Made with airloc {__version__}, code {code_digest(parts)[:12]}, on {platform.machine()} with "
        f"{os.cpu_count()} CPU cores, Python {platform.python_version()}."
    )


class _Display(Watcher):
    """One bar for everything, with what is being done beside it."""

    def __init__(self, progress: Progress, total: int, done: int) -> None:
        self._progress = progress
        self._bar = progress.add_task("reproducing", total=total, completed=done, now="")
        self._quiet = not progress.console.is_terminal
        self._total, self._done = total, done

    def begin(self, task: Task) -> None:
        """Show what is begun."""
        self._name = f"{task.kind}: {task.name}"
        self._progress.update(self._bar, now=self._name)

    def say(self, words: str) -> None:
        """Show how far it is."""
        self._progress.update(self._bar, now=f"{self._name}, {words}")

    def end(self, task: Task) -> None:
        """Count it."""
        self._done += 1
        self._progress.update(self._bar, advance=1)
        if self._quiet:
            line = f"{self._done}/{self._total} {task.kind}: {task.name}"
            self._progress.console.print(line, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def _watch(total: int, done: int) -> Iterator[Watcher]:
    """Show progress on the error stream: a bar where somebody watches, else a line a task."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield _Display(progress, total, done)
