"""The paper's tables, and the successors' results, with our results beside them.

A cell of a table is marked if our 95 % interval excludes the value that the paper prints.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from airloc.drawing.page import Content, Html
from airloc.drawing.page import table as html_table
from airloc.evaluation.benchmarks.paper import (
    PAPER_AGENTS,
    SUCCESSOR_PROTOCOL,
    SUCCESSOR_RESULTS,
    Row,
    Setup,
    Table,
)
from airloc.evaluation.metrics import blind_optimum_by_distance
from airloc.grid import Grid
from airloc.reports.results import EvaluationResult, PaperResults
from airloc.reports.tables import DASH, markdown_table, number, percent, percent_interval
from airloc.task import priors

MARK = "≠"

COLUMNS = {
    "success": "Success %",
    "step_ratio": "Step ratio",
    "steps": "Steps",
    "residual_distance": "Res. dist.",
    "runtime_ms": "ms",
}
"""Headings of the metrics."""

_OUR_METRIC = {"step_ratio": "step_ratio_table"}
"""Our name of a metric as the tables print it, where it differs from the name in the text."""

_SUCCESSOR_PROBLEM = (
    "Later papers move in four directions and draw goals at Manhattan distance 4 to 8 on 5 x 5 cells, with the same "
    "number of episodes at each distance. Far goals lie in the corners away from the start, so the start reveals the "
    "goal: the best blind path finds {optimum} % of them, more than the averages published under this protocol. A "
    "score below this floor is no evidence of vision, and a score above it must be compared with the floor."
)

SUCCESSOR_REMEDY = (
    "The remedy is to draw the goal uniformly over the other cells, and to report distances as strata instead of "
    "sampling them. 10 moves then reach at most 10 of 24 cells, and no blind path finds more than 41.7 %. Run "
    "`airloc evaluate AGENT --moves 4 --episodes uniform`; `--episodes far-pairs` is the protocol above."
)


@dataclass(frozen=True)
class ComparedValue:
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
        """Return JSON values."""
        return {"paper": self.printed, "ours": self.ours, "ci95": [self.low, self.high], "excluded": self.excluded}


@dataclass(frozen=True)
class ComparedRow:
    """One row of a table with our values."""

    name: str
    agent: str
    grid: str
    cells: Mapping[str, ComparedValue]
    step_ratio_text: float | None = None
    """Our step ratio as the text of the paper defines it."""

    def record(self) -> dict[str, Any]:
        """Return JSON values."""
        cells = {metric: cell.record() for metric, cell in self.cells.items()}
        named = {"name": self.name, "agent": self.agent, "grid": self.grid}
        return {**named, **cells, "step_ratio_text": self.step_ratio_text}


def compare_table(table: Table, results: PaperResults) -> list[ComparedRow]:
    """Return every row of a table of the paper, then our other agents, then the blind optimum."""
    lines = [_line(table, row, results) for row in table.rows]
    return [*lines, *_other_agents(table, results), *_blind_optimum(table, results)]


def table_markdown(table: Table, lines: Sequence[ComparedRow]) -> str:
    """Return a compared table as Markdown."""
    return markdown_table(*_text(table, lines))


def table_html(table: Table, lines: Sequence[ComparedRow]) -> Html:
    """Return a compared table as HTML, with marked cells."""
    header, rows = _text(table, lines)
    marked = {(at, col) for at, row in enumerate(rows) for col, cell in enumerate(row) if MARK in cell}
    # Without line breaks in names, which the many columns would squeeze.
    cells: list[list[Content]] = [[row[0].replace(" ", "\N{NO-BREAK SPACE}"), *row[1:]] for row in rows]
    return html_table(header, cells, highlight=marked, caption=f"Table {table.number}. {table.title}")


def successor_results(results: PaperResults, episodes: str) -> list[EvaluationResult]:
    """Return our results with four moves, the best first."""
    moves = SUCCESSOR_PROTOCOL.moves
    found = [result for setup, result in results.items() if (setup.episodes, setup.moves) == (episodes, moves)]
    return sorted(found, key=lambda result: -result.success)


def successor_floor() -> dict[int, float]:
    """Return the success of the best blind path under the successors' protocol, by distance."""
    grid = Grid.parse(SUCCESSOR_PROTOCOL.grid, moves=SUCCESSOR_PROTOCOL.moves)
    return blind_optimum_by_distance(grid, SUCCESSOR_PROTOCOL.budget, priors.far_pairs)


def successor_problem() -> str:
    """Return what is wrong with the successors' protocol, in words."""
    floor = successor_floor()
    return _SUCCESSOR_PROBLEM.format(optimum=percent(sum(floor.values()) / len(floor)))


