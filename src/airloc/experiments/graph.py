"""Experiments as a graph of tasks, and the digests of what tasks read.

A task is one computation: reading a dataset, training a network or evaluating an agent. Its key is the SHA-256 of the
name and version of its kind, its settings and the keys of its inputs. Settings include digests of the data and weights
that the task reads. Two tasks with one key give the same result, so a stored result is never computed again. A changed
setting changes the keys of the tasks that depend on it and no others.

The version of a kind is an integer next to the code of that kind. Raise it when the code gives another result. Other
changes to the code, such as a renamed variable, keep the key.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from airloc.agents.checkpoint import CONFIG, WEIGHTS
from airloc.agents.pretrained import DEFAULT_TEXT, weights_root
from airloc.agents.registry import AGENTS, BELIEF_AGENTS, CHECKPOINTS, plugin_agents


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
    intermediate: bool = False
    """Whether only other tasks need its result, so that it may be deleted once theirs are there."""


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


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and content of all files under a folder."""
    digest = hashlib.sha256()
    for directory, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = Path(directory) / name
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode("utf-8", "surrogateescape"))
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def weights_digest(agent: str, *, texts: bool = False) -> str:
    """Return the SHA-256 of the installed weights of an agent, with those that read descriptions if `texts`.

    The model card is not part of the digest, because it may quote figures that are computed from these weights. For an
    agent of another package the result is the name and version of that package; for an agent without weights it is
    empty.
    """
    if agent not in AGENTS:
        return plugin_agents().get(agent, "")
    if agent not in CHECKPOINTS:
        return ""
    names = [CHECKPOINTS[agent], *([DEFAULT_TEXT] if texts and agent in BELIEF_AGENTS else [])]
    files = (weights_root() / name / file for name in names for file in (CONFIG, WEIGHTS))
    digest = hashlib.sha256()
    for path in filter(Path.is_file, files):  # loading the agent reports a missing file
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@lru_cache
def package_digest() -> str:
    """Return the SHA-256 of the sources of the installed airloc, by which machines of a cluster are compared."""
    root = Path(str(resources.files("airloc")))
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
