"""Flight planning: camera footprint, flight height, endurance, the MAVLink commands of a flight, and its files.

The camera looks straight down. Its field of view is across the longer side of a photo. The flight height is the height
from which the shorter side of a photo covers a whole cell.

The flight files are GeoJSON, KML, GPX, QGroundControl `.plan` and MAVLink waypoints; `FORMATS` lists the functions that
return their text. Degrees have nine decimals, a tenth of a millimetre.

Legend: positions are (lat, lon) in degrees of WGS 84; heights are metres above the take-off point.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

from airloc import __version__
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.units import format_cell
from airloc.task.rules import MAX_BUDGET

if TYPE_CHECKING:
    from airloc.areas.layout import Layout

__all__ = [
    "FORMATS",
    "Camera",
    "Flight",
    "MissionItem",
    "Waypoint",
    "budget_from_endurance",
    "geojson",
    "gpx",
    "great_circle_distance",
    "kml",
    "mission_items",
    "qgc_plan",
    "waypoints",
]

HEIGHT_LIMIT = 120.0
"""Metres above ground that many countries allow without a permit."""
EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth in metres."""

# Commands (MAV_CMD) and frames (MAV_FRAME) of the MAVLink common message set.
WAYPOINT, RETURN, TAKEOFF, TAKE_PHOTO = 16, 20, 22, 2000
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
        if not (1 <= self.fov <= 160 and 1 <= self.aspect <= 4):
            problem = f"The camera has a field of view of {self.fov:g} degrees and an aspect ratio of {self.aspect:g}"
            raise AirlocError(problem, "Give a field of view from 1 to 160 degrees and an aspect ratio from 1 to 4")

    def footprint(self, height: float) -> tuple[float, float]:
        """Return the longer and the shorter side of the footprint in metres."""
        longer = 2 * height * math.tan(math.radians(self.fov) / 2)
        return longer, longer / self.aspect

    def height_for(self, cell_m: float) -> float:
        """Return the height from which the shorter side of the footprint is one cell.

        >>> round(Camera(fov=90, aspect=1).height_for(100), 6)
        50.0
        """
        return cell_m * self.aspect / (2 * math.tan(math.radians(self.fov) / 2))


class Waypoint(NamedTuple):
    """Position at which the vehicle takes a photo."""

    lat: float
    lon: float
    cell: Cell
    poa: float
    """Probability of area (POA) of the cell before the flight."""


@dataclass(frozen=True, slots=True)
class Flight:
    """Waypoints at one height."""

    name: str
    waypoints: Sequence[Waypoint]
    height: float
    speed: float
    """Speed in metres per second."""
    hover: float
    """Seconds at each waypoint, for the photo."""
    home: tuple[float, float]
    """Position of take-off and landing."""

    @property
    def metres(self) -> float:
        """Length of the flight in metres, from home and back."""
        stops = [self.home, *((point.lat, point.lon) for point in self.waypoints), self.home]
        return sum(great_circle_distance(a, b) for a, b in pairwise(stops))

    @property
    def seconds(self) -> float:
        """Duration of the flight in seconds, without climb and descent."""
        return self.metres / self.speed + self.hover * len(self.waypoints)


class MissionItem(NamedTuple):
    """One MAVLink mission item."""

    command: int
    frame: int
    params: tuple[float, float, float, float]
    lat: float
    lon: float
    height: float


def mission_items(flight: Flight) -> list[MissionItem]:
    """Return the mission of a flight: take off, fly to each waypoint and take a photo, return to launch."""
    items = [MissionItem(TAKEOFF, FRAME_RELATIVE, (0, 0, 0, 0), *flight.home, flight.height)]
    for number, point in enumerate(flight.waypoints, start=1):
        hover = (flight.hover, 0, 0, 0)
        items.append(MissionItem(WAYPOINT, FRAME_RELATIVE, hover, point.lat, point.lon, flight.height))
        items.append(MissionItem(TAKE_PHOTO, FRAME_MISSION, (0, 0, 1, number), 0, 0, 0))
    return [*items, MissionItem(RETURN, FRAME_MISSION, (0, 0, 0, 0), 0, 0, 0)]


def budget_from_endurance(layout: "Layout", start: Cell, endurance: float, speed: float, hover: float) -> int:
    """Return the budget of moves that an endurance allows.

    The budget assumes that every move is diagonal, and keeps the flight home in reserve.

    Args:
        layout: The grid on the ground.
        start: Cell of take-off and landing.
        endurance: Flight time in seconds.
        speed: Speed in metres per second.
        hover: Seconds at each photo.

    Raises:
        AirlocError: If the endurance is too short for one move, or the layout has no georeference.
    """
    layout.require_plane()  # raises an error if lengths are in pixels
    leg = math.sqrt(2) * layout.pitch_m
    farthest = max(math.dist(layout.centres(start), corner) for corner in layout.frame())

    def needed(moves: int) -> float:
        return (moves * leg + min(moves * leg, farthest)) / speed + hover * (moves + 1)

    moves = 0
    while moves < MAX_BUDGET and needed(moves + 1) <= endurance:
        moves += 1
    if moves == 0:
        raise AirlocError(
            f"An endurance of {endurance:g} s at {speed:g} m/s does not reach the next cell of {layout.cell_m:g} m "
            "and back",
            "Give a longer endurance, a higher speed or smaller cells",
        )
    return moves


def great_circle_distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the distance of two positions in metres on a sphere, accurate to half a percent."""
    lat_a, lon_a, lat_b, lon_b = map(math.radians, (*a, *b))
    square = math.sin((lat_b - lat_a) / 2) ** 2
    square += math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(square)))


Ring = Sequence[tuple[float, float]]
"""Corners as (lat, lon)."""

MAV_AUTOPILOT_GENERIC, MAV_TYPE_QUADROTOR = 0, 2
RELATIVE_ALTITUDE = 1
"""QGroundControl's altitude mode for heights above the take-off point."""


