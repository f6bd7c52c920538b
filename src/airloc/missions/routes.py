"""From cells to a flight: waypoints and legs inside the fence, launch and landing, heights above the ground.

Without an elevation model (DEM) all waypoints have the same height above the take-off point. With one, every waypoint
has the same height above the ground below it, and legs over rising ground bend upwards.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import rasterio
from pyproj import Transformer
from pyproj.exceptions import CRSError
from rasterio.errors import RasterioError
from rasterio.windows import Window
from scipy.ndimage import map_coordinates

from airloc.areas.raster import Points
from airloc.errors import AirlocError, reason_of
from airloc.grid import Cell
from airloc.missions.flight import Flight, Waypoint, great_circle_distance

if TYPE_CHECKING:
    from airloc.missions.plan import FieldSearch

MIN_CLEARANCE = 0.75
"""Smallest height above ground along a leg, as a fraction of the flight height."""
MAX_SIDE = 8192
"""Largest side of the part of an elevation model that is read, in pixels."""


class ElevationModel:
    """Ground heights from a raster of any projection, interpolated.

    Args:
        path: The file; its first band has heights in metres.

    Raises:
        AirlocError: If the file is not a raster, or has no georeference.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with warnings.catch_warnings(action="ignore"), rasterio.open(path) as file:
                if file.crs is None or file.transform.is_identity:
                    raise AirlocError(f"The elevation model {path} has no georeference", "Give a GeoTIFF with one")
                self._size, self._transform = (file.height, file.width), file.transform
                self._project: Any = Transformer.from_crs("EPSG:4326", file.crs.to_wkt(), always_xy=True)
        except (RasterioError, OSError, CRSError, ValueError) as error:
            problem = f"Cannot read the elevation model {path}: {reason_of(error)[:120]}"
            raise AirlocError(problem, "Give a GeoTIFF of ground heights in metres") from error

    def heights(self, positions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the heights of the ground at positions (n, 2) in metres.

        Raises:
            AirlocError: If the model does not cover a position.
        """
        lat, lon = np.moveaxis(np.asarray(positions, dtype=np.float64), -1, 0)
        col, row = ~self._transform @ self._project.transform(lon, lat)
        rows, cols = np.asarray(row) - 0.5, np.asarray(col) - 0.5  # of the pixels' centres
        inside = (rows >= -0.5) & (cols >= -0.5) & (rows <= self._size[0] - 0.5) & (cols <= self._size[1] - 0.5)
        if not inside.all():
            raise self._not_covered(positions, ~inside)
        top, left = int(max(0, rows.min())), int(max(0, cols.min()))
        height, width = min(self._size[0], int(rows.max()) + 2) - top, min(self._size[1], int(cols.max()) + 2) - left
        if max(height, width) > MAX_SIDE:
            problem = f"The elevation model {self.path} has more than {MAX_SIDE} pixels across the search area"
            raise AirlocError(problem, "Give a coarser one (gdalwarp -tr 5 5)")
        with rasterio.open(self.path) as file:
            ground = (
                file.read(1, window=Window(left, top, width, height), masked=True).astype(np.float64).filled(np.nan)
            )
        found = map_coordinates(ground, [rows - top, cols - left], order=1, mode="nearest")
        if not np.isfinite(found).all():
            raise self._not_covered(positions, ~np.isfinite(found))
        return np.asarray(found)

    def _not_covered(self, positions: npt.ArrayLike, missing: npt.NDArray[np.bool_]) -> AirlocError:
        lat, lon = np.asarray(positions)[missing][0].tolist()
        problem = f"The elevation model {self.path} has no height at {lat:.6f},{lon:.6f}"
        return AirlocError(problem, "Give one that covers the whole flight")


def make_flight(
    search: "FieldSearch",
    cells: Sequence[Cell],
    name: str,
    poa: npt.NDArray[np.float64],
    dem: ElevationModel | None = None,
) -> Flight:
    """Return the flight over cells in their order.

    Args:
        search: The search; its plan has launch and landing, which are the first cell by default.
        cells: The cells.
        name: Name of the flight.
        poa: Probability of area before the flight, (rows, cols).
        dem: Heights of the ground; flat ground if None.

    Raises:
        AirlocError: If the fence closes the way, or the elevation model does not cover the flight.
    """
    layout, plan, settings = search.layout, search.plan, search.plan.flight
    plane = layout.require_plane()
    stops = layout.centres([search.place(cell) for cell in cells])
    home, landing = settings.ends(plane, stops[0])
    points: list[tuple[Points, Cell, bool]] = []
    legs = pairwise([home, *stops, landing])
    for (start, end), cell in zip(legs, [*cells, cells[-1]], strict=True):
        path = np.array([start, end]) if search.fence is None else search.fence.route(start, end)
        points += [(point, cell, False) for point in path[1:-1]]
        points.append((end, cell, True))
    degrees = plane.to_degrees([point for point, *_ in points[:-1]])  # the last one is the landing
    waypoints = [
        Waypoint(lat, lon, cell, float(poa[cell]), photo)
        for (lat, lon), (_, cell, photo) in zip(degrees.tolist(), points[:-1], strict=True)
    ]
    (home_lat, home_lon), (lat, lon) = plane.to_degrees([home, landing]).tolist()
    flight = Flight(
        name,
        waypoints,
        search.height_m,
        plan.speed,
        plan.hover,
        (home_lat, home_lon),
        None if settings.landing is None else (lat, lon),
        settings,
        None if search.fence is None else search.fence.rings(stops[0]),
        [(lat, lon) for lat, lon in plane.to_degrees(layout.frame()).tolist()],
    )
    return flight if dem is None else _above_ground(flight, dem, layout.pitch_m)


def _above_ground(flight: Flight, dem: ElevationModel, spacing: float) -> Flight:
    """Return a flight whose waypoints have the same height above the ground; legs bend where the ground rises."""
    base = float(dem.heights([flight.home])[0])
    risen: list[Waypoint] = []
    for point in flight.waypoints:
        if risen:
            risen += _over_ridges(risen[-1], point, flight.height, base, dem, spacing)
        ground = float(dem.heights([(point.lat, point.lon)])[0])
        risen.append(point._replace(height=ground - base + flight.height))
    return replace(flight, waypoints=risen)


def _over_ridges(
    last: Waypoint, point: Waypoint, height: float, base: float, dem: ElevationModel, spacing: float
) -> list[Waypoint]:
    """Return waypoints between two others, where a straight leg would be too low above the ground."""
    metres = great_circle_distance(last[:2], point[:2])
    count = max(2, round(8 * metres / spacing))
    share = np.linspace(0, 1, count + 1)
    track = np.array([last.lat, last.lon]) + share[:, None] * np.array([point.lat - last.lat, point.lon - last.lon])
    ground = dem.heights(track) - base
    needed = ground + MIN_CLEARANCE * height
    corners = [(0.0, float(last.height or 0.0)), (1.0, float(ground[-1] + height))]
    while True:
        lacking = needed - np.interp(share, [at for at, _ in corners], [up for _, up in corners])
        lacking[[0, -1]] = 0
        if (worst := int(lacking.argmax())) == 0 or lacking[worst] <= 0:
            break
        corners = sorted([*corners, (float(share[worst]), float(ground[worst] + height))])
    bends = [(track[0] + at * (track[-1] - track[0])).tolist() for at, _ in corners[1:-1]]
    return [
        Waypoint(lat, lon, point.cell, point.poa, False, up)
        for (lat, lon), (_, up) in zip(bends, corners[1:-1], strict=True)
    ]
