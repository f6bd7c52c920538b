"""Training tasks: the segmentation unit, the patch embedder, and the policies of a variant.

Each task runs one stage of `airloc.training.pipeline`, which skips the stages that are finished. A task copies the runs
of its inputs into its working folder and runs the next stage there.
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
from airloc.experiments.datasets import IMAGES_SET
from airloc.experiments.graph import TaskContext, TaskKind
from airloc.files import write_atomically
from airloc.training.data import DataConfig
from airloc.training.learner import enable_fast_math
from airloc.training.pipeline import AirlocConfig, Stage, train_stages
from airloc.training.reinforce import PolicyResult
from airloc.training.runs import CONFIG, LOCK, METRICS, STATE, build_settings, plain_settings, read_state


def _train_segmenter(context: TaskContext) -> None:
    """Train the segmentation unit."""
    _train(context, "segmenter", ())
    shutil.copytree(context.run / "segmenter", context.out / "segmenter", ignore=_ignore)


def _train_embedder(context: TaskContext) -> None:
    """Train the patch embedder, on the output of the segmentation unit if the variant has one."""
    _train(context, "embedder", ("segmenter",))
    for unit in ("segmenter", "embedder"):
        if (context.run / unit).exists():
            shutil.copytree(context.run / unit, context.out / unit, ignore=_ignore)


def _train_policies(context: TaskContext) -> None:
    """Train one policy per seed. Write an agent per seed, the median seed first, and the learning curve."""
    _train(context, "airloc", ("segmenter", "embedder"))
    saved = read_state(context.run / "policy" / STATE)
    assert saved is not None
    result = PolicyResult(saved[1]["best"], tuple(saved[1]["success"].tolist()))
    units = load_units(context.run / "agent")
    card = (context.run / "agent" / "card.md").read_text(encoding="utf-8")
    order = [result.median, *(seed for seed in range(len(result.success)) if seed != result.median)]
    for rank, seed in enumerate(order):
        policy = Policy(VARIANTS[context.settings["variant"]])
        policy.load_state_dict({name: tensor[[seed]] for name, tensor in result.policies.items()})
        grid, position = {"grid": units.config["grid"]}, units.position_encoding
        save_airloc(agent_folder(context.out, rank), units.encoder, policy, grid, card, position=position)
    shutil.copyfile(context.run / "policy" / METRICS, context.out / METRICS)
    record = {"val_success": [result.success[seed] for seed in order]}
    write_atomically(context.out / "seeds.json", json.dumps(record) + "\n")


SEGMENTER = TaskKind("segmenter", 2, _train_segmenter, uses_gpu=True, intermediate=True)
EMBEDDER = TaskKind("embedder", 2, _train_embedder, uses_gpu=True, intermediate=True)
POLICY = TaskKind("policy", 2, _train_policies, uses_gpu=True, intermediate=True)


def agent_folder(result: Path, rank: int) -> Path:
    """Return the checkpoint folder of a seed in the result of a policy task. Rank 0 is the median seed."""
    return result / f"agent-{rank}"


def _train(context: TaskContext, stage: Stage, inputs: tuple[str, ...]) -> None:
    """Run the training in the working folder up to a stage."""
    config = _config(context.settings, context.inputs["images"])
    for role in inputs:
        if role in context.inputs:
            for run in context.inputs[role].iterdir():
                if run.is_dir() and not (context.run / run.name).exists():
                    _copy_run(run, context.run / run.name, config.data)

    def report(unit: str, done: int, metrics: dict[str, float]) -> None:
        values = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items())
        context.report(f"{unit} at {done:,}: {values}")

    device = torch.device(context.device)
    enable_fast_math(device)
    train_stages(context.run, config, stage, device=device, command=context.command, on_step=report)


def _config(settings: Mapping[str, Any], images: Path) -> AirlocConfig:
    """Return the configuration of the training that a task is a stage of.

    The settings hold options of `AirlocConfig` as JSON values, `variant` as a name, and as `data` the fields of
    `DataConfig` that differ from one dataset. The hashes of shipped weights, `weights`, are part of the key alone.
    """
    alone = DataConfig(root=images, datasets=(IMAGES_SET,), weights=(1.0,), synthetic=0)
    data = build_settings(DataConfig, plain_settings(alone) | settings.get("data", {}))
    options = {name: value for name, value in settings.items() if name not in ("variant", "data", "weights")}
    config = build_settings(AirlocConfig, plain_settings(AirlocConfig()) | options)
    return replace(config, data=data, variant=VARIANTS[settings["variant"]])


def _copy_run(run: Path, to: Path, data: DataConfig) -> None:
    """Copy a finished run, and set the data in its configuration to that of the next stage."""
    partial = to.with_name(f".{to.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(run, partial)
    config = json.loads((partial / CONFIG).read_bytes())
    config["settings"]["data"] = plain_settings(data)
    write_atomically(partial / CONFIG, json.dumps(config, indent=2) + "\n")
    partial.rename(to)


def _ignore(folder: str, names: list[str]) -> set[str]:
    """Return the files of a run that are not part of a result: locks and TensorBoard events."""
    del folder
    return {name for name in names if name == LOCK or name.startswith("events.")}
