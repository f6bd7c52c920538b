"""The agents that players are compared with at the end of a game, on the same episode, and the area as a picture.

Computed on demand and remembered. Nothing here is reached before a game is over.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from airloc.agents.agent import Agent
from airloc.files import encode_png
from airloc.game.match import Episode
from airloc.game.worker_pool import AgentPool, WorkerPool
from airloc.grid import Cell
from airloc.rollout import Recorder, RolloutLog, rollout
from airloc.task.batch import BatchEnv
from airloc.task.suites import Suite
from airloc.task.world import World

_REMEMBERED = 4096


class Flight(NamedTuple):
    """What an agent did in an episode."""

    agent: str
    path: tuple[Cell, ...]
    found: bool


class Baselines:
    """Plays agents on single episodes of a world.

    Args:
        names: Which agents.
        workshop: Where they play.
        world: The name of the world in the workshop.
    """

    def __init__(self, names: Sequence[str], worker_pool: WorkerPool, world: str) -> None:
        self.names = tuple(names)
        self._workshop = worker_pool
        self._world = world
        self._flights: OrderedDict[Episode, tuple[Flight, ...]] = OrderedDict()
        self._pictures: dict[int, bytes] = {}

    async def flights(self, episode: Episode) -> tuple[Flight, ...]:
        """The agents' paths in an episode."""
        if episode not in self._flights:
            self._flights[episode] = await self._workshop.run(fly, self._world, self.names, episode)
            if len(self._flights) > _REMEMBERED:
                self._flights.popitem(last=False)
        return self._flights[episode]

    async def picture(self, area: int) -> bytes:
        """The whole area as PNG."""
        if area not in self._pictures:
            self._pictures[area] = await self._workshop.run(draw_area, self._world, area)
        return self._pictures[area]


def fly(world: World, pool: AgentPool, names: Sequence[str], episode: Episode) -> tuple[Flight, ...]:
    """Let agents play an episode."""
    played = {name: play_one(pool.get(name), world, episode) for name in names}
    return tuple(Flight(name, path_of(one), bool(one.found[0])) for name, one in played.items())


def draw_area(world: World, pool: AgentPool, area: int) -> bytes:
    """The whole area as PNG; no agent is needed."""
    return encode_png(world.image(area))


def play_one(
    agent: Agent, world: World, episode: Episode, seed: int = 0, record: Sequence[Recorder] = ()
) -> RolloutLog:
    """Play a single episode as evaluation does."""
    suite = Suite(
        name="one",
        grid=world.grid,
        budget=world.budget,
        areas=world.names,
        area=np.array([episode.area]),
        start=np.array([episode.start]),
        goal=np.array([episode.goal]),
    )
    return rollout(agent, suite, BatchEnv(world.cells, world.budget), record=record, seed=seed)


def path_of(played: RolloutLog) -> tuple[Cell, ...]:
    """The cells of the first episode from the start to where it ended."""
    return tuple((row, col) for row, col in played.path[0, : int(played.steps[0]) + 1].tolist())
