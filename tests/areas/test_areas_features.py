"""Features of GeoJSON, KML and KMZ keep their kind, coordinates and properties; damaged files are refused."""

import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.features import SUFFIXES, read_features
from airloc.areas.outline import read_outline
from airloc.errors import AirlocError

RING = "<LinearRing><coordinates>18,59,0 18.2,59,0 18.2,59.1,0 18,59.1,0 18,59,0</coordinates></LinearRing>"
KML = f"""<?xml version="1.0" encoding="UTF-8"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document><Folder>
<Placemark><name>hut</name><description>weight=3</description><ExtendedData><Data name="poa"><value>0.4</value></Data>
<SchemaData><SimpleData name="source">map</SimpleData></SchemaData></ExtendedData>
<MultiGeometry><Polygon><outerBoundaryIs>{RING}</outerBoundaryIs></Polygon><Point><coordinates>18.1,59.05</coordinates>
</Point></MultiGeometry></Placemark>
<Placemark><LineString><coordinates>18,59 18.1,59.1</coordinates></LineString></Placemark></Folder></Document></kml>"""


def write_kmz(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return path


def test_kml_placemarks_give_their_name_and_extended_data_to_each_geometry(tmp_path: Path):
    path = tmp_path / "a.kml"
    path.write_text(KML)
    found = read_features(path, "prior")
    assert [feature.kind for feature in found] == ["Polygon", "Point", "LineString"]
    assert found[0].properties == {"name": "hut", "description": "weight=3", "poa": "0.4", "source": "map"}
    assert found[0].properties == found[1].properties
    assert found[2].properties == {}
    assert found[2].rings == [[(18.0, 59.0), (18.1, 59.1)]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_kml_with_a_document_type_or_an_entity_is_refused(tmp_path: Path, encoding: str):
    head, body = KML.replace("UTF-8", encoding).replace("hut", "&a;").split("?>")
    bomb = f'{head}?><!DOCTYPE kml [<!ENTITY a "aaaa">]>{body}'
    (tmp_path / "a.kml").write_text(bomb, encoding=encoding)
    with zipfile.ZipFile(tmp_path / "a.kmz", "w") as archive:
        archive.writestr("doc.kml", bomb.encode(encoding))
    for name in ("a.kml", "a.kmz"):
        with pytest.raises(AirlocError, match="not KML: it declares a document type"):
            read_features(tmp_path / name, "outline")


def test_kmz_is_the_kml_inside(tmp_path: Path):
    (tmp_path / "a.kml").write_text(KML)
    packed = write_kmz(tmp_path / "a.kmz", style_png="", doc_kml=KML)
    assert read_features(packed, "prior") == read_features(tmp_path / "a.kml", "prior")
    assert read_outline(str(packed)).bounds == (18.0, 59.0, 18.2, 59.1)


def test_geojson_properties_belong_to_all_geometries_of_their_feature(tmp_path: Path):
    lines = {"type": "MultiLineString", "coordinates": [[[18, 59], [18.1, 59]], [[18, 59.1], [18.1, 59.1, 7]]]}
    points = {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [18, 59]}, lines]}
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "Feature", "properties": {"decay": 50}, "geometry": points}))
    found = read_features(path, "prior")
    assert [feature.kind for feature in found] == ["Point", "LineString", "LineString"]
    assert all(feature.properties == {"decay": 50} for feature in found)


def test_kmz_files_that_cannot_be_used_are_refused_with_one_sentence(tmp_path: Path):
    empty = write_kmz(tmp_path / "empty.kmz", readme_txt="nothing")
    with pytest.raises(AirlocError, match="no KML file inside"):
        read_features(empty, "outline")
    huge = write_kmz(tmp_path / "huge.kmz", doc_kml=" " * 30_000_000)
    with pytest.raises(AirlocError, match="larger than 20 MB"):
        read_features(huge, "outline")
    good = write_kmz(tmp_path / "good.kmz", doc_kml=KML).read_bytes()
    damaged = tmp_path / "damaged.kmz"
    damaged.write_bytes(good[:60] + bytes(20) + good[80:])
    with pytest.raises(AirlocError, match="not KMZ"):
        read_features(damaged, "outline")


def packed(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("doc.kml", content)
    return buffer.getvalue()


NOISE = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(str.encode),
    st.binary(max_size=100).map(packed),
    st.sampled_from([KML.encode(), KML.encode("utf-16"), KML.replace("UTF-8", "klingon").encode(), b"[" * 5000]),
    st.tuples(st.integers(0, len(KML)), st.binary(min_size=1, max_size=3)).map(
        lambda change: KML.encode()[: change[0]] + change[1] + KML.encode()[change[0] :]
    ),
)


@settings(max_examples=150, deadline=None)
@given(content=NOISE, suffix=st.sampled_from(SUFFIXES))
def test_any_bytes_are_features_or_an_error_with_a_cure(tmp_path_factory: pytest.TempPathFactory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"noise{suffix}"
    path.write_bytes(content)
    with suppress(AirlocError):
        assert isinstance(read_features(path, "prior"), list)
