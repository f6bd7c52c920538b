"""The figure of a chart: title, axes, names at the right edge, and its SVG text.

The text of a chart stays text in the reader's font, its colours follow the reader's light or dark mode, it has a title
and a description for screen readers, and the same content always gives the same bytes. Coordinates are pixels from the
bottom left corner, as in Matplotlib: 72 of them are an inch.
"""

import hashlib
import io
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context, style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation
from matplotlib.transforms import IdentityTransform

from airloc.drawing.page import element, escape_text, replace_invalid
from airloc.drawing.palette import DARK_PAPER, INKS, LIGHT_PAPER

INK, SOFT, GRID = "#1b1f24", "#5b6470", "#e1e5ea"
"""Colours of text, of axes and of grid lines in light mode."""

_DARK = {LIGHT_PAPER: DARK_PAPER, INK: "#e6e9ed", SOFT: "#a3adb8", GRID: "#303740", **dict(INKS)}
"""The colour in dark mode of each colour in light mode. The order gives the numbers of the CSS variables."""
_SETTINGS = {"svg.fonttype": "none", "lines.scale_dashes": False, "hatch.linewidth": 1.4}
FONT, SMALL, _HEADLINE = 13, 12, 16
LETTER = 0.62
"""Mean width of a letter, as a share of the font size."""
LABEL_HEIGHT = 18.0
_LONGEST = 36
"""Letters of a name from which on it is cut."""


