"""The colours of pictures and charts.

The hues are those of Okabe and Ito, which colour-blind readers can distinguish. Colour is never the only difference:
paths also differ in dashes, chart series in markers and dashes, bars in hatching.

Legend: Colour: (red, green, blue), 0 to 255 each.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Colour: TypeAlias = tuple[int, int, int]


class Ink(NamedTuple):
    """The colour of a chart series as hex, on light and on dark paper."""

    light: str
    dark: str


PATH_A: Colour = (200, 58, 18)
"""Vermilion, dark enough for white numbers: the path of the agent, drawn solid."""
PATH_B: Colour = (0, 125, 90)
"""Bluish green: the path to compare with, drawn dashed."""
TEAM: tuple[Colour, ...] = (PATH_A, PATH_B, (143, 45, 104), (107, 74, 0), (61, 42, 128))
"""The paths of several drones, which differ in dashes too."""
START: Colour = (0, 90, 160)
GOAL: Colour = (255, 200, 40)
TEXT: Colour = (27, 31, 36)
SOFT: Colour = (91, 100, 112)
"""Secondary text: captions and legends."""
PAPER: Colour = (255, 255, 255)
MARGIN: Colour = (233, 236, 240)
"""The margin around the area."""
OUTSIDE: Colour = (38, 42, 48)
"""A visited cell outside the area, where the glimpse is black."""

INKS: tuple[Ink, ...] = (
    Ink("#0072b2", "#56b4e9"),
    Ink("#d55e00", "#f07a3a"),
    Ink("#009e73", "#5ee0b8"),
    Ink("#8f2d68", "#c868a0"),
    Ink("#6b4a00", "#f0c04a"),
    Ink("#6b7280", "#c9d1d9"),
    Ink("#3d2a80", "#8f78f0"),
    Ink("#c2185b", "#e0526a"),
)
"""Series colours in the order of use. Each has a contrast of at least 3:1 with its paper.

They also differ for readers with protanopia and deuteranopia, the first five clearly."""

LIGHT_PAPER, DARK_PAPER = "#ffffff", "#14171c"

_MAGMA = """1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 f56b5c fc8961 fea772
fec488 fde2a3 fcfdbf"""
_HEAT: npt.NDArray[np.float64] = np.array([list(bytes.fromhex(stop)) for stop in _MAGMA.split()], dtype=np.float64)


def hex_of(colour: Colour) -> str:
    """Return a colour as CSS writes it.

    >>> hex_of((213, 94, 0))
    '#d55e00'
    """
    return "#" + bytes(colour).hex()


def luminance(colour: Colour) -> float:
    """Return the relative luminance of WCAG 2: 0 for black, 1 for white."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(a: Colour, b: Colour) -> float:
    """Return the contrast ratio of WCAG 2: from 1 for equal luminance to 21 for black on white."""
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def text_on(background: Colour) -> Colour:
    """Return the colour of text, dark or white, that has more contrast with a background."""
    return max(TEXT, PAPER, key=lambda colour: contrast(colour, background))


def heat(values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Map values (...) from 0 to 1 to colours (..., 3) of the colour map "magma" without its black end."""
    place = np.clip(np.asarray(values, dtype=np.float64), 0, 1) * (len(_HEAT) - 1)
    stops = np.arange(len(_HEAT))
    channels = [np.interp(place, stops, _HEAT[:, channel]) for channel in range(3)]
    colours: npt.NDArray[np.uint8] = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    return colours
