"""Agents beside the game server: they search outside the event loop, so that no player waits for them.

The server uses a process at low priority, because agents hold the GIL most of the time. `Baselines` play a player's
episode for comparison; results are computed on demand and cached, and the server uses them only after a game has ended.
No player waits for them: the page shows the end of a game first, and the agents' paths when they are there.
"""

import asyncio
import logging
import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import active_children, get_context
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from airloc.agents.agent import Agent
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.evaluation.texts import DescribedGoals
from airloc.files import encode_png
from airloc.game.store import Episode, RefusedError
from airloc.grid import Cell, Grid
from airloc.rollout import Recorder, RolloutLog, rollout
from airloc.task.batch import BatchEnv
from airloc.task.goal_texts import SuiteTexts
from airloc.task.sampling import EpisodeSampler
from airloc.task.suites import Suite

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


Job = Callable[Concatenate[EpisodeSampler, AgentCache, P], T]
"""A module-level function that computes something from an episode sampler and agents."""


class WorkerPool(Protocol):
    """Runs jobs one after the other."""

    async def run(self, job: Job[P, T], sampler: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on the sampler of this name."""
        ...


class ProcessWorkerPool:
    """Runs jobs in a worker process, which is replaced if it dies and ends with this process.

    Args:
        samplers: The samplers by name, sent to the worker once.
        agents: Names of the agents to make before the first job.
    """

    def __init__(self, samplers: Mapping[str, EpisodeSampler], agents: Sequence[str]) -> None:
        self._initargs = (
            {name: _SamplerParts.of(sampler) for name, sampler in samplers.items()},
            tuple(agents),
            os.getpid(),
        )
        self._executor = self._start()

    async def run(self, job: Job[P, T], sampler: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on the sampler of this name.

        Raises:
            RefusedError: If the worker died; a new one is started.
        """
        executor = self._executor
        try:
            result: T = await asyncio.wrap_future(executor.submit(_run_job, job, sampler, *args, **kwargs))
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


class _SamplerParts(NamedTuple):
    """What a sampler is built from: arrays, because pickled tensors would go through shared memory."""

    areas: list[SearchArea]
    grid: Grid
    budget: int

    @classmethod
    def of(cls, sampler: EpisodeSampler) -> "_SamplerParts":
        areas = [SearchArea(name, image) for name, image in zip(sampler.names, sampler.images, strict=True)]
        return cls(areas, sampler.grid, sampler.budget)

    def build(self) -> EpisodeSampler:
        return EpisodeSampler.build(self.areas, self.grid, self.budget, "per-distance", None)


_worker_samplers: dict[str, EpisodeSampler] = {}
_worker_agents = AgentCache()


def _initialize_worker(samplers: dict[str, _SamplerParts], agents: tuple[str, ...], parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both processes, and the parent ends this one
    os.nice(10)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    _worker_samplers.update({name: parts.build() for name, parts in samplers.items()})
    for name in agents:
        _worker_agents.get(name)


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _run_job(job: Callable[..., Any], sampler: str, *args: Any, **kwargs: Any) -> Any:
    return job(_worker_samplers[sampler], _worker_agents, *args, **kwargs)


_MAX_CACHED = 4096


class AgentPath(NamedTuple):
    """The path of an agent in one episode."""

    agent: str
    path: tuple[Cell, ...]
    found: bool


class Baselines:
    """Plays agents on single episodes.

    Args:
        names: Names of the agents.
        worker_pool: Where they play.
        sampler: Name of the sampler in the worker pool.
        texts: Returns the description of an episode's goal, which agents read instead of seeing its image; None to
            show them the image.
    """

    def __init__(
        self,
        names: Sequence[str],
        worker_pool: WorkerPool,
        sampler: str,
        texts: Callable[[Episode], str] | None = None,
    ) -> None:
        self._names, self._texts = tuple(names), texts
        self._worker_pool = worker_pool
        self._sampler = sampler
        self._tasks: OrderedDict[Episode, asyncio.Task[tuple[AgentPath, ...]]] = OrderedDict()

    async def paths(self, episode: Episode, timeout: float | None = None) -> tuple[AgentPath, ...] | None:
        """Return the agents' paths in an episode, or None if they take longer than `timeout` seconds.

        The agents continue then, and a later call returns what they have done.

        Raises:
            RefusedError: If the worker died. A later call starts again.
        """
        done, _ = await asyncio.wait([self._task(episode)], timeout=timeout)
        return done.pop().result() if done else None

    def _task(self, episode: Episode) -> asyncio.Task[tuple[AgentPath, ...]]:
        if episode not in self._tasks:
            task = asyncio.create_task(self._play(episode))
            self._tasks[episode] = task
            task.add_done_callback(partial(self._drop_failed, episode))
            if len(self._tasks) > _MAX_CACHED:
                self._tasks.popitem(last=False)
        return self._tasks[episode]

    async def _play(self, episode: Episode) -> tuple[AgentPath, ...]:
        text = None if self._texts is None else self._texts(episode)
        return await self._worker_pool.run(play_agents, self._sampler, self._names, episode, text)

    def _drop_failed(self, episode: Episode, task: asyncio.Task[tuple[AgentPath, ...]]) -> None:
        """Forget a task that failed, so that the next call starts another one."""
        if task.cancelled() or task.exception() is not None:
            self._tasks.pop(episode, None)
            if not task.cancelled():
                logging.getLogger("uvicorn.error").error("The agents cannot play an episode: %s", task.exception())


def play_agents(
    sampler: EpisodeSampler, agents: AgentCache, names: Sequence[str], episode: Episode, text: str | None = None
) -> tuple[AgentPath, ...]:
    """Worker job: let agents play an episode, with the image of its goal or a description."""
    logs = {name: play_episode(agents.get(name), sampler, episode, text=text) for name in names}
    return tuple(AgentPath(name, path_of(log), bool(log.found[0])) for name, log in logs.items())


def encode_area(sampler: EpisodeSampler, agents: AgentCache, area: int) -> bytes:
    """Worker job: encode an area as PNG."""
    return encode_png(sampler.image(area))


def play_episode(
    agent: Agent,
    sampler: EpisodeSampler,
    episode: Episode,
    record: Sequence[Recorder] = (),
    text: str | None = None,
) -> RolloutLog:
    """Play a single episode as `airloc evaluate` does, and record the quantities in `record`.

    With a text, the agent reads this description of the goal and gets no image of it.
    """
    suite = Suite(
        name="one",
        grid=sampler.grid,
        budget=sampler.budget,
        areas=sampler.names,
        area=np.array([episode.area]),
        start=np.array([episode.start]),
        goal=np.array([episode.goal]),
    )
    words: dict[str, Any] = {}
    if text is not None:
        words = DescribedGoals(SuiteTexts([text])).inputs(suite, seed=0)
    return rollout(agent, suite, BatchEnv(sampler.cells, sampler.budget), record=record, **words)


def path_of(log: RolloutLog) -> tuple[Cell, ...]:
    """Return the cells of the first episode from the start to the end."""
    return tuple((row, col) for row, col in log.path[0, : int(log.steps[0]) + 1].tolist())
