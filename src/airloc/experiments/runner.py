"""Run the tasks of a graph whose results are missing, on this machine or on a Ray cluster."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import torch

from airloc.experiments.datasets import AREAS, IMAGES
from airloc.experiments.evaluation import EVALUATION
from airloc.experiments.graph import Task, TaskContext, TaskKind
from airloc.experiments.store import Store
from airloc.experiments.training import EMBEDDER, POLICY, SEGMENTER

KINDS: dict[str, TaskKind] = {kind.name: kind for kind in (IMAGES, AREAS, SEGMENTER, EMBEDDER, POLICY, EVALUATION)}
"""All kinds of tasks by name."""


class Progress(Protocol):
    """Shows the progress of a run."""

    def started(self, task: Task) -> None:
        """Show that a task starts."""
        ...

    def message(self, text: str) -> None:
        """Show a message of the task that started last."""
        ...

    def finished(self, task: Task) -> None:
        """Show that a task is finished."""
        ...


def run_tasks(
    tasks: Sequence[Task],
    store: Store,
    progress: Progress,
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
