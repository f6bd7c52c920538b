"""Position, height, heading, gimbal and field of view are read from the photos of every maker."""

import math

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
    assert (tags.lat, tags.lon) == pytest.approx(PLACE, abs=1e-6), "to 0.1 m"
    assert (tags.height_m, tags.heading, tags.pitch) == pytest.approx((85.4, 330.0, -89.5))
    assert tags.fov == pytest.approx(71.6, abs=0.1), "84 degrees across the diagonal of 4:3"


def test_exif_alone_gives_position_and_direction():
    tags = read_tags(jpeg(PIXELS, b"", (-33.5, 151.25), direction=12.5))
    assert (tags.lat, tags.lon) == pytest.approx((-33.5, 151.25), abs=1e-6)
    assert (tags.height_m, tags.heading, tags.pitch, tags.fov) == (None, pytest.approx(12.5), None, None)


def test_a_camera_without_a_fix_has_no_position():
    assert not read_tags(jpeg(PIXELS, dji(0.0, 0.0, 50.0, 0.0))).located
    assert not read_tags(jpeg(PIXELS, dji(91.0, 15.0, 50.0, 0.0))).located


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
