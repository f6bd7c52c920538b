"""The task where goals lie anywhere: a goal is a square of ground between the cells, turned and of another size.

The goal's cell is the one that contains its centre. The rules stay as they are: the episode ends in that cell, or with
a declaration there, or with one that reports the goal's position to within half a cell. The centre is never farther
than half a cell from the middle of its cell, in each direction, so that a photo of the cell shows at least a quarter of
the goal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from airloc.areas.area import SearchArea, fit
from airloc.areas.changes import CHANGES, check_change, cut_goal
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.seeding import stream

Heading: TypeAlias = Literal["known", "unknown"]
"""Whether agents know the heading and the width of the goal's image. If they do, it is turned and scaled like cells."""
_CHANGE: dict[str, str] = {"known": "anywhere", "unknown": "any-heading"}


@dataclass(frozen=True)
class GoalsAnywhere:
    """Goals are squares of ground anywhere in the area, of any heading, up to 1.5 times as wide or narrow as a cell.

    The image of a goal depends on the seed, the name of the area, the cell and the variant only. The distribution of
    the goal cells is that of the prior, so that the blind optimum is the one of goals that are cells.
    """

    heading: Heading = "known"
    """With a known heading the image of the goal is turned and scaled like the cells, and mirrored beyond its border.
    With an unknown one it is as its camera took it."""
    strength: float = 1.0
    """Offsets, turns and scales from 0 (goals are cells) to 1 (up to half a cell, any heading, a factor of 1.5)."""
    seed: int = 0
    """Random seed of the goals."""
    variants: int = 1
    """Number of goals of each cell. An environment draws one variant for each episode."""

    def __post_init__(self) -> None:
        if self.heading not in _CHANGE:
            raise AirlocError(f"The heading of goals cannot be {self.heading!r}", f"Use {' or '.join(_CHANGE)}")
        check_change(_CHANGE[self.heading], self.strength)
        if self.variants < 1:
            raise AirlocError(f"Cells cannot have {self.variants} goals", "Use one variant or more")

    def apply(
        self, areas: Sequence[SearchArea], goal_areas: Sequence[SearchArea] | None, grid: Grid, variant: int = 0
    ) -> tuple[list[SearchArea], list[SearchArea]]:
        """Return the areas for glimpses, and areas whose cells show the goals.

        Goals are cut from `goal_areas` if there are any, or else from `areas`.
        """
        goals = areas if goal_areas is None else goal_areas
        return [fit(area, grid) for area in areas], [self._goals(fit(area, grid), grid, variant) for area in goals]

    def _goals(self, area: SearchArea, grid: Grid, variant: int) -> SearchArea:
        """Return an area of the grid's size in which every cell shows the goal whose centre it contains."""
        image, change = area.image.copy(), _CHANGE[self.heading]
        for cell in grid.cells():
            rng = stream(self.seed, "goals anywhere", change, ascii(area.name), variant, *cell)
            left, top, right, bottom = grid.box(cell)
            image[top:bottom, left:right] = cut_goal(area.image, grid, cell, CHANGES[change](rng, self.strength))
        return replace(area, image=image)
