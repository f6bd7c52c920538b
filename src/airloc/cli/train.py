"""`airloc train`: train AiRLoc, one of its units, the belief agent, the text network or the locator from images."""

import logging
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from tyro.conf import Positional

from airloc.agents.agent import check_device
from airloc.cli.console import say
from airloc.errors import AirlocError
from airloc.training.learner import enable_fast_math
from airloc.training.locator import LocatorConfig, train_locator
from airloc.training.loop import OnStage
from airloc.training.pipeline import PRESETS, AirlocConfig, Stage, train_stages
from airloc.training.relation import RelationConfig, train_belief
from airloc.training.runs import read_settings
from airloc.training.text import TextConfig, train_text

HEADLINES = {
    "segmenter": "iou",
    "embedder": "val_accuracy",
    "policy": "val_success",
    "relation": "val_accuracy",
    "text": "val_accuracy",
    "locator": "located",
}
"""The main metric of each stage, for the progress bar."""


@dataclass(frozen=True)
class Train:
    """Train AiRLoc up to a stage: segmenter, embedder, policy, or airloc, which also writes the agent's checkpoint.

    'airloc train belief' trains the belief agent, 'airloc train text' the network that reads goals in words, and
    'airloc train locator' the one that finds goals in photos; with --help they list their options.
    """

    stage: Positional[Stage]
    """The last stage to train. Finished stages in the folder are not repeated."""
    out: Path
    """Folder of the runs; the checkpoint of the agent is its subfolder `agent`."""
    settings: tyro.conf.OmitArgPrefixes[AirlocConfig]
    device: str = "cpu"
    """Device to train on, such as cpu or cuda."""
    preset: str = "paper"
    """Default settings: paper (to the letter), tuned (as the shipped weights) or fast (minutes on two cores)."""
    config: Path | None = None
    """Default settings from the config.json that another training has written, instead of a preset."""


@dataclass(frozen=True)
class TrainBelief:
    """Train the relation network of the belief agent, and write the agent's checkpoint."""

    settings: tyro.conf.OmitArgPrefixes[RelationConfig]
    out: Path = Path("runs/belief")
    """Folder of the run; the checkpoint of the agent is its subfolder `agent`."""
    device: str = "cpu"
    """Device to train on, such as cpu or cuda."""
    config: Path | None = None
    """Default settings from the config.json that another training has written (in its subfolder `relation`)."""


@dataclass(frozen=True)
class TrainText:
    """Train the text network, which reads goals in words, and write its checkpoint."""

    settings: tyro.conf.OmitArgPrefixes[TextConfig]
    out: Path = Path("runs/text")
    """Folder of the run; the checkpoint is its subfolder `agent`."""
    device: str = "cpu"
    """Device to train on, such as cpu or cuda."""
    config: Path | None = None
    """Default settings from the config.json that another training has written (in its subfolder `text`)."""


@dataclass(frozen=True)
class TrainLocator:
    """Train the network of the locator, which finds goals in photos, and write its checkpoint."""

    settings: tyro.conf.OmitArgPrefixes[LocatorConfig]
    out: Path = Path("runs/locator")
    """Folder of the run; the checkpoint is its subfolder `locator`."""
    device: str = "cpu"
    """Device to train on, such as cpu or cuda."""
    config: Path | None = None
    """Default settings from the config.json that another training has written (in its subfolder `network`)."""


class Network(NamedTuple):
    """A network with a training of its own."""

    options: type[TrainBelief] | type[TrainText] | type[TrainLocator]
    config: type[RelationConfig] | type[TextConfig] | type[LocatorConfig]
    train: Callable[..., None]
    stage: str
    """Name of the stage in progress messages."""
    result: str
    """What is written."""
    folder: str
    """Subfolder of what is written."""


