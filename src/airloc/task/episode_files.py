"""Reading episode files: CSV with the header `area,start_row,start_col,goal_row,goal_col`.

`area` is a file name inside the areas folder. A broken file is an error that names the file, the line and the cure.
"""

import csv
from pathlib import Path

import numpy as np

from airloc.errors import AirlocError
from airloc.grid import Cell, Grid
from airloc.task.suites import HEADER, Suite

Row = tuple[str, Cell, Cell]


def read_suite(path: Path, grid: Grid, *, budget: int | None = None) -> Suite:
    """Read an episode file as a suite over the areas it names, in the order of their first appearance."""
    rows = [_read_row(row, line, path, grid) for line, row in _read_lines(path)]
    if not rows:
        raise AirlocError(f"The episode file {path} lists no episodes", "Add at least one row below the header")
    numbers: dict[str, int] = {}
    area = [numbers.setdefault(name, len(numbers)) for name, _, _ in rows]
    return Suite(
        name=path.name,
        grid=grid,
        budget=grid.default_budget if budget is None else budget,
        areas=tuple(numbers),
        area=np.array(area, dtype=np.int64),
        start=np.array([start for _, start, _ in rows], dtype=np.int64),
        goal=np.array([goal for _, _, goal in rows], dtype=np.int64),
    )


def _read_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Give the rows below the header with their line numbers; empty lines are passed over."""
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            reader = csv.reader(file, strict=True)
            rows = [(reader.line_num, row) for row in reader if row]
    except FileNotFoundError:
        raise AirlocError(f"There is no episode file {path}", "Check the path") from None
    except (OSError, ValueError, csv.Error) as error:
        raise AirlocError(f"Cannot read the episode file {path}: {error}", "Give a CSV file in UTF-8") from error
    if not rows or tuple(name.strip() for name in rows[0][1]) != HEADER:
        raise AirlocError(
            f"The episode file {path} does not begin with the header", f"Make its first line {','.join(HEADER)}"
        )
    return rows[1:]


def _read_row(row: list[str], line: int, path: Path, grid: Grid) -> Row:
    """Read one episode and check it against the grid."""
    where = f"line {line} of the episode file {path}"
    try:
        name, (start_row, start_col, goal_row, goal_col) = row[0], (int(text) for text in row[1:])
    except ValueError:
        raise AirlocError(
            f"Cannot read {where}: {','.join(row)[:80]!r} is not an area and four whole numbers",
            f"Write it as {','.join(HEADER)}",
        ) from None
    start, goal = (start_row, start_col), (goal_row, goal_col)
    for what, cell in (("start", start), ("goal", goal)):
        if not grid.contains(cell):
            raise AirlocError(
                f"The {what} {cell} in {where} lies outside the grid of {grid}",
                f"Use rows 0 to {grid.rows - 1} and columns 0 to {grid.cols - 1}, or another --grid",
            )
    if start == goal:
        raise AirlocError(f"Start and goal are both {start} in {where}", "Make them different cells")
    return name, start, goal
