"""A picture of a search under way."""

from collections.abc import Sequence

import numpy as np

from airloc.areas.area import Pixels
from airloc.drawing.trajectory import draw_trajectory
from airloc.grid import Cell, Grid


def render_search(image: Pixels, grid: Grid, path: Sequence[Cell], goal_patch: Pixels) -> Pixels:
    """Draw the path over the area, unvisited cells dimmed, with the goal's picture at the right."""
    search = draw_trajectory(image, grid, path, goal=None, dim_unvisited=True, margin=1)
    height = search.shape[0]
    side = min(height, max(grid.cell, height // 4))
    column = np.zeros((height, side + 16, 3), dtype=np.uint8)
    shown = goal_patch[np.arange(side) * grid.cell // side][:, np.arange(side) * grid.cell // side]
    column[:side, 16:] = shown
    return np.concatenate([search, column], axis=1)
