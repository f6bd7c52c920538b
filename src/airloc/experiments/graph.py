"""Tasks: what is to be computed, addressed by everything that decides the result.

A task's key is the SHA-256 of its kind, its settings, the keys of its inputs and the code that it runs. Two tasks of
one key give the same result, so a result that is there is never computed again, and a changed setting changes the keys
of what depends on it and of nothing else.
"""

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

SEEING = ("errors.py", "grid.py", "seeding.py", "areas", "task")
TRAINING_CODE = (*SEEING, "vision", "agents", "training")
PLAYING = (*SEEING, "vision", "agents", "rollout.py", "evaluation")

CODE: dict[str, tuple[str, ...]] = {
    "pictures": (*SEEING, "reproduce/gathering.py"),
    "areas": (*SEEING, "reproduce/gathering.py"),
    "segmenter": (*TRAINING_CODE, "reproduce/training.py"),
    "embedder": (*TRAINING_CODE, "reproduce/training.py"),
    "policy": (*TRAINING_CODE, "reproduce/training.py"),
    "score": (*PLAYING, "reproduce/scoring.py"),
    "ground": (*SEEING, "reproduce/gathering.py", "reproduce/ground.py"),
    "trial": (*PLAYING, "reproduce/trials.py", "reports/suites/trials.py"),
}
"""The parts of the package that decide the result of each kind of task."""


@dataclass(frozen=True, eq=False)
class Task:
    """One thing to compute."""

    kind: str
    """What is done: a key of `CODE`."""
    name: str
    """For people."""
    settings: Mapping[str, Any]
    """Plain values that decide the result."""
    inputs: Mapping[str, "Task"] = field(default_factory=dict)
    """The tasks whose results are needed, by what they are needed for."""
    source: Path | None = None
    """The folder of data that is read; its content, not its place, is part of the settings."""

    @cached_property
    def key(self) -> str:
        """The address of the result."""
        parts = {
            "kind": self.kind,
            "settings": self.settings,
            "inputs": {role: task.key for role, task in self.inputs.items()},
            "code": code_digest(CODE[self.kind]),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def label(self) -> str:
        """The name of the result's folder."""
        return f"{self.kind}-{self.key[:16]}"


def in_order(wanted: Iterable[Task]) -> list[Task]:
    """All tasks that the wanted ones need, each once and after its inputs."""
    seen: dict[str, Task] = {}

    def visit(task: Task) -> Iterator[Task]:
        for needed in task.inputs.values():
            yield from visit(needed)
        if task.key not in seen:
            seen[task.key] = task
            yield task

    return [task for one in wanted for task in visit(one)]


@lru_cache
def code_digest(parts: tuple[str, ...]) -> str:
    """SHA-256 of what the sources of parts of the package do; comments, docstrings and layout do not count."""
    root = Path(str(resources.files("airloc")))
    digest = hashlib.sha256()
    for part in parts:
        place = root / part
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\n{_meaning(path)}\n".encode())
    return digest.hexdigest()


def _meaning(path: Path) -> str:
    """A source file as its syntax tree, without docstrings."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                line for line in body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
            ]
    return ast.dump(tree)


# ---------- A task at work: what it is given and where it writes.
# ~

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
