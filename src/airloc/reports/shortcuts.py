"""Shortcuts in the pixels as tables and a chart, from the records of `airloc analyse shortcuts`."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from airloc.drawing.charts import Bars, Reference, bar_chart
from airloc.evaluation.conditions import CONDITIONS
from airloc.evaluation.metrics import Interval
from airloc.evaluation.shortcuts import CHANCE, CLEAN, TOLERANCE
from airloc.reports.tables import DASH, markdown_table, percent, percent_interval, signed_interval

Record = Mapping[str, Any]

CHART_CONDITIONS = {
    CLEAN: "clean",
    "jpeg-75": "aligned with the area",
    "jpeg-75-moved": "moved by 3 px",
    "jpeg-75-cells": "each cell, phase 0",
    "jpeg-75-cells-phase": "each cell, own phase",
}
"""Conditions of the chart, with the names of their groups."""


def shortcut_table(record: Record) -> Group:
    """Return the table of one agent for the terminal."""
    table = Table("Condition", "Success %", "95 %", "Minus clean, points", "Claim")
    for name, entry in record["conditions"].items():
        verdict = "" if name == CLEAN else entry["verdict"]
        style = "" if entry["verdict"] == "holds" else "bold red"
        difference = "" if name == CLEAN else _difference(entry)
        span = percent_interval(_interval(entry["ci95"]))
        table.add_row(entry["title"], percent(entry["success"]), span, difference, verdict, style=style)
    table.add_row("blind optimum", percent(record["blind_optimum"]), style="italic")
    heading = f"{record['agent']}: {record['episodes']:,} episodes under each condition, {record['grid']} cells"
    return Group(Text(heading, style="bold"), table, *(Text(line) for line in _summary(record)))


def shortcut_page(records: Mapping[str, Record], before: Mapping[str, Record] | None = None) -> str:
    """Return the Markdown table of all agents, one row per condition.

    With `before`, records of earlier weights, the differences from clean of both stand beside each other.
    """
    before = before or {}
    header = ["condition"]
    for agent in records:
        header += (
            [f"`{agent}`, %", "minus clean, before", "after"] if agent in before else [f"`{agent}`, %", "minus clean"]
        )
    names = [CLEAN, *(name for name in CONDITIONS if any(name in each["conditions"] for each in records.values()))]
    rows = []
    for name in names:
        row = [CLEAN if name == CLEAN else CONDITIONS[name].title]
        for agent, record in records.items():
            entry = record["conditions"].get(name)
            row.append(DASH if entry is None else percent(entry["success"]))
            if agent in before:
                row.append(_cell(name, before[agent]["conditions"].get(name)))
            row.append(_cell(name, entry))
        rows.append(row)
    lines = [f"- `{agent}`: {line}" for agent, record in records.items() for line in _summary(record)]
    lines += [f"- `{agent}` before: {line}" for agent, record in before.items() for line in _summary(record)]
    return markdown_table(header, rows) + "\n" + "\n".join(lines) + "\n"


def shortcut_chart(records: Mapping[str, Record]) -> str:
    """Draw success on clean areas and over JPEG 75 at several phases of the block grid as SVG, by agent.

    Conditions that were not played are left out.
    """
    names = [name for name in CHART_CONDITIONS if any(name in each["conditions"] for each in records.values())]
    bars = []
    for agent, record in records.items():
        entries = [record["conditions"].get(name) for name in names]
        low, high = ([None if entry is None else entry["ci95"][end] for entry in entries] for end in (0, 1))
        bars.append(Bars(agent, [None if entry is None else entry["success"] for entry in entries], low, high))
    first = next(iter(records.values()))
    return bar_chart(
        [CHART_CONDITIONS[name] for name in names],
        bars,
        title=f"Success over JPEG 75 by the phase of its block grid, {first['grid']} cells",
        y_label="Success",
        y_percent=True,
        width=900,
        references=[Reference(first["blind_optimum"], "blind optimum")],
    )


def _summary(record: Record) -> list[str]:
    """Return sentences on the sizes, the unrelated patches and the claim."""
    lines = []
    if record["size_spread"] is not None:
        lines.append(
            f"Areas saved at different sizes are within {100 * record['size_spread']:.1f} points of each other "
            f"(claim: {100 * TOLERANCE:.0f}; {record['size_verdict']})."
        )
    patches = record["unrelated_patches"]
    if patches is not None:
        lines.append(
            f"Of {patches['pairs']} pairs of unrelated patches, the preferred direction is that of the phase in "
            f"{percent(patches['share'])} % {percent_interval(_interval(patches['ci95']))} "
            f"(chance {percent(CHANCE)}; {patches['verdict']})."
        )
    failed = sum(entry["verdict"] != "holds" for entry in record["conditions"].values())
    lines.append(f"The claim fails for {failed} of {len(record['conditions']) - 1} conditions.")
    return lines


def _cell(name: str, entry: Record | None) -> str:
    """Return the difference of a condition in a table of all agents, in bold where the claim fails."""
    if entry is None or name == CLEAN:
        return DASH
    return _difference(entry) if entry["verdict"] == "holds" else f"**{_difference(entry)}** {entry['verdict']}"


def _difference(entry: Record) -> str:
    return f"{100 * entry['difference']:+.1f}{signed_interval(_interval(entry['difference_ci95']))}"


def _interval(ends: Sequence[float | None]) -> Interval:
    low, high = ends
    return low, high