def geojson(flight: Flight, outline: Ring) -> str:
    """Return GeoJSON: the path as a line, the waypoints as points, the grid as a polygon."""
    points = [
        _feature("Point", _lonlat(point), order=number, row=point.cell[0], col=point.cell[1], poa=point.poa)
        for number, point in enumerate(flight.waypoints, start=1)
    ]
    line = [_lonlat(point) for point in flight.waypoints]
    features = [_feature("Polygon", [[_round(lon, lat) for lat, lon in [*outline, outline[0]]]], name="grid"), *points]
    if len(line) > 1:
        properties = {
            "name": flight.name,
            "height_m": flight.height,
            "metres": flight.metres,
            "seconds": flight.seconds,
        }
        features.insert(1, _feature("LineString", line, **properties))
    return json.dumps({"type": "FeatureCollection", "features": features}, indent=1) + "\n"


def kml(flight: Flight, outline: Ring) -> str:
    """Return KML for Google Earth and similar viewers, with heights above the ground."""
    height = f"{flight.height:.2f}"
    line = " ".join(f"{point.lon:.9f},{point.lat:.9f},{height}" for point in flight.waypoints)
    ring = " ".join(f"{lon:.9f},{lat:.9f},0" for lat, lon in [*outline, outline[0]])
    marks = "\n".join(
        f"<Placemark><name>{number}</name><description>{format_cell(point.cell)}, "
        f"POA {100 * point.poa:.2f} %</description><Point><altitudeMode>relativeToGround</altitudeMode>"
        f"<coordinates>{point.lon:.9f},{point.lat:.9f},{height}</coordinates></Point></Placemark>"
        for number, point in enumerate(flight.waypoints, start=1)
    )
    path = (
        f"<Placemark><name>path</name><LineString><altitudeMode>relativeToGround</altitudeMode>"
        f"<coordinates>{line}</coordinates></LineString></Placemark>\n"
        if len(flight.waypoints) > 1
        else ""
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<kml xmlns="http://www.opengis.net/kml/2.2"><Document>\n'
        f"<name>{escape(flight.name)}</name>\n<Placemark><name>grid</name><Polygon><outerBoundaryIs><LinearRing>"
        f"<coordinates>{ring}</coordinates></LinearRing></outerBoundaryIs></Polygon></Placemark>\n"
        f"{path}{marks}\n</Document></kml>\n"
    )


def gpx(flight: Flight, outline: Ring) -> str:
    """Return a GPX 1.1 route for handheld receivers."""
    del outline
    points = "\n".join(
        f'<rtept lat="{point.lat:.9f}" lon="{point.lon:.9f}"><name>{number}</name>'
        f"<desc>{format_cell(point.cell)}</desc></rtept>"
        for number, point in enumerate(flight.waypoints, start=1)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="airloc {__version__}" '
        f'xmlns="http://www.topografix.com/GPX/1/1">\n<rte><name>{escape(flight.name)}</name>\n{points}\n</rte></gpx>\n'
    )


def qgc_plan(flight: Flight, outline: Ring) -> str:
    """Return a QGroundControl plan with a mission, without fence and rally points."""
    del outline
    items = [_plan_item(item, number) for number, item in enumerate(mission_items(flight), start=1)]
    mission = {
        "cruiseSpeed": flight.speed,
        "firmwareType": MAV_AUTOPILOT_GENERIC,
        "globalPlanAltitudeMode": RELATIVE_ALTITUDE,
        "hoverSpeed": flight.speed,
        "items": items,
        "plannedHomePosition": [*_round(*flight.home), 0],
        "vehicleType": MAV_TYPE_QUADROTOR,
        "version": 2,
    }
    plan = {
        "fileType": "Plan",
        "geoFence": {"circles": [], "polygons": [], "version": 2},
        "groundStation": "airloc",
        "mission": mission,
        "rallyPoints": {"points": [], "version": 2},
        "version": 1,
    }
    return json.dumps(plan, indent=1) + "\n"


def waypoints(flight: Flight, outline: Ring) -> str:
    """Return MAVLink's text format `QGC WPL 110`; line 0 is the home position."""
    del outline
    home = MissionItem(WAYPOINT, FRAME_GLOBAL, (0, 0, 0, 0), *flight.home, 0)
    lines = ["QGC WPL 110"]
    for number, item in enumerate([home, *mission_items(flight)]):
        numbers = [f"{value:g}" for value in item.params] + [f"{item.lat:.9f}", f"{item.lon:.9f}", f"{item.height:.3f}"]
        lines.append("\t".join([str(number), str(int(number == 0)), str(item.frame), str(item.command), *numbers, "1"]))
    return "\n".join(lines) + "\n"


FORMATS: dict[str, tuple[str, Callable[[Flight, Ring], str]]] = {
    "geojson": (".geojson", geojson),
    "kml": (".kml", kml),
    "gpx": (".gpx", gpx),
    "plan": (".plan", qgc_plan),
    "waypoints": (".waypoints", waypoints),
}
"""File suffix and writer of every format."""


def _plan_item(item: MissionItem, number: int) -> dict[str, Any]:
    positioned = item.frame != FRAME_MISSION
    position = [*_round(item.lat, item.lon), item.height] if positioned else [0, 0, 0]
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


def _feature(kind: str, coordinates: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}


def _lonlat(point: Waypoint) -> list[float]:
    return _round(point.lon, point.lat)


def _round(*degrees: float) -> list[float]:
    return [round(number, 9) if math.isfinite(number) else 0.0 for number in degrees]
