"""Reliability of a belief: is the goal where the agent says, as often as it says?

Two questions are asked before every move, of all episodes together:

| question | one forecast                                                        | comes true when     |
|----------|---------------------------------------------------------------------|---------------------|
| cells    | the probability of each cell not yet visited (visited ones are sure) | it is the goal      |
| largest  | the largest probability of the belief                               | its cell is the goal|

Forecasts are put into the bins between `EDGES`, which are narrow where most probabilities of cells lie. With n(b)
forecasts in bin b, whose mean is p(b) and of which the share h(b) came true, the expected calibration error is

    ECE = sum over b of n(b) |p(b) - h(b)|  /  sum over b of n(b)

Intervals are by bootstrap over areas, or over their tiles. Chance alone adds to an ECE, so its interval leans upwards.

Legend: E episodes, T budget, C cells, N forecasts of an episode, K bins, R resamples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.matching import with_match
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.intervals import Bootstrap, Interval
from airloc.evaluation.metrics import Floats, Metric
from airloc.evaluation.recording import RolloutLog
from airloc.grid import Grid
from airloc.rollout import play
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.rules import inside
from airloc.task.suites import Suite

EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bin:
    """Forecasts of about one probability."""

    low: float
    high: float
    forecast: float
    """Their mean."""
    hit: float
    """The share that came true."""
    ci95: Interval
    """The 95 % interval of that share."""
    count: int

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        edges = {"low": self.low, "high": self.high}
        return {**edges, "forecast": self.forecast, "hit": self.hit, "ci95": list(self.ci95), "count": self.count}


@dataclass(frozen=True, slots=True)
class Reliability:
    """How forecasts of one kind came true."""

    bins: tuple[Bin, ...]
    """By probability; empty ones are left out."""
    ece: float
    """The expected calibration error."""
    ci95: Interval
    """Its 95 % interval."""

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"ece": self.ece, "ci95": list(self.ci95), "bins": [entry.record() for entry in self.bins]}


def calibration(watched: RolloutLog, *, seed: int = 0) -> Mapping[str, Reliability]:
    """How reliable an agent's belief was over a suite: by question, `cells` and `largest`.

    Args:
        watched: The suite as played by an agent with a belief.
        seed: Decides the bootstrap.
    """
    if watched.beliefs is None:
        raise AirlocError(f"The agent {watched.agent!r} keeps no belief", "Give an agent whose state has a belief")
    suite, belief, made = watched.suite, watched.beliefs, watched.made
    goal = suite.goal @ np.array([suite.grid.cols, 1])
    is_goal = np.arange(suite.grid.count) == goal[:, None, None]  # (E, 1, C)
    bootstrap = Bootstrap([watched.areas[area].source for area in suite.area.tolist()], seed)
    open_cells = made[:, :, None] & ~visited(watched)  # (E, T, C)
    shape = len(suite), -1
    cells = reliability(
        belief.reshape(shape),
        np.broadcast_to(is_goal, belief.shape).reshape(shape),
        open_cells.reshape(shape),
        suite.weight,
        bootstrap,
    )
    is_largest = belief.argmax(axis=2) == goal[:, None]  # (E, T)
    return {"cells": cells, "largest": reliability(belief.max(axis=2), is_largest, made, suite.weight, bootstrap)}


def visited(watched: RolloutLog) -> Bools:
    """Which cells had been visited before every move, (E, T, C)."""
    grid, path = watched.suite.grid, watched.played.path[:, :-1]
    number = path @ np.array([grid.cols, 1])
    here = (np.arange(grid.count) == number[:, :, None]) & inside(path, grid)[:, :, None]
    been: Bools = np.logical_or.accumulate(here, axis=1)
    return been


def first_sights(path: npt.NDArray[np.int64], grid: Grid) -> Bools:
    """Which steps of paths (E, T, 2) show a cell of the grid for the first time, (E, T)."""
    within, number = inside(path, grid), path @ np.array([grid.cols, 1])
    earlier = np.tril(np.ones((path.shape[1],) * 2, dtype=np.bool_), -1)  # (T, T)
    seen: Bools = ((number[:, :, None] == number[:, None]) & earlier & within[:, None]).any(axis=2)
    return within & ~seen


def reliability(
    forecast: npt.ArrayLike, hit: Bools, counted: Bools, weight: Floats, bootstrap: Bootstrap
) -> Reliability:
    """Compare forecasts with what came true.

    Args:
        forecast: Probabilities, (E, N).
        hit: Which of them came true, (E, N).
        counted: Which of them were made, (E, N).
        weight: How much each episode counts, (E,).
        bootstrap: Resamples the episodes.
    """
    chance = np.asarray(forecast, dtype=np.float64)
    number = np.searchsorted(EDGES[1:-1], chance, side="right")
    parts = [counted & (number == at) for at in range(len(EDGES) - 1)]
    counts, forecasts, hits = (
        np.stack([weight * (part * value).sum(axis=1) for part in parts], axis=1) for value in (1.0, chance, hit)
    )  # (E, K) each
    bins = []
    for at, part in enumerate(parts):
        observed = Metric(hits[:, at], counts[:, at])
        predicted, share = Metric(forecasts[:, at], counts[:, at]).value(), observed.value()
        if predicted is not None and share is not None:
            span = bootstrap.interval(observed)
            bins.append(Bin(EDGES[at], EDGES[at + 1], predicted, share, span, int(part.sum())))
    if not bins:
        raise AirlocError("There is no forecast to judge", "Play at least one episode")
    error = _error(*(part.sum(axis=0) for part in (counts, forecasts, hits)))
    resampled = _error(*(bootstrap.totals(part) for part in (counts, forecasts, hits)))
    return Reliability(tuple(bins), float(error), bootstrap.percentiles(resampled))


def _error(count: Floats, forecast: Floats, hit: Floats) -> Floats:
    """The expected calibration error of sums by bin, (..., K)."""
    error: Floats = np.abs(forecast - hit).sum(axis=-1) / count.sum(axis=-1)
    return error


# ---------- What agents say of being there: the probability at every glimpse that it shows the goal, while nobody acts on it.
# ~
# ~ Episodes are flown to the end of their budget: nobody is told of an arrival, and nothing is declared. So a goal that was
# ~ flown over and not recognised stays among what was seen, as in the field.
# ~
# ~ Legend: E episodes, B of a batch, T budget.

NEVER = 2.0
"""A probability that nobody reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchLog:
    """What an agent said at every glimpse of a suite."""

    agent: str
    areas: Sequence[SearchArea]
    suite: Suite
    path: npt.NDArray[np.int64]
    """Cells from the start on, (E, T + 1, 2)."""
    here: npt.NDArray[np.float32]
    """The probability said at each of them that it is the goal's, (E, T + 1)."""

    @property
    def asked(self) -> Bools:
        """Which glimpses count, (E, T + 1): every cell when it is first seen."""
        return first_sights(self.path, self.suite.grid)


