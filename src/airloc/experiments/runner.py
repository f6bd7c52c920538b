"""How each kind of task is done, and doing one of them here."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from airloc.experiments.data import gather_areas, gather_ground, gather_pictures
from airloc.experiments.graph import Job, Say, Task, Work
from airloc.experiments.play import play_suite, play_trial
from airloc.experiments.store import Store
from airloc.experiments.training import train_embedder_unit, train_policies, train_segmenter_unit

WORK: dict[str, Work] = {
    "pictures": gather_pictures,
    "areas": gather_areas,
    "segmenter": train_segmenter_unit,
    "embedder": train_embedder_unit,
    "policy": train_policies,
    "score": play_suite,
    "ground": gather_ground,
    "trial": play_trial,
}

TRAINING = ("segmenter", "embedder", "policy")
"""Kinds that are worth a GPU."""

READS_DATA = ("pictures", "areas", "ground")
"""Kinds that read the user's data, and so are done where that is."""


def do(task: Task, folder: Path, inputs: Mapping[str, Path], *, device: str, command: str, say: Say) -> Path:
    """Do a task in a folder, going on where an earlier attempt was killed; give the folder of its result."""
    run, out = folder / "run", folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    for place in (run, out):
        place.mkdir(parents=True, exist_ok=True)
    WORK[task.kind](Job(task.settings, inputs, run, out, task.source, device, command, say))
    return out


def do_here(task: Task, store: Store, *, device: str, command: str, say: Say) -> None:
    """Do a task whose inputs are in the store, and keep its result there."""
    inputs = {role: store.place(needed).absolute() for role, needed in task.inputs.items()}
    store.keep(task, do(task, store.working(task).absolute(), inputs, device=device, command=command, say=say))


# ---------- Runs what is missing of a plan, one task after the other, on this machine.
# ~


class Watcher(Protocol):
    """Shows how far everything is."""

    def begin(self, task: Task) -> None:
        """A task is begun."""
        ...

    def say(self, words: str) -> None:
        """How far the task is that was begun last."""
        ...

    def end(self, task: Task) -> None:
        """A task is done."""
        ...


def missing(tasks: Sequence[Task], store: Store) -> list[Task]:
    """The tasks whose results are not there; damaged ones are an error, before anything is computed."""
    return [task for task in tasks if not store.has(task)]


def run_here(tasks: Sequence[Task], store: Store, watcher: Watcher, *, device: str, command: str) -> None:
    """Do tasks in their order; killed at any point, the same call goes on from there."""
    for task in tasks:
        watcher.begin(task)
        do_here(task, store, device=device, command=command, say=watcher.say)
        watcher.end(task)
