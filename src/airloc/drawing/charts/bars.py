"""Bar charts: groups of bars with error bars, told apart by colour and hatching.

Legend: coordinates are SVG user units, y downwards; all parts are markup.
"""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airloc.drawing.charts.axes import Axis, round_ticks, value_writer
from airloc.drawing.charts.lines import error_bar
from airloc.drawing.charts.plot import (
    LABEL_HEIGHT,
    LEFT,
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
    shorten,
    text_width,
    value_axis,
)
from airloc.drawing.charts.series import Bars, Reference, require_some
from airloc.drawing.charts.style import FONT, SMALL, hatching, styled
from airloc.drawing.page import element, words
from airloc.errors import AirlocError

_LEGEND_ROW = 22.0


def bar_chart(
    groups: Sequence[str],
    bars: Sequence[Bars],
    *,
    title: str,
    y_label: str,
    x_label: str = "",
    y_percent: bool = False,
    references: Sequence[Reference] = (),
    description: str = "",
    width: int = 760,
    height: int = 420,
) -> str:
    """Draw groups of bars that stand on zero.

    Args:
        groups: Names of the groups, from left to right.
        bars: Bars of one colour each, with one value a group.
        title: What the chart shows.
        y_label: What the heights are.
        x_label: What the groups are.
        y_percent: Values are shares and shown in percent.
        references: Dashed horizontal lines to compare with.
        description: For who cannot see the chart; by default its values.
        width: Of the chart.
        height: Of the chart.

    Returns:
        The SVG.
    """
    if any(len(item.values) != len(groups) for item in bars):
        raise AirlocError(f"A chart of {len(groups)} groups needs as many bars of each colour", "Give None for none")
    require_some([item.name for item in bars], [value for item in bars for value in item.values])
    chart = chart_name(title, groups, bars, references)
    sides = [item.label for item in references]
    wide = sheet_width(width, sides) if sides else width
    lines = headline_lines(title, wide - 32)
    legend, legend_height = _legend(bars, chart, 30.0 + 21 * len(lines), wide)
    right = wide - (edge_width(sides) if sides else 20)
    names = _GroupNames.fitting(groups, (right - LEFT) / len(groups))
    top = 38 + 21 * len(lines) + legend_height
    height = max(height, round(top + names.height + 60 + max(120, LABEL_HEIGHT * len(references))))
    plot = Plot(wide, height, LEFT, right, top, height - 18 - names.height - (24 if x_label else 0))
    axis = _axis(plot, bars, references, y_percent)
    across, labels = reference_lines(plot, axis, references)
    write = value_writer([value for item in bars for value in item.values if value is not None], y_percent)
    drawn = [_bars(item, index, len(bars), plot, axis, chart, write) for index, item in enumerate(bars)]
    parts = [headline(lines), legend, value_axis(plot, axis, y_label), *(bodies for bodies, _ in drawn)]
    parts += [across, *(notes for _, notes in drawn), base_line(plot, axis(0)), edge_labels(plot, labels)]
    parts.append(names.drawn(plot))
    parts.append(label((plot.left + plot.right) / 2, height - 14, x_label, anchor="middle", width=right - LEFT))
    return sheet(plot, chart, title, description or _told(groups, bars, references, y_label, write), parts)


@dataclass(frozen=True, slots=True)
class _GroupNames:
    """Names under the groups: in up to two lines, or turned where they are too long for that."""

    names: Sequence[str]
    lines: Sequence[Sequence[str]]
    turned: bool
    height: float

    @classmethod
    def fitting(cls, names: Sequence[str], slot: float) -> "_GroupNames":
        letters = max(1, int((slot - 6) / text_width("n", SMALL)))
        lines = [textwrap.wrap(name, letters, break_long_words=False) or [""] for name in names]
        wide = any(text_width(line, SMALL) > slot - 4 for wrapped in lines for line in wrapped)
        if wide or any(len(wrapped) > 2 for wrapped in lines):
            short = [[shorten(name, SMALL, 250)] for name in names]
            return cls(names, short, True, 20 + 0.6 * max(text_width(line, SMALL) for [line] in short))
        return cls(names, lines, False, 12 + 16 * max(map(len, lines)))

    def drawn(self, plot: Plot) -> str:
        """All names, each under the middle of its group."""
        slot, parts = (plot.right - plot.left) / len(self.names), []
        for index, (name, lines) in enumerate(zip(self.names, self.lines, strict=True)):
            x, y = plot.left + (index + 0.5) * slot, plot.bottom
            if self.turned:
                text = element("title", words(name)) + words(lines[0])
                turned = element("text", text, font_size=SMALL, text_anchor="end", fill="currentColor")
                parts.append(element("g", turned, transform=f"translate({x + 4:.1f} {y + 16:.1f}) rotate(-36)"))
            else:
                rows = enumerate(lines)
                parts += [label(x, y + 18 + 16 * row, line, size=SMALL, anchor="middle") for row, line in rows]
        return "".join(parts)


