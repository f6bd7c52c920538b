"""Patches of areas as one table, so that a glimpse is one gather, and flips of areas as augmentation.

A flip applies to an image and to its episodes. An orientation is a number from 0 to 3: bit 0 flips left to right, bit 1
flips top to bottom.

Legend: A areas, n cells of a grid, S side of a cell in pixels, D = S * S * 3 bytes of a patch.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from airloc.areas.area import Pixels, SearchArea, fit
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.anywhere import GoalsAnywhere
from airloc.task.photos import FlightConditions
from airloc.task.rules import ArrayT, inside

ORIENTATIONS = 4


class CellTable:
    """The patches of a list of areas on one device, and a black patch for every cell outside.

    Args:
        images: Images of the areas at the size of the grid, (A, height, width, 3) uint8.
        grid: Grid of every area.
        device: Device of the patches.
    """

    def __init__(self, images: Sequence[Pixels], grid: Grid, device: torch.device | str = "cpu") -> None:
        if len(images) == 0:
            raise AirlocError("There are no areas", "Use at least one area")
        self.grid = grid
        self.areas = len(images)
        side = grid.cell
        # One row per patch; the last row is black and stands for every cell outside.
        table = np.zeros((self.areas * grid.count + 1, side, side, 3), dtype=np.uint8)
        for number, image in enumerate(images):
            table[number * grid.count : (number + 1) * grid.count] = cut_patches(image, grid)
        self._table = torch.from_numpy(table.reshape(len(table), -1)).to(device)  # (A * n + 1, D)

    @classmethod
    def from_areas(cls, areas: Sequence[SearchArea], grid: Grid, device: torch.device | str = "cpu") -> "CellTable":
        """Build the table of search areas, which are fitted to the grid if necessary."""
        return cls([fit(area, grid).image for area in areas], grid, device)

    @property
    def device(self) -> torch.device:
        """Device of the patches."""
        return self._table.device

    @property
    def array(self) -> Pixels:
        """Patches as a NumPy array, (A * n + 1, S, S, 3), the black one last; a view if the device is the CPU."""
        side = self.grid.cell
        return self._table.cpu().numpy().reshape(-1, side, side, 3)

    def rows(self, area: ArrayT, position: ArrayT) -> ArrayT:
        """Return the rows of the table with the patches at positions (B, 2) of areas (B,): (B,)."""
        row = area * self.grid.count + position[..., 0] * self.grid.cols + position[..., 1]
        within = inside(position, self.grid)
        rows: ArrayT = row * within + self.areas * self.grid.count * ~within
        return rows

    def patches(self, area: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """Gather the patches at positions (B, 2) of areas (B,): (B, S, S, 3) uint8, black outside."""
        side = self.grid.cell
        return self._table.index_select(0, self.rows(area, position)).view(-1, side, side, 3)

    def mean_patch(self) -> torch.Tensor:
        """Return the mean of all patches, (S, S, 3) uint8."""
        total = self._table[:-1].sum(dim=0, dtype=torch.float64)
        side = self.grid.cell
        return (total / (len(self._table) - 1)).round().to(torch.uint8).view(side, side, 3)


def cell_tables(
    areas: Sequence[SearchArea],
    grid: Grid,
    *,
    goal_areas: Sequence[SearchArea] | None = None,
    flight: FlightConditions | None = None,
    goals: GoalsAnywhere | None = None,
    device: torch.device | str = "cpu",
) -> tuple[CellTable, CellTable]:
    """Build the tables of glimpses and goals; without other areas or images of goals they are the same table.

    In flight conditions, and with goals anywhere, the tables hold the images of all variants: those of the first
    variant of every area, then those of the second, and so on.
    """
    if flight is not None and goals is not None:
        raise AirlocError("Goals anywhere and flight conditions both alter the goal patch", "Use one of them")
    if goal_areas is not None and len(goal_areas) != len(areas):
        problem = f"There are {len(goal_areas)} goal areas for {len(areas)} areas"
        raise AirlocError(problem, "Give one image of the same place for each area")
    conditions = flight or goals
    if conditions is None:
        cells = CellTable.from_areas(areas, grid, device)
        return cells, cells if goal_areas is None else CellTable.from_areas(goal_areas, grid, device)
    taken = [conditions.apply(areas, goal_areas, grid, variant) for variant in range(conditions.variants)]
    tables = ([area for variant in role for area in variant] for role in zip(*taken, strict=True))
    glimpse_table, goal_table = (CellTable.from_areas(images, grid, device) for images in tables)
    return glimpse_table, goal_table


def cut_patches(image: Pixels, grid: Grid) -> Pixels:
    """Cut an image of the grid's size into its patches in row-major order, (n, S, S, 3)."""
    if image.shape[:2] != grid.size:
        raise AirlocError(
            f"An image of {image.shape[1]} x {image.shape[0]} px does not have the size of a {grid} grid",
            f"Resample it to {grid.size[1]} x {grid.size[0]} px first",
        )
    padded = np.pad(image, ((0, grid.gap), (0, grid.gap), (0, 0)))
    blocks = padded.reshape(grid.rows, grid.pitch, grid.cols, grid.pitch, 3).swapaxes(1, 2)
    return blocks[:, :, : grid.cell, : grid.cell].reshape(grid.count, grid.cell, grid.cell, 3)


def flip_image(image: Pixels, orientation: int) -> Pixels:
    """Flip images or patches, (..., H, W, 3)."""
    return image[..., :: -1 if orientation & 2 else 1, :: -1 if orientation & 1 else 1, :]


def flip_cells(cells: npt.NDArray[np.int64], orientation: int, grid: Grid) -> npt.NDArray[np.int64]:
    """Return where the content of `cells` (..., 2) is after the flip. The function is its own inverse."""
    last = np.array([grid.rows - 1, grid.cols - 1])
    return np.where([orientation & 2, orientation & 1], last - cells, cells)
