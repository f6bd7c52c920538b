"""Runs what is missing of a plan, one task after the other, on this machine."""

from collections.abc import Sequence
from typing import Protocol

from airloc.reproduce.store import Store
from airloc.reproduce.tasks import Task
from airloc.reproduce.work import do_here


class Watcher(Protocol):
    """Shows how far everything is."""

    def begin(self, task: Task) -> None:
        """A task is begun."""
        ...

    def say(self, words: str) -> None:
        """How far the task is that was begun last."""
        ...

    def end(self, task: Task) -> None:
        """A task is done."""
        ...


def missing(tasks: Sequence[Task], store: Store) -> list[Task]:
    """The tasks whose results are not there; damaged ones are an error, before anything is computed."""
    return [task for task in tasks if not store.has(task)]


def run_here(tasks: Sequence[Task], store: Store, watcher: Watcher, *, device: str, command: str) -> None:
    """Do tasks in their order; killed at any point, the same call goes on from there."""
    for task in tasks:
        watcher.begin(task)
        do_here(task, store, device=device, command=command, say=watcher.say)
        watcher.end(task)
