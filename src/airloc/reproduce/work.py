"""How each kind of task is done, and doing one of them here."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from airloc.reproduce.gathering import gather_areas, gather_pictures
from airloc.reproduce.ground import gather_ground
from airloc.reproduce.job import Job, Say, Work
from airloc.reproduce.scoring import play_suite
from airloc.reproduce.store import Store
from airloc.reproduce.tasks import Task
from airloc.reproduce.training import train_embedder_unit, train_policies, train_segmenter_unit
from airloc.reproduce.trials import play_trial

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
