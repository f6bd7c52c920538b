"""Geometry of a search grid: cells, gaps, moves, pixels and distances.

A grid of M x N cells lies on an area's image. Cells are squares of `cell` pixels, `gap` pixels apart, so a
side of n cells is `n * (cell + gap) - gap` pixels long: 256 for 5 and 360 for 7 cells of 48 pixels.

A task has the eight moves of the king in chess, which may leave the area, or the four straight moves within a closed
border. Distance is the minimum number of moves: the Chebyshev distance with eight, the Manhattan distance with four.

Legend: a cell is (row, col), row 0 on top. Arrays of cells have a last axis of 2.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from airloc.errors import AirlocError

Cell: TypeAlias = tuple[int, int]
Box: TypeAlias = tuple[int, int, int, int]

MOVES: npt.NDArray[np.int64] = np.array(
    [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)], dtype=np.int64
)
"""The eight moves as (row, col) steps, clockwise from north, (8, 2). A right turn by 90 degrees adds 2 to the index."""

MoveCount: TypeAlias = Literal[4, 8]


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of M x N cells on an area.

    >>> Grid(5, 5).size, Grid(7, 7).size, Grid.parse("3x4").shape
    ((256, 256), (360, 360), (3, 4))
    """

    rows: int = 5
    """Number of cells from top to bottom (M)."""
    cols: int = 5
    """Number of cells from left to right (N)."""
    cell: int = 48
    """Side of a cell in pixels."""
    gap: int = 4
    """Pixels between adjacent cells, which are never observed."""
    moves: MoveCount = 8
    """8: all moves, which may leave the area. 4: north, east, south and west within a closed border."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1 or self.rows * self.cols < 2:
            raise AirlocError(f"A grid of {self.rows} x {self.cols} cells has no second cell", "Use at least 1x2 cells")
        if self.cell < 1 or self.gap < 0:
            raise AirlocError(
                f"A cell of {self.cell} px with a gap of {self.gap} px is invalid",
                "Use a cell of at least 1 px and a gap of at least 0 px",
            )
        if self.moves not in (4, 8):
            raise AirlocError(f"A task cannot have {self.moves} moves", "Use 4 or 8 moves")

    @classmethod
    def parse(cls, text: str, cell: int = 48, gap: int = 4, moves: MoveCount = 8) -> "Grid":
        """Parse a grid written as `ROWSxCOLS`, such as `5x5`."""
        match = re.fullmatch(r"(\d+)\s*[xX]\s*(\d+)", text.strip())
        if match is None:
            raise AirlocError(f"{text!r} is not a grid", "Write rows and columns as in 5x5")
        return cls(int(match[1]), int(match[2]), cell, gap, moves)

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols}"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.cols

    @property
    def pitch(self) -> int:
        """Pixels from the edge of a cell to the same edge of the next one."""
        return self.cell + self.gap

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the area in pixels."""
        return self.rows * self.pitch - self.gap, self.cols * self.pitch - self.gap

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.rows * self.cols

    @property
    def default_budget(self) -> int:
        """Twice the longer side: 10 moves on 5 x 5, 14 on 7 x 7."""
        return 2 * max(self.shape)

    @property
    def max_distance(self) -> int:
        """Largest distance between two cells."""
        return max(self.shape) - 1 if self.moves == 8 else sum(self.shape) - 2

    @property
    def directions(self) -> npt.NDArray[np.int64]:
        """Indices into `MOVES` of the moves of the task: all eight, or the four straight ones."""
        return np.arange(0, len(MOVES), len(MOVES) // self.moves)

    def contains(self, cell: Cell) -> bool:
        """Return True if the cell is in the grid."""
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.cols

    def index(self, cell: Cell) -> int:
        """Return the row-major index of a cell."""
        return cell[0] * self.cols + cell[1]

    def cell_of(self, index: int) -> Cell:
        """Return the cell with a row-major index, the inverse of `index`."""
        return divmod(index, self.cols)

    def cells(self) -> Iterator[Cell]:
        """Iterate over all cells in row-major order."""
        return ((row, col) for row in range(self.rows) for col in range(self.cols))

    def box(self, cell: Cell) -> Box:
        """Return the pixel box (left, top, right, bottom) of a cell, excluding right and bottom.

        The cell may be outside the grid.
        """
        top, left = cell[0] * self.pitch, cell[1] * self.pitch
        return left, top, left + self.cell, top + self.cell

    def centre(self, cell: Cell) -> tuple[float, float]:
        """Return the pixel (x, y) at the centre of a cell."""
        left, top, right, bottom = self.box(cell)
        return (left + right) / 2, (top + bottom) / 2

    def cell_at(self, x: float, y: float) -> Cell | None:
        """Return the cell that contains a pixel, or None in a gap or outside the grid."""
        row, row_rest = divmod(y, self.pitch)
        col, col_rest = divmod(x, self.pitch)
        cell = int(row), int(col)
        in_gap = row_rest >= self.cell or col_rest >= self.cell
        return None if in_gap or not self.contains(cell) else cell

    def neighbours(self, cell: Cell) -> list[Cell]:
        """Return the cells of the grid one move away, in the order of `MOVES`."""
        steps = MOVES[self.directions].tolist()
        return [to for to in ((cell[0] + dr, cell[1] + dc) for dr, dc in steps) if self.contains(to)]

    def moves_between(self, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the distances, which are minimum numbers of moves, between arrays of cells (..., 2): (...)."""
        return distances(a, b) if self.moves == 8 else np.asarray(np.abs(a - b).sum(axis=-1))

    def distances(self) -> npt.NDArray[np.int64]:
        """Return the distances between all cells, (count, count) in row-major order."""
        cells = np.array(list(self.cells()), dtype=np.int64)
        return self.moves_between(cells[:, None], cells[None])


def distance(a: Cell, b: Cell) -> int:
    """Return the Chebyshev distance between two cells."""
    return max(abs(a[0] - b[0]), abs(a[1] - b[1]))


def distances(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the Chebyshev distances between arrays of cells (..., 2): (...)."""
    between: npt.NDArray[np.int64] = np.abs(a - b).max(axis=-1)
    return between
