"""Scores as a table for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from airloc.evaluation.evaluate import Score
from airloc.evaluation.intervals import Interval

DASH = "–"  # noqa: RUF001 (an en dash is meant)

DISTANCES = 6
"""Columns of a table of success by distance."""


def score_table(scores: Sequence[Score], blind_optimum: float, *, exact: bool, goals: str = "") -> Group:
    """Lay scores on one suite out as two tables, the metrics and the success by distance.

    Args:
        scores: The agents' scores.
        blind_optimum: What blind flight reaches.
        exact: Whether that is proven.
        goals: How the goals' pictures differ from what the flight sees, as `goals_line` says it.
    """
    suite = scores[0].suite
    areas = len(set(suite.area.tolist()))
    head = f"{len(suite)} episodes ({suite.name}) on {areas} areas, {suite.grid} cells, {suite.budget} moves"
    head += "" if suite.grid.moves == 8 else " (north, east, south or west)"
    if goals:
        head += f"\n{goals}"
    tiles = scores[0].bootstrap.clusters
    if tiles == 1:
        head += "\nOne area or tile says nothing about others: there are no intervals"
    elif tiles < areas:
        head += f"\nThe areas come from {tiles} tiles, which the intervals resample"
    metrics = _table("Success", "95 %", "Steps", "Ratio", "Resid.", "ms")
    for score in scores:
        metrics.add_row(*_row(score))
    metrics.add_row(floor_name(exact), percent(blind_optimum), style="italic")
    return Group(
        Text(head, style="bold"),
        metrics,
        Text(_LEGEND, style="dim"),
        *(Text(declaration_line(score)) for score in scores if suite.by_declaration),
        Text("\nSuccess % by distance"),
        *_distance_tables(scores),
    )


_LEGEND = (
    "Success in %, with its 95 % interval by bootstrap over areas (tiles, where areas share them). "
    "Ratio of steps to the minimum: as the paper's text defines it / as its tables print it. "
    "Residual distance over failures. Milliseconds of acting per episode."
)


def _distance_tables(scores: Sequence[Score]) -> Iterator[Table]:
    """Success by distance, as many distances to a table as fit on a narrow terminal."""
    strata = [score.by_distance() for score in scores]
    for first in range(0, len(strata[0]), DISTANCES):
        distances = list(strata[0])[first : first + DISTANCES]
        table = _table(*(f"d = {distance}" for distance in distances))
        for score, found in zip(scores, strata, strict=True):
            table.add_row(score.agent, *(percent(found[distance][0]) for distance in distances))
        yield table


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("Agent", overflow="fold")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _row(score: Score) -> list[str]:
    ratios = " / ".join(number(score.value(name), 2) for name in ("step_ratio", "step_ratio_table"))
    return [
        score.agent,
        percent(score.value("success")),
        percent_interval(score.interval("success")),
        number(score.value("steps"), 2),
        ratios,
        number(score.value("residual_distance"), 2),
        number(score.runtime_ms, 3),
    ]


def goals_line(
    *, change: str | None = None, strength: float = 1.0, control: str | None = None, folder: Path | None = None
) -> str:
    """Say in one line how the goals' pictures differ from what the flight sees; nothing where they do not.

    >>> goals_line(change="off-grid", control="wrong-goal")
    "Goals' pictures: change off-grid, control wrong-goal"
    """
    said = [f"from {folder}"] if folder is not None else []
    if change is not None:
        said.append(f"change {change}" + (f" at {strength:g} of its strength" if strength != 1 else ""))
    if control is not None:
        said.append(f"control {control}")
    return f"Goals' pictures: {', '.join(said)}" if said else ""


def comparison_line(agent: str, against: Mapping[str, Any]) -> str:
    """Say in one line how two agents differ in success on the same episodes."""
    success = against["metrics"]["success"]
    low, high = success["ci95"]
    span = "" if low is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return (
        f"{agent} minus {against['agent']}: {100 * success['difference']:+.1f} points of success{span}; "
        f"found by the first alone {against['found_by_first_only']}, "
        f"by the second alone {against['found_by_second_only']}"
    )


def declaration_line(score: Score) -> str:
    """Say in one line how the declarations of an agent turned out."""
    found, wrong, missed = (percent(score.value(name)) for name in ("success", "false_alarms", "missed"))
    return f"{score.agent}: {found} % declared rightly, {wrong} % false alarms, {missed} % missed"


def floor_name(exact: bool) -> str:
    """What the floor is called: an optimum only where it is proven."""
    return "blind optimum" if exact else "blind, at least"


def percent(value: float | None) -> str:
    """A share in percent with one digit."""
    return DASH if value is None else f"{100 * value:.1f}"


def percent_interval(interval: Interval) -> str:
    """An interval in percent, or nothing where it is undefined."""
    low, high = interval
    return "" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"


def number(value: float | None, digits: int) -> str:
    """A number with a fixed count of digits."""
    return DASH if value is None else f"{value:.{digits}f}"
