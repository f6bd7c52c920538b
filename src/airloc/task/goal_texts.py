"""Goals described in words: a file with a text for each goal cell of each area.

The file is CSV with the header `area,goal_row,goal_col,text` and an optional column `fits`: all cells that the text
fits, the goal included, as `row:col` with spaces between. `airloc data captions` writes such files.

Legend: E episodes, C cells.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.areas.captions import Detail, describe_cells
from airloc.areas.dataset import Dataset
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid
from airloc.seeding import stream
from airloc.task.suites import Suite, read_csv

HEADER = ("area", "goal_row", "goal_col", "text")
FITS = "fits"


class GoalText(NamedTuple):
    """The description of a goal."""

    text: str
    """The description; empty for none."""
    fits: tuple[Cell, ...] = ()
    """All cells of the area that the text fits; empty if they are unknown."""


@dataclass(frozen=True, eq=False)
class SuiteTexts:
    """The descriptions of the goals of a suite."""

    texts: list[str]
    """One for each episode."""
    fits: npt.NDArray[np.bool_] | None = None
    """Cells that each text fits, (E, C); None if they are unknown."""


def read_goal_texts(path: Path, grid: Grid) -> dict[tuple[str, Cell], GoalText]:
    """Read the descriptions of goals, by area and cell.

    Raises:
        AirlocError: If the file is broken; the message names the file and the line.
    """
    try:
        rows = read_csv(path)
    except (OSError, ValueError, csv.Error) as error:
        raise AirlocError(f"Cannot read the goal texts {path}: {error}", "Use a CSV file in UTF-8") from error
    if not rows or tuple(rows[0][1]) not in (HEADER, (*HEADER, FITS)):
        raise AirlocError(f"The goal texts {path} have no header", f"Make the first line {','.join(HEADER)}")
    texts: dict[tuple[str, Cell], GoalText] = {}
    for line, row in rows[1:]:
        try:
            area, cell, text = row[0], (int(row[1]), int(row[2])), row[3]
            fits = tuple(_cell(word) for word in row[4].split()) if len(row) > len(HEADER) else ()
        except (ValueError, IndexError):
            problem = f"Cannot read line {line} of the goal texts {path}: {','.join(row)[:80]!r}"
            raise AirlocError(problem, f"Write it as {','.join(HEADER)}") from None
        if not all(grid.contains(one) for one in (cell, *fits)):
            problem = f"Line {line} of the goal texts {path} has a cell outside the {grid} grid"
            raise AirlocError(problem, "Correct the cell, or use another --grid")
        texts[area, cell] = GoalText(text, fits)
    return texts


def _cell(word: str) -> Cell:
    row, col = word.split(":")
    return int(row), int(col)


def describe_areas(
    dataset: Dataset, grid: Grid, *, detail: Detail = "detailed", wrong: bool = False, seed: int = 0
) -> list[tuple[str, Cell, GoalText]]:
    """Describe every cell of the areas of a dataset whose land cover is known: area, cell and description of each.

    Args:
        dataset: The dataset.
        grid: The cells.
        detail: How much the descriptions say.
        wrong: Write one clause of every description about another cell.
        seed: Random seed of the words.

    Raises:
        AirlocError: If the land cover of no area is known.
    """
    rows = []
    for area, land in dataset.land_covers(grid):
        rng = stream(seed, "goal texts", area.name)
        for cell, caption, fits in describe_cells(land, grid, rng, detail, wrong=wrong):
            rows.append((area.name, cell, GoalText(caption.text, fits)))
    if not rows:
        raise AirlocError("The land cover of no area is known", "Use synthetic, dubai, or areas with masks")
    return rows


def write_goal_texts(rows: Iterable[tuple[str, Cell, GoalText]]) -> str:
    """Return the text of a file with the descriptions of goals: area, cell and description of each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*HEADER, FITS))
    for area, cell, goal in rows:
        writer.writerow((area, *cell, goal.text, " ".join(f"{row}:{col}" for row, col in goal.fits)))
    return out.getvalue()


TEXT_SHAPE = (8, 384)
"""Shape of the embedding of a description, as `airloc.vision.sentences.embed_descriptions` returns it."""


def check_text_table(table: npt.NDArray[np.float32], areas: int, grid: Grid, *, flips: bool) -> None:
    """Check the embedded descriptions of all cells of all areas, (areas, cells, 8, 384), for an environment."""
    wanted = (areas, grid.count, *TEXT_SHAPE)
    if table.shape != wanted or table.dtype != np.float32:
        problem = f"The goal texts have shape {table.shape} and type {table.dtype}"
        raise AirlocError(problem, f"Pass float32 of shape {wanted}, one description for every cell of every area")
    if flips:
        raise AirlocError("Flipped areas do not match directions in goal texts", "Use goal_texts without flips")


def texts_of(suite: Suite, texts: Mapping[tuple[str, Cell], GoalText]) -> SuiteTexts:
    """Select the descriptions of the goals of a suite.

    Raises:
        AirlocError: If a goal has no description.
    """
    goals = [
        (suite.areas[area], (row, col))
        for area, (row, col) in zip(suite.area.tolist(), suite.goal.tolist(), strict=True)
    ]
    if missing := [goal for goal in goals if goal not in texts]:
        area, cell = missing[0]
        raise AirlocError(
            f"{len(missing)} of {len(goals)} goals have no text, such as cell {cell} of {area!r}",
            "Add their rows to the file of --goal-texts, or name its areas with --only",
        )
    chosen = [texts[goal] for goal in goals]
    fits = np.zeros((len(suite), suite.grid.count), dtype=np.bool_)
    for number, goal in enumerate(chosen):
        fits[number, [suite.grid.index(cell) for cell in goal.fits]] = True
    return SuiteTexts([goal.text for goal in chosen], fits if all(goal.fits for goal in chosen) else None)
