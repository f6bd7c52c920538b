"""`airloc train`: the units of AiRLoc, or all of it, from pictures."""

import shlex
import time
from collections.abc import Iterator, Sequence
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
from airloc.training.pipeline import PRESETS, AirlocConfig, OnStep, Stage, train_stages


@dataclass(frozen=True)
class Train:
    """Train up to a stage: segmenter, embedder, policy, or airloc, which also writes the agent's checkpoint."""

    stage: Positional[Stage]
    """How far to train; what an earlier run has done in the folder is not done again."""
    out: Path
    """The folder of the runs; the agent ends in its subfolder `agent`."""
    settings: tyro.conf.OmitArgPrefixes[AirlocConfig]
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""
    preset: str = "paper"
    """Where the settings begin: paper, large or fast."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc train`."""
    preset = _preset(arguments)
    default = Train(stage="airloc", out=Path("runs/airloc"), settings=PRESETS[preset], preset=preset)
    options = tyro.cli(Train, args=arguments, prog="airloc train", default=default)
    run(options, "airloc train " + shlex.join(arguments))


def run(options: Train, command: str) -> None:
    """Train as the options say."""
    device = torch.device(check_device(options.device))
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    with _watch(options.settings) as say:
        train_stages(options.out, options.settings, options.stage, device=device, command=command, on_step=say)
    if options.stage == "airloc":
        print(f"The agent: {options.out / 'agent'}")


@contextmanager
def _watch(settings: AirlocConfig) -> Iterator[OnStep]:
    """Print a line a validation on the error stream, and below it, where somebody watches, a bar of the stage."""
    console, began = Console(stderr=True), time.monotonic()
    totals = {"segmenter": settings.segmenter_steps, "embedder": settings.embedder_steps, "policy": settings.episodes}
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
                shown += f"  {(done - so_far) * settings.seeds / max(now - before, 1e-9):,.0f} episodes/s"
            last[stage] = now, done
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=totals[stage])
            progress.update(tasks[stage], completed=done, description=_headline(stage, figures))
            line = f"{now - began:7.1f} s  {stage:<9}  {done:>9,}  {shown}"
            console.print(line, highlight=False, soft_wrap=True)

        yield say


def _headline(stage: str, figures: dict[str, float]) -> str:
    """The stage and the figure that it is about."""
    name = {"segmenter": "iou", "embedder": "val_accuracy", "policy": "val_success"}[stage]
    return f"{stage} {name} {figures[name]:.3f}" if name in figures else stage


def _preset(arguments: Sequence[str]) -> str:
    """Find --preset before the other options, which it gives the defaults of."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    name = words[words.index("--preset") + 1] if "--preset" in words[:-1] else "paper"
    if name not in PRESETS:
        raise AirlocError(f"There is no preset {name!r}", f"Use one of {', '.join(PRESETS)}")
    return name
