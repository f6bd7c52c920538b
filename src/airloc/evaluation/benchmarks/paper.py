"""The paper's tables and claims, and the results of its successors, as data.

The numbers are in `tables.toml`, `claims.toml` and `successors.toml` beside this file.

The step ratio has two definitions. The text of the paper defines it as the mean of steps / minimum over the successes.
The tables fit 1 / mean(minimum / steps) instead: every ratio of tables 1, 2 and 5, and of the median seeds of table 4,
is the reciprocal of a number with two decimals. One cell fits neither: 0.79 for Local in table 5, although no ratio can
be below one. Both are reported here: `step_ratio` as the text defines it, and `step_ratio_table`, which is compared
with the printed values.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from airloc.errors import AirlocError


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    name: str
    """Name as printed."""
    agent: str
    """Our name of the agent."""
    grid: str
    trained_on: str
    """`masa` or `xbd-pre`."""
    seed: str
    """`median`, the number of another seed, or `average` for the paper's mean over its seeds."""
    printed: Mapping[str, float]
    """Printed values by our names of the metrics. Success is a fraction."""


@dataclass(frozen=True)
class Table:
    """One table of the paper."""

    number: int
    title: str
    data: str
    """Dataset of the evaluation: masa, dubai or xbd-disaster."""
    split: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Setup:
    """One evaluation of the paper: an agent, how it was trained, and what it was evaluated on."""

    agent: str
    data: str
    """Dataset of the evaluation: masa, dubai or xbd-disaster."""
    split: str
    grid: str = "5x5"
    trained_on: str = "masa"
    seed: str = "median"
    """`median`, or the number of another seed."""
    episodes: str = "per-distance"
    """How the episodes are drawn."""
    moves: Literal[4, 8] = 8

    @classmethod
    def of(cls, table: Table, row: Row) -> "Setup":
        """Return the setup of a row of a table."""
        return cls(row.agent, table.data, table.split, row.grid, row.trained_on, row.seed)


@dataclass(frozen=True)
class Claim:
    """A statement of the text or of a caption."""

    statement: str
    kind: str
    """How it is checked; see `claims.toml`."""
    figure: int | None = None
    table: int | None = None
    part: str = ""
    """Part of the figure: left, middle or right."""
    grid: str = "5x5"
    details: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the check."""

    @property
    def reference(self) -> str:
        """The figure or table that makes the claim."""
        name = f"Figure {self.figure}" if self.figure else f"Table {self.table}"
        return f"{name}, {self.part}" if self.part else name


@dataclass(frozen=True)
class SuccessorProtocol:
    """The evaluation protocol of later papers."""

    grid: str
    moves: Literal[4, 8]
    budget: int
    distances: tuple[int, ...]


@dataclass(frozen=True)
class SuccessorResult:
    """A result that a later paper publishes under its protocol."""

    agent: str
    success: float
    source: str


def table(number: int) -> Table:
    """Return the table of the paper with this number.

    Raises:
        AirlocError: If the paper has no such table.
    """
    for found in TABLES:
        if found.number == number:
            return found
    raise AirlocError(f"The paper has no table {number}", f"Use one of {', '.join(str(t.number) for t in TABLES)}")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("airloc.evaluation.benchmarks").joinpath(name).read_text(encoding="utf-8"))


def _table(entry: dict[str, Any]) -> Table:
    columns = tuple(entry["columns"])
    rows = tuple(_row(row, columns) for row in entry["rows"])
    return Table(entry["number"], entry["title"], entry["data"], entry["split"], columns, rows)


def _row(row: dict[str, Any], columns: tuple[str, ...]) -> Row:
    printed = {name: float(row[name]) for name in columns}
    printed["success"] = round(printed["success"] / 100, 3)
    return Row(
        name=row["name"],
        agent=row["agent"],
        grid=row.get("grid", "5x5"),
        trained_on=row.get("trained_on", "masa"),
        seed=row.get("seed", "median"),
        printed=printed,
    )


def _claim(entry: dict[str, Any]) -> Claim:
    names = ("statement", "kind", "figure", "table", "part", "grid")
    known = {name: entry.pop(name) for name in names if name in entry}
    return Claim(**known, details=entry)


def _protocol(entry: dict[str, Any]) -> SuccessorProtocol:
    return SuccessorProtocol(**{**entry, "distances": tuple(entry["distances"])})


TABLES: tuple[Table, ...] = tuple(map(_table, _read("tables.toml")["table"]))
"""All tables of the paper and its supplement, in order."""

PAPER_AGENTS: frozenset[str] = frozenset(row.agent for each in TABLES for row in each.rows)
"""Names of the agents in the tables of the paper."""

CLAIMS: tuple[Claim, ...] = tuple(map(_claim, _read("claims.toml")["claim"]))
"""Claims of figures, captions and text."""

SUCCESSOR_PROTOCOL: SuccessorProtocol = _protocol(_read("successors.toml")["protocol"])

SUCCESSOR_RESULTS: tuple[SuccessorResult, ...] = tuple(
    SuccessorResult(**entry) for entry in _read("successors.toml")["published"]
)
