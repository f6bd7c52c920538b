"""`airloc train`: the units of AiRLoc, all of it, or the belief searcher, from pictures."""

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from tyro.conf import Positional

from airloc.errors import AirlocError
from airloc.evaluation.evaluate import check_device
from airloc.training.learner import make_fast
from airloc.training.pipeline import PRESETS, AirlocConfig, OnStep, Stage, train_stages
from airloc.training.relation import RelationConfig, train_searcher

BELIEF = "belief"
HEADLINES = {"segmenter": "iou", "embedder": "val_accuracy", "policy": "val_success", "relation": "val_accuracy"}
"""The figure that each stage is about."""


@dataclass(frozen=True)
class Train:
    """Train up to a stage: segmenter, embedder, policy, or airloc, which also writes the agent's checkpoint.

    'airloc train belief' trains the belief searcher instead; its options are listed by 'airloc train belief --help'.
    """

    stage: Positional[Stage]
    """How far to train; what an earlier run has done in the folder is not done again."""
    out: Path
    """The folder of the runs; the agent ends in its subfolder `agent`."""
    settings: tyro.conf.OmitArgPrefixes[AirlocConfig]
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""
    preset: str = "paper"
    """Where the settings begin: paper, large or fast."""


@dataclass(frozen=True)
class TrainBelief:
    """Train the belief searcher: its relation network, and the agent's checkpoint."""

    settings: tyro.conf.OmitArgPrefixes[RelationConfig]
    out: Path = Path("runs/belief")
    """The folder of the run; the agent ends in its subfolder `agent`."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc train`."""
    command = "airloc train " + shlex.join(arguments)
    if arguments and arguments[0] == BELIEF:
        begin = TrainBelief(settings=RelationConfig())
        run_belief(tyro.cli(TrainBelief, args=arguments[1:], prog="airloc train belief", default=begin), command)
        return
    preset = _preset(arguments)
    default = Train(stage="airloc", out=Path("runs/airloc"), settings=PRESETS[preset], preset=preset)
    options = tyro.cli(Train, args=arguments, prog="airloc train", default=default)
    run(options, command)


def run_belief(options: TrainBelief, command: str) -> None:
    """Train the belief searcher as the options say."""
    device = _device(options.device)
    with _watch({"relation": options.settings.steps}) as say:
        train_searcher(options.out, options.settings, device=device, command=command, on_step=say)
    print(f"The agent: {options.out / 'agent'}")


def run(options: Train, command: str) -> None:
    """Train as the options say."""
    device, settings = _device(options.device), options.settings
    steps = {"segmenter": settings.segmenter_steps, "embedder": settings.embedder_steps, "policy": settings.episodes}
    with _watch(steps, settings.seeds) as say:
        train_stages(options.out, settings, options.stage, device=device, command=command, on_step=say)
    if options.stage == "airloc":
        print(f"The agent: {options.out / 'agent'}")


def _device(name: str) -> torch.device:
    """The device to train on, set up to be fast."""
    device = torch.device(check_device(name))
    make_fast(device)
    return device


@contextmanager
def _watch(totals: Mapping[str, int], seeds: int = 1) -> Iterator[OnStep]:
    """Print a line a validation on the error stream, and below it, where somebody watches, a bar of the stage."""
    console, began = Console(stderr=True), time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    last: dict[str, tuple[float, int]] = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:

        def say(stage: str, done: int, figures: dict[str, float]) -> None:
            now = time.monotonic()
            shown = "  ".join(
                f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:.4f}"
                for name, value in figures.items()
            )
            if stage == "policy" and stage in last:
                before, so_far = last[stage]
                shown += f"  {(done - so_far) * seeds / max(now - before, 1e-9):,.0f} episodes/s"
            last[stage] = now, done
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=totals[stage])
            progress.update(tasks[stage], completed=done, description=_headline(stage, figures))
            line = f"{now - began:7.1f} s  {stage:<9}  {done:>9,}  {shown}"
            console.print(line, highlight=False, soft_wrap=True)

        yield say


def _headline(stage: str, figures: dict[str, float]) -> str:
    """The stage and the figure that it is about."""
    name = HEADLINES[stage]
    return f"{stage} {name} {figures[name]:.3f}" if name in figures else stage


def _preset(arguments: Sequence[str]) -> str:
    """Find --preset before the other options, which it gives the defaults of."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    name = words[words.index("--preset") + 1] if "--preset" in words[:-1] else "paper"
    if name not in PRESETS:
        raise AirlocError(f"There is no preset {name!r}", f"Use one of {', '.join(PRESETS)}")
    return name
