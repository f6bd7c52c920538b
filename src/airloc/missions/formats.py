"""All formats of flight files: those of `flight`, DJI, Litchi, KMZ, GeoPackage and CalTopo.

| format     | for                                        | content                                                   |
|------------|--------------------------------------------|-----------------------------------------------------------|
| `dji`      | DJI Pilot 2, FlightHub 2                   | KMZ with `wpmz/waylines.wpml` and `wpmz/template.kml`     |
| `litchi`   | Litchi mission hub; up to 99 waypoints     | CSV, heights above the take-off point                     |
| `kmz`      | Google Earth, ATAK                         | the KML file, zipped                                      |
| `gpkg`     | QGIS, ArcGIS                               | GeoPackage with the layers grid, path and waypoints       |
| `caltopo`  | CalTopo, SARTopo                           | GeoJSON with classes, titles and colours                  |

DJI describes its format at https://developer.dji.com/doc/cloud-api-tutorial/en/api-reference/dji-wpml/overview.html.
The files are for a Mavic 3 Enterprise; the apps adapt them to the drone at hand.
"""

import csv
import io
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from airloc.missions.flight import (
    Flight,
    Waypoint,
    cut_at_antimeridian,
    feature,
    feature_collection,
    geojson,
    gpx,
    grid_ring,
    kml,
    lon_lat,
    qgc_plan,
    waypoints,
)
from airloc.missions.units import format_cell

KML, WPML = "http://www.opengis.net/kml/2.2", "http://www.dji.com/wpmz/1.0.2"
MAVIC_3E, MAVIC_3E_CAMERA = 77, 66
"""Numbers of drone and payload in DJI's format."""
LITCHI_ACTIONS, MAX_STAY = 15, 32_000
"""Number of actions at a waypoint of Litchi, and the longest stay in milliseconds."""
STAY, PHOTO, NOTHING = 0, 1, -1
"""Actions of Litchi."""
MAX_SPEED = 15.0
"""Largest speed that DJI and Litchi allow, in metres per second."""
DOWN = -90
"""Pitch of the gimbal in degrees."""
PATH_COLOUR, GRID_COLOUR = "#FF0000", "#0000FF"


def kmz(flight: Flight) -> bytes:
    """Return the KML file as KMZ."""
    return _zip({"doc.kml": kml(flight).encode()})


def dji(flight: Flight) -> bytes:
    """Return a wayline of DJI as KMZ: at each waypoint the drone stops, looks down and takes a photo."""
    return _zip({f"wpmz/{name}": _wayline(flight, template) for name, template in DJI_FILES.items()})


def _dji_speed(flight: Flight) -> str:
    """Return the speed of a flight within what DJI allows."""
    return f"{min(max(flight.speed, 1.0), MAX_SPEED):g}"


DJI_HEADING = {
    "waypointHeadingMode": "followWayline",
    "waypointHeadingAngle": 0,
    "waypointHeadingPathMode": "followBadArc",
}
DJI_TURN = "toPointAndStopWithDiscontinuityCurvature"
DJI_FILES = {"template.kml": True, "waylines.wpml": False}
"""Files of a wayline, and whether they are its template."""


def _wayline(flight: Flight, template: bool) -> bytes:
    """Return one of the two files of a wayline."""
    ElementTree.register_namespace("", KML)
    ElementTree.register_namespace("wpml", WPML)
    root = ElementTree.Element(f"{{{KML}}}kml")
    document = ElementTree.SubElement(root, f"{{{KML}}}Document")
    if template:
        _add(document, {"author": "airloc", "createTime": 0, "updateTime": 0})
    config = {
        "flyToWaylineMode": "safely",
        "finishAction": "goHome",
        "exitOnRCLost": "executeLostAction",
        "executeRCLostAction": "goBack",
        "takeOffSecurityHeight": f"{max(1.2, min(flight.height, 20)):.1f}",
        "globalTransitionalSpeed": _dji_speed(flight),
        "droneInfo": {"droneEnumValue": MAVIC_3E, "droneSubEnumValue": 0},
        "payloadInfo": {"payloadEnumValue": MAVIC_3E_CAMERA, "payloadPositionIndex": 0},
    }
    _add(document, {"missionConfig": config})
    folder = ElementTree.SubElement(document, f"{{{KML}}}Folder")
    if template:
        system = {"coordinateMode": "WGS84", "heightMode": "relativeToStartPoint"}
        _add(folder, {"templateType": "waypoint", "templateId": 0, "waylineCoordinateSysParam": system})
        _add(folder, {"autoFlightSpeed": _dji_speed(flight), "globalHeight": f"{flight.height:.2f}"})
        _add(folder, {"gimbalPitchMode": "usePointSetting", "globalWaypointHeadingParam": DJI_HEADING})
        _add(folder, {"globalWaypointTurnMode": DJI_TURN, "globalUseStraightLine": 1})
    else:
        _add(folder, {"templateId": 0, "executeHeightMode": "relativeToStartPoint", "waylineId": 0})
        _add(folder, {"distance": f"{flight.metres:.1f}", "duration": f"{flight.seconds:.1f}"})
        _add(folder, {"autoFlightSpeed": _dji_speed(flight)})
    for number, point in enumerate(flight.waypoints):
        _add_placemark(folder, number, point, flight, template)
    return bytes(ElementTree.tostring(root, "UTF-8", xml_declaration=True))


