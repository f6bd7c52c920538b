"""The store of results: one folder per task, complete or absent.

FOLDER/results/KIND-KEY/done.json     name, key, settings, and the SHA-256 of each file; written last
FOLDER/results/KIND-KEY/...           the files of the result
FOLDER/working/KIND-KEY/              a running task; a killed training resumes from here
FOLDER/lock                           locked while a process computes in this folder
"""

import contextlib
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from airloc.errors import AirlocError
from airloc.experiments.graph import Task
from airloc.files import check_writable, write_json

DONE = "done.json"

Files = Mapping[str, bytes]
"""Content of files by their path relative to the result folder."""


class Store:
    """The results in a folder.

    Args:
        folder: Root of the store. `locked` creates it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def result_folder(self, task: Task) -> Path:
        """Return the folder of the result of a task."""
        return self.folder / "results" / task.label

    def working_folder(self, task: Task) -> Path:
        """Return the folder in which a task runs."""
        return self.folder / "working" / task.label

    def has(self, task: Task) -> bool:
        """Return True if the result is present and intact.

        Raises:
            AirlocError: If the result is present and damaged.
        """
        folder = self.result_folder(task)
        if not (folder / DONE).exists():
            return False
        for name, expected in _checksums(folder).items():
            try:
                found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            except OSError as error:
                raise _damaged(folder, name, "the file is missing") from error
            if found != expected:
                raise _damaged(folder, name, "its checksum differs")
        return True

    def missing(self, tasks: list[Task]) -> list[Task]:
        """Return the tasks to run, of all tasks, each after its inputs.

        These are the tasks without a result, except for those, such as trainings, that no other task to run needs.

        Raises:
            AirlocError: If one of the results is damaged.
        """
        found: list[Task] = []
        needed: set[str] = set()
        for task in reversed(tasks):
            if (not task.kind.intermediate or task.key in needed) and not self.has(task):
                found.append(task)
                needed.update(read.key for read in task.inputs.values())
        return found[::-1]

    def read(self, task: Task) -> dict[str, bytes]:
        """Read the files of a result."""
        folder = self.result_folder(task)
        return {name: (folder / name).read_bytes() for name in _checksums(folder)}

    def add(self, task: Task, folder: Path) -> None:
        """Move a folder into the store as the result of a task."""
        checksums = {name: hashlib.sha256(content).hexdigest() for name, content in read_files(folder).items()}
        record = {"name": task.name, "key": task.key, "settings": task.settings, "files": checksums}
        write_json(folder / DONE, record)
        result = self.result_folder(task)
        result.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(result, ignore_errors=True)  # a folder without done.json is left over from a kill
        folder.rename(result)
        shutil.rmtree(self.working_folder(task), ignore_errors=True)

    def add_files(self, task: Task, files: Files) -> None:
        """Write files that another machine computed as the result of a task."""
        self.add(task, write_files(self.working_folder(task) / "out", files))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it, so that one process at a time computes in it.

        Raises:
            AirlocError: If another process holds the lock.
        """
        check_writable(self.folder / "lock")
        with (self.folder / "lock").open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise AirlocError(
                    f"Another process computes in {str(self.folder)!r}", "Wait until it ends, or give another --out"
                ) from error
            yield


def read_files(folder: Path) -> dict[str, bytes]:
    """Read all files under a folder, by their relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def write_files(folder: Path, files: Files) -> Path:
    """Write files into a new folder, and return the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def _checksums(folder: Path) -> dict[str, str]:
    """Read the SHA-256 of each file of a result."""
    try:
        files = json.loads((folder / DONE).read_bytes())["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _damaged(folder, DONE, "it cannot be read") from error


def _damaged(folder: Path, name: str, reason: str) -> AirlocError:
    return AirlocError(
        f"The result {str(folder / name)!r} is damaged: {reason}",
        f"Delete the folder {str(folder)!r} and run the same command again; all other results are kept",
    )
