"""The agent `blind`: the best path without observations, the lower bound for every score.

From each start, `blind` flies a path that is optimal for the per-distance prior (or another prior) of its grid and
budget, or for the prior that comes with an episode. If several paths are optimal, it draws one by its seed.
`success_table` gives the probability of finding each goal, averaged over the optimal paths; the `blind_optimum` beside
every score is computed from it.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import cycle, islice
from typing import TypeAlias

import numpy as np

from airloc.agents.baselines import PlannedAgent
from airloc.agents.best_path import BestPaths, Floats, best_paths
from airloc.grid import Cell, Grid
from airloc.seeding import stream
from airloc.task import priors

PriorOf: TypeAlias = Callable[[Grid], priors.Prior]
"""Returns the prior of a grid."""


def blind(seed: int = 0, prior: PriorOf = priors.per_distance) -> PlannedAgent:
    """Return the agent that flies one optimal path for each start, drawn by `seed`."""

    def plan(grid: Grid, budget: int, start: Cell) -> list[Cell]:
        canonical, undo = _canonical(start, grid)
        path = _paths(grid, budget, canonical, prior).draw(stream(seed, "blind", str(grid), budget, *start))
        return [undo(cell) for cell in _fill(path, budget)]

    def plan_for(grid: Grid, budget: int, start: Cell, weights: Floats) -> list[Cell]:
        found = best_paths(grid, min(budget, 2 * grid.count), start, weights)
        return _fill(found.draw(stream(seed, "blind", str(grid), budget, *start)), budget)

    return PlannedAgent("blind", plan, plan_for)


def _fill(path: list[Cell], budget: int) -> list[Cell]:
    """Let a path that is shorter than the budget alternate between its last two cells."""
    return [*path, *islice(cycle(path[-2:]), budget + 1 - len(path))]


def success_table(
    grid: Grid, budget: int, starts: list[Cell], prior: PriorOf = priors.per_distance
) -> dict[Cell, Floats]:
    """Return, for each start, the probability that `blind` finds a goal in each cell, (rows, cols)."""
    tables = {}
    for start in starts:
        canonical, undo = _canonical(start, grid)
        share = _paths(grid, budget, canonical, prior).share.reshape(grid.shape)
        table = np.zeros(grid.shape)
        for cell in grid.cells():
            table[undo(cell)] = share[cell]
        tables[start] = table
    return tables


def is_exact(grid: Grid, budget: int, starts: list[Cell], prior: PriorOf = priors.per_distance) -> bool:
    """Return True if the paths from all of these starts are proven to be optimal."""
    return all(_paths(grid, budget, _canonical(start, grid)[0], prior).exact for start in starts)


def is_complete(grid: Grid, budget: int, starts: list[Cell], prior: PriorOf = priors.per_distance) -> bool:
    """Return True if all optimal paths from all of these starts are known."""
    found = [_paths(grid, budget, _canonical(start, grid)[0], prior) for start in starts]
    return all(paths.exact and paths.complete for paths in found)


@lru_cache(maxsize=512)
def _paths(grid: Grid, budget: int, start: Cell, prior: PriorOf) -> BestPaths:
    enough = 2 * grid.count
    return best_paths(grid, min(budget, enough), start, _table(grid, prior)[grid.index(start)])


@lru_cache(maxsize=4)
def _table(grid: Grid, prior: PriorOf) -> priors.Prior:
    return prior(grid)


def _canonical(start: Cell, grid: Grid) -> tuple[Cell, Callable[[Cell], Cell]]:
    """Mirror a start into one corner of the grid, so that mirrored starts share their paths.

    Returns:
        The mirrored start, and the function that mirrors cells back.
    """
    down, right = 2 * start[0] >= grid.rows, 2 * start[1] >= grid.cols

    def mirror(cell: Cell) -> Cell:
        row, col = cell
        return (grid.rows - 1 - row if down else row), (grid.cols - 1 - col if right else col)

    row, col = mirror(start)
    turn = grid.rows == grid.cols and row > col

    def undo(cell: Cell) -> Cell:
        return mirror(cell[::-1] if turn else cell)

    return ((col, row) if turn else (row, col)), undo