def successor_rows(results: PaperResults) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the successors' table: our agents, published results, and the blind optimum."""
    distances = [str(distance) for distance in SUCCESSOR_PROTOCOL.distances]
    header = ["Agent", *(f"d = {distance}" for distance in distances), "Average %", "95 %", "Uniform goals %", "Source"]
    uniform = {result.agent: result for result in successor_results(results, "uniform")}
    rows = []
    for result in successor_results(results, "far-pairs"):
        strata, other = result.record["success_by_distance"], uniform.get(result.agent)
        by_distance = [percent(strata.get(distance)) for distance in distances]
        average = [percent(result.success), percent_interval(result.interval) or DASH]
        rows.append([result.agent, *by_distance, *average, percent(other.success) if other else DASH, "here"])
    rows += [
        [entry.agent, *[DASH] * len(distances), percent(entry.success), DASH, DASH, entry.source]
        for entry in SUCCESSOR_RESULTS
    ]
    floor = successor_floor()
    by_distance = [percent(floor[int(distance)]) for distance in distances]
    mean = percent(sum(floor.values()) / len(floor))
    return header, [*rows, ["blind optimum", *by_distance, mean, DASH, "41.7", "exact"]]


def successor_html(results: PaperResults) -> Html:
    """Return the successors' table as HTML."""
    header, rows = successor_rows(results)
    cells: list[list[Content]] = [[None if cell == DASH else cell for cell in row] for row in rows]
    return html_table(header, cells, caption="Success in %, four moves, 5 x 5, 10 moves; Massachusetts, validation set")


def successor_markdown(results: PaperResults) -> str:
    """Return the successors' table as Markdown."""
    return markdown_table(*successor_rows(results))


def _line(table: Table, row: Row, results: PaperResults) -> ComparedRow:
    name = f"{row.name}, trained on {row.trained_on}" if table.data == "xbd-disaster" else row.name
    if row.seed == "average":
        return ComparedRow(name, row.agent, row.grid, _averages(table, row, results))
    found = results.get(Setup.of(table, row))
    cells = {metric: _cell(metric, row.printed[metric], found) for metric in table.columns}
    return ComparedRow(name, row.agent, row.grid, cells, None if found is None else found.record["step_ratio"])


def _cell(metric: str, printed: float | None, found: EvaluationResult | None) -> ComparedValue:
    if found is None:
        return ComparedValue(printed, None)
    name = _OUR_METRIC.get(metric, metric)
    low, high = found.record["ci95"].get(name, (None, None))
    return ComparedValue(printed, found.record[name], low, high)


def _averages(table: Table, row: Row, results: PaperResults) -> dict[str, ComparedValue]:
    """Return the mean over the seeds, the paper's and ours."""
    setups = [Setup.of(table, other) for other in table.rows if other.agent == row.agent and other.seed != "average"]
    found = [results[setup] for setup in setups if setup in results]
    cells = {}
    for metric in table.columns:
        values = [result.record[_OUR_METRIC.get(metric, metric)] for result in found]
        known = [value for value in values if value is not None]
        cells[metric] = ComparedValue(row.printed[metric], fmean(known) if known and len(found) > 1 else None)
    return cells


def _other_agents(table: Table, results: PaperResults) -> Iterator[ComparedRow]:
    """Iterate over the agents that are not in the paper, on the grids of the table."""
    grids = {row.grid for row in table.rows}
    for setup, found in results.items():
        here = setup == Setup(setup.agent, table.data, table.split, setup.grid) and setup.grid in grids
        if here and setup.agent not in PAPER_AGENTS:
            cells = {metric: _cell(metric, None, found) for metric in table.columns}
            yield ComparedRow(
                f"{setup.agent} ({setup.grid})", setup.agent, setup.grid, cells, found.record["step_ratio"]
            )


def _blind_optimum(table: Table, results: PaperResults) -> Iterator[ComparedRow]:
    for grid in dict.fromkeys(row.grid for row in table.rows):
        setup = next((s for s in results if (s.data, s.split, s.grid) == (table.data, table.split, grid)), None)
        if setup is not None:
            empty = {metric: ComparedValue(None, None) for metric in table.columns}
            floor = ComparedValue(None, results[setup].record["blind_optimum"])
            yield ComparedRow(f"blind optimum ({grid})", "", grid, {**empty, "success": floor})


def _text(table: Table, lines: Sequence[ComparedRow]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows as text: for each metric the paper's value, then ours."""
    header = ["Agent"]
    for metric in table.columns:
        header += [COLUMNS[metric], "ours [95 %]" if metric == "success" else "ours"]
    rows = []
    for line in lines:
        row = [line.name]
        for metric, cell in line.cells.items():
            row += [_value(metric, cell.printed), _our_value(metric, cell, line)]
        rows.append(row)
    return header, rows


def _our_value(metric: str, cell: ComparedValue, line: ComparedRow) -> str:
    text = _value(metric, cell.ours)
    if metric == "step_ratio" and cell.ours is not None and line.step_ratio_text is not None:
        text += f" ({line.step_ratio_text:.2f})"
    if metric == "success" and cell.low is not None and cell.high is not None:
        low, high = _value(metric, cell.low), _value(metric, cell.high)
        text += f" [{low}, {high}]"
    return f"{text} {MARK}" if cell.excluded else text


def _value(metric: str, value: float | None) -> str:
    return percent(value) if metric == "success" else number(value, 2 if metric == "step_ratio" else 1)
