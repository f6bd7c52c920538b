"""Flight planning: camera footprint, flight height, the MAVLink commands of a flight, and its files.

The camera looks straight down. Its field of view is across the longer side of a photo. The flight height is the height
from which the shorter side of a photo covers a whole cell.

The flight files are GeoJSON, KML, GPX, QGroundControl `.plan` and MAVLink waypoints; `formats` has more. Degrees have
nine decimals, a tenth of a millimetre.

Legend: positions are (lat, lon) in degrees of WGS 84; heights are metres above the take-off point.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from airloc import __version__
from airloc.areas.area import Pixels
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.endurance import FlightSettings, ground_speed
from airloc.missions.units import format_cell

Ring = Sequence[tuple[float, float]]
"""Corners as (lat, lon)."""

HEIGHT_LIMIT = 120.0
"""Metres above ground that many countries allow without a permit."""
MIN_FOV, MAX_FOV = 1.0, 160.0
"""Smallest and largest field of view of a camera in degrees."""
EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth in metres."""

# Commands (MAV_CMD) and frames (MAV_FRAME) of the MAVLink common message set.
WAYPOINT, RETURN, LAND, TAKEOFF, TAKE_PHOTO = 16, 20, 21, 22, 2000
SET_SPEED, POINT_GIMBAL, SET_CAMERA_MODE = 178, 205, 530
GROUND_SPEED, KEEP_THROTTLE, GIMBAL_ANGLES, PHOTO_MODE = 1, -1, 2, 0
FRAME_GLOBAL, FRAME_MISSION, FRAME_RELATIVE = 0, 2, 3


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera that looks straight down.

    Raises:
        AirlocError: If the field of view or the aspect ratio is out of range.
    """

    fov: float = 73.7
    """Field of view across the longer side of a photo, in degrees."""
    aspect: float = 4 / 3
    """Longer side of a photo divided by its shorter side."""

    def __post_init__(self) -> None:
        if not (MIN_FOV <= self.fov <= MAX_FOV and 1 <= self.aspect <= 4):
            problem = f"The camera has a field of view of {self.fov:g} degrees and an aspect ratio of {self.aspect:g}"
            raise AirlocError(problem, "Give a field of view from 1 to 160 degrees and an aspect ratio from 1 to 4")

    def with_fov(self, fov: float | None) -> "Camera":
        """Return the camera with the field of view of a photo, within the limits, if that is known."""
        return self if fov is None else replace(self, fov=min(MAX_FOV, max(MIN_FOV, fov)))

    def footprint(self, height: float) -> tuple[float, float]:
        """Return the longer and the shorter side of the footprint in metres."""
        longer = 2 * height * math.tan(math.radians(self.fov) / 2)
        return longer, longer / self.aspect

    def footprint_of(self, photo: Pixels, height: float) -> tuple[float, float]:
        """Return width and height of the footprint of a photo in metres, by its own sides."""
        longer, _ = self.footprint(height)
        rows, cols = photo.shape[:2]
        return longer * cols / max(rows, cols), longer * rows / max(rows, cols)

    def height_for(self, cell_m: float) -> float:
        """Return the height from which the shorter side of the footprint is one cell.

        >>> round(Camera(fov=90, aspect=1).height_for(100), 6)
        50.0
        """
        return cell_m * self.aspect / (2 * math.tan(math.radians(self.fov) / 2))


class Waypoint(NamedTuple):
    """Position at which the vehicle takes a photo, or at which its path bends."""

    lat: float
    lon: float
    cell: Cell
    poa: float
    """Probability of area (POA) of the cell before the flight."""
    photo: bool = True
    """False if the vehicle only flies through."""
    height: float | None = None
    """Metres above the take-off point; the height of the flight if None."""


@dataclass(frozen=True, slots=True)
class Flight:
    """Waypoints and how they are flown."""

    name: str
    waypoints: Sequence[Waypoint]
    height: float
    """Metres above ground; above the take-off point where a waypoint has no height of its own."""
    speed: float
    """Airspeed in metres per second."""
    hover: float
    """Seconds at each photo."""
    home: tuple[float, float]
    """Position of take-off."""
    landing: tuple[float, float] | None = None
    """Position of landing; home if None."""
    settings: FlightSettings = field(default_factory=FlightSettings)
    fence: tuple[Ring, Sequence[Ring]] | None = None
    """Ring that the vehicle does not leave, and rings that it does not enter."""
    outline: Ring = ()
    """Corners of the grid."""

    @property
    def stops(self) -> Sequence[Waypoint]:
        """Waypoints at which a photo is taken."""
        return [point for point in self.waypoints if point.photo]

    @property
    def metres(self) -> float:
        """Length of the flight in metres, from home to the landing."""
        return sum(great_circle_distance(a, b) for a, b in pairwise(self._path()))

    @property
    def seconds(self) -> float:
        """Duration of the flight in seconds, with climb and descent."""
        heights = [self.height_at(point) for point in self.waypoints]
        ups = [b - a for a, b in pairwise([0.0, *heights, 0.0])]
        total = sum(up / self.settings.climb if up > 0 else -up / self.settings.descent for up in ups)
        for a, b in pairwise(self._path()):
            east = (b[1] - a[1] + 180) % 360 - 180
            track = east * math.cos(math.radians(a[0])), b[0] - a[0]
            total += great_circle_distance(a, b) / ground_speed(self.speed, self.settings, *track)
        return total + self.hover * len(self.stops)

    def height_at(self, point: Waypoint) -> float:
        """Return the height of a waypoint above the take-off point in metres."""
        return self.height if point.height is None else point.height

    def _path(self) -> list[tuple[float, float]]:
        return [self.home, *((point.lat, point.lon) for point in self.waypoints), self.landing or self.home]


class MissionItem(NamedTuple):
    """One MAVLink mission item."""

    command: int
    frame: int
    params: tuple[float, float, float, float]
    lat: float
    lon: float
    height: float


def mission_items(flight: Flight) -> list[MissionItem]:
    """Return the mission of a flight.

    Take off, set the speed, point the camera down, fly to each waypoint, take a photo there, and return to launch or
    land elsewhere.
    """
    first = flight.height if not flight.waypoints else flight.waypoints[0].height or flight.height
    items = [MissionItem(TAKEOFF, FRAME_RELATIVE, (0, 0, 0, 0), *flight.home, first), *camera_items(flight.speed)]
    number = 0
    for point in flight.waypoints:
        hover = (flight.hover if point.photo else 0, 0, 0, 0)
        items.append(MissionItem(WAYPOINT, FRAME_RELATIVE, hover, point.lat, point.lon, flight.height_at(point)))
        if point.photo:
            number += 1
            items.append(MissionItem(TAKE_PHOTO, FRAME_MISSION, (0, 0, 1, number), 0, 0, 0))
    if flight.landing is None:
        return [*items, MissionItem(RETURN, FRAME_MISSION, (0, 0, 0, 0), 0, 0, 0)]
    return [*items, MissionItem(LAND, FRAME_RELATIVE, (0, 0, 0, 0), *flight.landing, 0)]


def camera_items(speed: float) -> list[MissionItem]:
    """Return the commands that set the speed, point the gimbal straight down and make the camera take photos."""
    return [
        MissionItem(SET_SPEED, FRAME_MISSION, (GROUND_SPEED, speed, KEEP_THROTTLE, 0), 0, 0, 0),
        MissionItem(POINT_GIMBAL, FRAME_MISSION, (-90, 0, 0, 0), 0, 0, GIMBAL_ANGLES),
        MissionItem(SET_CAMERA_MODE, FRAME_MISSION, (0, PHOTO_MODE, 0, 0), 0, 0, 0),
    ]


def great_circle_distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the distance of two positions in metres on a sphere, accurate to half a percent."""
    lat_a, lon_a, lat_b, lon_b = map(math.radians, (*a, *b))
    square = math.sin((lat_b - lat_a) / 2) ** 2
    square += math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(square)))


