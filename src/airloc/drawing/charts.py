"""Line charts and bar charts with 95 % intervals, as SVG text.

Matplotlib draws the chart; `airloc.drawing.figure` places names at the right edge, beside the ends of their lines, and
writes the SVG. Series differ in colour, marker and dash, bars in colour and hatching.
"""

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from airloc.drawing.figure import (
    FONT,
    GRID,
    INK,
    LABEL_HEIGHT,
    LETTER,
    SMALL,
    SOFT,
    Chart,
    EdgeLabel,
    edge_width,
    matplotlib_defaults,
    shorten,
)
from airloc.drawing.page import replace_invalid
from airloc.drawing.palette import INKS, LIGHT_PAPER
from airloc.errors import AirlocError

__all__ = ["Bars", "Reference", "Series", "bar_chart", "line_chart"]

Point: TypeAlias = tuple[float, float, float | None, float | None]
"""(x, y, low, high) of one point of a series."""

_WIDTH, _HEIGHT = 760, 420
"""Smallest size of a chart in pixels."""
_LARGEST = 1e15
_MOST_MARKERS = 24
"""A line with more points than this has a marker at every eighth of its length only."""
_MARKERS = (("o", 9.0), ("s", 8.5), ("^", 10.5), ("D", 8.0), ("v", 10.5), ("P", 10.0), ("X", 10.0), ("*", 13.5))
"""Matplotlib's names of the markers, with sizes that look alike."""
_DASHES: tuple[tuple[float, ...] | None, ...] = (None, (8, 4), (2, 3.5), (10, 4, 2, 4))
_GUIDE = (5.0, 4.0)
_HATCHES = (None, "//", "--", "\\\\", "||")


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a line chart.

    Attributes:
        name: Label of the line.
        x: Horizontal values.
        y: Vertical values, one for each of `x`. None leaves a gap in the line.
        low: Lower ends of the intervals.
        high: Upper ends of the intervals.
        style: Number of the colour, marker and dash. Defaults to the index of the series in the chart.
        guide: Draw a thin dashed line without markers, such as the diagonal of a reliability diagram.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    style: int | None = None
    guide: bool = False

    def __post_init__(self) -> None:
        _check(self.name, self.x, self.y, self.low, self.high)

    def points(self) -> list[Point]:
        """Return the points that have a value, sorted by x."""
        return [point for run in self.runs() for point in run]

    def runs(self) -> list[list[Point]]:
        """Return the points sorted by x, split where a value is missing."""
        missing: list[float | None] = [None] * len(self.x)
        table = sorted(
            zip(self.x, self.y, self.low or missing, self.high or missing, strict=True), key=lambda row: row[0]
        )
        runs: list[list[Point]] = [[]]
        for x, y, low, high in table:
            if y is None:
                runs.append([])
            else:
                runs[-1].append((x, y, low, high))
        return [run for run in runs if run]


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars of one colour in a bar chart.

    Attributes:
        name: Label of the bars.
        values: Height of the bar in each group. None leaves the bar out.
        low: Lower ends of the intervals.
        high: Upper ends of the intervals.
        style: Number of the colour and hatching. Defaults to the index of the bars in the chart.
    """

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    style: int | None = None

    def __post_init__(self) -> None:
        _check(self.name, self.values, self.low, self.high)

    def interval(self, group: int) -> tuple[float, float] | None:
        """Return the interval of the bar in a group, or None if it has none."""
        low, high = (ends[group] if ends is not None else None for ends in (self.low, self.high))
        return None if low is None or high is None else (low, high)


@dataclass(frozen=True, slots=True)
class Reference:
    """A dashed horizontal line, such as the blind optimum."""

    value: float
    label: str

    def __post_init__(self) -> None:
        _check(self.label, [self.value])


@matplotlib_defaults()
def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    y_percent: bool = False,
    y_range: tuple[float, float] | None = None,
    x_ticks: Sequence[float] | None = None,
    references: Sequence[Reference] = (),
) -> str:
    """Draw lines as SVG, with their names at the right edge and their intervals as error bars.

    Long names widen the chart, many names heighten it.

    Args:
        series: The lines. At least one has a value.
        title: Title of the chart.
        x_label: Label of the horizontal axis.
        y_label: Label of the vertical axis.
        y_percent: Show the values as percentages.
        y_range: Values that the vertical axis includes in any case. It always includes the data.
        x_ticks: Ticks of the horizontal axis. Defaults to the values of x if there are few, else to round numbers.
        references: Horizontal lines to compare with.

    Raises:
        AirlocError: If no series has a value.
    """
    points = [point for line in series for point in line.points()]
    _require_values([line.name for line in series], [y for _, y, _, _ in points])
    names = [line.name for line in series if line.points()] + [reference.label for reference in references]
    size = max(_WIDTH, 490 + edge_width(names)), max(_HEIGHT, round(150 + LABEL_HEIGHT * len(names)))
    chart = Chart(title, *size, (series, references))
    ends = [value for point in points for value in point[1:] if value is not None]
    _set_value_axis(chart.axes, [*ends, *(item.value for item in references), *(y_range or ())], y_label, y_percent)
    _set_horizontal_axis(chart.axes, [x for x, _, _, _ in points], x_ticks, x_label)
    labels = [_draw_reference(chart.axes, reference) for reference in references]
    for index, (line, shift) in enumerate(zip(series, _shifts(series), strict=True)):
        if line.points():
            labels.append(_draw_line(chart, line, index, shift, y_percent))
    chart.draw_edge_labels(labels)
    return chart.svg(_describe_lines(series, references, x_label, y_label, y_percent))


@matplotlib_defaults()
def bar_chart(
    groups: Sequence[str],
    bars: Sequence[Bars],
    *,
    title: str,
    y_label: str,
    y_percent: bool = False,
    references: Sequence[Reference] = (),
    width: int = _WIDTH,
) -> str:
    """Draw groups of bars from zero as SVG, with their values above and a legend below the title.

    Args:
        groups: Names of the groups, from left to right.
        bars: Bars of one colour each, with one value for each group.
        title: Title of the chart.
        y_label: Label of the vertical axis.
        y_percent: Show the values as percentages.
        references: Horizontal lines to compare with.
        width: Width in pixels. Long names widen the chart.

    Raises:
        AirlocError: If there is no value, or if the number of values is not the number of groups.
    """
    if any(len(item.values) != len(groups) for item in bars):
        raise AirlocError(
            f"A chart of {len(groups)} groups has bars with another number of values", "Use None for gaps"
        )
    columns = [column for item in bars for column in (item.values, item.low or (), item.high or ())]
    _require_values([item.name for item in bars], [value for item in bars for value in item.values])
    edge = edge_width([item.label for item in references]) if references else 0
    chart = Chart(title, max(width, 490 + edge if references else 0), _HEIGHT, (groups, bars, references))
    ends = [value for column in columns for value in column if value is not None]
    _set_value_axis(chart.axes, [0.0, *ends, *(item.value for item in references)], y_label, y_percent)
    chart.axes.set(xlim=(-0.5, len(groups) - 0.5), xticks=[])
    slot = (chart.width - 110 - edge) / len(groups)
    _draw_group_names(chart, groups, slot)
    labels = [_draw_reference(chart.axes, reference) for reference in references]
    for index, item in enumerate(bars):
        _draw_bars(chart, item, index, len(bars), slot, y_percent)
    chart.axes.axhline(0, color=SOFT, linewidth=1.2, clip_on=False, zorder=4)
    if len(bars) > 1:
        looks = [_bar_look(index if item.style is None else item.style) for index, item in enumerate(bars)]
        chart.draw_legend([item.name for item in bars], [Patch(**look) for look in looks])
    chart.draw_edge_labels(labels)
    return chart.svg(_describe_bars(groups, bars, references, y_label, y_percent))


def _set_value_axis(axes: Axes, values: Sequence[float], label: str, percent: bool) -> None:
    """Set the vertical axis: it ends at round numbers, and begins at 0 for shares and for values far apart."""
    low, high = min(values), max(values)
    if low >= 0 and (percent or low < high / 2):
        low = 0.0
    least = max(1e-9, 1e-6 * max(abs(low), abs(high)))
    ticks = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, max(high, low + least))
    axes.set_ylim(ticks[0], ticks[-1])
    axes.set_yticks(ticks, [_number(tick, percent) for tick in ticks])
    axes.tick_params(axis="y", length=0, pad=9, labelsize=SMALL, labelcolor=SOFT)
    axes.grid(axis="y", color=GRID, linewidth=1, clip_on=False)
    axes.set_ylabel(shorten(label, 60), fontsize=FONT, color=SOFT, labelpad=10, parse_math=False)


def _set_horizontal_axis(axes: Axes, values: Sequence[float], ticks: Sequence[float] | None, label: str) -> None:
    """Set the horizontal axis, with a tick for every value if these are few."""
    distinct = sorted(set(values))
    if ticks is None:
        gaps = [b - a for a, b in pairwise(distinct)]
        few = len(distinct) <= 10 and (not gaps or min(gaps) * 14 > distinct[-1] - distinct[0])
        inside = [tick for tick in MaxNLocator(6).tick_values(distinct[0], distinct[-1]) if tick <= distinct[-1]]
        ticks = distinct if few else [tick for tick in inside if tick >= distinct[0]]
    low, high = min([*distinct, *ticks]), max([*distinct, *ticks])
    margin = 0.06 * (high - low) or 0.5 * max(1.0, abs(low))
    axes.set_xlim(low - margin, high + margin)
    axes.set_xticks(ticks, [_number(tick) for tick in ticks])
    axes.tick_params(axis="x", length=5, pad=5, color=SOFT, labelsize=SMALL, labelcolor=SOFT)
    axes.spines["bottom"].set(visible=True, color=SOFT, linewidth=1.2)
    axes.set_xlabel(shorten(label, 90), fontsize=FONT, color=SOFT, labelpad=10, parse_math=False)


def _draw_reference(axes: Axes, reference: Reference) -> EdgeLabel:
    look: dict[str, Any] = {"color": INK, "linewidth": 1.5, "linestyle": (0, _GUIDE)}
    axes.axhline(reference.value, clip_on=False, zorder=2.5, **look)
    return EdgeLabel(reference.label, reference.value, look)


def _shifts(series: Sequence[Series]) -> list[float]:
    """Return the pixels by which each line moves sideways so that error bars do not cover each other."""
    barred = [index for index, line in enumerate(series) if line.low is not None and line.high is not None]
    middle, step = (len(barred) - 1) / 2, min(5.0, 28 / max(1, len(barred)))
    return [(barred.index(index) - middle) * step if index in barred else 0.0 for index in range(len(series))]


def _draw_line(chart: Chart, line: Series, index: int, shift: float, percent: bool) -> EdgeLabel:
    """Draw a line with its intervals and markers, moved sideways by `shift` pixels."""
    axes, number = chart.axes, index if line.style is None else line.style
    dash = _GUIDE if line.guide else _DASHES[(number + number // len(INKS)) % len(_DASHES)]
    look: dict[str, Any] = {"color": SOFT if line.guide else INKS[number % len(INKS)].light}
    look |= {"linewidth": 1.3 if line.guide else 2.2, "linestyle": (0, dash) if dash else "-"}
    moved: dict[str, Any] = {
        "transform": axes.transData + ScaledTranslation(shift / 72, 0, chart.figure.dpi_scale_trans)
    }
    runs = line.runs()
    for run in runs:
        for x, _, low, high in run:
            if low is not None and high is not None:
                _draw_interval(axes, x, (low, high), look["color"], 7, **moved)
        if len(run) > 1:
            axes.plot([point[0] for point in run], [point[1] for point in run], clip_on=False, **look, **moved)
    if not line.guide:
        kind, size = _MARKERS[number % len(_MARKERS)]
        look |= {"marker": kind, "markersize": size, "markeredgecolor": LIGHT_PAPER, "markeredgewidth": 1}
        _draw_markers(chart, line, percent, {**look, **moved, "linestyle": ""})
    x, y, _, _ = runs[-1][-1]
    return EdgeLabel(line.name, y, look, x, shift)


def _draw_markers(chart: Chart, line: Series, percent: bool, look: dict[str, Any]) -> None:
    """Draw the markers of a line, each with its values as a title."""
    points = line.points()
    every = 1 if len(points) <= _MOST_MARKERS else len(points) // 8
    for x, y, low, high in points[::-1][::every]:
        title = f"{line.name}, {_number(x)}: {_value(y, None if low is None or high is None else (low, high), percent)}"
        chart.axes.plot([x], [y], clip_on=False, zorder=3, gid=chart.title_id(title), **look)


def _draw_interval(axes: Axes, x: float, ends: Sequence[float], colour: str, cap: float, **place: Any) -> None:
    """Draw a vertical interval with caps of a width in pixels."""
    look: dict[str, Any] = {"color": colour, "linewidth": 1.4, "marker": "_", "markersize": cap, "markeredgewidth": 1.4}
    axes.plot([x, x], list(ends), clip_on=False, zorder=3, **look, **place)


def _bar_look(number: int) -> dict[str, Any]:
    """Return the look of bars; Matplotlib draws the hatching in the colour of the edge."""
    look = {"facecolor": INKS[number % len(INKS)].light, "hatch": _HATCHES[number % len(_HATCHES)]}
    return {**look, "edgecolor": LIGHT_PAPER, "linewidth": 0}


def _draw_bars(chart: Chart, item: Bars, index: int, count: int, slot: float, percent: bool) -> None:
    """Draw the bars of one colour with their intervals, and their values where they fit into `slot` pixels a group."""
    look = _bar_look(index if item.style is None else item.style)
    thick = min(0.8 / count, 64 / slot)
    above: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
    for group, value in enumerate(item.values):
        x, span = group + (index + 0.5 - count / 2) * thick, item.interval(group)
        if value is None:
            chart.note("\N{EN DASH}", (x, 0), (0, 10), fontsize=SMALL, **above)
            continue
        title = chart.title_id(f"{item.name}: {_value(value, span, percent)}")
        chart.axes.bar([x], [value], 0.88 * thick, clip_on=False, zorder=2, **look)[0].set_gid(title)
        if span:
            _draw_interval(chart.axes, x, span, INK, min(10.0, thick * slot / 2))
        text, ends = _number(value, percent), [value, *(span or ())]
        if len(text) * LETTER * 11 < thick * slot + 2:
            place = ((x, min(ends)), (0, -12)) if value < 0 else ((x, max(ends)), (0, 11))
            chart.note(text, *place, fontsize=11, gid="halo", zorder=5, **above)


def _draw_group_names(chart: Chart, groups: Sequence[str], slot: float) -> None:
    """Write the names of groups in up to two lines below their bars, or turned if that is not enough."""
    letters = max(1, int((slot - 6) / (LETTER * SMALL)))
    lines = [textwrap.wrap(replace_invalid(name), letters) or [""] for name in groups]
    turned = any(
        len(wrapped) > 2 or max(map(len, name.split()), default=0) > letters
        for wrapped, name in zip(lines, groups, strict=True)
    )
    look: dict[str, Any] = {"ha": "center", "xycoords": chart.axes.get_xaxis_transform(), "fontsize": SMALL}
    if turned:
        look |= {"ha": "right", "rotation": 36, "rotation_mode": "anchor"}
        lines = [[name] for name in groups]
    for group, wrapped in enumerate(lines):
        for row, line in enumerate(wrapped):
            chart.note(line, (group, 0), (4 if turned else 0, -16 - 16 * row), **look)


def _number(value: float, percent: bool = False) -> str:
    """Write a value with few digits.

    >>> _number(0.521, True), _number(0.2 + 0.1), _number(-2.5), _number(20_000)
    ('52.1 %', '0.3', '\N{MINUS SIGN}2.5', '20,000')
    """
    shown = 100 * value if percent else value
    text = f"{round(shown, 1) if percent else shown:,.4g}" if abs(shown) < 1e4 else f"{shown:,.0f}"
    return text.replace("-", "\N{MINUS SIGN}") + (" %" if percent else "")


def _value(value: float, span: tuple[float, float] | None, percent: bool) -> str:
    """Write a value with its interval."""
    return _number(value, percent) + (f" ({_number(span[0], percent)} to {_number(span[1], percent)})" if span else "")


def _describe_lines(
    series: Sequence[Series], references: Sequence[Reference], x_label: str, y_label: str, percent: bool
) -> str:
    """Describe the axes and the values of each line; of a long line only its ends."""
    sentences = [f"{y_label} by {x_label}."]
    for line in series:
        points = line.points()
        shown = points if len(points) <= 12 else [points[0], points[-1]]
        values = ", ".join(f"{_number(x)}: {_number(y, percent)}" for x, y, _, _ in shown)
        sentences.append(f"{line.name}: {values or 'no values'}.")
    sentences += [f"Reference {item.label}: {_number(item.value, percent)}." for item in references]
    return " ".join(sentences)


def _describe_bars(
    groups: Sequence[str], bars: Sequence[Bars], references: Sequence[Reference], y_label: str, percent: bool
) -> str:
    """Describe the vertical axis and the value of each bar."""
    sentences = [f"{y_label}."]
    for item in bars:
        shown = ["no value" if value is None else _number(value, percent) for value in item.values]
        values = ", ".join(f"{group}: {text}" for group, text in zip(groups, shown, strict=True))
        sentences.append(f"{item.name}: {values}.")
    sentences += [f"Reference {item.label}: {_number(item.value, percent)}." for item in references]
    return " ".join(sentences)


def _require_values(names: Sequence[str], values: Iterable[float | None]) -> None:
    if all(value is None for value in values):
        series = ", ".join(names) or "no series"
        raise AirlocError(f"The chart of {series} has no values", "Give at least one value")


def _check(name: str, *columns: Sequence[float | None] | None) -> None:
    """Check that columns are equally long and hold numbers that can be drawn."""
    lengths = {len(column) for column in columns if column is not None}
    if len(lengths) > 1:
        raise AirlocError(f"Series {name!r} has columns of {sorted(lengths)} values", "Use None for missing values")
    for value in (value for column in columns for value in column or ()):
        if value is not None and not (math.isfinite(value) and abs(value) <= _LARGEST):
            raise AirlocError(f"Series {name!r} holds {value}, which cannot be drawn", "Use None for missing values")
