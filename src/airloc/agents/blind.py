"""The floor under every score: the best path that looks at nothing.

`blind` flies, from each start, a path that is optimal for the per-distance prior of its grid and budget (or for
another, where one is named); where several are optimal it draws one by its seed. `success_table` says how often a goal
is found when all of them are flown equally often, which is the `blind_optimum` beside every score.
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
"""Gives the prior that paths are to be optimal for."""


def blind(seed: int = 0, prior: PriorOf = priors.per_distance) -> PlannedAgent:
    """Make the agent that flies one path per start that is optimal for the prior, drawn by `seed`."""

    def plan(grid: Grid, budget: int, start: Cell) -> list[Cell]:
        canonical, undo = _canonical(start, grid)
        path = _paths(grid, budget, canonical, prior).draw(stream(seed, "blind", str(grid), budget, *start))
        # Moves beyond those that reach every cell go to and fro between the last two.
        path += islice(cycle(path[-2:]), budget + 1 - len(path))
        return [undo(cell) for cell in path]

    return PlannedAgent("blind", plan)


def success_table(
    grid: Grid, budget: int, starts: list[Cell], prior: PriorOf = priors.per_distance
) -> dict[Cell, Floats]:
    """For each start the probability that blind flight finds a goal in each cell, (rows, cols)."""
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
    """Whether the paths are proven optimal from all of these starts."""
    return all(_paths(grid, budget, _canonical(start, grid)[0], prior).exact for start in starts)


def is_complete(grid: Grid, budget: int, starts: list[Cell], prior: PriorOf = priors.per_distance) -> bool:
    """Whether all optimal paths from all of these starts are known."""
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
    """Mirror a start into one corner of the grid, where it shares its paths with its mirror images.

    Gives the mirrored start and the function that mirrors cells back.
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
