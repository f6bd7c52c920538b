"""Where a vehicle may fly: inside the outline or at most a margin outside it, never in a no-fly zone or over a hole.

A cell at the edge may have its centre outside. Its photo is then taken from the nearest point of the cell inside. A
leg that would leave the fence flies around its corners, on the shortest path of the visibility graph.

Legend: points are (x, y) in metres of the layout's plane; a place is a fractional (row, column) of the grid.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import shapely
from scipy.sparse.csgraph import dijkstra
from shapely.geometry import LineString, MultiPolygon, Point, Polygon

from airloc.areas.layout import Layout, project
from airloc.areas.raster import Points
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.flight import Ring

log = logging.getLogger(__name__)

MAX_MARGIN = 100_000.0
"""Largest margin in metres."""
MAX_INSET = 3.0
"""Distance in metres that waypoints and corners of legs keep from the fence, for the error of the position."""
INSET = 1 / 20
"""The same as a fraction of the cell, if that is less."""
CORRIDOR = 15.0
"""Half the width in metres of the corridor from home to the fence."""
MIN_FREE = 0.25
"""Smallest fraction of a searched cell that is inside the outline and outside no-fly zones."""
MAX_CORNERS = 120
"""Number of corners of the visibility graph above which the fence is simplified."""


@dataclass(frozen=True, eq=False)
class Fence:
    """The region in which a vehicle may fly. It may have several parts; no leg leads from one to another."""

    region: Polygon | MultiPolygon
    """Region of the plane that no leg leaves."""
    inner: Polygon | MultiPolygon
    """The region without a strip along its edge; waypoints lie in it."""
    layout: Layout
    pieces: Sequence[Polygon]
    """Unconnected parts of the region, each without a strip along its edge; the first one has the start."""
    parts: npt.NDArray[np.int64]
    """Number of the part in which each cell is photographed, from 0, (rows, cols); -1 for cells not searched."""

    def place(self, cell: Cell) -> tuple[float, float]:
        """Return the place from which a cell is photographed: its centre, or the nearest place of the cell inside."""
        centre = Point(self.layout.centres(cell))
        piece = self.pieces[max(0, int(self.parts[cell]))]
        if piece.covers(centre):
            return float(cell[0]), float(cell[1])
        inside = Polygon(self.layout.corners(cell)).intersection(piece)
        nearest = shapely.get_coordinates(shapely.shortest_line(inside if not inside.is_empty else piece, centre))
        return self.layout.grid_position(nearest[0])

    def route(self, start: Points, end: Points) -> Points:
        """Return the shortest path between two points, (n, 2), with both of them.

        Raises:
            AirlocError: If no path connects them.
        """
        ends = np.array([start, end], dtype=np.float64)
        if self.region.covers(LineString(ends)) or np.allclose(*ends):
            return ends
        corners, between = self._graph
        count = len(corners)
        lengths = np.zeros((count + 2, count + 2))
        lengths[:count, :count] = between
        for number, point in enumerate(ends, start=count):
            lengths[number, :count] = lengths[:count, number] = self._visible_lengths(point, corners)
        distance, before = dijkstra(lengths, indices=count, return_predecessors=True)
        if not math.isfinite(distance[count + 1]):
            raise AirlocError("No path inside the outline connects two waypoints", "Give a larger --margin")
        path = [count + 1]
        while path[-1] != count:
            path.append(int(before[path[-1]]))
        return np.concatenate([corners, ends])[path[::-1]]

    @cached_property
    def _graph(self) -> tuple[Points, Points]:
        """Corners around which a path may bend, (n, 2), and distances, (n, n), zero if one does not see the other."""
        shapely.prepare(self.region)
        corners = np.concatenate([_reflex_corners(part) for part in _parts(self.inner)])
        simpler, tolerance = self.inner, MAX_INSET
        while len(corners) > MAX_CORNERS and not simpler.is_empty:
            # What lies within the tolerance of the edge is given up, so that simplifying does not leave the fence.
            simpler = self.inner.buffer(-tolerance, join_style="mitre").simplify(0.9 * tolerance)
            corners, tolerance = np.concatenate([_reflex_corners(part) for part in _parts(simpler)]), 2 * tolerance
        lengths = np.stack([self._visible_lengths(corner, corners) for corner in corners]) if len(corners) else corners
        return corners, lengths.reshape(len(corners), len(corners))

    def _visible_lengths(self, point: Points, corners: Points) -> Points:
        """Return the distances from a point to corners, (n,), zero for those that it does not see."""
        lines = shapely.linestrings(np.stack([np.broadcast_to(point, corners.shape), corners], axis=1))
        seen = shapely.covers(self.region, lines)
        return np.where(seen, np.linalg.norm(corners - point, axis=1), 0.0)

    def rings(self, around: Points) -> tuple[Ring, Sequence[Ring]]:
        """Return the outer ring and the holes of the part around a point, in latitude and longitude, not closed."""
        plane = self.layout.require_plane()
        part = min(_parts(self.region), key=lambda each: each.distance(Point(around)))
        rings = [shapely.get_coordinates(ring)[:-1] for ring in (part.exterior, *part.interiors)]
        outer, *holes = [[(lat, lon) for lat, lon in plane.to_degrees(ring).tolist()] for ring in rings]
        return outer, holes


def fence_in(
    layout: Layout,
    start: Points | None,
    *,
    margin_m: float = 0.0,
    no_fly: MultiPolygon | Polygon | None = None,
    ports: Sequence[Points] = (),
) -> tuple[Layout, Fence | None]:
    """Fence a grid in, and leave out the cells that cannot be reached inside the fence.

    Args:
        layout: The grid.
        start: Point of the first photo, whose part of the outline comes first; the largest part if None.
        margin_m: Metres that the vehicle may fly outside the outline and over its holes.
        no_fly: No-fly zones in (lon, lat), which the margin does not widen into.
        ports: Points of take-off and landing; a corridor leads from each to the fence.

    Returns:
        The grid and its fence; no fence if there is neither an outline nor a no-fly zone.

    Raises:
        AirlocError: If fewer than two cells can be reached, or the way home is closed.
    """
    if not 0 <= margin_m <= MAX_MARGIN:
        raise AirlocError(f"A margin of {margin_m:g} m is not valid", f"Give a margin from 0 to {MAX_MARGIN:g} m")
    if layout.region is None and no_fly is None:
        return layout, None
    closed = MultiPolygon() if no_fly is None else project(no_fly, layout.require_plane(), "no-fly zone")
    wanted = Polygon(layout.frame()) if layout.region is None else layout.region
    region = shapely.make_valid((wanted.buffer(margin_m, quad_segs=4) if margin_m else wanted).difference(closed))
    inset = min(MAX_INSET, INSET * layout.cell_m)
    pieces = _parts(region.buffer(-inset, join_style="mitre"))
    pieces.sort(key=lambda part: -part.area if start is None else part.distance(Point(start)))
    reached = _reachable_cells(layout, pieces, wanted.difference(closed))
    used = np.unique(reached[reached >= 0])
    parts = np.where(reached >= 0, np.searchsorted(used, reached), -1).reshape(layout.grid.shape)
    fence = Fence(
        shapely.union_all([_part_around(region, pieces[number]) for number in used]),
        shapely.union_all([pieces[number] for number in used]),
        replace(layout, searchable=parts >= 0),
        [pieces[number] for number in used],
        parts,
    )
    for port in ports:
        fence = _with_corridor(fence, port, closed)
    return fence.layout, fence


def _reachable_cells(
    layout: Layout, pieces: Sequence[Polygon], wanted: Polygon | MultiPolygon
) -> npt.NDArray[np.int64]:
    """Return the number of the piece that has most of each cell, (rows * cols,); -1 for cells not searched.

    Raises:
        AirlocError: If fewer than two cells can be reached.
    """
    cells = layout.polygons()
    free = shapely.area(shapely.intersection(cells, wanted)) >= MIN_FREE * layout.cell_m**2
    inside = np.array([shapely.area(shapely.intersection(piece, cells)) for piece in pieces]).reshape(-1, len(cells))
    searchable = layout.searchable.ravel() & free & (inside > 0).any(axis=0)
    if searchable.sum() < 2:
        raise AirlocError(
            "Fewer than two cells can be reached without leaving the outline or entering a no-fly zone",
            "Give a larger --margin, smaller cells, or start in another part of the outline",
        )
    lost = int(layout.searchable.sum() - searchable.sum())
    if lost:
        left_out = f"{lost} cell{'s' * (lost > 1)} in no-fly zones or out of reach inside the outline"
        log.warning("not searched: %s; a larger --margin may reach more", left_out)
    return np.where(searchable, inside.argmax(axis=0), -1)


def _part_around(region: Polygon | MultiPolygon, piece: Polygon) -> Polygon:
    """Return the part of a region that contains a piece of it."""
    return next(part for part in _parts(region) if part.intersects(piece))


def _with_corridor(fence: Fence, port: Points, closed: MultiPolygon) -> Fence:
    """Return a fence whose parts corridors join with a point of take-off or landing."""
    point = Point(port)
    if closed.intersects(point):
        raise AirlocError("Home or the landing is in a no-fly zone", "Take off and land elsewhere")
    for piece in fence.pieces:
        if not piece.covers(point):
            fence = _with_way(fence, shapely.shortest_line(point, piece), closed)
    return fence


def _with_way(fence: Fence, way: LineString, closed: MultiPolygon) -> Fence:
    """Return a fence with a corridor around a way."""
    if closed.intersects(way):
        problem = "A no-fly zone lies between home or the landing and the search area"
        raise AirlocError(problem, "Take off and land where the straight way to the search area is free")
    corridor = way.buffer(CORRIDOR, quad_segs=4).difference(closed.buffer(MAX_INSET / 2))
    corridor = next(part for part in _parts(corridor) if part.intersects(way))
    inner = fence.inner.union(way.buffer(0.1, quad_segs=1).difference(closed))
    return replace(fence, region=fence.region.union(corridor), inner=inner)


def _parts(shape: Polygon | MultiPolygon) -> list[Polygon]:
    """Return the polygons of a shape."""
    return [part for part in shapely.get_parts(shape) if part.geom_type == "Polygon" and part.area > 0]


def _reflex_corners(polygon: Polygon) -> Points:
    """Return the corners at which the inside of a polygon has more than 180 degrees, (n, 2)."""
    corners: list[npt.NDArray[np.float64]] = [np.zeros((0, 2))]
    oriented = shapely.geometry.polygon.orient(polygon)  # the outer ring counterclockwise, holes clockwise
    for ring in (oriented.exterior, *oriented.interiors):
        points = shapely.get_coordinates(ring)[:-1]
        before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
        corners.append(points[before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0] < 0])
    return np.concatenate(corners)
