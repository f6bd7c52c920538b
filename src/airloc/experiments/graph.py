"""Experiments as a graph of tasks.

A task is one computation: reading a dataset, training a network or evaluating an agent. Its key is the SHA-256 of the
name and version of its kind, its settings and the keys of its inputs. Settings include digests of the data and weights
that the task reads. Two tasks with one key give the same result, so a stored result is never computed again. A changed
setting changes the keys of the tasks that depend on it and no others.

The version of a kind is an integer next to the code of that kind. Raise it when the code gives another result. Other
changes to the code, such as a renamed variable, keep the key.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TaskContext:
    """What a running task reads, and where it writes."""

    settings: Mapping[str, Any]
    inputs: Mapping[str, Path]
    """Result folders of the input tasks, by role."""
    run: Path
    """Working folder that survives a kill. A training resumes from it."""
    out: Path
    """Folder for the result. It is empty when the task starts."""
    source: Path | None = None
    """Folder of the dataset to read."""
    device: str = "cpu"
    command: str = ""
    """The command line that started the experiments, for model cards."""
    report: Callable[[str], None] = lambda message: None
    """Called with a short progress message."""


@dataclass(frozen=True)
class TaskKind:
    """A kind of task: its code and the version of its result."""

    name: str
    version: int
    """Part of every key. Raise it when the code gives another result."""
    function: Callable[[TaskContext], None]
    reads_data: bool = False
    """Whether it reads the user's datasets. Such tasks run where the command runs."""
    uses_gpu: bool = False
    """Whether it asks for a GPU on a cluster that has any."""


@dataclass(frozen=True, eq=False)
class Task:
    """One computation with its inputs."""

    kind: TaskKind
    name: str
    """Description for progress messages. It is not part of the key."""
    settings: Mapping[str, Any]
    """JSON values that decide the result."""
    inputs: Mapping[str, "Task"] = field(default_factory=dict)
    """The tasks whose results this task reads, by role."""
    source: Path | None = None
    """Folder of the dataset to read. The settings hold the digest of its content; its path is not part of the key."""

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything that decides the result."""
        parts = {
            "kind": self.kind.name,
            "version": self.kind.version,
            "settings": self.settings,
            "inputs": {role: task.key for role, task in self.inputs.items()},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def label(self) -> str:
        """Name of the result folder."""
        return f"{self.kind.name}-{self.key[:16]}"

    @property
    def title(self) -> str:
        """Kind and name, for progress messages."""
        return f"{self.kind.name}: {self.name}"


def topological_order(tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks and all their inputs, each once and after its own inputs."""
    seen: set[str] = set()

    def visit(task: Task) -> Iterator[Task]:
        for needed in task.inputs.values():
            yield from visit(needed)
        if task.key not in seen:
            seen.add(task.key)
            yield task

    return [found for task in tasks for found in visit(task)]
