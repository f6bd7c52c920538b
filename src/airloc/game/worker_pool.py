"""Worker pools: agents search and pictures are drawn outside the event loop, so that no player waits for them.

The server uses a process at low priority, because agents hold the GIL most of the time. `ThreadWorkerPool` does the
same in a thread, for tests.
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


class AgentCache:
    """Makes each agent once, by name."""

    def __init__(self, agents: Mapping[str, Agent] | None = None) -> None:
        self._agents = dict(agents or {})

    def get(self, name: str) -> Agent:
        """Return the agent of this name.

        Raises:
            AirlocError: If there is no such agent.
        """
        if name not in self._agents:
            self._agents[name] = make_agent(name)
        return self._agents[name]


Job = Callable[Concatenate[World, AgentCache, P], T]
"""A module-level function that computes something from a world and agents."""


class WorkerPool(Protocol):
    """Runs jobs one after the other."""

    async def run(self, job: Job[P, T], world: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on the world of this name."""
        ...


class ThreadWorkerPool:
    """Runs jobs in a thread of this process.

    Args:
        worlds: The worlds by name.
        agents: The agents that jobs use.
    """

    def __init__(self, worlds: Mapping[str, World], agents: AgentCache | None = None) -> None:
        self._worlds = worlds
        self._agents = agents or AgentCache()
        self._executor: Executor = ThreadPoolExecutor(1)

    async def run(self, job: Job[P, T], world: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on the world of this name."""
        future = self._executor.submit(job, self._worlds[world], self._agents, *args, **kwargs)
        return await asyncio.wrap_future(future)


class ProcessWorkerPool:
    """Runs jobs in a worker process, which is replaced if it dies and ends with this process.

    Args:
        worlds: The worlds by name, sent to the worker once.
        agents: Names of the agents to make before the first job.
    """

    def __init__(self, worlds: Mapping[str, World], agents: Sequence[str]) -> None:
        self._initargs = {name: _WorldParts.of(world) for name, world in worlds.items()}, tuple(agents), os.getpid()
        self._executor = self._start()

    async def run(self, job: Job[P, T], world: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on the world of this name.

        Raises:
            RefusedError: If the worker died; a new one is started.
        """
        executor = self._executor
        try:
            result: T = await asyncio.wrap_future(executor.submit(_run_job, job, world, *args, **kwargs))
            return result
        except BrokenProcessPool:
            if executor is self._executor:
                self._executor = self._start()
            raise RefusedError(503, "worker", "The agents are restarting. Try again.") from None

    def close(self) -> None:
        """Kill the worker and wait until it is gone; a worker that outlives its parent may fail at exit."""
        for process in active_children():
            process.kill()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        executor = ProcessPoolExecutor(1, get_context("spawn"), initializer=_initialize_worker, initargs=self._initargs)
        executor.submit(os.getpid)  # starts the process now rather than with the first job
        return executor


class _WorldParts(NamedTuple):
    """What a world is built from: arrays, because pickled tensors would go through shared memory."""

    areas: list[SearchArea]
    grid: Grid
    budget: int

    @classmethod
    def of(cls, world: World) -> "_WorldParts":
        areas = [SearchArea(name, image) for name, image in zip(world.names, world.images, strict=True)]
        return cls(areas, world.grid, world.budget)

    def build(self) -> World:
        return World.build(self.areas, self.grid, self.budget, "per-distance", None)


_worker_worlds: dict[str, World] = {}
_worker_agents = AgentCache()


def _initialize_worker(worlds: dict[str, _WorldParts], agents: tuple[str, ...], parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both processes, and the parent ends this one
    os.nice(10)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    _worker_worlds.update({name: parts.build() for name, parts in worlds.items()})
    for name in agents:
        _worker_agents.get(name)


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _run_job(job: Callable[..., Any], world: str, *args: Any, **kwargs: Any) -> Any:
    return job(_worker_worlds[world], _worker_agents, *args, **kwargs)
