"""The outline of a search area: a polygon or a box, from GeoJSON, KML, KMZ or coordinates.

| form                                    | meaning                                          |
|-----------------------------------------|--------------------------------------------------|
| a file ending in .geojson or .json      | all its polygons, longitude before latitude      |
| a file ending in .kml or .kmz           | all its polygons                                 |
| `lat,lon lat,lon`                       | a box, by two opposite corners                   |
| `lat,lon lat,lon lat,lon ...`           | a polygon, by three or more corners              |

An outline may cross the antimeridian: the line between two corners more than 180 degrees of longitude apart goes the
short way, and parts on both sides of the antimeridian are joined. An outline that crosses itself is refused, because it
is ambiguous which side is inside.

Legend: geometries have (lon, lat) in degrees of WGS 84; longitudes may pass 180.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import shapely
from shapely.geometry import MultiPolygon, Polygon
from shapely.validation import explain_validity

from airloc.areas.features import SUFFIXES, Ring, read_features
from airloc.areas.raster import Points
from airloc.errors import AirlocError


def read_outline(text: str, noun: str = "outline") -> MultiPolygon:
    """Read an outline from a file or from coordinates; `noun` says what it is, for error messages.

    >>> read_outline("59.0,18.0 59.1,18.2").bounds
    (18.0, 59.0, 18.2, 59.1)

    Raises:
        AirlocError: If there is no polygon, or it is not on Earth, or it crosses itself.
    """
    path = Path(text)
    if path.suffix.lower() in SUFFIXES:
        polygons = [feature.rings for feature in read_features(path, noun) if feature.kind == "Polygon"]
        return _join(polygons, f"the {noun} {text!r}")
    if re.search("[a-zA-Z]", text):
        cure = "Give a .geojson, .kml or .kmz file, or corners as 'lat,lon lat,lon ...'"
        raise AirlocError(f"{text!r} is not an outline", cure)
    return outline_of(_corners(text), f"the {noun} {text!r}")


def outline_of(corners: Ring, name: str = "the outline") -> MultiPolygon:
    """Return the outline with these corners (lon, lat); two are opposite corners of a box.

    Args:
        corners: The corners.
        name: What it is, for error messages.

    Raises:
        AirlocError: If the outline is not on Earth, or crosses itself.
    """
    if len(corners) == 2:
        (west, south), (east, north) = corners
        corners = [(west, south), (east, south), (east, north), (west, north)]
    return _join([[corners]], name)


def _corners(text: str) -> Ring:
    """Parse corners `lat,lon` separated by spaces."""
    try:
        pairs = [tuple(map(float, pair.split(","))) for pair in text.split()]
        return [(lon, lat) for lat, lon in pairs]
    except ValueError:
        cure = "Write two corners of a box or three or more of a polygon as 'lat,lon lat,lon', such as '59.33,18.06'"
        raise AirlocError(f"{text!r} is not a list of corners", cure) from None


def _join(polygons: list[list[Ring]], name: str) -> MultiPolygon:
    """Check polygons and join them to one geometry."""
    if not polygons:
        raise AirlocError(f"In {name} there is no polygon", "Draw the area as a polygon")
    parts = [valid_polygon(rings, name) for rings in polygons]
    centre = parts[0].centroid.x
    # Join parts on both sides of the antimeridian.
    parts = [shapely.transform(part, _shift(round((centre - part.centroid.x) / 360) * 360.0)) for part in parts]
    union = shapely.union_all(parts)
    return union if isinstance(union, MultiPolygon) else MultiPolygon([union])


def _shift(degrees: float) -> Callable[[Points], Points]:
    return lambda points: points + np.array([degrees, 0.0])


def valid_polygon(rings: list[Ring], name: str) -> Polygon:
    """Return a polygon on Earth that does not cross itself."""
    for ring in rings:
        if len(ring) < 3 or not all(math.isfinite(number) for point in ring for number in point):
            raise AirlocError(f"A ring of {name} has fewer than three corners", "Draw a polygon")
        if any(abs(lat) > 90 or abs(lon) > 360 for lon, lat in ring):
            problem = f"A corner of {name} is not a latitude and longitude"
            raise AirlocError(problem, "Export it in WGS 84 (EPSG:4326); on the command line write lat,lon")
    if not rings:
        raise AirlocError(f"A polygon of {name} has no corners", "Draw it again")
    outer, *inner = [_unwrap(ring) for ring in rings]
    middle = sum(lon for lon, _ in outer) / len(outer)
    holes = [[(lon + round((middle - ring[0][0]) / 360) * 360.0, lat) for lon, lat in ring] for ring in inner]
    polygon = Polygon(outer, holes)
    if not polygon.is_valid or polygon.area == 0:
        where = re.search(r"\[(\S+) (\S+)\]", explain_validity(polygon))
        near = f" near {float(where[2]):.5f},{float(where[1]):.5f}" if where else ""
        raise AirlocError(f"A polygon of {name} crosses itself or has no area{near}", "Draw it without crossings")
    return polygon


def _unwrap(ring: Ring) -> Ring:
    """Let lines between corners more than 180 degrees of longitude apart go the short way."""
    points = np.array(ring)
    lon = np.unwrap(points[:, 0], period=360.0)
    return list(zip(lon.tolist(), points[:, 1].tolist(), strict=True))
