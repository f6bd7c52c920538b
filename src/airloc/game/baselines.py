"""Baselines: agents that play a player's episode for comparison, and the area as an image.

Results are computed on demand and cached. The server uses them only after a game has ended.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from airloc.agents.agent import Agent
from airloc.files import encode_png
from airloc.game.match import Episode
from airloc.game.worker_pool import AgentCache, WorkerPool
from airloc.grid import Cell
from airloc.rollout import Recorder, RolloutLog, rollout
from airloc.task.batch import BatchEnv
from airloc.task.sampling import EpisodeSampler
from airloc.task.suites import Suite

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
    """

    def __init__(self, names: Sequence[str], worker_pool: WorkerPool, sampler: str) -> None:
        self._names = tuple(names)
        self._worker_pool = worker_pool
        self._sampler = sampler
        self._paths: OrderedDict[Episode, tuple[AgentPath, ...]] = OrderedDict()
        self._images: dict[int, bytes] = {}

    async def paths(self, episode: Episode) -> tuple[AgentPath, ...]:
        """Return the agents' paths in an episode."""
        if episode not in self._paths:
            self._paths[episode] = await self._worker_pool.run(play_agents, self._sampler, self._names, episode)
            if len(self._paths) > _MAX_CACHED:
                self._paths.popitem(last=False)
        return self._paths[episode]

    async def area_png(self, area: int) -> bytes:
        """Return the whole area as PNG."""
        if area not in self._images:
            self._images[area] = await self._worker_pool.run(encode_area, self._sampler, area)
        return self._images[area]


def play_agents(
    sampler: EpisodeSampler, agents: AgentCache, names: Sequence[str], episode: Episode
) -> tuple[AgentPath, ...]:
    """Worker job: let agents play an episode."""
    logs = {name: play_episode(agents.get(name), sampler, episode) for name in names}
    return tuple(AgentPath(name, path_of(log), bool(log.found[0])) for name, log in logs.items())


def encode_area(sampler: EpisodeSampler, agents: AgentCache, area: int) -> bytes:
    """Worker job: encode an area as PNG."""
    return encode_png(sampler.image(area))


def play_episode(
    agent: Agent, sampler: EpisodeSampler, episode: Episode, record: Sequence[Recorder] = ()
) -> RolloutLog:
    """Play a single episode as `airloc evaluate` does, and record the quantities in `record`."""
    suite = Suite(
        name="one",
        grid=sampler.grid,
        budget=sampler.budget,
        areas=sampler.names,
        area=np.array([episode.area]),
        start=np.array([episode.start]),
        goal=np.array([episode.goal]),
    )
    return rollout(agent, suite, BatchEnv(sampler.cells, sampler.budget), record=record)


def path_of(log: RolloutLog) -> tuple[Cell, ...]:
    """Return the cells of the first episode from the start to the end."""
    return tuple((row, col) for row, col in log.path[0, : int(log.steps[0]) + 1].tolist())
