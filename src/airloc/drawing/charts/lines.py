"""Line charts: success by distance, learning curves, reliability diagrams.

Legend: coordinates are SVG user units, y downwards; all parts are markup.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from airloc.drawing.charts.axes import Axis, inner_ticks, round_ticks, value_writer
from airloc.drawing.charts.plot import (
    LABEL_HEIGHT,
    LEFT,
    EdgeLabel,
    Plot,
    base_line,
    chart_name,
    edge_labels,
    edge_width,
    headline,
    headline_lines,
    label,
    reference_lines,
    sheet,
    sheet_width,
    soft,
    value_axis,
)
from airloc.drawing.charts.series import Reference, Series, require_some
from airloc.drawing.charts.style import SMALL, dash, marker, styled
from airloc.drawing.page import element, number, words

Intervals: TypeAlias = Literal["bars", "band"]
Row: TypeAlias = tuple[float, float, float | None, float | None]

_MARKERS = 24
"""Lines with more points than this carry only a few markers."""


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    y_percent: bool = False,
    y_range: tuple[float, float] | None = None,
    x_ticks: Sequence[float] | None = None,
    intervals: Intervals = "bars",
    references: Sequence[Reference] = (),
    description: str = "",
    width: int = 760,
    height: int = 420,
) -> str:
    """Draw lines, each named where it ends.

    Args:
        series: The lines, at least one with a value.
        title: What the chart shows.
        x_label: What is on the horizontal axis.
        y_label: What is on the vertical axis.
        y_percent: Values are shares and shown in percent.
        y_range: Where the vertical axis begins and ends, at least; by default where the data does, and at 0 for shares.
        x_ticks: Where the horizontal axis has ticks; by default at the values when they are few, else at round numbers.
        intervals: Draw intervals as error bars, side by side, or as bands.
        references: Dashed horizontal lines to compare with.
        description: For who cannot see the chart; by default its values.
        width: Of the chart, more where long names need it.
        height: Of the chart, more where many names need it.

    Returns:
        The SVG.
    """
    rows = [row for line in series for row in line.points()]
    require_some([line.name for line in series], [row[1] for row in rows])
    names = [line.name for line in series if line.points()] + [reference.label for reference in references]
    wide = sheet_width(width, names)
    lines = headline_lines(title, wide - 32)
    top = 36 + 21 * len(lines)
    height = max(height, round(top + 70 + LABEL_HEIGHT * len(names)))
    plot = Plot(wide, height, LEFT, wide - edge_width(names), top, height - 60)
    y_axis = _y_axis(plot, rows, references, y_range, y_percent)
    x_axis = _x_axis(plot, [row[0] for row in rows], x_ticks)
    across, labels = reference_lines(plot, y_axis, references)
    parts = [headline(lines), value_axis(plot, y_axis, y_label), _x_labels(plot, x_axis, x_label), across]
    shifts = _shifts(series, intervals)
    for index, line in enumerate(series):
        if line.points():
            drawn, edge = _line(line, index, plot, x_axis, y_axis, intervals, shifts[index])
            parts.append(drawn)
            labels.append(edge)
    told = description or _told(series, references, x_label, y_label, y_percent)
    name = chart_name(title, series, references)
    return sheet(plot, name, title, told, [*parts, edge_labels(plot, labels)])


def _y_axis(
    plot: Plot, rows: Sequence[Row], references: Sequence[Reference], y_range: tuple[float, float] | None, percent: bool
) -> Axis:
    values = [value for row in rows for value in row[1:] if value is not None] + [item.value for item in references]
    low, high = min([*values, *(y_range or ())]), max([*values, *(y_range or ())])
    if low >= 0 and (percent or low < high / 2):
        low = 0.0
    ticks = round_ticks(low, high)
    return Axis(ticks[0], ticks[-1], plot.bottom, plot.top, ticks, percent)


def _x_axis(plot: Plot, values: Sequence[float], x_ticks: Sequence[float] | None) -> Axis:
    distinct = sorted(set(values))
    low, high = distinct[0], distinct[-1]
    if x_ticks is None:
        x_ticks = distinct if _few_and_even(distinct) else inner_ticks(low, high)
    low, high = min([low, *x_ticks]), max([high, *x_ticks])
    inset = 26.0
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.5 * max(1.0, abs(low)), high + 0.5 * max(1.0, abs(high))
    return Axis(low, high, plot.left + inset, plot.right - inset, tuple(sorted(x_ticks)))


def _few_and_even(distinct: Sequence[float]) -> bool:
    """Whether values are few enough, and far enough apart, to have a tick each."""
    if len(distinct) > 10:
        return False
    steps = [b - a for a, b in pairwise(distinct)]
    return not steps or min(steps) * 14 > distinct[-1] - distinct[0]


def _x_labels(plot: Plot, axis: Axis, name: str) -> str:
    parts = [base_line(plot, plot.bottom)]
    for tick in axis.ticks:
        x = axis(tick)
        parts.append(element("line", x1=x, x2=x, y1=plot.bottom, y2=plot.bottom + 5, stroke="currentColor"))
        parts.append(label(x, plot.bottom + 20, axis.text(tick), size=SMALL, anchor="middle"))
    middle = (plot.left + plot.right) / 2
    parts.append(label(middle, plot.bottom + 44, name, anchor="middle", width=plot.right - plot.left + 60))
    return soft(*parts)


def _shifts(series: Sequence[Series], intervals: Intervals) -> list[float]:
    """How far each line moves sideways so that error bars at one place do not cover each other."""
    if intervals == "band":
        return [0.0] * len(series)
    barred = [index for index, line in enumerate(series) if line.low is not None and line.high is not None]
    middle, step = (len(barred) - 1) / 2, min(5.0, 28 / max(1, len(barred)))
    return [(barred.index(index) - middle) * step if index in barred else 0.0 for index in range(len(series))]


def _line(
    line: Series, index: int, plot: Plot, x_axis: Axis, y_axis: Axis, intervals: Intervals, shift: float
) -> tuple[str, EdgeLabel]:
    """One line with its intervals and markers, and its name at the edge."""
    style = index if line.style is None else line.style
    runs = [[(x_axis(x) + shift, y_axis(y)) for x, y, _, _ in run] for run in line.runs()]
    pattern = "5 4" if line.guide else dash(style)
    look: dict[str, str | float | None] = {"fill": "none", "stroke": "currentColor", "stroke_dasharray": pattern}
    look["stroke_width"] = 1.3 if line.guide else 2.2
    strokes = [
        element("polyline", points=_joined(run), stroke_linejoin="round", **look) for run in runs if len(run) > 1
    ]
    sample = element("line", x1=-15, x2=15, y1=0, y2=0, **look)
    last = runs[-1][-1]
    if line.guide:
        return soft(*strokes), EdgeLabel(line.name, last[1], soft(sample), last[0])
    spans = _bands(line, x_axis, y_axis) if intervals == "band" else _error_bars(line, x_axis, y_axis, shift)
    drawn = styled(style, *spans, *strokes, *_markers(line, style, x_axis, y_axis, shift))
    return drawn, EdgeLabel(line.name, last[1], styled(style, sample, marker(style, 0, 0)), last[0])


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)


def _bands(line: Series, x_axis: Axis, y_axis: Axis) -> list[str]:
    bands = []
    for run in line.runs():
        spans = [
            (x_axis(x), y_axis(low), y_axis(high)) for x, _, low, high in run if low is not None and high is not None
        ]
        if len(spans) > 1:
            around = [(x, low) for x, low, _ in spans] + [(x, high) for x, _, high in reversed(spans)]
            bands.append(element("polygon", points=_joined(around), fill="currentColor", opacity=0.16))
    return bands


def _error_bars(line: Series, x_axis: Axis, y_axis: Axis, shift: float) -> list[str]:
    bars = []
    for x, _, low, high in line.points():
        if low is not None and high is not None:
            bars.append(error_bar(x_axis(x) + shift, y_axis(low), y_axis(high)))
    return bars


def error_bar(x: float, low: float, high: float, cap: float = 3.5) -> str:
    """A vertical bar with caps, in the colour of its group."""
    path = f"M{x:.1f} {low:.1f}V{high:.1f}M{x - cap:.1f} {low:.1f}h{2 * cap:.1f}M{x - cap:.1f} {high:.1f}h{2 * cap:.1f}"
    return element("path", d=path, fill="none", stroke="currentColor", stroke_width=1.4)


def _markers(line: Series, style: int, x_axis: Axis, y_axis: Axis, shift: float) -> list[str]:
    points = line.points()
    every = 1 if len(points) <= _MARKERS else len(points) // 8
    write_x, write_y = _writers([line], y_axis.percent)
    marks = []
    for x, y, low, high in points[::-1][::every]:
        span = "" if low is None or high is None else f" ({write_y(low)} to {write_y(high)})"
        tip = element("title", words(f"{line.name}, {write_x(x)}: {write_y(y)}{span}"))
        marks.append(marker(style, x_axis(x) + shift, y_axis(y), tip))
    return marks


def _writers(series: Sequence[Series], percent: bool) -> tuple[Callable[[float], str], Callable[[float], str]]:
    """How values on the two axes are written in words."""
    points = [point for line in series for point in line.points()]
    return value_writer([point[0] for point in points], False), value_writer([point[1] for point in points], percent)


def _told(series: Sequence[Series], references: Sequence[Reference], x_label: str, y_label: str, percent: bool) -> str:
    """The chart in words: what is on the axes, and the values of each line (the ends of long ones)."""
    told = [f"{y_label} by {x_label}."]
    write_x, write_y = _writers(series, percent)
    for line in series:
        points = line.points()
        shown = points if len(points) <= 12 else [points[0], points[-1]]
        values = ", ".join(f"{write_x(x)}: {write_y(y)}" for x, y, _, _ in shown)
        told.append(f"{line.name}: {values or 'no values'}.")
    told += [f"Reference {item.label}: {value_writer([item.value], percent)(item.value)}." for item in references]
    return " ".join(told)
