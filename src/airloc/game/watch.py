"""Watch agents search: every step of a search, with the agent's belief and the probability of each move."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from airloc.agents.agent import Agent
from airloc.agents.registry import available_agents
from airloc.areas.area import Pixels
from airloc.drawing.heatmap import belief_strip, draw_belief
from airloc.drawing.sheet import encode_gif
from airloc.drawing.trajectory import draw_trajectory
from airloc.game.store import Episode, RefusedError
from airloc.game.worker_pool import AgentCache, WorkerPool, encode_area, path_of, play_episode
from airloc.grid import Cell
from airloc.rollout import BELIEF, LOGITS
from airloc.task.sampling import EpisodeSampler

MAX_AGENTS = 4
"""Agents side by side."""
MAX_QUEUE = 24
"""Searches and images that all spectators together may wait for."""
_DIGITS = 4


@dataclass(frozen=True)
class StepRecord:
    """What an agent's state holds after it has chosen a move."""

    belief: list[float] | None
    """Probability of being the goal for every cell, row by row; None for an agent without a belief."""
    move_probabilities: list[float] | None
    """Probability of each of the eight moves; None for an agent without a policy."""


@dataclass(frozen=True)
class SearchRecord:
    """A search, step by step."""

    agent: str
    path: tuple[Cell, ...]
    found: bool
    steps: tuple[StepRecord, ...]
    """One record per move."""


def record_search(agent: Agent, sampler: EpisodeSampler, episode: Episode) -> SearchRecord:
    """Let an agent search, and record every step."""
    log = play_episode(agent, sampler, episode, record=(BELIEF, LOGITS))
    path = path_of(log)
    beliefs, logits = log.recorded.get(BELIEF), log.recorded.get(LOGITS)
    steps = tuple(
        StepRecord(
            belief=None if beliefs is None else _rounded(beliefs[0, step]),
            move_probabilities=None if logits is None else _rounded(softmax(logits[0, step])),
        )
        for step in range(len(path) - 1)
    )
    return SearchRecord(agent.name, path, bool(log.found[0]), steps)


class WatchService:
    """Searches for spectators.

    Args:
        sampler: The areas. Nobody plays on them, because spectators see them whole.
        worker_pool: Where the searches run.
        name: Name of the sampler in the worker pool.
    """

    def __init__(self, sampler: EpisodeSampler, worker_pool: WorkerPool, name: str = "watch") -> None:
        self.sampler = sampler
        self._worker_pool = worker_pool
        self._name = name
        self._queued = 0

    def episode(self, area: str, start: Cell, goal: Cell) -> Episode:
        """Return the episode of a link.

        Raises:
            RefusedError: If the area does not exist, or start and goal are not two cells of it.
        """
        if start == goal or not all(map(self.sampler.grid.contains, (start, goal))):
            raise RefusedError(422, "no-episode", "Start and goal must be two different cells of the area.")
        return Episode(self.area_number(area), start, goal)

    def area_number(self, area: str) -> int:
        """Return the index of an area.

        Raises:
            RefusedError: If the area does not exist.
        """
        if area not in self.sampler.names:
            raise RefusedError(404, "no-area", "This area does not exist.")
        return self.sampler.names.index(area)

    def agents(self, names: str) -> tuple[str, ...]:
        """Return the agents of a link, which are separated by commas; only registered names are allowed.

        Raises:
            RefusedError: If an agent does not exist, or there are none or too many.
        """
        wanted = tuple(dict.fromkeys(filter(None, names.split(","))))
        if not 1 <= len(wanted) <= MAX_AGENTS:
            raise RefusedError(422, "agents", f"Choose 1 to {MAX_AGENTS} agents.")
        if not set(wanted) <= set(available_agents()):
            raise RefusedError(404, "no-agent", "This agent does not exist.")
        return wanted

    async def search(self, agent: str, episode: Episode) -> SearchRecord:
        """Return an agent's search."""
        with self._queue():
            return await self._worker_pool.run(search, self._name, agent, episode)

    async def animation(self, agents: tuple[str, ...], episode: Episode, ms: int) -> bytes:
        """Return the agents' searches side by side as GIF, `ms` milliseconds per step."""
        with self._queue():
            return await self._worker_pool.run(animate, self._name, agents, episode, ms)

    async def area_png(self, area: int) -> bytes:
        """Return the whole area as PNG."""
        with self._queue():
            return await self._worker_pool.run(encode_area, self._name, area)

    @contextmanager
    def _queue(self) -> Iterator[None]:
        """Limit the queue: players' results come from the same worker pool and must not wait long."""
        if self._queued >= MAX_QUEUE:
            raise RefusedError(503, "busy", "Many people are watching. Try again in a moment.")
        self._queued += 1
        try:
            yield
        finally:
            self._queued -= 1


def search(sampler: EpisodeSampler, agents: AgentCache, agent: str, episode: Episode) -> SearchRecord:
    """Worker job: let an agent search."""
    return record_search(agents.get(agent), sampler, episode)


def animate(sampler: EpisodeSampler, agents: AgentCache, names: tuple[str, ...], episode: Episode, ms: int) -> bytes:
    """Worker job: let agents search, and draw them side by side as GIF."""
    return encode_gif(_frames([search(sampler, agents, name, episode) for name in names], sampler, episode), ms)


def _frames(records: Sequence[SearchRecord], sampler: EpisodeSampler, episode: Episode) -> list[Pixels]:
    """Draw one frame per step; a search that has ended stays still until the longest one ends."""
    margin = max(_cells_outside(cell, sampler) for record in records for cell in record.path)
    count = max(len(record.path) for record in records)
    frames = []
    for step in range(count):
        panels = [_panel(record, min(step, len(record.path) - 1), sampler, episode, margin) for record in records]
        captions = [_caption(record, step) for record in records]
        frames.append(belief_strip(panels, captions))
    return frames


def _panel(record: SearchRecord, step: int, sampler: EpisodeSampler, episode: Episode, margin: int) -> Pixels:
    """Draw the belief after some steps, or the path of an agent without a belief."""
    image, path = sampler.image(episode.area), record.path[: step + 1]
    found = record.found and len(path) == len(record.path)
    beliefs = [one.belief for one in record.steps if one.belief is not None]
    if not beliefs:
        return draw_trajectory(
            image, sampler.grid, path, episode.goal, scale=1, dim_unvisited=True, margin=margin, found=found
        )
    belief = np.reshape(beliefs[min(step, len(beliefs) - 1)], sampler.grid.shape)
    # One colour scale for all frames, so that the growth of a belief is visible.
    top = min(1.0, max(4 / sampler.grid.count, *map(max, beliefs)))
    return draw_belief(
        image, sampler.grid, belief, position=path[-1], goal=episode.goal, visited=path, top=top, scale=1, margin=margin
    )


def _caption(record: SearchRecord, step: int) -> str:
    moves = len(record.path) - 1
    if step < moves:
        return f"{record.agent}: {step}"
    return f"{record.agent}: {'found' if record.found else 'not found'} in {moves}"


def _cells_outside(cell: Cell, sampler: EpisodeSampler) -> int:
    """Return how many cells a cell lies outside the area."""
    (row, col), (rows, cols) = cell, sampler.grid.shape
    return max(0, -row, -col, row - rows + 1, col - cols + 1)


def _rounded(probabilities: npt.NDArray[np.float32]) -> list[float]:
    return [round(float(value), _DIGITS) for value in probabilities.tolist()]
