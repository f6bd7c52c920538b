"""Every format is read back by an independent library; coordinates agree to a tenth of a metre."""

import csv
import io
import json
import sqlite3
import zipfile
from dataclasses import replace
from pathlib import Path

import fastkml
import pyogrio
import pytest
import shapely
from fastkml.utils import find_all
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from airloc.missions.flight import Flight, Waypoint, cut_at_antimeridian, geojson, great_circle_distance
from airloc.missions.formats import FORMATS, caltopo, dji, geopackage, kmz, litchi
from flight_schemas import litchi_faults, wayline_faults

POINTS = [
    Waypoint(59.352710123, 15.002684456, (0, 1), 0.02),
    Waypoint(59.353500111, 15.004000222, (1, 2), 0.5),
    Waypoint(59.351000333, 14.999000444, (2, 0), 0.001),
]
OUTLINE = [(59.36, 14.99), (59.36, 15.01), (59.35, 15.01), (59.35, 14.99)]
FLIGHT = Flight("airloc <search>", POINTS, 65.5, 8.0, 2.0, (59.3527, 15.0026), outline=OUTLINE)
TENTH_OF_A_METRE = 0.1


def agree(found: list[tuple[float, float]], expected=POINTS) -> bool:
    """Return whether positions (lat, lon) are those of the waypoints, in order."""
    away = [great_circle_distance(one, point[:2]) for one, point in zip(found, expected, strict=True)]
    return max(away) < TENTH_OF_A_METRE


def test_all_formats_write_a_flight_of_one_photo():
    short = replace(FLIGHT, waypoints=POINTS[:1])
    for suffix, write in FORMATS.values():
        assert write(short), suffix


def test_kmz_holds_a_kml_document():
    with zipfile.ZipFile(io.BytesIO(kmz(FLIGHT))) as archive:
        assert archive.namelist() == ["doc.kml"]
        document = fastkml.KML.from_string(archive.read("doc.kml"), strict=False)
    marks = [mark.geometry for mark in find_all(document, of_type=fastkml.Placemark)]
    assert agree([(one.y, one.x) for one in marks if one.geom_type == "Point"])


WPML = {"kml": "http://www.opengis.net/kml/2.2", "wpml": "http://www.dji.com/wpmz/1.0.2"}


def test_a_wayline_of_dji_stops_looks_down_and_takes_a_photo_at_every_waypoint():
    with zipfile.ZipFile(io.BytesIO(dji(FLIGHT))) as archive:
        assert sorted(archive.namelist()) == ["wpmz/template.kml", "wpmz/waylines.wpml"]
        files = {name: etree.fromstring(archive.read(name)) for name in archive.namelist()}
    for name, root in files.items():
        marks = root.findall(".//kml:Folder/kml:Placemark", WPML)
        places = [mark.findtext("kml:Point/kml:coordinates", namespaces=WPML).split(",") for mark in marks]
        assert agree([(float(lat), float(lon)) for lon, lat in places]), name
        assert [mark.findtext("wpml:index", namespaces=WPML) for mark in marks] == ["0", "1", "2"]
    root = files["wpmz/waylines.wpml"]
    for key in (
        "flyToWaylineMode",
        "finishAction",
        "exitOnRCLost",
        "takeOffSecurityHeight",
        "droneInfo",
        "payloadInfo",
    ):
        assert root.find(f".//wpml:missionConfig/wpml:{key}", WPML) is not None, key
    assert root.findtext(".//wpml:executeHeightMode", namespaces=WPML) == "relativeToStartPoint"
    for mark in root.findall(".//kml:Placemark", WPML):
        assert float(mark.findtext("wpml:executeHeight", namespaces=WPML)) == pytest.approx(65.5)
        done = [one.text for one in mark.findall(".//wpml:actionActuatorFunc", WPML)]
        assert done == ["gimbalRotate", "hover", "takePhoto"]
        assert mark.findtext(".//wpml:gimbalPitchRotateAngle", namespaces=WPML) == "-90"