def _axis(plot: Plot, bars: Sequence[Bars], references: Sequence[Reference], percent: bool) -> Axis:
    columns = [column for item in bars for column in (item.values, item.low or (), item.high or ())]
    values = [value for column in columns for value in column if value is not None] + [r.value for r in references]
    ticks = round_ticks(min(0.0, *values), max(0.0, *values))
    return Axis(ticks[0], ticks[-1], plot.bottom, plot.top, ticks, percent)


def _bars(
    item: Bars, index: int, count: int, plot: Plot, axis: Axis, chart: str, write: Callable[[float], str]
) -> tuple[str, str]:
    """The bars of one colour, and what lies above reference lines: intervals, and values where they fit."""
    style = index if item.style is None else item.style
    slot = (plot.right - plot.left) / len(item.values)
    thick = min(0.8 * slot / count, 64.0)
    weave = hatching(style, f"{chart}-{index}")
    parts, notes = [element("defs", weave)] if weave else [], []
    for group, value in enumerate(item.values):
        x, span = plot.left + (group + 0.5) * slot + (index - count / 2) * thick, item.interval(group)
        notes.append(_note(x + thick / 2, value, span, thick, axis, write))
        if value is not None:
            top, bottom = sorted((axis(value), axis(0)))
            box = {"x": x + 0.06 * thick, "y": top, "width": 0.88 * thick, "height": bottom - top}
            ends = f" ({write(span[0])} to {write(span[1])})" if span else ""
            tip = element("title", words(f"{item.name}: {write(value)}{ends}"))
            parts.append(element("rect", tip, fill="currentColor", **box))
            if weave:
                parts.append(element("rect", fill=f"url(#{chart}-{index})", pointer_events="none", **box))
    return styled(style, *parts), "".join(notes)


def _note(
    x: float,
    value: float | None,
    span: tuple[float, float] | None,
    thick: float,
    axis: Axis,
    write: Callable[[float], str],
) -> str:
    """The interval of a bar and its value beyond that; a dash where there is no bar."""
    if value is None:
        return label(x, axis(0) - 6, "\N{EN DASH}", size=SMALL, anchor="middle")
    ends = [value, *(span or ())]
    drawn = error_bar(x, axis(span[0]), axis(span[1]), min(5.0, thick / 4)) if span else ""
    if text_width(write(value), 11) >= thick + 2:
        return drawn
    y = axis(min(ends)) + 16 if value < 0 else axis(max(ends)) - 7
    return drawn + label(x, y, write(value), size=11, anchor="middle", over_data=True)


def _legend(bars: Sequence[Bars], chart: str, top: float, width: float) -> tuple[str, float]:
    """Swatches with names in rows below the headline, and the height they take; none for a single colour."""
    if len(bars) == 1:
        return "", 0.0
    parts, x, y = [], 16.0, top
    for index, item in enumerate(bars):
        style = index if item.style is None else item.style
        name = shorten(item.name, FONT, width - 70)
        room = 25 + text_width(name, FONT) + 20
        if x > 16 and x + room > width:
            x, y = 16.0, y + _LEGEND_ROW
        box = {"x": x, "y": y - 8, "width": 18, "height": 13}
        swatch = [element("rect", fill="currentColor", **box)]
        if hatching(style, ""):
            swatch.append(element("rect", fill=f"url(#{chart}-{index})", **box))
        parts += [styled(style, *swatch), label(x + 25, y + 3.5, name)]
        x += room
    return "".join(parts), y - top + _LEGEND_ROW


def _told(
    groups: Sequence[str],
    bars: Sequence[Bars],
    references: Sequence[Reference],
    y_label: str,
    write: Callable[[float], str],
) -> str:
    """The chart in words."""
    told = [f"{y_label}."]
    for item in bars:
        values = (
            f"{group}: {'no value' if value is None else write(value)}"
            for group, value in zip(groups, item.values, strict=True)
        )
        told.append(f"{item.name}: {', '.join(values)}.")
    told += [f"Reference {item.label}: {write(item.value)}." for item in references]
    return " ".join(told)
