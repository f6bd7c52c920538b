"""The outline of a search area: a polygon or a box, from GeoJSON, KML or coordinates.

| form                                    | meaning                                          |
|-----------------------------------------|--------------------------------------------------|
| a file ending in .geojson or .json      | all its polygons, longitude before latitude      |
| a file ending in .kml                   | all its polygons                                 |
| `lat,lon lat,lon`                       | a box, by two opposite corners                   |
| `lat,lon lat,lon lat,lon ...`           | a polygon, by three or more corners              |

An outline may cross the antimeridian: the line between two corners more than 180 degrees of longitude apart goes the
short way, and parts on both sides of the antimeridian are joined. An outline that crosses itself is refused, because it
is ambiguous which side is inside.

Legend: geometries have (lon, lat) in degrees of WGS 84; longitudes may pass 180.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import shapely
from shapely.geometry import MultiPolygon, Polygon
from shapely.validation import explain_validity

from airloc.areas.raster import Points
from airloc.errors import AirlocError

MAX_BYTES = 20_000_000
MAX_DEPTH = 32
WGS84 = re.compile(r"CRS84|EPSG:+4326|WGS ?84", re.IGNORECASE)

Ring = list[tuple[float, float]]


def read_outline(text: str) -> MultiPolygon:
    """Read an outline from a file or from coordinates.

    >>> read_outline("59.0,18.0 59.1,18.2").bounds
    (18.0, 59.0, 18.2, 59.1)

    Raises:
        AirlocError: If there is no polygon, or it is not on Earth, or it crosses itself.
    """
    path = Path(text)
    suffix = path.suffix.lower()
    if suffix in (".geojson", ".json"):
        return _join(list(_geojson_polygons(_parse_json(path), path)), text)
    if suffix == ".kml":
        return _join(list(_kml_polygons(path)), text)
    if re.search("[a-zA-Z]", text):
        cure = "Give a .geojson or .kml file, or corners as 'lat,lon lat,lon ...'"
        raise AirlocError(f"{text!r} is not an outline", cure)
    return _join([[_corners(text)]], text)


def _corners(text: str) -> Ring:
    """Parse corners `lat,lon` separated by spaces; two are opposite corners of a box."""
    try:
        pairs = [tuple(map(float, pair.split(","))) for pair in text.split()]
        corners = [(lon, lat) for lat, lon in pairs]
    except ValueError:
        cure = "Write two corners of a box or three or more of a polygon as 'lat,lon lat,lon', such as '59.33,18.06'"
        raise AirlocError(f"{text!r} is not a list of corners", cure) from None
    if len(corners) == 2:
        (west, south), (east, north) = corners
        return [(west, south), (east, south), (east, north), (west, north)]
    return corners


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise AirlocError(f"The outline {path} is larger than {MAX_BYTES / 1e6:.0f} MB", "Simplify it first")
        return path.read_bytes()
    except FileNotFoundError:
        raise AirlocError(f"There is no outline {path}", "Check the path") from None
    except OSError as error:
        raise AirlocError(f"Cannot read the outline {path}: {error.strerror}", "Check its permissions") from error


def _parse_json(path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(_read(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise AirlocError(f"The outline {path} is not GeoJSON: {error}", "Export it again as GeoJSON") from error
    if not isinstance(parsed, dict):
        raise AirlocError(f"The outline {path} is not a GeoJSON object", "Export it again as GeoJSON")
    named = json.dumps(parsed.get("crs")) if parsed.get("crs") else ""
    if named and not WGS84.search(named):
        raise AirlocError(f"The outline {path} is not in WGS 84: {named[:80]}", "Export it in WGS 84")
    return parsed


def _geojson_polygons(node: object, path: Path, depth: int = 0) -> Iterator[list[Ring]]:
    """Yield the polygons of a GeoJSON object and of everything inside it."""
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return
    kind = node.get("type")
    try:
        if kind == "Polygon":
            yield [_ring(ring) for ring in node["coordinates"]]
        elif kind == "MultiPolygon":
            yield from ([_ring(ring) for ring in polygon] for polygon in node["coordinates"])
    except (KeyError, TypeError, ValueError, IndexError):
        raise AirlocError(f"The outline {path} has a {kind} without valid coordinates", "Export it again") from None
    lists = [part for part in (node.get("features"), node.get("geometries")) if isinstance(part, list)]
    for child in [node.get("geometry"), *chain(*lists)]:
        yield from _geojson_polygons(child, path, depth + 1)


def _ring(positions: Any) -> Ring:
    return [(float(position[0]), float(position[1])) for position in positions]


def _kml_polygons(path: Path) -> Iterator[list[Ring]]:
    try:
        root = ElementTree.fromstring(_read(path))
    except ElementTree.ParseError as error:
        raise AirlocError(f"The outline {path} is not KML: {error}", "Export it again as KML, not KMZ") from error
    for polygon in root.iter():
        if polygon.tag.rpartition("}")[2] == "Polygon":
            outer = polygon.findall("{*}outerBoundaryIs//{*}coordinates")
            inner = polygon.findall("{*}innerBoundaryIs//{*}coordinates")
            try:
                yield [_ring([triple.split(",") for triple in (ring.text or "").split()]) for ring in outer + inner]
            except (ValueError, IndexError):
                problem = f"The outline {path} has a polygon without valid coordinates"
                raise AirlocError(problem, "Export it again") from None


def _join(polygons: list[list[Ring]], name: str) -> MultiPolygon:
    """Check polygons and join them to one geometry."""
    if not polygons:
        raise AirlocError(f"The outline {name!r} has no polygon", "Draw the area to search as a polygon")
    parts = [_valid_polygon(rings, name) for rings in polygons]
    centre = parts[0].centroid.x
    # Join parts on both sides of the antimeridian.
    parts = [shapely.transform(part, _shift(round((centre - part.centroid.x) / 360) * 360.0)) for part in parts]
    union = shapely.union_all(parts)
    return union if isinstance(union, MultiPolygon) else MultiPolygon([union])


def _shift(degrees: float) -> Callable[[Points], Points]:
    return lambda points: points + np.array([degrees, 0.0])


def _valid_polygon(rings: list[Ring], name: str) -> Polygon:
    """Return a polygon on Earth that does not cross itself."""
    for ring in rings:
        if len(ring) < 3 or not all(math.isfinite(number) for point in ring for number in point):
            raise AirlocError(f"The outline {name!r} has a ring of fewer than three corners", "Draw a polygon")
        if any(abs(lat) > 90 or abs(lon) > 360 for lon, lat in ring):
            problem = f"The outline {name!r} has corners that are not a latitude and longitude"
            raise AirlocError(problem, "Export it in WGS 84 (EPSG:4326); on the command line write lat,lon")
    if not rings:
        raise AirlocError(f"The outline {name!r} has a polygon without corners", "Draw the polygon again")
    outer, *inner = [_unwrap(ring) for ring in rings]
    middle = sum(lon for lon, _ in outer) / len(outer)
    holes = [[(lon + round((middle - ring[0][0]) / 360) * 360.0, lat) for lon, lat in ring] for ring in inner]
    polygon = Polygon(outer, holes)
    if not polygon.is_valid or polygon.area == 0:
        where = re.search(r"\[(\S+) (\S+)\]", explain_validity(polygon))
        near = f" near {float(where[2]):.5f},{float(where[1]):.5f}" if where else ""
        raise AirlocError(f"The outline {name!r} crosses itself or has no area{near}", "Draw it without crossings")
    return polygon


def _unwrap(ring: Ring) -> Ring:
    """Let lines between corners more than 180 degrees of longitude apart go the short way."""
    points = np.array(ring)
    lon = np.unwrap(points[:, 0], period=360.0)
    return list(zip(lon.tolist(), points[:, 1].tolist(), strict=True))
