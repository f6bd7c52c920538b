"""A task at work: what it is given and where it writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Say = Callable[[str], None]
"""Told in a few words how far a task is."""


@dataclass(frozen=True)
class Job:
    """What the work on a task needs."""

    settings: Mapping[str, Any]
    inputs: Mapping[str, Path]
    """Folders of the results it builds on."""
    run: Path
    """A folder that outlives a kill, for what is to be resumed."""
    out: Path
    """The folder to write the result to; empty when the work begins."""
    source: Path | None = None
    """The folder of data to read."""
    device: str = "cpu"
    command: str = ""
    """The command that all this is for."""
    say: Say = lambda words: None


Work = Callable[[Job], None]
