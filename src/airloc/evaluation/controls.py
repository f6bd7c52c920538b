"""Controls: the same episodes with another goal picture, to see how much of a score is vision.

An agent that scores as high with a wrong picture as with the right one has not looked at it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from airloc.areas.area import SearchArea, fit
from airloc.areas.changes import CHANGES, check_change, cut_goal
from airloc.errors import AirlocError
from airloc.rollout import GoalPatches
from airloc.seeding import stream
from airloc.task.cells import CellTable
from airloc.task.suites import Suite


def wrong_goal(suite: Suite, cells: CellTable, seed: int) -> GoalPatches:
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


def mean_goal(suite: Suite, cells: CellTable, seed: int) -> GoalPatches:
    """Show the mean of all cells of all areas: a picture of no place."""
    del suite, seed
    picture = cells.mean_patch()
    return lambda numbers: picture.expand(len(numbers), -1, -1, -1)


CONTROLS: dict[str, Callable[[Suite, CellTable, int], GoalPatches]] = {
    "wrong-goal": wrong_goal,
    "mean-goal": mean_goal,
}


# ---------- Goals that do not look the same: pictures that differ from what the flight sees, drawn by `airloc.areas.changes`.
# ~
# ~ Legend: E episodes, B of a batch, S side of a cell.


@dataclass(frozen=True)
class GoalChange:
    """A change of the goals' pictures."""

    name: str
    """A name in `CHANGES`."""
    strength: float = 1.0
    """From 0, no change, to 1."""

    def __post_init__(self) -> None:
        check_change(self.name, self.strength)


def changed_goals(
    change: GoalChange,
    suite: Suite,
    areas: Sequence[SearchArea],
    *,
    control: str | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> GoalPatches:
    """Show changed pictures of the goals.

    What is drawn for an episode follows from the seed, the change and the episode itself (area, start and goal), so
    neither the batch nor the other episodes matter.

    Args:
        change: What changes.
        suite: The episodes.
        areas: The areas that the goals' pictures are taken from, numbered as in the suite.
        control: `wrong-goal` changes the picture of the wrong cell; the mean goal is no place and cannot be changed.
        seed: What every random choice follows from.
        device: Where the pictures are wanted.
    """
    check_control(control)
    images = [fit(area, suite.grid).image for area in areas]
    area, cell = (suite.area, suite.goal) if control is None else wrong_cells(suite, len(areas), seed)

    def picture(number: int) -> torch.Tensor:
        view = CHANGES[change.name](_chance(seed, change.name, suite, number), change.strength)
        row, col = cell[number].tolist()
        return torch.from_numpy(np.ascontiguousarray(cut_goal(images[area[number]], suite.grid, (row, col), view)))

    return lambda numbers: torch.stack([picture(number) for number in numbers.tolist()]).to(device)


def check_control(control: str | None) -> None:
    """Refuse controls whose goal is no place that another picture could be taken of."""
    if control not in (None, "wrong-goal"):
        raise AirlocError(
            f"The picture of --control {control} is of no place, so it cannot be changed",
            "Leave out --change, or use --control wrong-goal",
        )


def _chance(seed: int, change: str, suite: Suite, number: int) -> np.random.Generator:
    """The chance of one episode; names of files that are not UTF-8 count by their escapes."""
    name = ascii(suite.areas[suite.area[number]])
    return stream(seed, "change", change, name, *suite.start[number].tolist(), *suite.goal[number].tolist())
