"""Watching agents: their searches step by step, with what they believe and how likely each move was.

An agent plays by `rollout` as in evaluation, which records its beliefs and logits.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from airloc.agents.agent import Agent
from airloc.agents.registry import available_agents
from airloc.areas.area import Pixels
from airloc.drawing.heatmap import belief_strip, draw_belief
from airloc.drawing.sheet import encode_gif
from airloc.drawing.trajectory import draw_trajectory
from airloc.game.baselines import draw_area, path_of, play_one
from airloc.game.match import Episode, RefusedError
from airloc.game.worker_pool import AgentPool, WorkerPool
from airloc.grid import Cell
from airloc.rollout import BELIEF, LOGITS
from airloc.task.world import World

MAX_AGENTS = 4
"""Agents side by side."""
MAX_WAITING = 24
"""Searches and pictures that watchers may wait for at a time, all together."""
_DIGITS = 4


@dataclass(frozen=True)
class Look:
    """What an agent's state shows when it has chosen a move."""

    belief: list[float] | None
    """The probability of being the goal for every cell, row by row; None for an agent without a belief."""
    chances: list[float] | None
    """The probability of each of the eight moves; None for an agent that does not weigh them."""


@dataclass(frozen=True)
class Track:
    """A search, step by step."""

    agent: str
    path: tuple[Cell, ...]
    found: bool
    looks: tuple[Look, ...]
    """One for every move."""


def follow(agent: Agent, world: World, episode: Episode) -> Track:
    """Let an agent search, and give every step."""
    log = play_one(agent, world, episode, record=(BELIEF, LOGITS))
    path = path_of(log)
    beliefs, logits = (log.recorded.get(recorder) for recorder in (BELIEF, LOGITS))
    looks = tuple(
        Look(
            belief=None if beliefs is None else _rounded(torch.from_numpy(beliefs[0, step])),
            chances=None if logits is None else _rounded(torch.from_numpy(logits[0, step]).softmax(dim=0)),
        )
        for step in range(len(path) - 1)
    )
    return Track(agent.name, path, bool(log.found[0]), looks)


class Watch:
    """Searches to be watched on a world.

    Args:
        world: The areas; not those that people play on, because watching shows them whole.
        workshop: Where the searches are made.
        name: The name of the world in the workshop.
    """

    def __init__(self, world: World, worker_pool: WorkerPool, name: str = "watch") -> None:
        self.world = world
        self._workshop = worker_pool
        self._name = name
        self._under_way = 0

    def episode(self, area: str, start: Cell, goal: Cell) -> Episode:
        """The episode that a link names.

        Raises:
            RefusedError: When there is no such episode here.
        """
        if area not in self.world.names:
            raise RefusedError(404, "no-area", "There is no area of that name to watch")
        if start == goal or not all(map(self.world.grid.contains, (start, goal))):
            raise RefusedError(422, "no-episode", "Start and goal have to be two different cells of the area")
        return Episode(self.world.names.index(area), start, goal)

    def agents(self, names: str) -> tuple[str, ...]:
        """The agents that a link names, separated by commas; only those that come with the package.

        Raises:
            RefusedError: When there is no such agent, or there are too many.
        """
        wanted = tuple(dict.fromkeys(filter(None, names.split(","))))
        if not 1 <= len(wanted) <= MAX_AGENTS:
            raise RefusedError(422, "agents", f"Choose one to {MAX_AGENTS} agents")
        if not set(wanted) <= set(available_agents()):
            raise RefusedError(404, "no-agent", "There is no agent of that name")
        return wanted

    async def track(self, agent: str, episode: Episode) -> Track:
        """An agent's search."""
        with self._place():
            return await self._workshop.run(search, self._name, agent, episode)

    async def animation(self, agents: tuple[str, ...], episode: Episode, ms: int) -> bytes:
        """Some agents' searches side by side, as GIF."""
        with self._place():
            return await self._workshop.run(animate, self._name, agents, episode, ms)

    async def picture(self, area: int) -> bytes:
        """The whole area as PNG."""
        with self._place():
            return await self._workshop.run(draw_area, self._name, area)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Take a place in the queue; players' endings come through the same workshop and must not wait long."""
        if self._under_way >= MAX_WAITING:
            raise RefusedError(503, "busy", "Many people are watching; ask again in a moment")
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1


def search(world: World, pool: AgentPool, agent: str, episode: Episode) -> Track:
    """Let an agent of the pool search."""
    return follow(pool.get(agent), world, episode)


def animate(world: World, pool: AgentPool, agents: tuple[str, ...], episode: Episode, ms: int) -> bytes:
    """Let agents search and draw them side by side."""
    return encode_gif(frames([search(world, pool, agent, episode) for agent in agents], world, episode), ms)


def frames(tracks: Sequence[Track], world: World, episode: Episode) -> list[Pixels]:
    """Draw the searches side by side, one picture a step; a search that has ended waits for the others."""
    margin = max(_outside(cell, world) for track in tracks for cell in track.path)
    last = max(len(track.path) for track in tracks)
    pictures = []
    for step in range(last):
        panels = [_panel(track, min(step, len(track.path) - 1), world, episode, margin) for track in tracks]
        captions = [_caption(track, step) for track in tracks]
        pictures.append(belief_strip(panels, captions))
    return pictures


def _panel(track: Track, step: int, world: World, episode: Episode, margin: int) -> Pixels:
    """One search after some steps: the belief where there is one, and the path otherwise."""
    image, path = world.image(episode.area), track.path[: step + 1]
    found = track.found and len(path) == len(track.path)
    beliefs = [look.belief for look in track.looks if look.belief is not None]
    if not beliefs:
        return draw_trajectory(
            image, world.grid, path, episode.goal, scale=1, dim_unvisited=True, margin=margin, found=found
        )
    belief = np.reshape(beliefs[min(step, len(beliefs) - 1)], world.grid.shape)
    # One scale for all frames, so that a growing belief is seen to grow.
    top = min(1.0, max(4 / world.grid.count, *map(max, beliefs)))
    return draw_belief(
        image, world.grid, belief, position=path[-1], goal=episode.goal, visited=path, top=top, scale=1, margin=margin
    )


def _caption(track: Track, step: int) -> str:
    moves = len(track.path) - 1
    if step < moves:
        return f"{track.agent}: {step}"
    return f"{track.agent}: {'found' if track.found else 'not found'} in {moves}"


def _outside(cell: Cell, world: World) -> int:
    """How many cells a cell lies outside the area."""
    (row, col), (rows, cols) = cell, world.grid.shape
    return max(0, -row, -col, row - rows + 1, col - cols + 1)


def _rounded(chances: torch.Tensor) -> list[float]:
    return [round(float(chance), _DIGITS) for chance in chances.tolist()]
