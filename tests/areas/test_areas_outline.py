"""Outlines from GeoJSON, KML and coordinates; what cannot be meant is refused with a cure."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.outline import outline_of, read_outline
from airloc.errors import AirlocError

SQUARE = [[18.0, 59.0], [18.2, 59.0], [18.2, 59.1], [18.0, 59.1], [18.0, 59.0]]


def geojson(tmp_path: Path, value: object) -> str:
    path = tmp_path / "area.geojson"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def kml(tmp_path: Path, inside: str) -> str:
    path = tmp_path / "area.kml"
    path.write_text(
        f'<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>{inside}</Document></kml>'
    )
    return str(path)


RING = "<LinearRing><coordinates>18,59,0 18.2,59,0\n18.2,59.1,0 18,59.1,0 18,59,0</coordinates></LinearRing>"


@pytest.mark.parametrize(
    "value",
    [
        {"type": "Polygon", "coordinates": [SQUARE]},
        {"type": "Feature", "properties": {}, "geometry": {"type": "MultiPolygon", "coordinates": [[SQUARE]]}},
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}},
                {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [[[*p, 3.0] for p in SQUARE]]}},
            ],
        },
    ],
)
def test_geojson_polygons_are_found_wherever_they_are(tmp_path: Path, value):
    assert read_outline(geojson(tmp_path, value)).bounds == (18.0, 59.0, 18.2, 59.1)


def test_kml_corners_and_boxes_mean_the_same(tmp_path: Path):
    file = kml(tmp_path, f"<Placemark><Polygon><outerBoundaryIs>{RING}</outerBoundaryIs></Polygon></Placemark>")
    for text in (file, "59,18 59.1,18.2", "59.1,18.2 59,18", "59,18 59,18.2 59.1,18.2 59.1,18"):
        assert read_outline(text).bounds == (18.0, 59.0, 18.2, 59.1)


def test_a_kml_hole_is_a_hole(tmp_path: Path):
    hole = RING.replace("18.2", "18.1").replace("59.1", "59.05").replace("18,", "18.02,").replace(",59,", ",59.02,")
    shape = f"<outerBoundaryIs>{RING}</outerBoundaryIs><innerBoundaryIs>{hole}</innerBoundaryIs>"
    file = kml(tmp_path, f"<Polygon>{shape}</Polygon>")
    assert read_outline(file).area < 0.02 * 0.99


@pytest.mark.parametrize("text", ["10,179.9 10.2,-179.9", "10,179.9 10,180.1 10.2,180.1 10.2,179.9"])
def test_the_antimeridian_is_crossed_the_short_way(text: str):
    west, _, east, _ = read_outline(text).bounds
    assert east - west == pytest.approx(0.2)


def test_parts_on_both_sides_of_the_antimeridian_belong_together(tmp_path: Path):
    east = [[179.9, 1], [180, 1], [180, 2], [179.9, 2]]
    west = [[-180, 1], [-179.9, 1], [-179.9, 2], [-180, 2]]
    outline = read_outline(geojson(tmp_path, {"type": "MultiPolygon", "coordinates": [[east], [west]]}))
    assert outline.bounds[2] - outline.bounds[0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        ("{", "GeoJSON"),
        ("[1, 2]", "GeoJSON"),
        ({"type": "Point", "coordinates": [1, 2]}, "polygon"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}, "0.5"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 2], [0, 0]]]}, "crosses itself"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}, "three corners"),
        ({"type": "Polygon", "coordinates": [[["a", 0]]]}, "coordinates"),
        ({"type": "Polygon", "coordinates": []}, "corners"),
        ({"type": "Polygon", "coordinates": [[[500000, 6580000], [500100, 6580000], [500100, 6580100]]]}, "WGS 84"),
        ({"type": "Polygon", "coordinates": [SQUARE], "crs": {"properties": {"name": "EPSG:3006"}}}, "EPSG:3006"),
    ],
)
def test_broken_geojson_is_named_with_the_problem(tmp_path: Path, value, fact: str):
    path = geojson(tmp_path, value)
    with pytest.raises(AirlocError) as error:
        read_outline(path)
    assert str(path) in str(error.value)
    assert fact in str(error.value)


@pytest.mark.parametrize(
    "text", ["59,18", "59;18 60;19", "nowhere.shp", "missing.kml", "91,18 92,19", "59,18 59,nan 60,18", ""]
)
def test_broken_coordinates_are_named(text: str):
    with pytest.raises(AirlocError) as error:
        read_outline(text)
    assert text in str(error.value)


def test_an_outline_of_corners_may_touch_the_equator_and_its_errors_do_not_list_them():
    assert outline_of([(0.0, 0.00001), (0.1, 0.2)]).bounds == (0.0, 0.00001, 0.1, 0.2)
    with pytest.raises(AirlocError) as error:
        outline_of([(0, 0), (1, 1), (1, 0), (0, 1)] * 100)
    assert "crosses itself" in str(error.value)
    assert len(str(error.value)) < 200


def test_broken_kml_is_named(tmp_path: Path):
    broken_ring = RING.replace("18,", "x,")
    for content in ("<Polygon>", "<Point/>", f"<Polygon><outerBoundaryIs>{broken_ring}</outerBoundaryIs></Polygon>"):
        path = kml(tmp_path, content)
        with pytest.raises(AirlocError) as error:
            read_outline(path)
        assert str(path) in str(error.value)


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "coordinates", "geometry", "features", "geometries"]),
                inner | st.sampled_from(["Polygon", "MultiPolygon", "Feature"]),
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_an_outline_or_a_clear_error(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(value))
    with pytest.raises(AirlocError):
        read_outline(str(path))
