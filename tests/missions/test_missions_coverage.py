"""Coverage and POD from actual tracks: GPX, MAVLink logs and photos give what was seen, and polygons to fly again."""

import json
import struct
from pathlib import Path

import gpxpy.gpx
import numpy as np
import pytest
import rasterio
import shapely
from pymavlink.dialects.v20 import ardupilotmega as mav
from shapely.geometry import Polygon

from airloc.areas.outline import read_outline
from airloc.areas.raster import Plane
from airloc.missions.flight import Camera
from drone_photos import dji, jpeg

PLANE = Plane(59.35, 15.0)
CAMERA = Camera(90.0, 4 / 3)
"""From 60 m it shows 120 x 90 m."""
SQUARE = [(-200, -200), (200, -200), (200, 200), (-200, 200)]
OPTIONS = ("--fov", 90, "--cell", "50m", "--detection", 0.8)


def text(points) -> str:
    return " ".join(f"{lat:.9f},{lon:.9f}" for lat, lon in PLANE.to_degrees(points))


def write_gpx(path: Path, points) -> Path:
    document = gpxpy.gpx.GPX()
    segment = gpxpy.gpx.GPXTrackSegment(
        [gpxpy.gpx.GPXTrackPoint(lat, lon, elevation=300) for lat, lon in PLANE.to_degrees(points).tolist()]
    )
    document.tracks.append(gpxpy.gpx.GPXTrack())
    document.tracks[0].segments.append(segment)
    path.write_text(document.to_xml())
    return path


def write_tlog(path: Path, points, photos=()) -> Path:
    """A telemetry log: positions of the path at 60 m, and of photos."""
    sender = mav.MAVLink(None, srcSystem=1)
    messages = [
        sender.global_position_int_encode(0, round(lat * 1e7), round(lon * 1e7), 300_000, 60_000, 0, 0, 0, 0)
        for lat, lon in PLANE.to_degrees(points).tolist()
    ]
    messages += [
        sender.camera_feedback_encode(0, 0, 0, n, round(lat * 1e7), round(lon * 1e7), 300, 60, 0, 0, 90, 0, 0)
        for n, (lat, lon) in enumerate(PLANE.to_degrees(photos).tolist() if len(photos) else [])
    ]
    with path.open("wb") as file:
        for number, message in enumerate(messages):
            file.write(struct.pack(">Q", 1_700_000_000_000_000 + number) + message.pack(sender))
    return path


def covered(airloc, tmp_path: Path, track: Path, *options: object) -> dict:
    outcome = airloc(
        "search", "--track", track, "--within", text(SQUARE), *OPTIONS, *options, "--out", tmp_path / "out"
    )
    assert outcome.code == 0, outcome
    assert "% of the search area" in outcome.out
    return json.loads((tmp_path / "out" / "coverage.json").read_text())


def in_plane(path: Path) -> shapely.Geometry:
    outline = read_outline(str(path))
    return shapely.transform(outline, lambda points: PLANE.from_degrees(points[:, ::-1]))


def test_a_straight_track_sees_a_strip_as_wide_as_the_shorter_side(airloc, tmp_path: Path):
    track = write_gpx(tmp_path / "a.gpx", [(-300.0, 0.0), (0.0, 0.0), (300.0, 0.0)])
    summary = covered(airloc, tmp_path, track, "--height", "60m")
    assert summary["coverage"] == pytest.approx(90 / 400, rel=0.01)
    assert summary["pod"] == pytest.approx(0.8 * 90 / 400, rel=0.01)
    left = in_plane(tmp_path / "out" / "left.geojson")
    assert left.area == pytest.approx(400 * (400 - 90), rel=0.01)
    assert left.intersection(in_plane(tmp_path / "out" / "seen.geojson")).area < 1
    with rasterio.open(tmp_path / "out" / "coverage.tif") as file:
        assert file.descriptions == ("coverage", "POD")
        seen, pod = file.read()
    assert (np.nanmin(seen), np.nanmax(seen)) == pytest.approx((0, (45 - 2.1) / 50), abs=0.01), "cells 4.2 m apart"
    assert pod == pytest.approx(0.8 * seen, nan_ok=True)


def test_what_is_left_can_be_flown_again(airloc, tmp_path: Path):
    track = write_gpx(tmp_path / "a.gpx", [(-300.0, 0.0), (300.0, 0.0)])
    covered(airloc, tmp_path, track, "--height", "60m")
    gap = write_gpx(tmp_path / "far.gpx", [(-300.0, 0.0), (400.0, 0.0)])
    assert covered(airloc, tmp_path, gap, "--height", "60m")["coverage"] < 0.05, "nobody recorded a gap of 700 m"
    again = airloc(
        "search", "--track", track, "--within", tmp_path / "out" / "left.geojson", *OPTIONS, "--out", tmp_path / "again"
    )
    assert again.code == 0, again


