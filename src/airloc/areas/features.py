"""Features drawn on a map: polygons, lines and points with their properties, from GeoJSON, KML and KMZ.

Legend: positions are (lon, lat) in degrees of WGS 84.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from airloc.errors import AirlocError

SUFFIXES = (".geojson", ".json", ".kml", ".kmz")
"""Endings of the files that `read_features` reads."""
MAX_BYTES = 20_000_000
MAX_DEPTH = 32
WGS84 = re.compile(r"CRS84|EPSG:+4326|WGS ?84", re.IGNORECASE)
KML_KINDS = ("Polygon", "LineString", "Point")
UNREADABLE = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, OSError, EOFError, ValueError)
"""Errors of damaged, encrypted and unusual zip files."""

Ring = list[tuple[float, float]]


class Feature(NamedTuple):
    """A feature on a map."""

    kind: str
    """`Polygon`, `LineString` or `Point`."""
    rings: list[Ring]
    """Outer and inner rings of a polygon; the positions of a line or a point as one ring."""
    properties: Mapping[str, Any]
    """Properties of the GeoJSON feature; name, description and extended data of the KML placemark."""


def read_features(path: Path, noun: str) -> list[Feature]:
    """Read all features of a file, those of multi-geometries one by one.

    Args:
        path: The file, with one of the `SUFFIXES`.
        noun: What the file is, for error messages: `outline`.

    Raises:
        AirlocError: If the file cannot be read.
    """
    data, suffix = _read(path, noun), path.suffix.lower()
    if suffix in (".geojson", ".json"):
        return parse_geojson(_parse_json(data, path, noun), f"{noun} {path}")
    return _parse_kml(_unpack(data, path, noun) if suffix == ".kmz" else data, path, noun)


def parse_geojson(node: object, name: str) -> list[Feature]:
    """Return the features of a GeoJSON object; `name` says what it is, for error messages.

    Raises:
        AirlocError: If a geometry has no valid coordinates.
    """
    return list(_geojson_features(node, name, {}, 0))


def parse_xml(data: bytes) -> ElementTree.Element:
    """Parse XML without a document type: no format of maps or photos has one, and its entities expand without end.

    Raises:
        ValueError: If it is not XML, or has a document type or an entity.
    """
    if re.search(rb"<!(DOCTYPE|ENTITY)", data.replace(b"\0", b""), re.IGNORECASE):  # UTF-16 has zeros between letters
        raise ValueError("it declares a document type or an entity")
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, LookupError) as error:  # not XML, or of an unknown encoding
        raise ValueError(str(error)) from error


def _read(path: Path, noun: str) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise AirlocError(f"The {noun} {path} is larger than {MAX_BYTES / 1e6:.0f} MB", "Simplify it first")
        return path.read_bytes()
    except FileNotFoundError:
        raise AirlocError(f"There is no {noun} {path}", "Check the path") from None
    except OSError as error:
        raise AirlocError(f"Cannot read the {noun} {path}: {error.strerror}", "Check its permissions") from error


def _unpack(data: bytes, path: Path, noun: str) -> bytes:
    """Return the KML file inside a KMZ file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = [info for info in archive.infolist() if info.filename.lower().endswith(".kml")]
            if not files:
                raise AirlocError(f"The {noun} {path} has no KML file inside", "Export it again as KMZ")
            if files[0].file_size > MAX_BYTES:
                raise AirlocError(f"The {noun} {path} is larger than {MAX_BYTES / 1e6:.0f} MB", "Simplify it first")
            return archive.read(files[0])
    except UNREADABLE as error:
        raise AirlocError(f"The {noun} {path} is not KMZ: {error}", "Export it again as KMZ") from error


def _parse_json(data: bytes, path: Path, noun: str) -> dict[str, Any]:
    try:
        parsed = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise AirlocError(f"The {noun} {path} is not GeoJSON: {error}", "Export it again as GeoJSON") from error
    if not isinstance(parsed, dict):
        raise AirlocError(f"The {noun} {path} is not a GeoJSON object", "Export it again as GeoJSON")
    named = json.dumps(parsed.get("crs")) if parsed.get("crs") else ""
    if named and not WGS84.search(named):
        raise AirlocError(f"The {noun} {path} is not in WGS 84: {named[:80]}", "Export it in WGS 84")
    return parsed


def _geojson_features(node: object, name: str, properties: Mapping[str, Any], depth: int) -> Iterator[Feature]:
    """Yield the features of a GeoJSON object and of everything inside it."""
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return
    kind, own = node.get("type"), node.get("properties")
    properties = own if isinstance(own, dict) else properties
    try:
        for single, rings in _geojson_rings(str(kind), node.get("coordinates")):
            yield Feature(single, rings, properties)
    except (KeyError, TypeError, ValueError, IndexError):
        raise AirlocError(f"The {name} has a {kind} without valid coordinates", "Export it again") from None
    lists = [part for part in (node.get("features"), node.get("geometries")) if isinstance(part, list)]
    for child in [node.get("geometry"), *chain(*lists)]:
        yield from _geojson_features(child, name, properties, depth + 1)


def _geojson_rings(kind: str, coordinates: Any) -> Iterator[tuple[str, list[Ring]]]:
    """Yield the kind and the rings of each geometry."""
    single = kind.removeprefix("Multi")
    if single not in KML_KINDS:
        return
    for part in coordinates if kind.startswith("Multi") else [coordinates]:
        if single == "Polygon":
            yield single, [_ring(ring) for ring in part]
        else:
            yield single, [_ring([part] if single == "Point" else part)]


def _ring(positions: Any) -> Ring:
    return [(float(position[0]), float(position[1])) for position in positions]


def _parse_kml(data: bytes, path: Path, noun: str) -> list[Feature]:
    try:
        root = parse_xml(data)
    except ValueError as error:
        raise AirlocError(f"The {noun} {path} is not KML: {error}", "Export it again as KML or KMZ") from error
    found: list[Feature] = []
    stack: list[tuple[ElementTree.Element, Mapping[str, Any]]] = [(root, {})]
    while stack:
        node, properties = stack.pop()
        kind = node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
        if kind == "Placemark":
            properties = _kml_properties(node)
        if kind in KML_KINDS:
            found.append(Feature(kind, _kml_rings(node, kind, path, noun), properties))
        else:
            stack += [(child, properties) for child in reversed(node)]
    return found


def _kml_rings(node: ElementTree.Element, kind: str, path: Path, noun: str) -> list[Ring]:
    if kind == "Polygon":
        parts = [node.findall(f"{{*}}{side}//{{*}}coordinates") for side in ("outerBoundaryIs", "innerBoundaryIs")]
    else:
        parts = [node.findall("{*}coordinates")]
    try:
        return [_ring([triple.split(",") for triple in (ring.text or "").split()]) for ring in chain(*parts)]
    except (ValueError, IndexError):
        problem = f"The {noun} {path} has a {kind.lower()} without valid coordinates"
        raise AirlocError(problem, "Export it again") from None


def _kml_properties(placemark: ElementTree.Element) -> dict[str, Any]:
    """Return name, description and extended data of a placemark."""
    named = {key: placemark.findtext(f"{{*}}{key}") for key in ("name", "description")}
    pairs = {node.get("name", ""): node.findtext("{*}value") for node in placemark.findall(".//{*}Data")}
    pairs |= {node.get("name", ""): node.text for node in placemark.findall(".//{*}SimpleData")}
    return {key: text.strip() for key, text in (named | pairs).items() if text}
