"""The colours of every picture and chart: safe for colour-blind readers, one meaning each.

The hues are those of Okabe and Ito. Colour never carries a meaning alone: paths also differ in dashes, chart
series in markers and dashes, bars in hatching.

Legend: a colour is (red, green, blue), 0 to 255 each. A heat map turns values (...) into colours (..., 3).
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Colour: TypeAlias = tuple[int, int, int]


class Ink(NamedTuple):
    """One series colour of a chart, as hex, for light and for dark paper."""

    light: str
    dark: str


PATH_A: Colour = (200, 58, 18)
"""The path in focus: vermilion, darkened so that white numbers read well; drawn solid."""
PATH_B: Colour = (0, 125, 90)
"""The path compared with it: bluish green, drawn dashed."""
START: Colour = (0, 90, 160)
GOAL: Colour = (255, 200, 40)
TEXT: Colour = (27, 31, 36)
SOFT: Colour = (91, 100, 112)
"""Text of second rank: captions, legends."""
PAPER: Colour = (255, 255, 255)
MARGIN: Colour = (233, 236, 240)
"""What lies around the area."""
OUTSIDE: Colour = (38, 42, 48)
"""A visited cell outside the area, where a glimpse is black."""

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
"""Series colours in the order of use; each has a contrast of 3:1 or more with its paper.

Chosen by search so that all differ to readers with protanopia and deuteranopia too, the first five clearly."""

LIGHT_PAPER, DARK_PAPER = "#ffffff", "#14171c"

_MAGMA = """1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 f56b5c fc8961 fea772
fec488 fde2a3 fcfdbf"""
_HEAT: npt.NDArray[np.float64] = np.array([list(bytes.fromhex(stop)) for stop in _MAGMA.split()], dtype=np.float64)


def hex_of(colour: Colour) -> str:
    """Write a colour as in CSS.

    >>> hex_of((213, 94, 0))
    '#d55e00'
    """
    return "#" + bytes(colour).hex()


def colour_of(text: str) -> Colour:
    """Read a colour as written in CSS with six digits; inverse of `hex_of`."""
    red, green, blue = bytes.fromhex(text.removeprefix("#"))
    return red, green, blue


def luminance(colour: Colour) -> float:
    """Relative luminance of WCAG 2: 0 for black, 1 for white."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(a: Colour, b: Colour) -> float:
    """Contrast ratio of WCAG 2, from 1 (the same luminance) to 21 (black on white)."""
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def text_on(background: Colour) -> Colour:
    """Dark or white text, whichever reads better on a background."""
    return max(TEXT, PAPER, key=lambda colour: contrast(colour, background))


def heat(values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Colours (..., 3) of values (...) from 0 to 1 on the perceptually uniform map "magma", less its black end."""
    place = np.clip(np.asarray(values, dtype=np.float64), 0, 1) * (len(_HEAT) - 1)
    stops = np.arange(len(_HEAT))
    channels = [np.interp(place, stops, _HEAT[:, channel]) for channel in range(3)]
    colours: npt.NDArray[np.uint8] = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    return colours
