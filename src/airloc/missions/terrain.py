"""How easily a lost person walks in each cell: along roads and trails, and on gentle slopes.

The belief of a target that walks flows more readily into cells of more ease (`Motion.transition`). A cell that a road
crosses has `ROAD` times the ease of open ground, an assumption. On a slope the ease falls like the walking speed of
W. Tobler's hiking function (1993), exp(-3.5 |slope|) without its preference for a slight descent.

Legend: eases are (rows, cols).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import shapely

from airloc.areas.features import Feature
from airloc.areas.layout import Layout, project, spots_in_cell
from airloc.errors import AirlocError
from airloc.missions.priors import valid_line

if TYPE_CHECKING:
    from airloc.missions.routes import ElevationModel

Floats = npt.NDArray[np.float64]

ROAD = 4.0
"""Ease of a cell that a road or trail crosses; open ground has 1."""
SLOPE = 3.5
"""Fall of the ease with the slope, in Tobler's hiking function."""
SPOTS = 4
"""Points along the side of a cell at which the slope is measured."""


def walking_ease(layout: Layout, roads: Sequence[Feature], dem: "ElevationModel | None" = None) -> Floats | None:
    """Return how easily each cell is walked; None if nothing is known.

    Args:
        layout: The grid.
        roads: Features with roads and trails as lines.
        dem: Heights of the ground.

    Raises:
        AirlocError: If no line is valid and crosses the grid, or the elevation model does not cover it.
    """
    if not roads and dem is None:
        return None
    ease = np.ones(layout.grid.shape)
    if roads:
        ease = ease * _road_ease(layout, roads)
    return ease if dem is None else ease * np.exp(-SLOPE * _slopes(layout, dem))


def _road_ease(layout: Layout, roads: Sequence[Feature]) -> Floats:
    lines = [valid_line(road, "the roads") for road in roads if road.kind == "LineString"]
    if not lines:
        raise AirlocError("The roads have no line", "Give a file with roads and trails as lines")
    flat = project(shapely.MultiLineString(lines), layout.require_plane(), "roads")
    crossed = shapely.intersects(flat, layout.polygons()).reshape(layout.grid.shape)
    if not crossed.any():
        raise AirlocError("The roads do not cross the search area", "Give roads of the area in WGS 84 (EPSG:4326)")
    return np.where(crossed, ROAD, 1.0)


def _slopes(layout: Layout, dem: "ElevationModel") -> Floats:
    """Return the mean slope in each searched cell, as metres of height per metre; zero elsewhere."""
    cells = np.argwhere(layout.searchable)
    places = cells[:, None, None] + spots_in_cell(SPOTS)  # (n, S, S, 2)
    heights = dem.heights(layout.lat_lon(places).reshape(-1, 2)).reshape(places.shape[:-1])
    down, right = np.gradient(heights, layout.pitch_m / SPOTS, axis=(1, 2))
    slopes = np.zeros(layout.grid.shape)
    slopes[tuple(cells.T)] = np.hypot(down, right).mean(axis=(1, 2))
    return slopes
