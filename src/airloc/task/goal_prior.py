"""The distribution of goals for a given start, on grids of any size.

The per-distance prior of the task is defined here: each distance is equally probable; for a distance, the start is
uniform over the cells that have a cell at that distance, and the goal is uniform over these. `airloc.task.priors`
builds its tables from it, and agents use it before their first glimpse.

This module needs NumPy alone: `airloc export` copies it into the runner of an exported agent.

Legend: C = rows x cols cells in row-major order.
"""

from functools import lru_cache
from typing import Any

import numpy as np

GOAL_PRIORS = ("per-distance", "uniform", "anywhere")
"""Priors over goals: by distance, uniform over all cells but the start, uniform over all cells."""
IMPOSSIBLE = 1e-12
"""Weight of an impossible goal. It is positive so that evidence can correct a wrong prior."""


def goal_weights(start: tuple[int, int], rows: int, cols: int, moves: int = 8) -> Any:
    """Return the per-distance weight of a goal in every cell, float64 (C,).

    The weight is the probability of the pair of start and goal among all pairs at their distance. It is zero at the
    start.
    """
    distance = _distances(start, rows, cols, moves)
    ring = np.bincount(distance, minlength=rows + cols)
    weights = 1 / np.maximum(ring, 1) / np.maximum(_starts(rows, cols, moves), 1)
    weights[0] = 0
    return weights[distance]


@lru_cache(maxsize=4096)
def goal_prior(kind: str, start: tuple[int, int], rows: int, cols: int, moves: int = 8) -> Any:
    """Return the probability of a goal in every cell up to a factor, positive float32 (C,), for a kind of prior."""
    if kind == "per-distance":
        return goal_weights(start, rows, cols, moves).astype(np.float32) + np.float32(IMPOSSIBLE)
    prior = np.ones(rows * cols, dtype=np.float32)
    if kind == "uniform":
        prior[start[0] * cols + start[1]] = np.exp(-30)
    elif kind != "anywhere":
        raise ValueError(f"There is no prior {kind!r}; use one of {', '.join(GOAL_PRIORS)}")
    return prior


@lru_cache(maxsize=16)
def _starts(rows: int, cols: int, moves: int) -> Any:
    """Return the number of cells that have a cell at each distance, (rows + cols,)."""
    row, col = np.arange(rows)[:, None], np.arange(cols)
    down, across = np.maximum(row, rows - 1 - row), np.maximum(col, cols - 1 - col)
    farthest = (np.maximum(down, across) if moves == 8 else down + across).ravel()
    return (farthest >= np.arange(rows + cols)[:, None]).sum(axis=1)


def _distances(start: tuple[int, int], rows: int, cols: int, moves: int) -> Any:
    """Return the distance from a start to every cell in moves, (C,)."""
    down, across = abs(np.arange(rows)[:, None] - start[0]), abs(np.arange(cols) - start[1])
    return (np.maximum(down, across) if moves == 8 else down + across).ravel()
