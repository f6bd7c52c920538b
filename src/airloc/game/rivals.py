"""The agents that players are compared with at the end of a game, on the same episode.

Played on demand, one episode at a time, and remembered. Nothing here is reached before a game is over.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from airloc.agents.agent import Agent
from airloc.agents.registry import make_agent
from airloc.game.match import Episode
from airloc.grid import Cell
from airloc.rollout import Trajectories, play
from airloc.task.batch import BatchEnv
from airloc.task.suites import Suite
from airloc.task.world import World

_REMEMBERED = 4096


class AgentPool:
    """Makes agents by their names, each once, from any thread."""

    def __init__(self) -> None:
        self._made: dict[str, Agent] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Agent:
        """The agent of a name.

        Raises:
            AirlocError: When there is none of that name.
        """
        with self._lock:
            if name not in self._made:
                self._made[name] = make_agent(name)
            return self._made[name]


class Flight(NamedTuple):
    """What an agent did in an episode."""

    agent: str
    path: tuple[Cell, ...]
    found: bool


class Rivals:
    """Plays agents on single episodes of a world.

    Args:
        names: Which agents.
        pool: Where agents come from.
        world: Where they play.
    """

    def __init__(self, names: Sequence[str], pool: AgentPool, world: World) -> None:
        self.names = tuple(names)
        self._pool = pool
        self._world = world
        self._lock = threading.Lock()
        self._known: OrderedDict[Episode, tuple[Flight, ...]] = OrderedDict()

    def flights(self, episode: Episode) -> tuple[Flight, ...]:
        """The agents' paths in an episode; safe to be called from several threads, one at a time works."""
        with self._lock:
            if episode not in self._known:
                self._known[episode] = tuple(self._fly(name, episode) for name in self.names)
            self._known.move_to_end(episode)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return self._known[episode]

    def _fly(self, name: str, episode: Episode) -> Flight:
        played = play_one(self._pool.get(name), self._world, episode)
        return Flight(name, path_of(played), bool(played.found[0]))


def play_one(agent: Agent, world: World, episode: Episode, seed: int = 0) -> Trajectories:
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
    return play(agent, suite, BatchEnv(world.cells, world.budget), seed=seed)


def path_of(played: Trajectories) -> tuple[Cell, ...]:
    """The cells of the first episode from the start to where it ended."""
    return tuple((row, col) for row, col in played.path[0, : int(played.steps[0]) + 1].tolist())
