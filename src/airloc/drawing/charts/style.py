"""The look of charts: colours as CSS variables for light, dark and print, markers, dashes and hatching."""

import math

from airloc.drawing.page import element, number
from airloc.drawing.palette import DARK_PAPER, INKS, LIGHT_PAPER

FONT = 13
SMALL = 12
HEADLINE = 16

DASHES: tuple[str | None, ...] = (None, "8 4", "2 3.5", "10 4 2 4")
_SIDES = ("circle", "square", "up", "diamond", "down", "plus", "cross", "star")


def _inks(dark: bool) -> str:
    return "".join(f"--ac-{index}:{ink.dark if dark else ink.light};" for index, ink in enumerate(INKS))


_LIGHT = f"--ac-paper:var(--paper,{LIGHT_PAPER});--ac-ink:#1b1f24;--ac-soft:#5b6470;--ac-grid:#e1e5ea;{_inks(False)}"
_DARK = f"--ac-paper:var(--paper,{DARK_PAPER});--ac-ink:#e6e9ed;--ac-soft:#a3adb8;--ac-grid:#303740;{_inks(True)}"

CSS = (
    f".ac{{{_LIGHT}color-scheme:light dark;color:var(--ac-ink);"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
    "sans-serif;font-variant-numeric:tabular-nums}"
    f"@media (prefers-color-scheme:dark){{.ac{{{_DARK}}}}}"
    f"@media print{{.ac{{{_LIGHT}}}}}"
    ".ac-paper{fill:var(--ac-paper)}.ac-edge{stroke:var(--ac-paper)}.ac-soft{color:var(--ac-soft)}"
    ".ac-grid{color:var(--ac-grid)}" + "".join(f".ac-s{i}{{color:var(--ac-{i})}}" for i in range(len(INKS)))
)
"""Colours are set on groups as `color`, and shapes take `currentColor`; a renderer without CSS variables falls back
on the group's `color` attribute, which is the light one."""


def styled(style: int, *children: str) -> str:
    """A group in the colour of a style."""
    index = style % len(INKS)
    return element("g", *children, class_=f"ac-s{index}", color=INKS[index].light)


def dash(style: int) -> str | None:
    """The dashes of a style; None is a solid line."""
    return DASHES[(style + style // len(INKS)) % len(DASHES)]


def marker(style: int, x: float, y: float, *children: str, radius: float = 4.5) -> str:
    """The marker of a style, in the colour of its group, edged with paper."""
    kind = _SIDES[style % len(_SIDES)]
    look: dict[str, str | float | None] = {"class_": "ac-edge", "fill": "currentColor", "stroke": LIGHT_PAPER}
    if kind == "circle":
        return element("circle", *children, cx=x, cy=y, r=radius, stroke_width=1, **look)
    corners = _corners(kind, radius)
    place = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in corners)
    return element("polygon", *children, points=place, stroke_width=1, stroke_linejoin="round", **look)


def _corners(kind: str, radius: float) -> list[tuple[float, float]]:
    """Corners of a marker around (0, 0), of about the same area each."""
    if kind == "square":
        return _turned([radius * 1.25] * 4, 45)
    if kind in ("up", "down"):
        return _turned([radius * 1.4] * 3, -90 if kind == "up" else 90)
    if kind == "diamond":
        return _turned([radius * 1.35] * 4, 0)
    if kind == "star":
        return _turned([radius * 1.5, radius * 0.65] * 5, -90)
    arm, half = radius * 1.3, radius * 0.45
    plus = [(-half, -arm), (half, -arm), (half, -half), (arm, -half), (arm, half), (half, half)]
    plus += [(-x, -y) for x, y in plus]
    turn = 0 if kind == "plus" else math.pi / 4
    return [(x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)) for x, y in plus]


def _turned(radii: list[float], first: float) -> list[tuple[float, float]]:
    """Corners at equal angles around (0, 0), beginning at `first` degrees."""
    turns = [math.radians(first + 360 * index / len(radii)) for index in range(len(radii))]
    return [(radius * math.cos(turn), radius * math.sin(turn)) for radius, turn in zip(radii, turns, strict=True)]


_HATCHES: tuple[str | None, ...] = (
    None,
    "M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "M0 4H8",
    "M-2 6L2 10M0 0L8 8M6 -2L10 2",
    "M4 0V8",
)


def hatching(style: int, name: str) -> str:
    """The pattern called `name` that is laid over the bars of a style; empty for the styles that are plain."""
    path = _HATCHES[style % len(_HATCHES)]
    if path is None:
        return ""
    stroke = element("path", d=path, class_="ac-edge", stroke=LIGHT_PAPER, stroke_width=1.6, fill="none", opacity=0.75)
    return element("pattern", stroke, id=name, width=8, height=8, patternUnits="userSpaceOnUse")