def _add_placemark(folder: ElementTree.Element, number: int, point: Waypoint, flight: Flight, template: bool) -> None:
    placemark = ElementTree.SubElement(folder, f"{{{KML}}}Placemark")
    place = ElementTree.SubElement(placemark, f"{{{KML}}}Point")
    ElementTree.SubElement(place, f"{{{KML}}}coordinates").text = f"{point.lon:.9f},{point.lat:.9f}"
    height = f"{flight.height_at(point):.2f}"
    heights = {"ellipsoidHeight": height, "height": height} if template else {"executeHeight": height}
    turn = {"waypointTurnMode": DJI_TURN, "waypointTurnDampingDist": 0}
    _add(placemark, {"index": number, **heights, "waypointSpeed": _dji_speed(flight)})
    _add(placemark, {"waypointHeadingParam": DJI_HEADING, "waypointTurnParam": turn, "useStraightLine": 1})
    if template:
        own = ("useGlobalHeight", "useGlobalSpeed", "useGlobalHeadingParam", "useGlobalTurnParam")
        _add(placemark, {**dict.fromkeys(own, 0), "gimbalPitchAngle": DOWN})
    if point.photo:
        _add(placemark, {"actionGroup": _photo_actions(number, flight)})


def _photo_actions(number: int, flight: Flight) -> dict[str, Any]:
    """Return the actions at a waypoint: turn the gimbal down, hover, take a photo."""
    axes = {"Pitch": DOWN, "Roll": 0, "Yaw": 0}
    gimbal: dict[str, Any] = {"gimbalHeadingYawBase": "north", "gimbalRotateMode": "absoluteAngle"}
    for axis, angle in axes.items():
        gimbal |= {f"gimbal{axis}RotateEnable": int(axis == "Pitch"), f"gimbal{axis}RotateAngle": angle}
    gimbal |= {"gimbalRotateTimeEnable": 0, "gimbalRotateTime": 0, "payloadPositionIndex": 0}
    functions = {
        "gimbalRotate": gimbal,
        "hover": {"hoverTime": f"{flight.hover:g}"},
        "takePhoto": {
            "payloadPositionIndex": 0,
            "fileSuffix": f"cell{number + 1}",
            "payloadLensIndex": "visable",  # as DJI spells it
            "useGlobalPayloadLensIndex": 0,
        },
    }
    actions = [
        {"actionId": order, "actionActuatorFunc": name, "actionActuatorFuncParam": parameters}
        for order, (name, parameters) in enumerate(functions.items())
    ]
    span = {"actionGroupId": number, "actionGroupStartIndex": number, "actionGroupEndIndex": number}
    return span | {
        "actionGroupMode": "sequence",
        "actionTrigger": {"actionTriggerType": "reachPoint"},
        "action": actions,
    }


def _add(parent: ElementTree.Element, content: Mapping[str, Any]) -> None:
    """Append elements of DJI's namespace: a dict is a nested element, a list repeats it."""
    for name, value in content.items():
        for part in value if isinstance(value, list) else [value]:
            node = ElementTree.SubElement(parent, f"{{{WPML}}}{name}")
            if isinstance(part, dict):
                _add(node, part)
            else:
                node.text = str(part)


