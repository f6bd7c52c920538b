"""Scores as a table for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from airloc.evaluation.intervals import Interval
from airloc.evaluation.records import Score

DASH = "–"  # noqa: RUF001 (an en dash is meant)


def score_table(scores: Sequence[Score], blind_optimum: float, *, exact: bool) -> Table:
    """Lay scores on one suite out as a table, the blind optimum last."""
    suite = scores[0].suite
    areas = len(set(suite.area.tolist()))
    table = Table(
        title=f"{len(suite)} episodes ({suite.name}) on {areas} areas, {suite.grid}, {suite.budget} moves",
        title_justify="left",
        caption="[low, high]: 95 % by bootstrap over areas or their tiles. "
        "Step ratio as the paper's text defines it / as its tables print it.",
        caption_justify="left",
    )
    table.add_column("Agent")
    for heading in ("Success %", "Steps", "Step ratio", "Res. distance", "ms/episode"):
        table.add_column(heading, justify="right")
    for distance in scores[0].by_distance():
        table.add_column(f"d={distance}", justify="right")
    for score in scores:
        table.add_row(*_row(score))
    table.add_section()
    name = "blind optimum" if exact else "blind optimum, at least"
    table.add_row(Text(name, style="italic"), Text(percent(blind_optimum), style="italic"))
    return table


def _row(score: Score) -> list[str]:
    ratios = " / ".join(number(score.value(name), 2) for name in ("step_ratio", "step_ratio_table"))
    return [
        score.agent,
        f"{percent(score.value('success'))} {percent_interval(score.interval('success'))}",
        number(score.value("steps"), 2),
        ratios,
        number(score.value("residual_distance"), 2),
        number(score.runtime_ms, 3),
        *(percent(value) for value, _ in score.by_distance().values()),
    ]


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
