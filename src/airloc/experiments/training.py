"""Tasks that train: the segmentation unit, the embedder, and the policies of a variant, all seeds at once.

Each is a part of one training (`airloc.training.pipeline`), which does not do again what is done: a task lays the runs
it builds on into its own folder and lets the training go one stage further.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from airloc.agents.policy import VARIANTS, Policy
from airloc.agents.pretrained import load_units, save_airloc
from airloc.experiments.data import PICTURES
from airloc.experiments.graph import Job
from airloc.files import write_atomically
from airloc.training.data import Data
from airloc.training.learner import make_fast
from airloc.training.pipeline import AirlocConfig, Stage, train_stages
from airloc.training.runs import read_state

METRICS = "metrics.jsonl"


def train_segmenter_unit(job: Job) -> None:
    """Train the segmentation unit."""
    _train(job, "segmenter", ())
    shutil.copytree(job.run / "segmenter", job.out / "segmenter", ignore=_passing)


def train_embedder_unit(job: Job) -> None:
    """Train the embedder on what the segmentation unit marks, where the variant has one."""
    _train(job, "embedder", ("segmenter",))
    for unit in ("segmenter", "embedder"):
        if (job.run / unit).exists():
            shutil.copytree(job.run / unit, job.out / unit, ignore=_passing)


def train_policies(job: Job) -> None:
    """Train the policies of a variant; give an agent a seed, the median one first, and the learning curve."""
    _train(job, "airloc", ("segmenter", "embedder"))
    saved = read_state(job.run / "policy" / "state.pt")
    assert saved is not None
    best, success = saved[1]["best"], saved[1]["success"].tolist()
    units = load_units(job.run / "agent")
    card = (job.run / "agent" / "card.md").read_text(encoding="utf-8")
    order = seeds_in_order(success)
    for place, seed in enumerate(order):
        policy = Policy(VARIANTS[job.settings["variant"]])
        policy.load_state_dict({name: tensor[[seed]] for name, tensor in best.items()})
        save_airloc(job.out / f"agent-{place}", units.encoder, policy, {"grid": units.config["grid"]}, card)
    shutil.copyfile(job.run / "policy" / METRICS, job.out / METRICS)
    figures = {"val_success": [success[seed] for seed in order]}
    write_atomically(job.out / "seeds.json", json.dumps(figures) + "\n")


def seeds_in_order(success: list[float]) -> list[int]:
    """Numbers of the seeds, the one with the median validation success first, the others as they were numbered.

    >>> seeds_in_order([0.7, 0.5, 0.6])
    [2, 0, 1]
    """
    median = sorted(range(len(success)), key=lambda seed: (success[seed], seed))[len(success) // 2]
    return [median, *(seed for seed in range(len(success)) if seed != median)]


def _train(job: Job, stage: Stage, built_on: tuple[str, ...]) -> None:
    """Go on with the training in the job's folder up to a stage."""
    config = training_config(job.settings, job.inputs["pictures"])
    for unit in built_on:
        if unit in job.inputs:
            for there in job.inputs[unit].iterdir():
                if there.is_dir() and not (job.run / there.name).exists():
                    _lay_out(there, job.run / there.name, job.inputs["pictures"])

    def say(unit: str, done: int, figures: dict[str, float]) -> None:
        shown = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
        job.say(f"{unit} at {done:,}: {shown}")

    device = torch.device(job.device)
    make_fast(device)
    train_stages(job.run, config, stage, device=device, command=job.command, on_step=say)


def training_config(settings: Mapping[str, Any], pictures: Path) -> AirlocConfig:
    """The settings of the training that a task is a part of."""
    sizes = {name: value for name, value in settings.items() if name != "variant"}
    data = Data(root=pictures, sets=(PICTURES,), weights=(1.0,), synthetic=0)
    return replace(AirlocConfig(), data=data, variant=VARIANTS[settings["variant"]], **sizes)


def _lay_out(run: Path, to: Path, pictures: Path) -> None:
    """Lay a run that ended elsewhere into this training, and say in its settings where the pictures are now."""
    half = to.with_name(f".{to.name}.partial")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(run, half)
    config = json.loads((half / "config.json").read_bytes())
    config["settings"]["data"]["root"] = str(pictures)
    write_atomically(half / "config.json", json.dumps(config, indent=2) + "\n")
    half.rename(to)


def _passing(folder: str, names: list[str]) -> set[str]:
    """What of a run is not part of a result: locks, and the figures for TensorBoard."""
    del folder
    return {name for name in names if name == "lock" or name.startswith("events.")}
