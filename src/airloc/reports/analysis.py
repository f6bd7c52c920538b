"""Calibration and exploitation analyses as charts and tables."""

from collections.abc import Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from airloc.drawing.charts import Series, line_chart
from airloc.evaluation.analysis import Bin, PriorAgreement, Reliability
from airloc.reports.tables import percent, percent_interval
from airloc.task.suites import Suite

NAMES = {"cells": "all unvisited cells", "largest": "the most probable cell", "here": "the current cell"}
"""Descriptions of the forecasts by their names in the record."""


def calibration_chart(agent: str, found: Mapping[str, Reliability]) -> str:
    """Draw the reliability diagram as SVG: the frequency of the goal over its forecast probability."""
    matches = "here" in found
    lines = [Series("perfect calibration", [0.0, 1.0], [0.0, 1.0], guide=True)]
    for style, (name, entry) in enumerate(found.items()):
        low, high = ([each.ci95[end] for each in entry.bins] for end in (0, 1))
        x, y = [each.forecast for each in entry.bins], [each.hit for each in entry.bins]
        lines.append(Series(f"{NAMES[name]} (ECE {percent_error(entry.ece)})", x, y, low, high, style=style))
    return line_chart(
        lines,
        title=f"Reliability of the {'match probability' if matches else 'belief'}: {agent}",
        x_label="Match probability" if matches else "Probability in the belief",
        y_label="Frequency of the goal",
        y_percent=True,
        y_range=(0.0, 1.0),
        x_ticks=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
    )


def calibration_table(agent: str, suite: Suite, forecasts: str, found: Mapping[str, Reliability]) -> Group:
    """Return tables of the reliability diagram, one row per bin.

    `forecasts` describes the number and kind of the forecasts, such as `12,000 beliefs`.
    """
    heading = f"{agent}: {forecasts} in {len(suite):,} episodes ({suite.name}), {suite.grid} cells"
    parts: list[Text | Table] = [Text(heading, style="bold")]
    for name, entry in found.items():
        table = Table("Probability %", "Forecast %", "Goal %", "95 %", "Forecasts")
        for each in entry.bins:
            table.add_row(*_row(each))
        span = percent_interval(entry.ci95)
        parts += [Text(f"\n{NAMES[name]}: expected calibration error {percent_error(entry.ece)} {span}"), table]
    return Group(*parts)


def exploitation_chart(found: Mapping[str, Mapping[int, PriorAgreement]], farthest: int) -> str:
    """Draw agreement with the exploitation prior by distance as SVG, one line per agent.

    The few moves from more than `farthest` cells away, outside of the area, are left out.
    """
    lines = []
    for agent, shares in found.items():
        near = {float(distance): each for distance, each in shares.items() if distance <= farthest}
        low, high = ([each.ci95[end] for each in near.values()] for end in (0, 1))
        lines.append(Series(agent, list(near), [each.share for each in near.values()], low, high))
    return line_chart(
        lines,
        title="Agreement with the exploitation prior",
        x_label="Distance left to the goal",
        y_label="Moves that follow argmax u",
        y_percent=True,
        y_range=(0.0, 1.0),
    )


def exploitation_table(found: Mapping[str, Mapping[int, PriorAgreement]]) -> Table:
    """Return a table of the same numbers, one row per agent and distance."""
    table = Table("Agent", "Distance left", "Agreement %", "95 %", "Moves")
    for agent, shares in found.items():
        for distance, each in shares.items():
            table.add_row(agent, str(distance), percent(each.share), percent_interval(each.ci95), f"{each.moves:,}")
    return table


def percent_error(error: float) -> str:
    """Format an error in percent, with two digits if it is small."""
    return f"{100 * error:.2f} %" if error < 0.0095 else f"{100 * error:.1f} %"


def _row(each: Bin) -> list[str]:
    edges = f"{100 * each.low:g} to {100 * each.high:g}"
    return [edges, percent(each.forecast), percent(each.hit), percent_interval(each.ci95), f"{each.count:,}"]
