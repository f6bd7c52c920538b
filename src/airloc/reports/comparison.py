"""The paper's tables with ours beside them, cell by cell, as data, Markdown and HTML.

A cell is marked where our 95 % interval excludes what the paper prints.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from airloc.drawing.page import Content, Html
from airloc.drawing.page import table as html_table
from airloc.evaluation.benchmarks.paper import TABLES, Row, Table
from airloc.reports.outcomes import Outcome, Outcomes, Setup
from airloc.reports.tables import number, percent

MARK = "≠"

METRICS = {
    "success": "Success %",
    "step_ratio": "Step ratio",
    "steps": "Steps",
    "residual_distance": "Res. dist.",
    "runtime_ms": "ms",
}
OURS = {"step_ratio": "step_ratio_table"}
"""What the printed values of a metric are compared with, where it is called otherwise with us."""


@dataclass(frozen=True)
class Cell:
    """One metric of one row."""

    printed: float | None
    ours: float | None
    low: float | None = None
    high: float | None = None

    @property
    def excluded(self) -> bool:
        """Whether our interval excludes the printed value."""
        if self.printed is None or self.low is None or self.high is None:
            return False
        return not self.low <= self.printed <= self.high

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"paper": self.printed, "ours": self.ours, "ci95": [self.low, self.high], "excluded": self.excluded}


@dataclass(frozen=True)
class Line:
    """One row: the paper's and ours."""

    name: str
    agent: str
    grid: str
    cells: Mapping[str, Cell]
    ratio_as_text: float | None = None
    """Our step ratio as the paper's text defines it."""

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        cells = {metric: cell.record() for metric, cell in self.cells.items()}
        named = {"name": self.name, "agent": self.agent, "grid": self.grid}
        return {**named, **cells, "step_ratio_text": self.ratio_as_text}


def lines(table: Table, outcomes: Outcomes) -> list[Line]:
    """Every row of a table of the paper, then our own agents, then the floor."""
    compared = [_line(table, row, outcomes) for row in table.rows]
    return [*compared, *_own(table, outcomes), *_floor(table, outcomes)]


def markdown(table: Table, compared: Sequence[Line]) -> str:
    """The table as Markdown."""
    header, rows = _grid(table, compared)
    out = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in row) + " |\n" for row in out)


def as_html(table: Table, compared: Sequence[Line]) -> Html:
    """The table for a page: for each metric the paper's value, then ours, with marked cells."""
    header, rows = _grid(table, compared)
    marked = {(at, col) for at, row in enumerate(rows) for col, cell in enumerate(row) if MARK in cell}
    cells: list[list[Content]] = [[_unbroken(row[0]), *row[1:]] for row in rows]
    return html_table(header, cells, highlight=marked, caption=f"Table {table.number}. {table.title}")


def _unbroken(name: str) -> str:
    """A name that stays on one line, as the many columns would else squeeze it."""
    return name.replace(" ", "\N{NO-BREAK SPACE}")


def _line(table: Table, row: Row, outcomes: Outcomes) -> Line:
    name = f"{row.name}, trained on {row.trained_on}" if table.data == "xbd-disaster" else row.name
    if row.seed == "average":
        return Line(name, row.agent, row.grid, _averages(table, row, outcomes))
    found = outcomes.get(Setup.of(table, row))
    cells = {metric: _cell(metric, row.printed[metric], found) for metric in table.columns}
    return Line(name, row.agent, row.grid, cells, None if found is None else found.score["step_ratio"])


def _cell(metric: str, printed: float | None, found: Outcome | None) -> Cell:
    if found is None:
        return Cell(printed, None)
    name = OURS.get(metric, metric)
    low, high = found.score["ci95"].get(name, (None, None))
    return Cell(printed, found.score[name], low, high)


def _averages(table: Table, row: Row, outcomes: Outcomes) -> dict[str, Cell]:
    """The paper's mean over seeds, and ours."""
    setups = [Setup.of(table, other) for other in table.rows if other.agent == row.agent and other.seed != "average"]
    found = [outcomes[setup] for setup in setups if setup in outcomes]
    cells = {}
    for metric in table.columns:
        values = [outcome.score[OURS.get(metric, metric)] for outcome in found]
        known = [value for value in values if value is not None]
        cells[metric] = Cell(row.printed[metric], fmean(known) if known and len(found) > 1 else None)
    return cells


def _own(table: Table, outcomes: Outcomes) -> Iterator[Line]:
    """Agents that the paper does not have, on the grids of the table."""
    known, grids = {row.agent for each in TABLES for row in each.rows}, {row.grid for row in table.rows}
    for setup, found in outcomes.items():
        here = setup == Setup(setup.agent, table.data, table.split, setup.grid) and setup.grid in grids
        if here and setup.agent not in known:
            cells = {metric: _cell(metric, None, found) for metric in table.columns}
            yield Line(f"{setup.agent} ({setup.grid})", setup.agent, setup.grid, cells, found.score["step_ratio"])


def _floor(table: Table, outcomes: Outcomes) -> Iterator[Line]:
    """What the best path that looks at nothing would find."""
    for grid in dict.fromkeys(row.grid for row in table.rows):
        setup = next((s for s in outcomes if (s.data, s.split, s.grid) == (table.data, table.split, grid)), None)
        if setup is not None:
            empty = {metric: Cell(None, None) for metric in table.columns}
            floor = Cell(None, outcomes[setup].score["blind_optimum"])
            yield Line(f"blind optimum ({grid})", "", grid, {**empty, "success": floor})


def _grid(table: Table, compared: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Header and rows as text: for each metric what the paper prints, then ours."""
    header = ["Agent"]
    for metric in table.columns:
        header += [METRICS[metric], "ours [95 %]" if metric == "success" else "ours"]
    rows = []
    for line in compared:
        row = [line.name]
        for metric, cell in line.cells.items():
            row += [_value(metric, cell.printed), _ours(metric, cell, line)]
        rows.append(row)
    return header, rows


def _ours(metric: str, cell: Cell, line: Line) -> str:
    text = _value(metric, cell.ours)
    if metric == "step_ratio" and cell.ours is not None and line.ratio_as_text is not None:
        text += f" ({line.ratio_as_text:.2f})"
    if metric == "success" and cell.low is not None and cell.high is not None:
        low, high = _value(metric, cell.low), _value(metric, cell.high)
        text += f" [{low}, {high}]"
    return f"{text} {MARK}" if cell.excluded else text


def _value(metric: str, value: float | None) -> str:
    if metric == "success":
        return percent(value)
    return number(value, {"step_ratio": 2, "runtime_ms": 1}.get(metric, 1))
