"""Controls: the same episodes with another goal picture, to see how much of a score is vision.

An agent that scores as high with a wrong picture as with the right one has not looked at it.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from airloc.errors import AirlocError
from airloc.rollout import GoalPictures
from airloc.seeding import stream
from airloc.task.cells import CellTable
from airloc.task.suites import Suite


def wrong_goal(suite: Suite, cells: CellTable, seed: int) -> GoalPictures:
    """Show a random cell of another area."""
    area, goal = (torch.from_numpy(array).to(cells.device) for array in wrong_cells(suite, cells.areas, seed))
    return lambda numbers: cells.patches(area[numbers], goal[numbers])


def wrong_cells(suite: Suite, areas: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For every episode a random cell of another area: the area's number (E,) and the cell (E, 2)."""
    if areas < 2:
        raise AirlocError("A wrong goal comes from another area, and there is only one", "Give at least two areas")
    rng = stream(seed, "control", "wrong-goal")
    area = (suite.area + rng.integers(1, areas, size=len(suite))) % areas
    return area, rng.integers(suite.grid.shape, size=(len(suite), 2))


def mean_goal(suite: Suite, cells: CellTable, seed: int) -> GoalPictures:
    """Show the mean of all cells of all areas: a picture of no place."""
    del suite, seed
    picture = cells.mean_patch()
    return lambda numbers: picture.expand(len(numbers), -1, -1, -1)


CONTROLS: dict[str, Callable[[Suite, CellTable, int], GoalPictures]] = {
    "wrong-goal": wrong_goal,
    "mean-goal": mean_goal,
}
