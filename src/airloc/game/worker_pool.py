"""Where agents search and pictures are drawn: beside the server, so that no player ever waits for them.

The server computes in a process of its own, at low priority: agents are Python for the most part, and a thread of them
would hold up every answer. `ThreadWorkerPool` does the same in a thread, for a single visitor and for tests.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from airloc.agents.agent import Agent
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.game.match import RefusedError
from airloc.grid import Grid
from airloc.task.world import World

P = ParamSpec("P")
T = TypeVar("T")


class AgentPool:
    """Makes agents by their names, each once."""

    def __init__(self) -> None:
        self._made: dict[str, Agent] = {}

    def get(self, name: str) -> Agent:
        """The agent of a name.

        Raises:
            AirlocError: When there is none of that name.
        """
        if name not in self._made:
            self._made[name] = make_agent(name)
        return self._made[name]


Job = Callable[Concatenate[World, AgentPool, P], T]
"""A function of a module, that computes something on a world with agents."""


class WorkerPool(Protocol):
    """Computes things, one after the other."""

    async def run(self, job: Job[P, T], world: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a job on the world of that name."""
        ...


class ThreadWorkerPool:
    """Computes in a thread of this process.

    Args:
        worlds: The worlds by name.
        pool: Where agents come from.
    """

    def __init__(self, worlds: Mapping[str, World], pool: AgentPool | None = None) -> None:
        self._worlds = worlds
        self._pool = pool or AgentPool()
        self._executor: Executor = ThreadPoolExecutor(1)

    async def run(self, job: Job[P, T], world: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a job on the world of that name."""
        future = self._executor.submit(job, self._worlds[world], self._pool, *args, **kwargs)
        return await asyncio.wrap_future(future)


class ProcessWorkerPool:
    """Computes in a process of its own, which is begun anew when it dies, and ends with this one.

    Args:
        worlds: The worlds by name; they are handed over once.
        agents: Made before the first job.
    """

    def __init__(self, worlds: Mapping[str, World], agents: Sequence[str]) -> None:
        self._given = {name: _Parts.of(world) for name, world in worlds.items()}, tuple(agents), os.getpid()
        self._executor = self._open()

    async def run(self, job: Job[P, T], world: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a job on the world of that name."""
        executor = self._executor
        try:
            done: T = await asyncio.wrap_future(executor.submit(_do, job, world, *args, **kwargs))
            return done
        except BrokenProcessPool:
            if executor is self._executor:
                self._executor = self._open()
            raise RefusedError(503, "workshop", "The agents have to begin anew; ask again") from None

    def close(self) -> None:
        """End the process, whatever it does, and wait until it is gone: one left behind may fail at the exit."""
        for process in active_children():
            process.kill()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _open(self) -> ProcessPoolExecutor:
        executor = ProcessPoolExecutor(1, get_context("spawn"), initializer=_move_in, initargs=self._given)
        executor.submit(os.getpid)  # begins the process now, not with the first job
        return executor


class _Parts(NamedTuple):
    """What a world is built from: arrays, because tensors would be moved to memory that both processes share."""

    areas: list[SearchArea]
    grid: Grid
    budget: int

    @classmethod
    def of(cls, world: World) -> "_Parts":
        areas = [SearchArea(name, image) for name, image in zip(world.names, world.images, strict=True)]
        return cls(areas, world.grid, world.budget)

    def build(self) -> World:
        return World.build(self.areas, self.grid, self.budget, "per-distance", None)


_worlds: dict[str, World] = {}
_pool = AgentPool()


def _move_in(worlds: dict[str, _Parts], agents: tuple[str, ...], parent: int) -> None:
    """Make the process ready for work: what it needs, a low priority, and an end with its parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both, and the parent decides
    os.nice(10)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    _worlds.update({name: parts.build() for name, parts in worlds.items()})
    for name in agents:
        _pool.get(name)


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _do(job: Callable[..., Any], world: str, *args: Any, **kwargs: Any) -> Any:
    return job(_worlds[world], _pool, *args, **kwargs)
