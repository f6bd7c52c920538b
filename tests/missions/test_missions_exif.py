"""Position, height, heading, gimbal and field of view are read from the photos of every maker."""

import json
import math
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.missions.exif import PhotoTags, read_tags
from drone_photos import HEAD, autel, dji, jpeg, parrot, skydio

PIXELS = np.full((30, 40, 3), 90, np.uint8)
PLACE = 59.3527123, -15.0026451


@pytest.mark.parametrize("maker", [dji, autel, parrot, skydio])
def test_the_fields_of_every_maker_are_read(maker):
    tags = read_tags(jpeg(PIXELS, maker(*PLACE, 85.4, -30.0, -89.5), PLACE, FocalLengthIn35mmFilm=24))
    assert tags.position == pytest.approx(PLACE, abs=1e-6), "to 0.1 m"
    assert (tags.height_m, tags.heading, tags.pitch) == pytest.approx((85.4, 330.0, -89.5))
    assert tags.fov == pytest.approx(71.6, abs=0.1), "84 degrees across the diagonal of 4:3"


def test_exif_alone_gives_position_and_direction():
    tags = read_tags(jpeg(PIXELS, b"", (-33.5, 151.25), direction=12.5))
    assert tags.position == pytest.approx((-33.5, 151.25), abs=1e-6)
    assert (tags.height_m, tags.heading, tags.pitch, tags.fov) == (None, pytest.approx(12.5), None, None)


def test_a_camera_without_a_fix_has_no_position():
    assert read_tags(jpeg(PIXELS, dji(0.0, 0.0, 50.0, 0.0))).position is None
    assert read_tags(jpeg(PIXELS, dji(91.0, 15.0, 50.0, 0.0))).position is None


BOMB = (
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/">&b;</x:xmpmeta>'
)


@pytest.mark.parametrize(
    "packet",
    [
        b"no xml", b"<x", HEAD.encode(), BOMB, b"\xff\xfe\x00", b"",
        dji(1.0, 2.0, math.nan, math.inf).replace("+7.00", "north").encode(),
        dji(1.0, 2.0, -5.0, 9e9).replace("+7.00", "").encode(),
    ],
)  # fmt: skip
def test_damaged_or_hostile_metadata_is_left_out(packet: bytes):
    tags = read_tags(jpeg(PIXELS, packet))
    assert (tags.height_m, tags.heading) == (None, None)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.binary(max_size=8))
def test_no_damage_of_a_file_is_an_error(at: int, noise: bytes):
    data = bytearray(jpeg(PIXELS, dji(*PLACE, 85.4, -30.0), PLACE))
    at %= len(data)
    data[at : at + len(noise)] = noise
    assert isinstance(read_tags(bytes(data)), PhotoTags)
    assert isinstance(read_tags(bytes(data[:at])), PhotoTags)


@pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool (libimage-exiftool-perl) is not installed")
@pytest.mark.parametrize("maker", [dji, autel, parrot, skydio])
def test_exiftool_reads_the_same_position_height_and_angles(tmp_path: Path, maker):
    path = tmp_path / "photo.jpg"
    path.write_bytes(jpeg(PIXELS, maker(*PLACE, 85.4, -30.0, -89.5), PLACE))
    command = ["exiftool", "-json", "-n", "-struct", "-G0", str(path)]
    (fields,) = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    numbers = [float(value) for value in _leaves(fields) if re.fullmatch(r"[+-]?\d+(\.\d+)?", str(value))]
    tags = read_tags(path.read_bytes())
    assert tags.position is not None
    for expected in (*tags.position, tags.height_m, tags.pitch):
        assert expected is not None
        assert min(abs(number - expected) for number in numbers) < 1e-5


def _leaves(node):
    """Yield the values of nested objects."""
    for value in node.values():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield value


def test_an_independent_reader_of_the_file_finds_the_same_exif_position():
    data = jpeg(PIXELS, b"", PLACE)
    assert read_tags(data).position == pytest.approx(gps_of(data), abs=1e-6)


def gps_of(data: bytes) -> tuple[float, float]:
    """Read the position of a JPEG file's EXIF from its bytes, by the layout of TIFF directories."""
    tiff = data[data.index(b"Exif\0\0") + 6 :]
    order = "<" if tiff[:2] == b"II" else ">"

    def unpack(kind: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(order + kind, tiff, at)

    def directory(at: int) -> dict[int, tuple[int, int, int]]:
        (count,) = unpack("H", at)
        entries = [unpack("HHII", at + 2 + 12 * number) for number in range(count)]
        return {tag: (kind, size, value) for tag, kind, size, value in entries}

    gps = directory(directory(unpack("I", 4)[0])[0x8825][2])
    angles = []
    for reference, angle in ((1, 2), (3, 4)):
        parts = unpack("IIIIII", gps[angle][2])
        degrees = sum(parts[2 * part] / parts[2 * part + 1] / 60**part for part in range(3))
        side = struct.pack(order + "I", gps[reference][2])[:1]
        angles.append(-degrees if side in (b"S", b"W") else degrees)
    return angles[0], angles[1]
