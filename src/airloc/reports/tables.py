"""Scores as tables for the terminal, and the number formats that all reports share."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from airloc.errors import printable
from airloc.evaluation.metrics import Interval
from airloc.evaluation.scores import Score

DASH = "–"  # noqa: RUF001 (an en dash is meant)

_DISTANCES = 6
"""Largest number of distances in one table."""

_LEGEND = (
    "Success in %, with its 95 % interval by bootstrap over areas, or over the tiles they were cut from. "
    "Ratio: steps / minimum steps, as defined in the paper's text / as printed in its tables. "
    "Resid.: mean residual distance of failures. ms: acting time per episode in milliseconds."
)


def score_table(scores: Sequence[Score], blind_optimum: float, *, exact: bool, goals: str = "") -> Group:
    """Return two tables of scores on one suite: the metrics, and success by distance.

    Args:
        scores: Scores of the agents.
        blind_optimum: Success of the best blind path.
        exact: Whether that path is proven to be the best.
        goals: How the goal images differ from the areas; see `goals_line`.
    """
    metrics = _table("Success", "95 %", "Steps", "Ratio", "Resid.", "ms")
    for score in scores:
        metrics.add_row(*_row(score))
    metrics.add_row(floor_name(exact), percent(blind_optimum), style="italic")
    return Group(
        Text(_heading(scores[0], goals), style="bold"),
        metrics,
        Text(_LEGEND, style="dim"),
        *(Text(_declaration_line(score)) for score in scores if score.suite.by_declaration),
        *(Text(_fitting_line(score)) for score in scores if "found_fitting" in score.metrics),
        Text("\nSuccess % by distance"),
        *_distance_tables(scores),
    )


def goals_line(
    *,
    change: str | None = None,
    strength: float = 1.0,
    control: str | None = None,
    texts: Path | None = None,
    pictures: bool = False,
    source: str | Path | None = None,
    flight: float | None = None,
) -> str:
    """Describe in one line how the goal images, or all photos, differ from the areas; empty if they do not.

    With `texts`, goals are described in words, and have images too if there are `pictures`.

    >>> goals_line(change="off-grid", control="wrong-goal")
    'Goal images: change off-grid, control wrong-goal'
    >>> goals_line(flight=0.5)
    'Flight conditions of strength 0.5'
    >>> goals_line(texts=Path("town.csv"), control="wrong-text")
    'Goals in words: from town.csv, control wrong-text'
    """
    parts = [f"from {printable(str(texts))}"] if texts is not None else []
    parts += [f"from {source}"] if source is not None else []
    if change is not None:
        parts.append(f"change {change}" + (f" at strength {strength:g}" if strength != 1 else ""))
    if control is not None:
        parts.append(f"control {control}")
    kind = "Goal images" if texts is None else "Goals in words and images" if pictures else "Goals in words"
    lines = [f"{kind}: {', '.join(parts)}"] if parts else []
    if flight is not None:
        lines.append(f"Flight conditions of strength {flight:g}")
    return ". ".join(lines)


def comparison_line(agent: str, against: Mapping[str, Any]) -> str:
    """Describe in one line the paired difference in success of two agents, from the record of `compare`."""
    success = against["metrics"]["success"]
    difference = f"{100 * success['difference']:+.1f} points of success{signed_interval(success['ci95'])}"
    return (
        f"{agent} minus {against['agent']}: {difference}; "
        f"found only by {agent}: {against['found_by_first_only']}, "
        f"only by {against['agent']}: {against['found_by_second_only']}"
    )


def _declaration_line(score: Score) -> str:
    """Describe in one line how often an agent declared the goal correctly, wrongly or not at all."""
    found, wrong, missed = (percent(score.value(name)) for name in ("success", "false_alarms", "missed"))
    return f"{score.agent}: {found} % declared correctly, {wrong} % false alarms, {missed} % missed"


def _fitting_line(score: Score) -> str:
    """Describe in one line how often an agent found the cell meant, and any cell that the description fits."""
    meant, fits = (
        f"{percent(score.value(name))} % {percent_interval(score.interval(name))}".rstrip()
        for name in ("success", "found_fitting")
    )
    return f"{score.agent}: found the cell meant {meant}, any that the description fits {fits}"


def floor_name(exact: bool) -> str:
    """Return the name of the blind floor, which is an optimum only if it is proven."""
    return "blind optimum" if exact else "blind, at least"


def percent(value: float | None) -> str:
    """Format a fraction in percent with one digit."""
    return DASH if value is None else f"{100 * value:.1f}"


def percent_interval(interval: Interval) -> str:
    """Format an interval in percent; empty if it is undefined."""
    low, high = interval
    return "" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"


def signed_interval(interval: Interval) -> str:
    """Format the interval of a difference in percent points, after a space; empty if it is undefined."""
    low, high = interval
    return "" if low is None or high is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align_right: bool = False) -> str:
    """Return a table as Markdown, with all columns but the first aligned left or right."""
    rule = ["---", *["--:" if align_right else "---"] * (len(header) - 1)]
    return "".join("| " + " | ".join(row) + " |\n" for row in (header, rule, *rows))


def number(value: float | None, digits: int) -> str:
    """Format a number with a fixed count of digits."""
    return DASH if value is None else f"{value:.{digits}f}"


def _heading(score: Score, goals: str) -> str:
    """Describe the suite: episodes, areas, grid, budget, goals and clusters."""
    suite = score.suite
    areas, clusters = len(set(suite.area.tolist())), score.bootstrap.clusters
    lines = [
        f"{len(suite)} episodes ({printable(suite.name)}) on {areas} areas, {suite.grid} cells, {suite.budget} moves"
    ]
    lines[0] += f", {suite.drones} drones that start {suite.launch}" if suite.drones > 1 else ""
    lines[0] += f", the goal walks {suite.motion.speed:g} cells per move" if suite.motion else ""
    lines[0] += "" if suite.grid.moves == 8 else " (north, east, south or west)"
    if goals:
        lines.append(goals)
    if clusters == 1:
        lines.append("There are no intervals, because there is only one area or tile")
    elif clusters < areas:
        lines.append(f"The areas come from {clusters} tiles, which the bootstrap resamples")
    return "\n".join(lines)


def _distance_tables(scores: Sequence[Score]) -> Iterator[Table]:
    """Iterate over tables of success by distance that fit on a narrow terminal."""
    strata = [score.by_distance() for score in scores]
    for first in range(0, len(strata[0]), _DISTANCES):
        distances = list(strata[0])[first : first + _DISTANCES]
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
