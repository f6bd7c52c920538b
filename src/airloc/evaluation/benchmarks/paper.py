"""Reads what the paper printed and claimed from the files beside this one."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from airloc.errors import AirlocError


@dataclass(frozen=True)
class Row:
    """One row of a table: which agent, where trained and flown, and what is printed."""

    name: str
    """As printed."""
    agent: str
    """Our name of the agent."""
    grid: str
    trained_on: str
    """`masa` or `xbd-pre`."""
    seed: str
    """`median`, the number of another seed, or `average` for the paper's own mean over them."""
    printed: Mapping[str, float]
    """Values by metric as we name them; success as a share."""


@dataclass(frozen=True)
class Table:
    """One table of the paper."""

    number: int
    label: str
    """Its name in the paper's source."""
    title: str
    data: str
    """What it was measured on: masa, dubai or xbd-disaster."""
    split: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Claim:
    """A statement of text or caption that can be checked on results."""

    said: str
    kind: str
    figure: int | None = None
    table: int | None = None
    part: str = ""
    grid: str = "5x5"
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the kind of check asks for; see `claims.toml`."""

    @property
    def where(self) -> str:
        """Where the paper says it."""
        place = f"Figure {self.figure}" if self.figure else f"Table {self.table}"
        return f"{place}, {self.part}" if self.part else place


@dataclass(frozen=True)
class Protocol:
    """How later papers evaluate."""

    grid: str
    moves: int
    budget: int
    distances: tuple[int, ...]
    episodes_per_area_and_distance: int


@dataclass(frozen=True)
class Published:
    """What a later paper publishes under its protocol."""

    agent: str
    data: str
    success: float
    source: str


def table(number: int) -> Table:
    """Give the paper's table of a number.

    Raises:
        AirlocError: When the paper has no such table.
    """
    for found in TABLES:
        if found.number == number:
            return found
    raise AirlocError(f"The paper has no table {number}", f"Ask for one of {', '.join(str(t.number) for t in TABLES)}")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("airloc.evaluation.benchmarks").joinpath(name).read_text(encoding="utf-8"))


def _table(entry: dict[str, Any]) -> Table:
    columns = tuple(entry["columns"])
    rows = tuple(_row(row, columns) for row in entry["rows"])
    return Table(entry["number"], entry["label"], entry["title"], entry["data"], entry["split"], columns, rows)


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
    known = {name: entry.pop(name) for name in ("said", "kind", "figure", "table", "part", "grid") if name in entry}
    return Claim(**known, details=entry)


def _protocol(entry: dict[str, Any]) -> Protocol:
    return Protocol(**{**entry, "distances": tuple(entry["distances"])})


TABLES: tuple[Table, ...] = tuple(map(_table, _read("tables.toml")["table"]))
"""All tables of the paper and its supplement, in order."""

CLAIMS: tuple[Claim, ...] = tuple(map(_claim, _read("claims.toml")["claim"]))
"""What figures and captions claim."""

PROTOCOL: Protocol = _protocol(_read("successors.toml")["protocol"])
"""The successors' protocol."""

PUBLISHED: tuple[Published, ...] = tuple(Published(**entry) for entry in _read("successors.toml")["published"])
"""What they publish."""
