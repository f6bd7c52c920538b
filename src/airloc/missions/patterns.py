"""Search patterns as flights: fixed paths that no photo changes, and how much of the prior they cover.

| pattern            | path                                                                                            |
|--------------------|-------------------------------------------------------------------------------------------------|
| `parallel-track`   | lines along the longer side of the search area, from the corner next to the start               |
| `creeping-line`    | lines along the shorter side                                                                    |
| `expanding-square` | legs of 1, 1, 2, 2, 3, ... cells around the datum, each turned right by 90 degrees              |
| `sector`           | three triangles around the datum with legs of one length, all turns 120 degrees to the right;   |
|                    | again, turned by 30 degrees, while moves are left                                               |
| `best-blind`       | the path that covers most of the prior: exact on small grids, a beam search on larger ones      |

The first four are those of the IAMSAR manual. The datum is the most probable cell; the start if all cells are equally
probable. Cells outside the search area and cells photographed before are left out, and a pattern ends with its budget.

Legend: a prior is (rows, cols) and sums to one; paths begin with the start.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from airloc.agents.baselines import expanding_square
from airloc.agents.best_path import best_paths
from airloc.areas.area import Mask
from airloc.grid import Cell, Grid, distance
from airloc.missions.session import Belief
from airloc.missions.sweep import path_length, plan_sweep
from airloc.seeding import stream

MAX_CELLS = 4096
"""Largest grid on which the best path is searched for; on larger ones it is the planned sweep."""
LEGS = 9
"""Legs of a sector search."""


class Pattern(NamedTuple):
    """A fixed path over the search area."""

    name: str
    cells: list[Cell]
    """Cells to photograph, in order."""
    pod: float
    """Mean probability of detection over the search area."""
    pos: float
    """Probability of success: prior times POD, summed over all cells."""

    @property
    def moves(self) -> int:
        """Length of the path in moves."""
        return path_length(self.cells)


class _Task(NamedTuple):
    """What a pattern is planned for."""

    grid: Grid
    searchable: Mask
    prior: Belief
    start: Cell
    budget: int

    @property
    def datum(self) -> Cell:
        """The most probable cell; the start if it is as probable."""
        best = self.grid.cell_of(int(self.prior.argmax()))
        return self.start if self.prior[self.start] >= self.prior[best] * (1 - 1e-9) else best


def plan_patterns(
    names: Iterable[str],
    grid: Grid,
    searchable: Mask,
    prior: Belief,
    start: Cell,
    budget: int,
    detection: float,
) -> list[Pattern]:
    """Plan patterns with the same start and budget.

    Args:
        names: Names of the patterns, keys of `PATTERNS`.
        grid: The grid of cells.
        searchable: Cells inside the search area, (rows, cols).
        prior: Probability of area before the flight, (rows, cols).
        start: First cell to photograph.
        budget: Moves that the vehicle may fly.
        detection: Probability of detection in a photo of a cell.
    """
    task = _Task(grid, searchable, prior, start, budget)
    patterns = []
    for name in names:
        cells = PATTERNS[name](task)
        covered = sum(float(prior[cell]) for cell in cells)
        share = len(cells) / int(searchable.sum())
        patterns.append(Pattern(name, cells, detection * share, detection * covered))
    return patterns


def _parallel_track(task: _Task) -> list[Cell]:
    rows, cols = _extent(task)
    return _fly(task, _lines(task, along_rows=len(cols) >= len(rows)))


def _creeping_line(task: _Task) -> list[Cell]:
    rows, cols = _extent(task)
    return _fly(task, _lines(task, along_rows=len(cols) < len(rows)))


def _extent(task: _Task) -> tuple[range, range]:
    """Return the rows and the columns of the search area, each from the side next to the start."""
    sides = []
    for axis, at in enumerate(task.start):
        used = np.flatnonzero(task.searchable.any(axis=1 - axis))
        low, high = int(used[0]), int(used[-1])
        sides.append(range(low, high + 1) if at - low <= high - at else range(high, low - 1, -1))
    return sides[0], sides[1]


def _lines(task: _Task, along_rows: bool) -> Iterator[Cell]:
    """Yield all cells line by line, back and forth."""
    rows, cols = _extent(task)
    lines, steps = (rows, cols) if along_rows else (cols, rows)
    for number, line in enumerate(lines):
        for step in steps if number % 2 == 0 else reversed(steps):
            yield (line, step) if along_rows else (step, line)


def _expanding_square(task: _Task) -> list[Cell]:
    return _fly(task, [task.datum, *expanding_square(task.datum, 2 * max(task.grid.shape))])


def _sector(task: _Task) -> list[Cell]:
    """Fly sector searches around the datum, with legs that the budget allows."""
    row, col = task.datum
    reach = max(1, (task.budget - distance(task.start, task.datum)) // LEGS)
    radius = min(reach, max(task.grid.shape) // 2 or 1)

    def legs() -> Iterator[Cell]:
        yield task.datum
        for turn in range(0, 120, 30):
            at = np.array([row, col], dtype=np.float64)
            for heading in (0, 120, 240, 240, 0, 120, 120, 240, 0):
                angle = math.radians(heading + turn)
                step = np.array([-math.cos(angle), math.sin(angle)])
                yield from ((round(r), round(c)) for r, c in (at + part * step for part in range(1, radius + 1)))
                at = at + radius * step

    return _fly(task, legs())


def _best_blind(task: _Task) -> list[Cell]:
    sweep = plan_sweep(task.prior, task.searchable, task.start, task.budget)
    if task.grid.count > MAX_CELLS:
        return sweep
    budget = min(task.budget, 2 * task.grid.count)
    path = best_paths(task.grid, budget, task.start, task.prior.ravel()).draw(stream(0, "patterns"))
    return max(sweep, _fly(task, path), key=lambda cells: sum(float(task.prior[cell]) for cell in cells))


def _fly(task: _Task, targets: Iterable[Cell]) -> list[Cell]:
    """Fly to targets in order, without those outside the search area or seen before, until the budget is spent."""
    cells, seen, left = [task.start], {task.start}, task.budget
    for target in targets:
        if target in seen or not (task.grid.contains(target) and task.searchable[target]):
            continue
        left -= distance(cells[-1], target)
        if left < 0:
            break
        cells.append(target)
        seen.add(target)
    return cells


PATTERNS: dict[str, Callable[[_Task], list[Cell]]] = {
    "expanding-square": _expanding_square,
    "sector": _sector,
    "creeping-line": _creeping_line,
    "parallel-track": _parallel_track,
    "best-blind": _best_blind,
}
"""Planner of every pattern."""
