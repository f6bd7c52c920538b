"""Other goal patches for the same episodes: controls, and changes of appearance.

A control replaces the goal patch, to measure how much of a score depends on it: an agent that scores the same with a
wrong patch does not use it. A change alters the goal patch, as `airloc.areas.changes` defines, so that it differs from
what the agent observes during the flight.

Legend: E episodes, B of a batch, S side of a cell in pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from airloc.areas.area import SearchArea, fit
from airloc.areas.changes import CHANGES, check_change, cut_goal, goal_centre
from airloc.errors import AirlocError
from airloc.rollout import GoalPatches
from airloc.seeding import stream
from airloc.task.cells import CellTable
from airloc.task.suites import Suite


def wrong_goal(suite: Suite, cells: CellTable, seed: int) -> GoalPatches:
    """Replace goal patches by random cells of other areas."""
    area, goal = (torch.from_numpy(array).to(cells.device) for array in _wrong_cells(suite, cells.areas, seed))
    return lambda numbers: cells.patches(area[numbers], goal[numbers])


def _wrong_cells(suite: Suite, areas: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sample a cell of another area for every episode: indices of areas (E,) and cells (E, 2)."""
    if areas < 2:
        raise AirlocError("A wrong goal comes from another area, but there is only one area", "Use at least two areas")
    rng = stream(seed, "control", "wrong-goal")
    area = (suite.area + rng.integers(1, areas, size=len(suite))) % areas
    return area, rng.integers(suite.grid.shape, size=(len(suite), 2))


def mean_goal(suite: Suite, cells: CellTable, seed: int) -> GoalPatches:
    """Replace goal patches by the mean of all cells of all areas."""
    del suite, seed
    patch = cells.mean_patch()
    return lambda numbers: patch.expand(len(numbers), -1, -1, -1)


CONTROLS: dict[str, Callable[[Suite, CellTable, int], GoalPatches]] = {
    "wrong-goal": wrong_goal,
    "mean-goal": mean_goal,
}


@dataclass(frozen=True)
class GoalChange:
    """A change of the goal patches."""

    name: str
    """A name in `airloc.areas.changes.CHANGES`."""
    strength: float = 1.0
    """Strength from 0 (no change) to 1."""

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
    """Return changed goal patches.

    The random numbers of an episode depend on the seed, the change and the episode (area, start and goal) only, not on
    the batch or on other episodes.

    Args:
        change: The change.
        suite: The episodes.
        areas: The areas that the goal patches are cut from, in the order of the suite.
        control: With `wrong-goal`, the patch of the wrong cell is changed. `mean-goal` is not supported.
        seed: Random seed.
        device: Device of the patches.
    """
    check_control(control)
    images = [fit(area, suite.grid).image for area in areas]
    area, cell = (suite.area, suite.goal) if control is None else _wrong_cells(suite, len(areas), seed)

    def patch(number: int) -> torch.Tensor:
        view = CHANGES[change.name](_stream(seed, change.name, suite, number), change.strength)
        row, col = cell[number].tolist()
        return torch.from_numpy(np.array(cut_goal(images[area[number]], suite.grid, (row, col), view)))

    return lambda numbers: torch.stack([patch(number) for number in numbers.tolist()]).to(device)


def goal_centres(change: GoalChange, suite: Suite, *, seed: int = 0) -> torch.Tensor:
    """Return the centres of the goals that `changed_goals` cuts, as rows and columns of cells, float (E, 2).

    A whole number is the middle of a cell.
    """
    grid, centres = suite.grid, []
    for number, (row, col) in enumerate(suite.goal.tolist()):
        view = CHANGES[change.name](_stream(seed, change.name, suite, number), change.strength)
        centres.append(goal_centre(grid, (row, col), view))
    return (torch.tensor(centres) - grid.cell / 2) / grid.pitch


def check_control(control: str | None) -> None:
    """Raise an error for a control that cannot be combined with a change."""
    if control not in (None, "wrong-goal"):
        raise AirlocError(
            f"The goal patch of --control {control} shows no place, so it cannot be changed",
            "Leave out --change, or use --control wrong-goal",
        )


def check_flight(change: GoalChange | None) -> None:
    """Raise an error for a change that is combined with flight conditions."""
    if change is not None:
        raise AirlocError(
            "A change and flight conditions both alter the goal patch",
            "Use one of them: --change or --flight-conditions",
        )


def _stream(seed: int, change: str, suite: Suite, number: int) -> np.random.Generator:
    """Return the random stream of one episode. File names that are not UTF-8 enter with escapes."""
    name = ascii(suite.areas[suite.area[number]])
    return stream(seed, "change", change, name, *suite.start[number].tolist(), *suite.goal[number].tolist())
