"""Where results are kept: one folder a result, whole or not there at all.

FOLDER/results/KIND-KEY/done.json     what it is, and the SHA-256 of each of its files; written last
FOLDER/results/KIND-KEY/...           its files
FOLDER/working/KIND-KEY/              what is being computed: a killed training goes on from there
FOLDER/lock                           held while a process computes here
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from airloc.agents.checkpoint import CONFIG, WEIGHTS
from airloc.agents.pretrained import weights_root
from airloc.agents.registry import CHECKPOINTS, plugin_agents
from airloc.errors import AirlocError
from airloc.experiments.graph import Task
from airloc.files import check_writable, write_atomically

DONE = "done.json"

Files = Mapping[str, bytes]
"""A result as the content of its files by their names."""


class Store:
    """The results in a folder.

    Args:
        folder: Where; created where there is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, task: Task) -> Path:
        """The folder of a result that is there."""
        return self.folder / "results" / task.label

    def working(self, task: Task) -> Path:
        """The folder in which a result is being computed."""
        return self.folder / "working" / task.label

    def has(self, task: Task) -> bool:
        """Whether the result is there and whole.

        Raises:
            AirlocError: When it is there and damaged.
        """
        place = self.place(task)
        if not (place / DONE).exists():
            return False
        for name, wanted in self._contents(place).items():
            try:
                found = hashlib.sha256((place / name).read_bytes()).hexdigest()
            except OSError:
                found = "missing"
            if found != wanted:
                raise _damaged(place / name, "it is not there" if found == "missing" else "its checksum differs")
        return True

    def files(self, task: Task) -> dict[str, bytes]:
        """The files of a result that is there."""
        place = self.place(task)
        return {name: (place / name).read_bytes() for name in self._contents(place)}

    def keep(self, task: Task, made: Path) -> None:
        """Take the files of a folder as the result of a task; the folder is gone afterwards."""
        contents = {
            path.relative_to(made).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(made.rglob("*"))
            if path.is_file()
        }
        record = {"name": task.name, "key": task.key, "settings": task.settings, "files": contents}
        write_atomically(made / DONE, json.dumps(record, indent=1) + "\n")
        place = self.place(task)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)  # without done.json it is the rest of a kill
        made.rename(place)
        shutil.rmtree(self.working(task), ignore_errors=True)

    def keep_files(self, task: Task, files: Files) -> None:
        """Take files that were computed elsewhere as the result of a task."""
        write_files(self.working(task) / "out", files)
        self.keep(task, self.working(task) / "out")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: one process at a time computes in it."""
        check_writable(self.folder / "lock")
        with (self.folder / "lock").open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise AirlocError(
                    f"Another process reproduces in {str(self.folder)!r}", "Wait until it ends, or give another --out"
                ) from error
            yield

    def _contents(self, place: Path) -> dict[str, str]:
        try:
            files = json.loads((place / DONE).read_bytes())["files"]
            return {str(name): str(digest) for name, digest in files.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise _damaged(place / DONE, "it cannot be read") from error


def read_files(folder: Path) -> dict[str, bytes]:
    """All files under a folder, by their names relative to it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def write_files(folder: Path, files: Files) -> Path:
    """Write files into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def folder_digest(folder: Path) -> str:
    """SHA-256 of all files under a folder, of their names and content."""
    digest = hashlib.sha256()
    for directory, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = Path(directory) / name
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode("utf-8", "surrogateescape"))
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _damaged(path: Path, why: str) -> AirlocError:
    return AirlocError(
        f"The result {str(path)!r} is damaged: {why}",
        f"Delete the folder {str(path.parent)!r} and run the same command again; every other result is kept",
    )


# ---------- What the weights of agents are, so that results follow them.
# ~


def weights_digest(name: str) -> str:
    """SHA-256 of the installed weights of an agent, or the package it is of; empty where it has neither.

    A card does not count: it may tell the very figures that are computed.
    """
    if name in plugin_agents():
        return plugin_agents()[name]
    folder = weights_root() / CHECKPOINTS.get(name, name)
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for path in filter(Path.is_file, (folder / CONFIG, folder / WEIGHTS)):  # who plays tells what is missing
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