NETWORKS = {
    "belief": Network(TrainBelief, RelationConfig, train_belief, "relation", "agent", "agent"),
    "text": Network(TrainText, TextConfig, train_text, "text", "network", "agent"),
    "locator": Network(TrainLocator, LocatorConfig, train_locator, "locator", "locator", "locator"),
}
"""The trainings besides those of the stages of AiRLoc."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc train`."""
    command = "airloc train " + shlex.join(arguments)
    config = _value(arguments, "--config")
    if arguments and arguments[0] in NETWORKS:
        train_network(arguments[0], arguments[1:], config, command)
        return
    preset = _preset(arguments)
    if config is not None and _value(arguments, "--preset") is not None:
        raise AirlocError("--config and --preset both give the settings", "Use one of them")
    settings = PRESETS[preset] if config is None else read_settings(Path(config), AirlocConfig)
    default = Train(stage="airloc", out=Path("runs/airloc"), settings=settings, preset=preset)
    run(tyro.cli(Train, args=arguments, prog="airloc train", default=default), command)


def train_network(name: str, arguments: Sequence[str], config: str | None, command: str) -> None:
    """Train one of `NETWORKS`, with the settings of a file as defaults if there is one."""
    network = NETWORKS[name]
    settings: Any = network.config() if config is None else read_settings(Path(config), network.config)
    options = tyro.cli(
        network.options, args=arguments, prog=f"airloc train {name}", default=network.options(settings=settings)
    )
    device = _device(options.device)
    with _progress({network.stage: options.settings.steps}) as on_step:
        network.train(options.out, options.settings, device=device, command=command, on_step=on_step)
    say(f"The {network.result}: {options.out / network.folder}")


def run(options: Train, command: str) -> None:
    """Train AiRLoc up to a stage."""
    device, settings = _device(options.device), options.settings
    if settings.reward:
        sys.path.insert(0, str(Path.cwd()))  # as Python itself does for a module of the current folder
    steps = {"segmenter": settings.segmenter_steps, "embedder": settings.embedder_steps, "policy": settings.episodes}
    with _progress(steps, settings.seeds) as on_step:
        train_stages(options.out, settings, options.stage, device=device, command=command, on_step=on_step)
    if options.stage == "airloc":
        say(f"The agent: {options.out / 'agent'}")


def _device(name: str) -> torch.device:
    """Return the device to train on, with fast arithmetic enabled."""
    device = torch.device(check_device(name))
    enable_fast_math(device)
    return device


@contextmanager
def _progress(totals: Mapping[str, int], seeds: int = 1) -> Iterator[OnStage]:
    """Print log messages and one line per validation to stderr; on a terminal, show a progress bar below them."""
    console, began = Console(stderr=True), time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    last: dict[str, tuple[float, int]] = {}

    def print_line(text: str) -> None:
        console.print(f"{time.monotonic() - began:7.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)

    with (
        _log_lines(print_line),
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
    ):

        def on_step(stage: str, done: int, metrics: dict[str, float]) -> None:
            now = time.monotonic()
            shown = "  ".join(
                f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:.4f}"
                for name, value in metrics.items()
            )
            if stage == "policy" and stage in last:
                before, so_far = last[stage]
                shown += f"  {(done - so_far) * seeds / max(now - before, 1e-9):,.0f} episodes/s"
            last[stage] = now, done
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=totals[stage])
            progress.update(tasks[stage], completed=done, description=_headline(stage, metrics))
            print_line(f"{stage:<9}  {done:>9,}  {shown}")

        yield on_step


class _LineHandler(logging.Handler):
    """Passes the text of log records to a function."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._print_line = print_line

    def emit(self, record: logging.LogRecord) -> None:
        self._print_line(record.getMessage())


@contextmanager
def _log_lines(print_line: Callable[[str], None]) -> Iterator[None]:
    """Print the log messages of the training: reading images, generating areas, computing features."""
    logger, handler = logging.getLogger("airloc.training"), _LineHandler(print_line)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _headline(stage: str, metrics: dict[str, float]) -> str:
    """Return the stage and its main metric."""
    name = HEADLINES[stage]
    return f"{stage} {name} {metrics[name]:.3f}" if name in metrics else stage


def _value(arguments: Sequence[str], option: str) -> str | None:
    """Find the value of an option before the others are parsed, because it sets their defaults."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    return words[words.index(option) + 1] if option in words[:-1] else None


def _preset(arguments: Sequence[str]) -> str:
    """Return the name of the preset."""
    name = _value(arguments, "--preset") or "paper"
    if name not in PRESETS:
        raise AirlocError(f"There is no preset {name!r}", f"Use one of {', '.join(PRESETS)}")
    return name