def litchi(flight: Flight) -> str:
    """Return a CSV file of Litchi: at each waypoint the drone stays, looks down and takes a photo."""
    actions = [f"{name}{number}" for number in range(1, LITCHI_ACTIONS + 1) for name in ("actiontype", "actionparam")]
    columns = ["latitude", "longitude", "altitude(m)", "heading(deg)", "curvesize(m)", "rotationdir", "gimbalmode"]
    columns += ["gimbalpitchangle", *actions, "altitudemode", "speed(m/s)", "poi_latitude", "poi_longitude"]
    columns += ["poi_altitude(m)", "poi_altitudemode", "photo_timeinterval", "photo_distinterval"]
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(columns)
    for point in flight.waypoints:
        done = [STAY, min(round(1000 * flight.hover), MAX_STAY), PHOTO, 0] if point.photo else []
        done += [NOTHING, 0] * (LITCHI_ACTIONS - len(done) // 2)
        place = [f"{point.lat:.9f}", f"{point.lon:.9f}", f"{flight.height_at(point):.2f}", 0, 0, 0, 2, DOWN]
        rows.writerow([*place, *done, 0, f"{min(flight.speed, MAX_SPEED):g}", 0, 0, 0, 0, -1, -1])
    return file.getvalue()


def caltopo(flight: Flight) -> str:
    """Return GeoJSON for CalTopo: the grid and the path as shapes, the photos as numbered markers."""
    shape = {"class": "Shape", "stroke-width": 2, "stroke-opacity": 1, "fill-opacity": 0}
    features = [feature("Polygon", grid_ring(flight), title="grid", stroke=GRID_COLOUR, fill=GRID_COLOUR, **shape)]
    if len(flight.waypoints) > 1:
        line = [lon_lat(point) for point in flight.waypoints]
        features.append(feature("LineString", line, title=flight.name, stroke=PATH_COLOUR, **shape))
    marker = {"class": "Marker", "marker-symbol": "point", "marker-color": PATH_COLOUR, "marker-size": "1"}
    for number, point in enumerate(flight.stops, start=1):
        text = f"{format_cell(point.cell)}, POA {100 * point.poa:.2f} %"
        features.append(feature("Point", lon_lat(point), title=str(number), description=text, **marker))
    return feature_collection(features)


def geopackage(flight: Flight) -> bytes:
    """Return a GeoPackage with the layers grid, path and waypoints in WGS 84."""
    import shapely

    photos = flight.stops
    rings = [shapely.Polygon(ring) for (ring,) in cut_at_antimeridian("Polygon", grid_ring(flight))]
    whole = {"name": flight.name, "height_m": flight.height, "metres": flight.metres, "seconds": flight.seconds}
    each: dict[str, list[Any]] = {
        "number": list(range(1, len(photos) + 1)),
        "row": [point.cell[0] + 1 for point in photos],
        "column": [point.cell[1] + 1 for point in photos],
        "poa": [point.poa for point in photos],
        "height_m": [flight.height_at(point) for point in photos],
    }
    path = [lon_lat(point) for point in flight.waypoints]
    lines = [shapely.LineString(part) for part in cut_at_antimeridian("LineString", path)] if len(path) > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flight.gpkg"
        _write_layer(file, "grid", "Polygon", rings, {"name": ["grid"] * len(rings)})
        _write_layer(file, "path", "LineString", lines, {key: [value] * len(lines) for key, value in whole.items()})
        _write_layer(file, "waypoints", "Point", [shapely.Point(point.lon, point.lat) for point in photos], each)
        return file.read_bytes()


def _write_layer(path: Path, name: str, kind: str, shapes: list[Any], columns: Mapping[str, list[Any]]) -> None:
    """Add a layer to a GeoPackage."""
    import pyogrio
    import shapely

    fields = [np.array(values, dtype=object if str in map(type, values) else None) for values in columns.values()]
    pyogrio.raw.write(
        path,
        np.array([shapely.to_wkb(shape) for shape in shapes], dtype=object),
        fields,
        list(columns),
        layer=name,
        driver="GPKG",
        geometry_type=kind,
        crs="EPSG:4326",
        append=path.exists(),
    )


def _zip(files: Mapping[str, bytes]) -> bytes:
    """Return files as a zip archive that depends on nothing but their content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


FORMATS: dict[str, tuple[str, Callable[[Flight], str | bytes]]] = {
    "geojson": (".geojson", geojson),
    "kml": (".kml", kml),
    "gpx": (".gpx", gpx),
    "plan": (".plan", qgc_plan),
    "waypoints": (".waypoints", waypoints),
    "dji": ("-dji.kmz", dji),
    "litchi": ("-litchi.csv", litchi),
    "kmz": (".kmz", kmz),
    "gpkg": (".gpkg", geopackage),
    "caltopo": ("-caltopo.geojson", caltopo),
}
"""File suffix and writer of every format."""
