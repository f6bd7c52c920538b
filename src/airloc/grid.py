"""Pure geometry of a search grid: cells, gaps, moves, pixels and distances, written once.

A grid of M x N cells lies on an area's image. Cells are squares of `cell` pixels, `gap` pixels apart, so a
side of n cells is `n * (cell + gap) - gap` pixels long: 256 for 5 and 360 for 7 cells of 48 pixels.

A task has eight moves, the king's, which may leave the area, or four, the straight ones, within a closed border.
Distance is the number of moves: Chebyshev's with eight, Manhattan's with four.

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
"""The eight king's moves as (row, col) steps, clockwise from north: turning right by 90 degrees adds 2."""

MoveCount: TypeAlias = Literal[4, 8]

MOVE_NAMES = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


@dataclass(frozen=True, slots=True)
class Grid:
    """M x N cells on an area.

    >>> Grid(5, 5).size, Grid(7, 7).size, Grid.parse("3x4").shape
    ((256, 256), (360, 360), (3, 4))
    """

    rows: int = 5
    """Cells from top to bottom (M)."""
    cols: int = 5
    """Cells from left to right (N)."""
    cell: int = 48
    """Side of a cell in pixels."""
    gap: int = 4
    """Pixels between neighbouring cells, never observed."""
    moves: MoveCount = 8
    """8: the king's moves, which may leave the area. 4: north, east, south and west, and the border is closed."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1 or self.rows * self.cols < 2:
            raise AirlocError(
                f"A grid of {self.rows} x {self.cols} has no second cell to search", "Ask for at least 1x2 cells"
            )
        if self.cell < 1 or self.gap < 0:
            raise AirlocError(
                f"Cells of {self.cell} px with gaps of {self.gap} px do not exist",
                "Give a cell of 1 px or more and a gap of 0 px or more",
            )
        if self.moves not in (4, 8):
            raise AirlocError(f"There is no task of {self.moves} moves", "Ask for 4 or 8 moves")

    @classmethod
    def parse(cls, text: str, cell: int = 48, gap: int = 4, moves: MoveCount = 8) -> "Grid":
        """Read a grid written as `ROWSxCOLS`, such as `5x5`."""
        match = re.fullmatch(r"(\d+)\s*[xX]\s*(\d+)", text.strip())
        if match is None:
            raise AirlocError(f"{text!r} is not a grid", "Write rows and columns as in 5x5")
        return cls(int(match[1]), int(match[2]), cell, gap, moves)

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols}"

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self.rows, self.cols

    @property
    def pitch(self) -> int:
        """Pixels from one cell's edge to the same edge of the next."""
        return self.cell + self.gap

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) in pixels of the area under the grid."""
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
        """The largest distance between two cells."""
        return max(self.shape) - 1 if self.moves == 8 else sum(self.shape) - 2

    @property
    def directions(self) -> npt.NDArray[np.int64]:
        """Numbers, in `MOVES`, of the moves that the task has: all eight, or the four straight ones."""
        return np.arange(0, len(MOVES), len(MOVES) // self.moves)

    def contains(self, cell: Cell) -> bool:
        """Whether the cell lies in the grid."""
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.cols

    def index(self, cell: Cell) -> int:
        """Number of a cell in row-major order."""
        return cell[0] * self.cols + cell[1]

    def cell_of(self, index: int) -> Cell:
        """Cell of a row-major number; inverse of `index`."""
        return divmod(index, self.cols)

    def cells(self) -> Iterator[Cell]:
        """All cells in row-major order."""
        return ((row, col) for row in range(self.rows) for col in range(self.cols))

    def box(self, cell: Cell) -> Box:
        """Pixel box (left, top, right, bottom) of a cell, ends excluded; defined outside the grid too."""
        top, left = cell[0] * self.pitch, cell[1] * self.pitch
        return left, top, left + self.cell, top + self.cell

    def centre(self, cell: Cell) -> tuple[float, float]:
        """Pixel (x, y) of a cell's centre."""
        left, top, right, bottom = self.box(cell)
        return (left + right) / 2, (top + bottom) / 2

    def cell_at(self, x: float, y: float) -> Cell | None:
        """The cell that a pixel lies in; None in a gap or outside the grid."""
        row, row_rest = divmod(y, self.pitch)
        col, col_rest = divmod(x, self.pitch)
        cell = int(row), int(col)
        in_gap = row_rest >= self.cell or col_rest >= self.cell
        return None if in_gap or not self.contains(cell) else cell

    def neighbours(self, cell: Cell) -> list[Cell]:
        """The cells of the grid one move away, in the order of `MOVES`."""
        steps = MOVES[self.directions].tolist()
        return [to for to in ((cell[0] + dr, cell[1] + dc) for dr, dc in steps) if self.contains(to)]

    def apart(self, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Distances between arrays of cells (..., 2), which are also the minimum numbers of moves: (...)."""
        return distances(a, b) if self.moves == 8 else np.asarray(np.abs(a - b).sum(axis=-1))

    def distances(self) -> npt.NDArray[np.int64]:
        """Distances between all cells, (count, count) in row-major order."""
        cells = np.array(list(self.cells()), dtype=np.int64)
        return self.apart(cells[:, None], cells[None])


def distance(a: Cell, b: Cell) -> int:
    """Chebyshev distance: the minimum number of king's moves from one cell to another."""
    return max(abs(a[0] - b[0]), abs(a[1] - b[1]))


def distances(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Chebyshev distances between arrays of cells (..., 2): (...)."""
    between: npt.NDArray[np.int64] = np.abs(a - b).max(axis=-1)
    return between
