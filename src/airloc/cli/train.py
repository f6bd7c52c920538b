"""`airloc train`: the units of AiRLoc, or all of it, from pictures."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from rich.console import Console
from tyro.conf import Positional

from airloc.errors import AirlocError
from airloc.evaluation.evaluate import check_device
from airloc.training.pipeline import PRESETS, AirlocConfig, Stage, train_stages


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
    """Train as the options say, a line a validation."""
    device = torch.device(check_device(options.device))
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    console, began = Console(stderr=True), time.monotonic()

    def say(stage: str, step: int, figures: dict[str, float]) -> None:
        shown = "  ".join(f"{name} {value:.4f}" for name, value in figures.items())
        console.print(f"{time.monotonic() - began:7.1f} s  {stage:<9}  {step:>9,}  {shown}", highlight=False)

    train_stages(options.out, options.settings, options.stage, device=device, command=command, on_step=say)
    if options.stage == "airloc":
        print(f"The agent: {options.out / 'agent'}")


def _preset(arguments: Sequence[str]) -> str:
    """Find --preset before the other options, which it gives the defaults of."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    name = words[words.index("--preset") + 1] if "--preset" in words[:-1] else "paper"
    if name not in PRESETS:
        raise AirlocError(f"There is no preset {name!r}", f"Use one of {', '.join(PRESETS)}")
    return name
