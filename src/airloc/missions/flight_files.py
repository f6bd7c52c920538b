"""Flight files for other software: GeoJSON, KML, GPX, QGroundControl `.plan` and MAVLink waypoints.

Every function returns the text of one file; `FORMATS` lists them. Degrees have nine decimals, a tenth of a millimetre.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any
from xml.sax.saxutils import escape

from airloc import __version__
from airloc.missions.flight import FRAME_GLOBAL, FRAME_MISSION, WAYPOINT, Flight, MissionItem, Waypoint, mission_items

__all__ = ["FORMATS", "geojson", "gpx", "kml", "qgc_plan", "waypoints"]

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
        f"<Placemark><name>{number}</name><description>row {point.cell[0]}, column {point.cell[1]}, "
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
        f"<desc>row {point.cell[0]}, column {point.cell[1]}</desc></rtept>"
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
