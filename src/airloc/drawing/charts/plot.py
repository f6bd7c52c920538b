"""The sheet of a chart: paper, headline, axes with their names, labels at the right edge.

Legend: coordinates are SVG user units, y downwards; all parts are markup.
"""

import hashlib
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from airloc.drawing import canvas
from airloc.drawing.charts.axes import Axis, spread
from airloc.drawing.charts.series import Reference
from airloc.drawing.charts.style import CSS, FONT, HEADLINE, SMALL
from airloc.drawing.page import element, words
from airloc.drawing.palette import LIGHT_PAPER

_WIDEST_LABEL = 270.0
_NEAR_EDGE = 48.0
"""A name is tied to its line where that ends this near the edge; elsewhere the tie would look like data."""
_NARROWEST = 400.0
_WIDE_FONT = 1.18
"""How much wider than ours the reader's font may be: ours is as wide as Helvetica, DejaVu Sans this much wider."""
LABEL_HEIGHT = 18.0
LEFT = 84.0
"""Room for the vertical axis."""


@dataclass(frozen=True, slots=True)
class Plot:
    """The rectangle in which the data lies, and the sheet around it."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


def text_width(text: str, size: float) -> float:
    """Width that a line of text may need in the reader's font."""
    return canvas.text_width(text, size) * _WIDE_FONT


def shorten(text: str, size: float, width: float) -> str:
    """Cut a text with an ellipsis so that it fits in the reader's font."""
    return canvas.shorten(text, size, width / _WIDE_FONT)


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """A name at the right edge, beside where its line ends."""

    text: str
    y: float
    sample: str
    """Markup of a line or marker around (0, 0), 30 wide, shown before the name."""
    x: float | None = None
    """Where the line ends, if before the edge."""


def label(
    x: float,
    y: float,
    text: str,
    *,
    size: float = FONT,
    anchor: str = "start",
    width: float | None = None,
    over_data: bool = False,
) -> str:
    """Write text; what does not fit in `width` is cut, and shown whole by the browser on hovering.

    A text over data is edged with paper so that lines do not strike it through.
    """
    short = text if width is None else shorten(text, size, width)
    full = element("title", words(text)) if short != text else ""
    look: dict[str, str | float | None] = {"font_size": size, "text_anchor": anchor, "fill": "currentColor"}
    if over_data:
        look |= {"class_": "ac-edge", "stroke": LIGHT_PAPER, "stroke_width": 3.5, "paint_order": "stroke"}
    return element("text", full + words(short), x=x, y=y, **look)


def headline_lines(title: str, width: float) -> list[str]:
    """The title in lines that fit, at most three."""
    letters = max(10, int(width / text_width("n", HEADLINE)))
    return textwrap.wrap(title, letters, max_lines=3, placeholder=" …")


def headline(lines: Sequence[str]) -> str:
    """The title at the top left."""
    parts = [
        element("text", words(line), x=16, y=28 + 21 * index, font_size=HEADLINE, font_weight=600, fill="currentColor")
        for index, line in enumerate(lines)
    ]
    return "".join(parts)


def value_axis(plot: Plot, axis: Axis, name: str) -> str:
    """Horizontal grid lines with their values at the left, and the name of the values, turned."""
    parts = []
    for tick in axis.ticks:
        y = axis(tick)
        line = element("line", x1=plot.left, x2=plot.right, y1=y, y2=y, stroke="currentColor", stroke_width=1)
        parts.append(element("g", line, class_="ac-grid", color="#e1e5ea"))
        parts.append(label(plot.left - 9, y + 4.3, axis.text(tick), size=SMALL, anchor="end"))
    middle = (plot.top + plot.bottom) / 2
    turned = label(0, 0, name, anchor="middle", width=max(40.0, plot.bottom - plot.top + 40))
    parts.append(element("g", turned, transform=f"translate(22 {middle:.1f}) rotate(-90)"))
    return soft(*parts)


def base_line(plot: Plot, y: float) -> str:
    """The line on which the data stands."""
    return element("line", x1=plot.left, x2=plot.right, y1=y, y2=y, stroke="currentColor", stroke_width=1.2)


def soft(*parts: str) -> str:
    """A group in the colour of second rank."""
    return element("g", *parts, class_="ac-soft", color="#5b6470")


def edge_width(names: Sequence[str]) -> float:
    """Room to be left at the right edge for these names."""
    widest = max((text_width(name, FONT) for name in names), default=-40.0)
    return min(widest, _WIDEST_LABEL) + 62


def sheet_width(wanted: float, names: Sequence[str]) -> float:
    """Width of a sheet that leaves the data enough room beside these names."""
    return max(wanted, LEFT + _NARROWEST + edge_width(names))


def edge_labels(plot: Plot, labels: Sequence[EdgeLabel]) -> str:
    """Names at the right edge, moved apart where they would overlap and then tied to their lines."""
    parts = []
    places = spread([item.y for item in labels], LABEL_HEIGHT, plot.top, plot.bottom)
    for item, y in zip(labels, places, strict=True):
        start = plot.right - 4 if item.x is None else item.x
        if start > plot.right - _NEAR_EDGE:
            tie = f"M{start + 7:.1f} {item.y:.1f}L{plot.right + 4:.1f} {item.y:.1f}L{plot.right + 15:.1f} {y:.1f}"
            parts.append(soft(element("path", d=tie, fill="none", stroke="currentColor", stroke_width=0.9)))
        parts.append(element("g", item.sample, transform=f"translate({plot.right + 33:.1f} {y:.1f})"))
        parts.append(label(plot.right + 54, y + 4.5, item.text, width=_WIDEST_LABEL))
    return "".join(parts)


def reference_lines(plot: Plot, axis: Axis, references: Sequence[Reference]) -> tuple[str, list[EdgeLabel]]:
    """Dashed lines across the plot, and their labels."""
    lines, labels = [], []
    look: dict[str, str | float | None] = {"stroke": "currentColor", "stroke_width": 1.5, "stroke_dasharray": "5 4"}
    for reference in references:
        y = axis(reference.value)
        lines.append(element("line", x1=plot.left, x2=plot.right, y1=y, y2=y, **look))
        sample = element("line", x1=-15, x2=15, y1=0, y2=0, **look)
        labels.append(EdgeLabel(reference.label, y, sample))
    return "".join(lines), labels


def chart_name(*content: object) -> str:
    """An id of the chart's own, the same each time it is made."""
    return "ac-" + hashlib.sha256(repr(content).encode()).hexdigest()[:10]


def sheet(plot: Plot, name: str, title: str, description: str, parts: Sequence[str]) -> str:
    """The whole chart, with its title and description for screen readers."""
    body = "".join(parts)
    names = element("title", words(title), id=f"{name}-t") + element("desc", words(description), id=f"{name}-d")
    paper = element("rect", class_="ac-paper", width="100%", height="100%", fill="#ffffff")
    return element(
        "svg",
        names,
        element("style", CSS),
        paper,
        body,
        xmlns="http://www.w3.org/2000/svg",
        class_="ac",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        viewBox=f"0 0 {plot.width:.0f} {plot.height:.0f}",
        width=f"{plot.width:.0f}",
        height=f"{plot.height:.0f}",
        color="#1b1f24",
        font_family="system-ui,Helvetica,Arial,sans-serif",
    )
