"""How reliable a belief is: as a diagram and as a table."""

from collections.abc import Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from airloc.drawing.charts import Series, line_chart
from airloc.evaluation.analysis import Bin, PriorAgreement, Reliability
from airloc.reports.tables import percent, percent_interval
from airloc.task.suites import Suite

NAMES = {"cells": "every open cell", "largest": "the most probable cell", "here": "the cell below"}


def calibration_chart(agent: str, found: Mapping[str, Reliability]) -> str:
    """Draw the reliability diagram as SVG: how often cells were the goal over how probable they were held."""
    lines = [Series("as it should be", [0.0, 1.0], [0.0, 1.0], guide=True)]
    for style, (name, entry) in enumerate(found.items()):
        bins = entry.bins
        low, high = ([at.ci95[end] for at in bins] for end in (0, 1))
        said = f"{NAMES[name]} (ECE {percent_error(entry.ece)})"
        lines.append(Series(said, [at.forecast for at in bins], [at.hit for at in bins], low, high, style=style))
    return line_chart(
        lines,
        title=f"Reliability of {'saying here' if 'here' in found else 'the belief'}: {agent}",
        x_label="Probability that was said" if "here" in found else "Probability in the belief",
        y_label="How often the goal was there",
        y_percent=True,
        y_range=(0.0, 1.0),
        x_ticks=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
    )


def calibration_table(agent: str, suite: Suite, forecasts: str, found: Mapping[str, Reliability]) -> Group:
    """Lay the same numbers out, one row a bin; `forecasts` says what and how many there were."""
    head = f"{agent}: {forecasts} in {len(suite):,} episodes ({suite.name}), {suite.grid} cells"
    parts: list[Text | Table] = [Text(head, style="bold")]
    for name, entry in found.items():
        table = Table("Probability %", "Believed %", "Was the goal %", "95 %", "Forecasts")
        for at in entry.bins:
            table.add_row(*_row(at))
        span = percent_interval(entry.ci95)
        parts += [Text(f"\n{NAMES[name]}: expected calibration error {percent_error(entry.ece)} {span}"), table]
    return Group(*parts)


def percent_error(error: float) -> str:
    """An error in percent, with two digits where it is small."""
    return f"{100 * error:.2f} %" if error < 0.0095 else f"{100 * error:.1f} %"


def _row(at: Bin) -> list[str]:
    edges = f"{100 * at.low:g} to {100 * at.high:g}"
    return [edges, percent(at.forecast), percent(at.hit), percent_interval(at.ci95), f"{at.count:,}"]


# ---------- How often agents follow the exploitation prior, by the distance left to the goal: as a chart and as a table.
# ~


def exploitation_chart(found: Mapping[str, Mapping[int, PriorAgreement]], farthest: int) -> str:
    """Draw the right part of the paper's figure as SVG, one line an agent.

    Args:
        found: The shares by agent and distance.
        farthest: The largest distance to draw; the few moves made from farther out, outside the area, say little.
    """
    lines = []
    for agent, shares in found.items():
        near = {float(distance): at for distance, at in shares.items() if distance <= farthest}
        low, high = ([at.ci95[end] for at in near.values()] for end in (0, 1))
        lines.append(Series(agent, list(near), [at.share for at in near.values()], low, high))
    return line_chart(
        lines,
        title="How often the exploitation prior is followed",
        x_label="Distance left to the goal",
        y_label="Moves that follow argmax u",
        y_percent=True,
        y_range=(0.0, 1.0),
    )


def exploitation_table(found: Mapping[str, Mapping[int, PriorAgreement]]) -> Table:
    """Lay the same numbers out, one row an agent and distance."""
    table = Table("Agent", "Distance left", "Followed %", "95 %", "Moves")
    for agent, shares in found.items():
        for distance, at in shares.items():
            table.add_row(agent, str(distance), percent(at.share), percent_interval(at.ci95), f"{at.moves:,}")
    return table