MAV_AUTOPILOT_GENERIC, MAV_TYPE_QUADROTOR = 0, 2
RELATIVE_ALTITUDE = 1
"""QGroundControl's altitude mode for heights above the take-off point."""


def geojson(flight: Flight) -> str:
    """Return GeoJSON: the path as a line, the waypoints as points, the grid as a polygon."""
    points = [
        feature("Point", lon_lat(point), order=number, row=point.cell[0], col=point.cell[1], poa=point.poa)
        for number, point in enumerate(flight.stops, start=1)
    ]
    line = [lon_lat(point) for point in flight.waypoints]
    features = [feature("Polygon", grid_ring(flight), name="grid"), *points]
    if len(line) > 1:
        properties = {
            "name": flight.name,
            "height_m": flight.height,
            "metres": flight.metres,
            "seconds": flight.seconds,
        }
        features.insert(1, feature("LineString", line, **properties))
    return feature_collection(features)


def kml(flight: Flight) -> str:
    """Return KML for Google Earth and similar viewers, with heights above the ground."""
    height = f"{flight.height:.2f}"
    grid = [
        f"<Polygon><outerBoundaryIs><LinearRing><coordinates>{_kml_positions(ring, '0')}</coordinates></LinearRing>"
        "</outerBoundaryIs></Polygon>"
        for (ring,) in cut_at_antimeridian("Polygon", grid_ring(flight))
    ]
    lines = [
        "<LineString><altitudeMode>relativeToGround</altitudeMode>"
        f"<coordinates>{_kml_positions(line, height)}</coordinates></LineString>"
        for line in cut_at_antimeridian("LineString", [lon_lat(point) for point in flight.waypoints])
    ]
    marks = "\n".join(
        f"<Placemark><name>{number}</name><description>{format_cell(point.cell)}, "
        f"POA {100 * point.poa:.2f} %</description><Point><altitudeMode>relativeToGround</altitudeMode>"
        f"<coordinates>{point.lon:.9f},{point.lat:.9f},{height}</coordinates></Point></Placemark>"
        for number, point in enumerate(flight.stops, start=1)
    )
    path = f"<Placemark><name>path</name>{_kml_geometry(lines)}</Placemark>\n" if len(flight.waypoints) > 1 else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<kml xmlns="http://www.opengis.net/kml/2.2"><Document>\n'
        f"<name>{escape(flight.name)}</name>\n<Placemark><name>grid</name>{_kml_geometry(grid)}</Placemark>\n"
        f"{path}{marks}\n</Document></kml>\n"
    )


