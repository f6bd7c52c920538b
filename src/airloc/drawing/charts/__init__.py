"""SVG charts as text: lines and grouped bars with 95 % intervals, readable on screen, in print and in the dark.

A chart stands alone as a file or inside a page. It carries its own style (light, dark, print), names its parts for
screen readers, and tells series apart by colour, marker and dash, or by colour and hatching.
"""

from airloc.drawing.charts.bars import bar_chart
from airloc.drawing.charts.lines import line_chart
from airloc.drawing.charts.series import Bars, Reference, Series

__all__ = ["Bars", "Reference", "Series", "bar_chart", "line_chart"]