class _Silent:
    """Plays as an agent does, and notes what it would say."""

    def __init__(self, agent: Agent) -> None:
        self._agent = with_match(agent)
        self.name = agent.name
        self.said: list[list[torch.Tensor]] = []

    def reset(self, briefing: EpisodeBatch) -> Any:
        self.said.append([])
        return self._agent.reset(briefing)

    def match(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        here, state = self._agent.match(observation, state)
        self.said[-1].append(here.float().cpu())
        return here, state

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        return self._agent.act(observation, state)


def judge(
    agent: Agent,
    areas: Sequence[SearchArea],
    suite: Suite,
    *,
    goal_areas: Sequence[SearchArea] | None = None,
    seed: int = 0,
    batch: int = 1024,
    device: str = "cpu",
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> MatchLog:
    """Play a suite in silence and keep what the agent would have said.

    Args:
        agent: Who searches; without a judgement of its own it has that of the likeness.
        areas: The areas, numbered as in the suite.
        suite: The episodes.
        goal_areas: Other pictures of the same ground to take the goals from, one for each area.
        seed: Decides every random choice.
        batch: Episodes in step.
        device: Where the areas are kept.
        on_batch: Called with the number of episodes just played.
    """
    suite = replace(suite, by_declaration=True)
    cells = CellTable.of(areas, suite.grid, device)
    goal_cells = None if goal_areas is None else CellTable.of(goal_areas, suite.grid, device)
    env = BatchEnv(cells, suite.budget, goal_cells, by_declaration=True)
    silent = _Silent(agent)
    played = play(silent, suite, env, seed=seed, batch=batch, threshold=NEVER, on_batch=on_batch)
    here = np.concatenate([torch.stack(said, dim=1).numpy() for said in silent.said])
    return MatchLog(agent.name, areas, suite, played.path, here)


def match_calibration(judged: MatchLog, *, seed: int = 0) -> Reliability:
    """How often a glimpse was the goal's, over how probable that was said to be."""
    suite = judged.suite
    bootstrap = Bootstrap([judged.areas[area].source for area in suite.area.tolist()], seed)
    is_goal = (judged.path == suite.goal[:, None]).all(axis=2)
    return reliability(judged.here, is_goal, judged.asked, suite.weight, bootstrap)