def test_a_log_counts_its_photos_if_it_has_any_and_its_path_otherwise(airloc, tmp_path: Path):
    path = [(x, 100.0) for x in np.linspace(-300, 300, 13)]
    flown = covered(airloc, tmp_path, write_tlog(tmp_path / "path.tlog", path))
    assert flown["coverage"] == pytest.approx(90 / 400, rel=0.02), "the log has the height"
    taken = covered(airloc, tmp_path, write_tlog(tmp_path / "photos.tlog", path, [(0.0, 0.0), (0.0, 110.0)]))
    assert taken["coverage"] == pytest.approx((2 * 120 - 10) * 90 / 400**2, rel=0.01)
    seen = in_plane(tmp_path / "out" / "seen.geojson")
    assert seen.bounds == pytest.approx((-45, -60, 45, 170), abs=0.5), "photos that face east are wide to the north"


def write_dataflash(path: Path, photos) -> Path:
    """A log of ArduPilot: the formats of its messages, and the messages of photos that face east, from 60 m."""
    head = b"\xa3\x95"

    def layout(kind: int, length: int, name: bytes, codes: bytes, fields: bytes) -> bytes:
        return head + struct.pack("<BBB4s16s64s", 128, kind, length, name, codes, fields)

    data = layout(128, 89, b"FMT", b"BBnNZ", b"Type,Length,Name,Format,Columns")
    data += layout(130, 3 + 24, b"CAM", b"QLLff", b"TimeUS,Lat,Lng,RelAlt,Y")
    for number, (lat, lon) in enumerate(PLANE.to_degrees(photos).tolist()):
        data += head + struct.pack("<BQiiff", 130, number, round(lat * 1e7), round(lon * 1e7), 60.0, 90.0)
    path.write_bytes(data)
    return path


def test_a_dataflash_log_counts_its_photos(airloc, tmp_path: Path):
    taken = covered(airloc, tmp_path, write_dataflash(tmp_path / "flight.bin", [(0.0, 0.0), (0.0, 110.0)]))
    assert taken["coverage"] == pytest.approx((2 * 120 - 10) * 90 / 400**2, rel=0.01)


def test_photos_count_their_footprints_and_oblique_ones_do_not(airloc, tmp_path: Path):
    (tmp_path / "photos").mkdir()
    for number, (x, y, pitch) in enumerate([(-100.0, -100.0, -90.0), (100.0, 100.0, -88.0), (0.0, 0.0, -30.0)]):
        lat, lon = PLANE.to_degrees((x, y)).tolist()
        photo = jpeg(np.zeros((30, 40, 3), np.uint8), dji(lat, lon, 60.0, 0.0, pitch))
        (tmp_path / "photos" / f"{number}.jpg").write_bytes(photo)
    outcome = airloc(
        "search", "--track", tmp_path / "photos", "--within", text(SQUARE), *OPTIONS, "--out", tmp_path / "out"
    )
    assert "1 photo without a position or not taken straight down" in outcome.err
    seen = in_plane(tmp_path / "out" / "seen.geojson")
    expected = [Polygon([(x - 60, x - 45), (x + 60, x - 45), (x + 60, x + 45), (x - 60, x + 45)]) for x in (-100, 100)]
    assert seen.symmetric_difference(shapely.union_all(expected)).area < 5


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"--track": "nothing.gpx"}, "nothing.gpx"),
        ({"--track": "nothing.tlog"}, "nothing.tlog"),
        ({"--track": "track.txt"}, "not a track"),
        ({"--track": "text.gpx"}, "not GPX"),
        ({"--track": "bomb.gpx"}, "document type"),
        ({"--track": "empty.gpx"}, "no position"),
        ({"--track": "text.tlog"}, "text.tlog"),
        ({"--track": "text.bin"}, "text.bin"),
        ({"--within": None}, "--within"),
        ({"--within": "0,0"}, "0,0"),
        ({"--detection": 3}, "3"),
        ({"--height": "high"}, "high"),
        ({"--cell": "9px"}, "9px"),
    ],
)
def test_bad_input_is_one_sentence_and_creates_nothing(airloc, tmp_path: Path, monkeypatch, change, fact: str):
    monkeypatch.chdir(tmp_path)
    write_gpx(tmp_path / "good.gpx", [(0.0, 0.0), (10.0, 0.0)])
    write_gpx(tmp_path / "empty.gpx", np.zeros((0, 2)))
    for name in ("text.gpx", "text.tlog", "text.bin"):
        (tmp_path / name).write_text("no track\n" * 50)
    (tmp_path / "bomb.gpx").write_text('<!DOCTYPE gpx [<!ENTITY a "aaaa">]><gpx>&a;</gpx>')
    options = {"--track": "good.gpx", "--within": text(SQUARE), "--cell": "50m", "--out": "out"} | change
    words = [word for name, value in options.items() if value is not None for word in (name, value)]
    outcome = airloc("search", *words)
    assert outcome.refused(fact), outcome
    assert not (tmp_path / "out").exists()