def _kml_geometry(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"<MultiGeometry>{''.join(parts)}</MultiGeometry>"


def _kml_positions(positions: Sequence[Sequence[float]], height: str) -> str:
    return " ".join(f"{lon:.9f},{lat:.9f},{height}" for lon, lat in positions)


def gpx(flight: Flight) -> str:
    """Return a GPX 1.1 route for handheld receivers."""
    numbers = accumulate(int(point.photo) for point in flight.waypoints)
    points = "\n".join(
        f'<rtept lat="{point.lat:.9f}" lon="{point.lon:.9f}">'
        + (f"<name>{number}</name><desc>{format_cell(point.cell)}</desc></rtept>" if point.photo else "</rtept>")
        for number, point in zip(numbers, flight.waypoints, strict=True)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="airloc {__version__}" '
        f'xmlns="http://www.topografix.com/GPX/1/1">\n<rte><name>{escape(flight.name)}</name>\n{points}\n</rte></gpx>\n'
    )


def qgc_plan(flight: Flight) -> str:
    """Return a QGroundControl plan with a mission and a geofence, without rally points."""
    items = [_plan_item(item, number) for number, item in enumerate(mission_items(flight), start=1)]
    mission = {
        "cruiseSpeed": flight.speed,
        "firmwareType": MAV_AUTOPILOT_GENERIC,
        "globalPlanAltitudeMode": RELATIVE_ALTITUDE,
        "hoverSpeed": flight.speed,
        "items": items,
        "plannedHomePosition": [*round_degrees(*flight.home), 0],
        "vehicleType": MAV_TYPE_QUADROTOR,
        "version": 2,
    }
    plan = {
        "fileType": "Plan",
        "geoFence": {"circles": [], "polygons": _fence_polygons(flight), "version": 2},
        "groundStation": "airloc",
        "mission": mission,
        "rallyPoints": {"points": [], "version": 2},
        "version": 1,
    }
    return json.dumps(plan, indent=1) + "\n"


def waypoints(flight: Flight) -> str:
    """Return MAVLink's text format `QGC WPL 110`; line 0 is the home position."""
    home = MissionItem(WAYPOINT, FRAME_GLOBAL, (0, 0, 0, 0), *flight.home, 0)
    lines = ["QGC WPL 110"]
    for number, item in enumerate([home, *mission_items(flight)]):
        numbers = [f"{value:g}" for value in item.params] + [f"{item.lat:.9f}", f"{item.lon:.9f}", f"{item.height:.3f}"]
        lines.append("\t".join([str(number), str(int(number == 0)), str(item.frame), str(item.command), *numbers, "1"]))
    return "\n".join(lines) + "\n"


def _fence_polygons(flight: Flight) -> list[dict[str, Any]]:
    """Return the polygons of the geofence: the one that the vehicle stays in, and those that it stays out of."""
    if flight.fence is None:
        return []
    outer, holes = flight.fence
    return [
        {"inclusion": number == 0, "polygon": [round_degrees(lat, lon) for lat, lon in ring], "version": 1}
        for number, ring in enumerate([outer, *holes])
    ]


def _plan_item(item: MissionItem, number: int) -> dict[str, Any]:
    positioned = item.frame != FRAME_MISSION
    position = [*round_degrees(item.lat, item.lon), item.height] if positioned else [0, 0, item.height]
    plan_item: dict[str, Any] = {
        "autoContinue": True,
        "command": item.command,
        "doJumpId": number,
        "frame": item.frame,
        "params": [*item.params[:3], None if positioned else item.params[3], *position],
        "type": "SimpleItem",
    }
    if positioned:  # the vehicle chooses its heading; the height is above the take-off point
        plan_item |= {"AMSLAltAboveTerrain": None, "Altitude": item.height, "AltitudeMode": RELATIVE_ALTITUDE}
    return plan_item


def feature(kind: str, coordinates: Any, **properties: Any) -> dict[str, Any]:
    """Return a feature of GeoJSON; a line or polygon across the antimeridian is cut (RFC 7946, section 3.1.9)."""
    parts = cut_at_antimeridian(kind, coordinates)
    kind, coordinates = (kind, parts[0]) if len(parts) == 1 else (f"Multi{kind}", parts)
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}


