"""Pictures, animations, charts and HTML pages from arrays and plain values.

`charts` is the only module that needs Matplotlib, and is not imported here.
"""

from airloc.drawing.heatmap import belief_strip, draw_belief
from airloc.drawing.page import page
from airloc.drawing.sheet import contact_sheet, draw_grid, encode_gif, save_gif
from airloc.drawing.trajectory import draw_trajectory

__all__ = [
    "belief_strip",
    "contact_sheet",
    "draw_belief",
    "draw_grid",
    "draw_trajectory",
    "encode_gif",
    "page",
    "save_gif",
]
