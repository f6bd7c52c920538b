"""Targets that move: the probability of each step, as a sparse transition that conserves probability.

A target walks at random, drifts with a constant velocity, or both. Time is counted in rounds: in one round every drone
makes one move. A step that would leave the area is not made.

Legend: C cells of a grid in row-major order, E episodes, T rounds.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import sparse

from airloc.errors import AirlocError
from airloc.grid import MOVES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shape = tuple[int, int]
Step = tuple[int, int]

KING_STEPS: list[Step] = [(down, right) for down, right in MOVES.tolist()]
MAX_SPEED = 10.0
"""Largest number of cells per round, for walking and for each axis of a drift."""


@dataclass(frozen=True)
class Motion:
    """How a target moves in one round.

    Raises:
        AirlocError: If a speed is out of range.
    """

    speed: float = 0.0
    """Mean number of steps to a random neighbouring cell in one round."""
    drift: tuple[float, float] = (0.0, 0.0)
    """Rows and columns in one round, such as the drift of a boat."""

    def __post_init__(self) -> None:
        if not 0 <= self.speed <= MAX_SPEED:
            problem = f"A target cannot walk {self.speed:g} cells per move of a drone"
            raise AirlocError(problem, f"Use a speed from 0 to {MAX_SPEED:g} cells per move")
        if not all(abs(part) <= MAX_SPEED for part in self.drift):
            problem = "A target cannot drift {:g} rows and {:g} columns per move of a drone".format(*self.drift)
            raise AirlocError(problem, f"Use at most {MAX_SPEED:g} cells per move")

    def __bool__(self) -> bool:
        """Return True if the target moves."""
        return self.speed > 0 or any(self.drift)

    def transition(self, shape: Shape, ease: Floats | None = None) -> sparse.csr_array:
        """Return the probability of being in each cell after one round, (C, C) with rows that sum to one.

        Args:
            shape: Rows and columns of the grid.
            ease: How much a walker prefers each cell to the others around it, such as a road to a wood, (rows, cols).
                A cell of ease zero is never walked into. All cells are alike if None.
        """
        parts = max(1, math.ceil(max(self.speed, *map(abs, self.drift))))
        step = _walk(shape, self.speed / parts, ease) @ _drift(shape, self.drift, parts)
        whole = step
        for _ in range(parts - 1):
            whole = whole @ step
        return sparse.csr_array(whole)


STILL = Motion()
"""A target that does not move."""


@lru_cache(maxsize=8)
def transition_of(motion: Motion, shape: Shape) -> sparse.csr_array:
    """Return the transition of a motion on a grid without obstacles; it is computed once."""
    return motion.transition(shape)


def diffuse(belief: Floats, transition: sparse.csr_array) -> Floats:
    """Return a belief (rows, cols) after one round."""
    return np.asarray(transition.T @ belief.ravel()).reshape(belief.shape)


def sample_walks(
    rng: np.random.Generator,
    motion: Motion,
    shape: Shape,
    start: Ints,
    rounds: int,
    transition: sparse.csr_array | None = None,
) -> Ints:
    """Sample the cells of targets that begin in cells (E, 2) over some rounds, (E, T + 1, 2).

    `transition` is that of the motion on a grid without obstacles by default.
    """
    chances = (transition_of(motion, shape) if transition is None else transition).toarray().cumsum(axis=1)
    cell = start[:, 0] * shape[1] + start[:, 1]
    cells = [cell]
    for _ in range(rounds):
        drawn = rng.random(len(cell))[:, None] < chances[cell]
        cell = np.where(drawn.any(axis=1), drawn.argmax(axis=1), cell)
        cells.append(cell)
    return np.stack(np.divmod(np.stack(cells, axis=1), shape[1]), axis=-1)


def _walk(shape: Shape, chance: float, ease: Floats | None) -> sparse.csr_array:
    """Return the transition of a step to a neighbour, (C, C); diagonal ones are less probable, as they are farther."""
    weight = np.ones(shape) if ease is None else np.asarray(ease, dtype=np.float64)
    near = [(step, _shifted(weight, step) / math.hypot(*step)) for step in KING_STEPS]
    total = sum((each for _, each in near), np.zeros(shape))
    moving = np.where(total > 0, chance / np.where(total > 0, total, 1.0), 0.0)
    return _transition(shape, [(step, moving * each) for step, each in near])


def _drift(shape: Shape, drift: tuple[float, float], parts: int) -> sparse.csr_array:
    """Return the transition of a part of a drift, (C, C): rows and columns are independent."""
    down, right = (abs(part) / parts for part in drift)
    row, col = (int(np.sign(part)) for part in drift)
    inside = np.ones(shape)
    chances = [((row, 0), down * (1 - right)), ((0, col), right * (1 - down)), ((row, col), down * right)]
    return _transition(shape, [(step, chance * _shifted(inside, step)) for step, chance in chances if chance > 0])


def _shifted(weight: Floats, step: Step) -> Floats:
    """Return the weight of the cell one step away from each cell, (rows, cols), zero outside."""
    rows, cols = weight.shape
    return np.pad(weight, 1)[1 + step[0] : 1 + step[0] + rows, 1 + step[1] : 1 + step[1] + cols]


def _transition(shape: Shape, steps: list[tuple[Step, Floats]]) -> sparse.csr_array:
    """Return the transition of steps with a chance in each cell, (C, C); the rest stays."""
    count = shape[0] * shape[1]
    source = np.arange(count)
    rows, cols, data = [source], [source], [1 - sum((chance for _, chance in steps), np.zeros(shape)).ravel()]
    for (down, right), chance in steps:
        possible = np.flatnonzero(chance)
        rows.append(possible)
        cols.append(possible + down * shape[1] + right)
        data.append(chance.ravel()[possible])
    index = np.concatenate(rows), np.concatenate(cols)
    return sparse.csr_array(sparse.coo_array((np.concatenate(data), index), shape=(count, count)))