def cut_at_antimeridian(kind: str, coordinates: Any) -> list[Any]:
    """Return the coordinates of a geometry of GeoJSON, one for each part between two crossings of the antimeridian.

    Neighbouring positions more than 180 degrees of longitude apart are on both sides of it.
    """
    ring = coordinates[0] if kind == "Polygon" and coordinates else coordinates
    if kind == "Point" or all(abs(a[0] - b[0]) <= 180 for a, b in pairwise(ring)):
        return [coordinates]
    return _cut_line(coordinates) if kind == "LineString" else _cut_polygon(coordinates)


def _cut_line(line: Sequence[Sequence[float]]) -> list[Any]:
    parts = [[list(line[0])]]
    for (lon, lat), (next_lon, next_lat) in pairwise(line):
        if abs(next_lon - lon) > 180:
            edge = math.copysign(180, lon)
            rest, whole = edge - lon, next_lon + 2 * edge - lon
            crossing = round(lat + (next_lat - lat) * rest / whole, 9) if whole else next_lat
            parts[-1].append([edge, crossing])
            parts.append([[-edge, crossing]])
        parts[-1].append([next_lon, next_lat])
    return [part for part in parts if any(position != part[0] for position in part)]


def _cut_polygon(rings: Sequence[Sequence[Sequence[float]]]) -> list[Any]:
    import shapely
    from shapely.affinity import translate

    shape = shapely.transform(shapely.Polygon(rings[0], rings[1:]), _unwrap)
    parts = []
    for turn in (-360.0, 0.0, 360.0):
        side = shape.intersection(shapely.box(turn - 180, -90, turn + 180, 90))
        for part in shapely.get_parts(side):
            if part.geom_type == "Polygon" and part.area > 0:
                moved = translate(part, -turn)
                outlines = (moved.exterior, *moved.interiors)
                parts.append([shapely.get_coordinates(outline).round(9).tolist() for outline in outlines])
    return parts


def _unwrap(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Let longitudes pass 180, so that neighbouring points (n, 2) are near each other."""
    return np.stack([np.unwrap(points[:, 0], period=360.0), points[:, 1]], axis=1)


def feature_collection(features: Sequence[dict[str, Any]]) -> str:
    """Return features as the text of a GeoJSON file."""
    return json.dumps({"type": "FeatureCollection", "features": features}, indent=1) + "\n"


def grid_ring(flight: Flight) -> list[list[list[float]]]:
    """Return the outline of the grid as the coordinates of a GeoJSON polygon."""
    return [[round_degrees(lon, lat) for lat, lon in [*flight.outline, *flight.outline[:1]]]]


def lon_lat(point: Waypoint) -> list[float]:
    """Return the position of a waypoint as GeoJSON has it."""
    return round_degrees(point.lon, point.lat)


def round_degrees(*degrees: float) -> list[float]:
    """Round degrees to nine decimals."""
    return [round(number, 9) if math.isfinite(number) else 0.0 for number in degrees]
