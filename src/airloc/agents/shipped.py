"""The checkpoints that come with the package: where they are, whether they are there, and their terms."""

import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from airloc.agents.checkpoint import CONFIG
from airloc.errors import AirlocError


def weights_root() -> Path:
    """The folder of all shipped checkpoints."""
    return Path(str(resources.files("airloc"))) / "weights"


def is_there(checkpoint: str) -> bool:
    """Whether a checkpoint is installed."""
    return (weights_root() / checkpoint / CONFIG).is_file()


def folder_of(checkpoint: str, agent: str, command: str) -> Path:
    """The folder of a checkpoint.

    Args:
        checkpoint: Its name.
        agent: Who asks for it, for the error.
        command: What trains such weights, for the error.

    Raises:
        AirlocError: When it is not installed.
    """
    folder = weights_root() / checkpoint
    if not is_there(checkpoint):
        raise AirlocError(
            f"The weights of the agent {agent!r} are not there: no checkpoint in {str(folder)!r}",
            f"Train them with '{command}' and give the checkpoint folder instead of the name",
        )
    return folder


def say_terms(name: str, config: Mapping[str, Any]) -> None:
    """Say on stderr which terms weights are under, where the project's licence does not cover them."""
    if terms := config.get("terms"):
        print(f"airloc: the weights of {name} are under {terms}, not under airloc's licence", file=sys.stderr)