FLIGHTS = st.builds(
    lambda count, height, speed, hover: Flight("a", POINTS[:count], height, speed, hover, (59.3527, 15.0026)),
    st.integers(1, 3), st.floats(0.5, 500), st.floats(0.2, 30), st.floats(0, 60),
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(FLIGHTS)
def test_waylines_of_dji_and_missions_of_litchi_follow_their_published_descriptions(flight: Flight):
    with zipfile.ZipFile(io.BytesIO(dji(flight))) as archive:
        assert wayline_faults(archive.read("wpmz/template.kml"), template=True) == []
        assert wayline_faults(archive.read("wpmz/waylines.wpml"), template=False) == []
    assert litchi_faults(litchi(flight)) == []


@pytest.mark.parametrize("name", ["template.kml", "waylines.wpml"])
def test_gdal_reads_the_positions_of_a_wayline(tmp_path: Path, name: str):
    with zipfile.ZipFile(io.BytesIO(dji(FLIGHT))) as archive:
        (tmp_path / "a.kml").write_bytes(archive.read(f"wpmz/{name}"))
    geometries = pyogrio.raw.read(tmp_path / "a.kml")[2]
    assert agree([(one.y, one.x) for one in map(shapely.from_wkb, geometries)])


def test_litchi_rows_have_all_columns_and_take_a_photo():
    rows = list(csv.DictReader(io.StringIO(litchi(FLIGHT))))
    assert agree([(float(row["latitude"]), float(row["longitude"])) for row in rows])
    for row in rows:
        assert len(row) == 46
        assert None not in row
        assert float(row["altitude(m)"]) == pytest.approx(65.5)
        assert (row["gimbalpitchangle"], row["actiontype1"], row["actionparam1"]) == ("-90", "0", "2000")
        assert (row["actiontype2"], row["actiontype3"]) == ("1", "-1")


def test_caltopo_has_a_class_and_a_title_for_every_feature():
    features = json.loads(caltopo(FLIGHT))["features"]
    assert [one["properties"]["class"] for one in features] == ["Shape", "Shape", "Marker", "Marker", "Marker"]
    assert all(one["properties"]["title"] for one in features)
    shapes = [shapely.from_geojson(json.dumps(one["geometry"])) for one in features]
    assert agree([(one.y, one.x) for one in shapes if one.geom_type == "Point"])
    assert agree([(lat, lon) for lon, lat in shapes[1].coords])


def test_a_geopackage_has_three_layers_in_wgs_84(tmp_path: Path):
    """SQLite reads the tables, and the blobs as the standard lays them out: a header of 8 bytes, envelope, WKB."""
    path = tmp_path / "flight.gpkg"
    path.write_bytes(geopackage(FLIGHT))
    with sqlite3.connect(path) as file:
        layers = dict(file.execute("SELECT table_name, geometry_type_name FROM gpkg_geometry_columns"))
        assert layers == {"grid": "POLYGON", "path": "LINESTRING", "waypoints": "POINT"}
        assert {srs for (srs,) in file.execute("SELECT srs_id FROM gpkg_contents")} == {4326}
        rows = file.execute("SELECT geom, number, row, poa FROM waypoints ORDER BY number").fetchall()
        (line,) = file.execute("SELECT geom FROM path").fetchone()
    assert [row[1:3] for row in rows] == [(1, 1), (2, 2), (3, 3)]
    assert [row[3] for row in rows] == [point.poa for point in POINTS]
    points = [geometry(row[0]) for row in rows]
    assert agree([(one.y, one.x) for one in points])
    assert agree([(lat, lon) for lon, lat in geometry(line).coords])


def geometry(blob: bytes) -> shapely.Geometry:
    assert blob[:2] == b"GP"
    envelope = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}[blob[3] >> 1 & 7]
    return shapely.from_wkb(blob[8 + envelope :])


def test_archives_depend_on_nothing_but_the_flight():
    assert dji(FLIGHT) == dji(FLIGHT)
    assert kmz(FLIGHT) == kmz(FLIGHT)


ACROSS = replace(
    FLIGHT,
    waypoints=[Waypoint(-17.0, 179.998, (0, 0), 0.1), Waypoint(-17.002, -179.998, (1, 1), 0.1),
               Waypoint(-17.004, 179.998, (2, 0), 0.1)],
    outline=[(-16.99, 179.99), (-16.99, -179.99), (-17.01, -179.99), (-17.01, 179.99)],
)  # fmt: skip
"""A flight over the antimeridian and back."""


def shapes_of(name: str, folder: Path) -> list[shapely.Geometry]:
    """Return the grid and the path of the flight over the antimeridian, as a library reads them."""
    suffix, write = FORMATS[name]
    content = write(ACROSS)
    if name == "gpkg":
        (folder / suffix).write_bytes(content)
        found = [pyogrio.raw.read(folder / suffix, layer=layer)[2] for layer in ("grid", "path")]
        return [shapely.union_all(shapely.from_wkb(parts)) for parts in found]
    if name == "kml":
        marks = list(find_all(fastkml.KML.from_string(content.encode(), strict=False), of_type=fastkml.Placemark))
        collections = [shapely.geometry.shape(mark.geometry) for mark in marks if mark.name in ("grid", "path")]
        return [shapely.union_all(shapely.get_parts(collection)) for collection in collections]
    return list(shapely.from_geojson(content).geoms)[:2]


@pytest.mark.parametrize("name", ["geojson", "caltopo", "kml", "gpkg"])
def test_grid_and_path_are_cut_at_the_antimeridian(tmp_path: Path, name: str):
    grid, path = (shapely.force_2d(shape) for shape in shapes_of(name, tmp_path))
    sides = [shapely.box(179.99, -17.01, 180, -16.99), shapely.box(-180, -17.01, -179.99, -16.99)]
    assert grid.is_valid
    assert grid.symmetric_difference(shapely.union_all(sides)).area < 1e-12
    assert path.length == pytest.approx(2 * (0.002**2 + 0.004**2) ** 0.5)
    east = shapely.LineString([(-180, -17.001), (-179.998, -17.002), (-180, -17.003)])
    assert path.intersection(sides[1].buffer(1e-9)).hausdorff_distance(east) < 1e-8


def test_what_lies_on_one_side_of_the_antimeridian_is_not_cut():
    grid, path = list(shapely.from_geojson(geojson(FLIGHT)).geoms)[:2]
    assert (grid.geom_type, path.geom_type) == ("Polygon", "LineString")


def test_a_leg_along_the_antimeridian_lies_on_one_side():
    line = [[179.9, 1.0], [180.0, 1.0], [-180.0, 2.0], [179.9, 2.0]]
    assert cut_at_antimeridian("LineString", line) == [[*line[:2], [180.0, 2.0]], [[180.0, 2.0], line[3]]]


def test_a_hole_across_the_antimeridian_is_cut_with_its_polygon():
    square, hole = ([(lon - 360 if lon > 180 else lon, lat) for lon, lat in shapely.box(*box).exterior.coords]
                    for box in ((179, 0, 182, 3), (179.5, 1, 181, 2)))  # fmt: skip
    west, east = (shapely.Polygon(rings[0], rings[1:]) for rings in cut_at_antimeridian("Polygon", [square, hole]))
    assert (west.area, east.area) == pytest.approx((3 - 0.5, 6 - 1))
    assert (west.bounds, east.bounds) == ((179, 0, 180, 3), (-180, 0, -178, 3))
