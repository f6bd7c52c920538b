"""Run the tasks of a graph whose results are missing, on this machine or on a Ray cluster, and show their progress."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from airloc import __version__
from airloc.experiments.datasets import AREAS, IMAGES
from airloc.experiments.evaluation import EVALUATION
from airloc.experiments.graph import Task, TaskContext, TaskKind, package_digest
from airloc.experiments.store import Store
from airloc.experiments.training import EMBEDDER, POLICY, SEGMENTER

KINDS: dict[str, TaskKind] = {kind.name: kind for kind in (IMAGES, AREAS, SEGMENTER, EMBEDDER, POLICY, EVALUATION)}
"""All kinds of tasks by name."""


def run_tasks(
    tasks: Sequence[Task],
    store: Store,
    progress: "Progress",
    *,
    device: str = "cpu",
    ray: str | None = None,
    threads: int | None = None,
    command: str = "",
) -> None:
    """Run tasks and add their results to the store. After a kill, the same call continues.

    Args:
        tasks: Tasks without a result, each after its inputs.
        store: The store, locked by the caller.
        progress: Shows the progress.
        device: Device for tasks that run on this machine.
        ray: Address of a Ray cluster. None runs the tasks here, one after another.
        threads: CPU threads of a task on this machine. None keeps PyTorch's default.
        command: The command line that started the run, for model cards.
    """
    if ray is not None:
        from airloc.experiments.cluster import run_on_cluster

        run_on_cluster(tasks, store, progress, address=ray, command=command)
        return
    with _torch_threads(threads):
        for task in tasks:
            progress.started(task)
            _run_here(task, store, device=device, command=command, report=progress.message)
            progress.finished(task)


def _run_here(
    task: Task, store: Store, *, device: str = "cpu", command: str = "", report: Callable[[str], None]
) -> None:
    """Run a task whose inputs are in the store, and add its result."""
    inputs = {role: store.result_folder(needed).absolute() for role, needed in task.inputs.items()}
    working = store.working_folder(task).absolute()
    store.add(task, run_task(task, working, inputs, device=device, command=command, report=report))


def run_task(
    task: Task,
    folder: Path,
    inputs: Mapping[str, Path],
    *,
    device: str,
    command: str,
    report: Callable[[str], None],
) -> Path:
    """Run a task in a folder, resume an interrupted one, and return the folder of the result."""
    run, out = folder / "run", folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    for made in (run, out):
        made.mkdir(parents=True, exist_ok=True)
    task.kind.function(TaskContext(task.settings, inputs, run, out, task.source, device, command, report))
    return out


@contextmanager
def _torch_threads(count: int | None) -> Iterator[None]:
    """Limit the CPU threads of PyTorch."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


class Progress:
    """A progress bar over all tasks on a terminal, or else a line per task."""

    def __init__(self, progress: RichProgress, total: int, done: int) -> None:
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
def _display(total: int, done: int) -> Iterator[Progress]:
    """Show progress on the error stream."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}", markup=False))
    with RichProgress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Progress(progress, total, done)