@contextmanager
def matplotlib_defaults() -> Iterator[None]:
    """Use Matplotlib's default settings, whatever those of the user are, and write text as text."""
    with style.context(["default", _SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def shorten(text: str, length: int = _LONGEST) -> str:
    """Return a text on one line, cut with an ellipsis to a number of letters.

    >>> shorten("a name that is too long", 12)
    'a name that…'
    """
    line = " ".join(replace_invalid(text).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def edge_width(names: Sequence[str]) -> int:
    """Return about the width in pixels of names at the right edge."""
    return round(60 + LETTER * FONT * max((len(shorten(name)) for name in names), default=0))


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """A name at the right edge, beside the end of its line.

    Attributes:
        name: The name.
        y: Where the line ends, in data units.
        look: Keyword arguments of the `Line2D` drawn before the name.
        x: Where the line ends, in data units. None for a line that ends at the edge.
        shift: Pixels by which the line is moved to the right.
    """

    name: str
    y: float
    look: dict[str, Any]
    x: float | None = None
    shift: float = 0.0


class Chart:
    """A figure with a title and one pair of axes.

    Args:
        title: Title of the chart, in up to three lines.
        width: Width in pixels.
        height: Height in pixels.
        content: The values drawn. Their `repr` decides the ids inside the SVG.
    """

    def __init__(self, title: str, width: int, height: int, content: object) -> None:
        self.title, self.width, self.height = title, width, height
        self._name = "ac-" + hashlib.sha256(repr((title, content)).encode()).hexdigest()[:10]
        self._titles: list[str] = []
        layout = ConstrainedLayoutEngine(w_pad=16 / 72, h_pad=11 / 72)
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor=LIGHT_PAPER, layout=layout)
        FigureCanvasSVG(self.figure)
        lines = textwrap.wrap(replace_invalid(title), max(10, (width - 32) // 11), max_lines=3, placeholder=" …")
        look = {"fontsize": _HEADLINE, "fontweight": "bold", "color": INK, "parse_math": False, "linespacing": 1.3}
        self.figure.suptitle("\n".join(lines), x=16 / width, ha="left", **look)
        self.axes = self.figure.add_subplot(facecolor="none")
        self.axes.spines[:].set_visible(False)
        self.axes.set_axisbelow(True)

    def title_id(self, text: str) -> str:
        """Return the id for an artist to which the browser shows this text on hovering."""
        self._titles.append(text)
        return f"title-{len(self._titles) - 1}"

    def note(self, text: str, xy: tuple[float, float], xytext: tuple[float, float], **look: Any) -> Annotation:
        """Write one line `xytext` pixels from a point; a text cut for its length has the whole as its title."""
        short = shorten(text)
        if short != " ".join(replace_invalid(text).split()):
            look["gid"] = self.title_id(text)
        look = {"textcoords": "offset points", "color": INK, "parse_math": False, "annotation_clip": False, **look}
        return self.axes.annotate(short, xy, xytext, **look)

    def draw_legend(self, names: Sequence[str], patches: Sequence[Patch]) -> None:
        """Draw the legend above the axes, in one row or in columns."""
        names = [shorten(name) for name in names]
        room, letter = self.width - 110, LETTER * FONT
        one_row = sum(letter * len(name) + 48 for name in names) < room
        columns = len(names) if one_row else max(1, int(room / (letter * max(map(len, names)) + 48)))
        order = [index for column in range(columns) for index in range(len(names))[column::columns]]
        legend = self.axes.legend(
            [patches[index] for index in order],
            [names[index] for index in order],
            ncols=columns,
            loc="lower left",
            bbox_to_anchor=(0, 1.02),
            borderaxespad=0,
            frameon=False,
            fontsize=FONT,
            labelcolor=INK,
            handlelength=1.4,
            columnspacing=1.5,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)

    def draw_edge_labels(self, labels: Sequence[EdgeLabel]) -> None:
        """Write names at the right edge so that they do not overlap. Draw everything else first.

        A name is tied to its line if that ends near the edge; a longer tie would look like data.
        """
        place = {"xycoords": self.axes.get_yaxis_transform(), "va": "center_baseline", "fontsize": FONT}
        names = [label.name if shorten(label.name) else "\N{EN DASH}" for label in labels]
        notes = [self.note(name, (1, label.y), (54, 0), **place) for name, label in zip(names, labels, strict=True)]
        self.figure.draw_without_rendering()  # the layout makes room for the names
        self.figure.set_layout_engine("none")
        ends = [self.axes.transData.transform((label.x or 0, label.y)) for label in labels]
        right, bottom, top = self.axes.bbox.x1, self.axes.bbox.y0, self.axes.bbox.y1
        heights = spread([float(y) for _, y in ends], bottom, top)
        for label, note, (end, y), height in zip(labels, notes, ends, heights, strict=True):
            note.xyann = (54, height - y)
            start = right - 4 if label.x is None else end + label.shift
            if start > right - 48:
                self._line([start + 7, right + 4, right + 15], [y, y, height], color=SOFT, linewidth=0.9)
            self._line([right + 18, right + 33, right + 48], [height] * 3, markevery=[1], **label.look)

    def _line(self, x: Sequence[float], y: Sequence[float], **look: Any) -> None:
        """Draw a line through pixels."""
        self.figure.add_artist(Line2D(x, y, transform=IdentityTransform(), **look))

    def svg(self, description: str) -> str:
        """Return the chart as SVG, described for screen readers."""
        buffer = io.StringIO()
        with rc_context({"svg.hashsalt": self._name}):
            nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            self.figure.savefig(buffer, format="svg", metadata=nothing)
        drawn = re.sub(r">\s+<", "><", buffer.getvalue())
        body = drawn[drawn.index("</defs>") + len("</defs>") : drawn.rindex("</svg>")]
        return element(
            "svg",
            element("title", escape_text(self.title), id=f"{self._name}-t"),
            element("desc", escape_text(description), id=f"{self._name}-d"),
            element("style", _CSS),
            re.sub(r"<[^>]*>", self._adapt, body),
            xmlns="http://www.w3.org/2000/svg",
            class_="ac",
            role="img",
            aria_labelledby=f"{self._name}-t {self._name}-d",
            viewBox=f"0 0 {self.width} {self.height}",
            width=f"{self.width}",
            height=f"{self.height}",
        )

    def _adapt(self, match: re.Match[str]) -> str:
        """Adapt a tag of Matplotlib: theme the colours, leave the font to the page, drop ids without a use."""
        tag = match[0].replace("xlink:href", "href")
        tag = re.sub(r'\bfill="(#[0-9a-f]{6})"', r'style="fill: \1"', tag)
        tag = re.sub(r"(fill|stroke): (#[0-9a-f]{6})", _themed, tag)
        tag = re.sub(r' ?font-family: [^;"]*;?', "", tag)
        group = re.fullmatch(r'<g id="(?:(halo)|title-(\d+)|[^"]*)"([^>]*)>', tag)
        if group is None:
            return tag
        title = element("title", escape_text(self._titles[int(group[2])])) if group[2] else ""
        return ('<g class="ac-halo"' if group[1] else "<g") + group[3] + ">" + title


def spread(wanted: Sequence[float], low: float, high: float, gap: float = LABEL_HEIGHT) -> list[float]:
    """Move heights apart by `gap`, each as little as possible; without enough room they overlap evenly.

    >>> spread([10, 12, 50], 0, 100, 10)
    [6.0, 16.0, 50.0]
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[tuple[float, int]] = []  # (mean of height less rank * gap, number of labels)
    for rank, index in enumerate(order):
        mean, count = wanted[index] - rank * gap, 1
        while blocks and blocks[-1][0] >= mean:
            other, more = blocks.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        blocks.append((mean, count))
    last = max(low, high - (len(wanted) - 1) * gap)
    flat = [min(max(mean, low), last) for mean, count in blocks for _ in range(count)]
    places = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        places[index] = float(flat[rank] + rank * gap)
    return places


def _themed(declaration: re.Match[str]) -> str:
    """Add a CSS variable to a colour; viewers that do not know variables keep the colour for light mode."""
    attribute, colour = declaration.groups()
    if colour not in _DARK:
        return declaration[0]
    return f"{attribute}:{colour};{attribute}:var(--ac-{list(_DARK).index(colour)})"


def _variables(colours: Iterable[str]) -> str:
    """Return the CSS variables of colours; a page sets the paper itself."""
    paper, *others = colours
    return f"--ac-0:var(--paper,{paper});" + "".join(f"--ac-{n}:{colour};" for n, colour in enumerate(others, 1))


_CSS = (
    f".ac{{{_variables(_DARK)}color-scheme:light dark;font-variant-numeric:tabular-nums;"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}"
    f"@media (prefers-color-scheme:dark){{.ac{{{_variables(_DARK.values())}}}}}"
    f"@media print{{.ac{{{_variables(_DARK)}}}}}"
    ".ac *{stroke-linejoin:round}"
    f".ac-halo text{{stroke:{LIGHT_PAPER};stroke:var(--ac-0);stroke-width:3.5px;paint-order:stroke}}"
)
