"""Analyses of recorded rollouts: calibration of beliefs and match probabilities, and use of AiRLoc's prior.

**Calibration** compares forecasts with outcomes, over all episodes:

| forecast  | when                             | probability                      | comes true if            |
|-----------|----------------------------------|----------------------------------|--------------------------|
| `cells`   | before every move                | of each cell not yet visited     | it is the goal           |
| `largest` | before every move                | the largest one of the belief    | its cell is the goal     |
| `here`    | at the first glimpse of a cell   | that the glimpse shows the goal  | the cell is the goal     |

Forecasts are sorted into the bins between `EDGES`, which are narrow where most probabilities of cells lie. Bin b holds
n(b) forecasts with mean p(b), of which the share h(b) comes true. The expected calibration error is

    ECE = sum over b of n(b) |p(b) - h(b)|  /  sum over b of n(b)

Noise in h(b) increases the ECE, so its bootstrap interval is biased upwards.

**Prior agreement** is the share of moves in which AiRLoc follows its exploitation prior u, by the distance left to the
goal: the right part of the paper's figure. The prior predicts where the goal is if it is adjacent. An agent that has
learned when to trust it makes the move argmax u more often near the goal than far from it.

Legend: E episodes, T budget, C cells, N forecasts of an episode, K bins, R resamples.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from airloc.errors import AirlocError
from airloc.evaluation.metrics import Bootstrap, Floats, Interval, Metric
from airloc.grid import Grid
from airloc.rollout import BELIEF, MATCH, PRIOR_FOLLOWED, Recorder, RolloutLog
from airloc.task.rules import inside

EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bin:
    """The forecasts between two probabilities."""

    low: float
    high: float
    forecast: float
    """Mean forecast."""
    hit: float
    """Share of the forecasts that came true."""
    ci95: Interval
    """95 % interval of `hit`."""
    count: int

    def record(self) -> dict[str, Any]:
        """Return plain JSON values."""
        edges = {"low": self.low, "high": self.high}
        return {**edges, "forecast": self.forecast, "hit": self.hit, "ci95": list(self.ci95), "count": self.count}


@dataclass(frozen=True, slots=True)
class Reliability:
    """Calibration of one kind of forecast."""

    bins: tuple[Bin, ...]
    """The bins in ascending order, without the empty ones."""
    ece: float
    """Expected calibration error."""
    ci95: Interval
    """95 % interval of `ece`."""

    def record(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"ece": self.ece, "ci95": list(self.ci95), "bins": [entry.record() for entry in self.bins]}


def calibration(log: RolloutLog, bootstrap: Bootstrap) -> Mapping[str, Reliability]:
    """Return the calibration of the belief in a rollout recorded with `BELIEF`, under `cells` and `largest`."""
    suite, belief = log.suite, _recorded(log, BELIEF)
    goal = suite.goal @ np.array([suite.grid.cols, 1])
    is_goal = np.arange(suite.grid.count) == goal[:, None, None]  # (E, 1, C)
    open_cells = log.moved[:, :, None] & ~visited(log)  # (E, T, C)
    shape = len(suite), -1
    cells = reliability(
        belief.reshape(shape),
        np.broadcast_to(is_goal, belief.shape).reshape(shape),
        open_cells.reshape(shape),
        suite.weight,
        bootstrap,
    )
    is_largest = belief.argmax(axis=2) == goal[:, None]  # (E, T)
    return {"cells": cells, "largest": reliability(belief.max(axis=2), is_largest, log.moved, suite.weight, bootstrap)}


def match_calibration(log: RolloutLog, bootstrap: Bootstrap) -> Reliability:
    """Return the calibration of the match probabilities in a rollout recorded with `MATCH`.

    Its episodes must not end at the goal: the suite ends by declaration, and the threshold is `math.inf`.
    """
    is_goal = (log.path == log.suite.goal[:, None]).all(axis=2)
    first = first_glimpses(log.path, log.suite.grid)
    return reliability(_recorded(log, MATCH), is_goal, first, log.suite.weight, bootstrap)


def visited(log: RolloutLog) -> Bools:
    """Return the mask of the cells visited before every move, (E, T, C)."""
    grid, path = log.suite.grid, log.path[:, :-1]
    number = path @ np.array([grid.cols, 1])
    current = (np.arange(grid.count) == number[:, :, None]) & inside(path, grid)[:, :, None]
    before: Bools = np.logical_or.accumulate(current, axis=1)
    return before


def first_glimpses(path: npt.NDArray[np.int64], grid: Grid) -> Bools:
    """Return the mask of the steps of paths (E, T, 2) that show a cell of the grid for the first time, (E, T)."""
    within, number = inside(path, grid), path @ np.array([grid.cols, 1])
    earlier = np.tril(np.ones((path.shape[1],) * 2, dtype=np.bool_), -1)  # (T, T)
    seen: Bools = ((number[:, :, None] == number[:, None]) & earlier & within[:, None]).any(axis=2)
    return within & ~seen


def reliability(
    forecast: npt.ArrayLike, hit: Bools, counted: Bools, weight: Floats, bootstrap: Bootstrap
) -> Reliability:
    """Compare forecasts with outcomes.

    Args:
        forecast: Probabilities, (E, N).
        hit: True for the forecasts that came true, (E, N).
        counted: True for the forecasts to use, (E, N).
        weight: Weight of each episode, (E,).
        bootstrap: Resamples the episodes.
    """
    probability = np.asarray(forecast, dtype=np.float64)
    number = np.searchsorted(EDGES[1:-1], probability, side="right")
    parts = [counted & (number == at) for at in range(len(EDGES) - 1)]
    counts, forecasts, hits = (
        np.stack([weight * (part * value).sum(axis=1) for part in parts], axis=1) for value in (1.0, probability, hit)
    )  # (E, K) each
    bins = []
    for at, part in enumerate(parts):
        observed = Metric(hits[:, at], counts[:, at])
        predicted, share = Metric(forecasts[:, at], counts[:, at]).value(), observed.value()
        if predicted is not None and share is not None:
            span = bootstrap.interval(observed)
            bins.append(Bin(EDGES[at], EDGES[at + 1], predicted, share, span, int(part.sum())))
    if not bins:
        raise AirlocError("There are no forecasts to compare with outcomes", "Play at least one episode")
    error = _error(*(part.sum(axis=0) for part in (counts, forecasts, hits)))
    resampled = _error(*(bootstrap.totals(part) for part in (counts, forecasts, hits)))
    return Reliability(tuple(bins), float(error), bootstrap.percentiles(resampled))


def _error(count: Floats, forecast: Floats, hit: Floats) -> Floats:
    """Return the expected calibration error of sums by bin, (..., K)."""
    error: Floats = np.abs(forecast - hit).sum(axis=-1) / count.sum(axis=-1)
    return error


@dataclass(frozen=True, slots=True)
class PriorAgreement:
    """How often the exploitation prior is followed at one distance."""

    share: float
    """Share of the moves made at this distance that follow the prior."""
    ci95: Interval
    """95 % interval of `share`."""
    moves: int
    """Number of moves made at this distance."""

    def record(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"share": self.share, "ci95": list(self.ci95), "moves": self.moves}


def prior_agreement(log: RolloutLog, bootstrap: Bootstrap) -> dict[int, PriorAgreement]:
    """Return the prior agreement in a rollout recorded with `PRIOR_FOLLOWED`, for each distance left to the goal."""
    suite, followed = log.suite, _recorded(log, PRIOR_FOLLOWED)
    left = suite.grid.moves_between(log.path[:, :-1], suite.goal[:, None])  # (E, T)
    shares = {}
    for distance in np.unique(left[log.moved]).tolist():
        at = log.moved & (left == distance)
        metric = Metric(suite.weight * (at & followed).sum(axis=1), suite.weight * at.sum(axis=1))
        share = metric.value()
        if share is not None:
            shares[distance] = PriorAgreement(share, bootstrap.interval(metric), int(at.sum()))
    return shares


def _recorded(log: RolloutLog, recorder: Recorder) -> npt.NDArray[Any]:
    if recorder not in log.recorded:
        raise AirlocError(
            f"The rollout of {log.agent!r} has no record of the {recorder.name}",
            f"Use an agent whose state has a {recorder.name}, and record it",
        )
    return log.recorded[recorder]
