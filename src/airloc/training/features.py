"""What the frozen units say of every (cell, goal) pair of every area, computed once.

Policy training then touches only the LSTM: a step is one gather from this table. The patch that is black, seen
outside the area, is one more cell.

Legend: A areas, n cells, F = 264 numbers of a pair: the embedding c and the prior u.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from airloc.areas.area import Pixels
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.task.rules import inside
from airloc.vision.embedder import EMBEDDING
from airloc.vision.eyes import Eyes
from airloc.vision.position import encode_position


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The table of all pairs, and encoded positions."""

    grid: Grid
    areas: int
    table: torch.Tensor
    """(A * (n + 1) * n, F), by area, cell (black last) and goal."""
    positions: torch.Tensor
    """(rows + 2 T, cols + 2 T, E): encoded positions, as far outside as the budget T leads."""
    reach: int

    def look(self, area: torch.Tensor, position: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What is seen at positions (..., 2) with goals (..., 2) in areas (...): c + p (..., E) and u (..., 8)."""
        count = self.grid.count
        seen = inside(position, self.grid)
        cell = torch.where(seen, position[..., 0] * self.grid.cols + position[..., 1], count)
        target = goal[..., 0] * self.grid.cols + goal[..., 1]
        row = (area * (count + 1) + cell) * count + target
        pair = self.table.index_select(0, row.flatten()).view(*row.shape, -1).float()
        place = self.positions[position[..., 0] + self.reach, position[..., 1] + self.reach]
        return pair[..., :EMBEDDING] + place, pair[..., EMBEDDING:]


@torch.no_grad()
def tabulate(
    eyes: Eyes,
    images: npt.NDArray[np.uint8],
    grid: Grid,
    budget: int,
    *,
    device: torch.device,
    on_area: Callable[[int], None] = lambda areas: None,
) -> Features:
    """Compute the table for images (A, height, width, 3) at the grid's size."""
    eyes = eyes.to(device).eval()
    half = torch.float16 if device.type == "cuda" else torch.float32
    table = torch.empty(len(images) * (grid.count + 1) * grid.count, EMBEDDING + 8, dtype=half, device=device)
    rows = (grid.count + 1) * grid.count
    for number, image in enumerate(images):
        with torch.autocast(device.type, torch.float16, enabled=device.type == "cuda"):
            table[number * rows : (number + 1) * rows] = _pairs(eyes, image, grid, device)
        on_area(1)
    first, last = -budget, max(grid.shape) + budget
    line = torch.arange(first, last, device=device)
    positions = encode_position(torch.cartesian_prod(line, line).reshape(len(line), len(line), 2))
    return Features(grid, len(images), table, positions, budget)


def _pairs(eyes: Eyes, image: Pixels, grid: Grid, device: torch.device) -> torch.Tensor:
    """All pairs of one area, ((n + 1) * n, F)."""
    patches = torch.from_numpy(cut_patches(image, grid)).to(device)
    seen = eyes.look(torch.cat([patches, torch.zeros_like(patches[:1])]))
    current, goal = eyes.embedder.current_first(seen), eyes.embedder.goal_first(seen[:-1])
    both = current.repeat_interleave(len(goal), dim=0), goal.repeat(len(current), 1, 1, 1)
    return torch.cat(eyes.embedder.relate(*both), dim=1)
