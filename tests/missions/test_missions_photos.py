"""Photos become glimpses: cut to the cell wherever they were taken from, or refused when nobody can read them."""

import io
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from airloc.errors import AirlocError
from airloc.missions.photos import Pose, centre_square, cut_to_cell, goal_patch, read_photo
from field_files import ground


def encoded(image: np.ndarray, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind, **options)
    return buffer.getvalue()


def closeness(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.ravel().astype(float), b.ravel().astype(float))[0, 1])


@pytest.fixture(scope="module")
def world() -> np.ndarray:
    return ground(6)


def test_a_larger_photo_is_cut_to_the_cell(world):
    cut, seen = cut_to_cell(world[52:256, 52:256], 48.0, Pose(width_m=204.0))
    assert seen == 1.0
    assert closeness(cut, world[130:178, 130:178]) > 0.99


def test_a_photo_from_aside_is_cut_where_the_cell_is(world):
    cut, seen = cut_to_cell(world[52:256, 52:256], 48.0, Pose(204.0, right_m=20.0, up_m=-10.0))
    assert seen == 1.0
    assert closeness(cut, world[120:168, 110:158]) > 0.98


@pytest.mark.parametrize("turn", [90.0, 180.0, -90.0])
def test_a_turned_photo_is_turned_back(world, turn: float):
    north_up = world[52:256, 52:256]
    photo = np.rot90(north_up, round(turn / 90))  # the camera looked to the east: east is up in the photo
    cut, _ = cut_to_cell(np.ascontiguousarray(photo), 48.0, Pose(204.0, turn=turn))
    assert closeness(cut, world[130:178, 130:178]) > 0.98


def test_a_photo_that_shows_half_the_cell_says_so(world):
    _, seen = cut_to_cell(world[:100, :100], 100.0, Pose(100.0, right_m=50.0))
    assert seen == pytest.approx(0.5, abs=0.02)
    _, seen = cut_to_cell(world[:100, :100], 100.0, Pose(50.0))
    assert seen == pytest.approx(0.25, abs=0.02)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 60), st.integers(1, 60), st.floats(0.1, 1000), st.floats(-500, 500), st.floats(-500, 500),
    st.floats(-720, 720), st.floats(0.5, 500),
)  # fmt: skip
def test_any_photo_from_anywhere_gives_a_glimpse(height, width, across, right, up, turn, cell):
    photo = np.full((height, width, 3), 9, dtype=np.uint8)
    cut, seen = cut_to_cell(photo, cell, Pose(across, right, up, turn))
    assert (cut.shape, cut.dtype) == ((48, 48, 3), np.uint8)
    assert 0 <= seen <= 1
    assert centre_square(photo).shape == (48, 48, 3)


def test_exif_turns_are_undone(world):
    picture = Image.fromarray(world[:100, :60])
    exif = picture.getexif()
    exif[0x0112] = 8
    buffer = io.BytesIO()
    picture.rotate(-90, expand=True).save(buffer, "JPEG", quality=95, exif=exif)
    assert read_photo(buffer.getvalue()).shape[:2] == (100, 60)


@pytest.mark.parametrize("data", [b"", b"no picture", encoded(np.zeros((50, 50, 3), np.uint8))[:60]])
def test_what_cannot_be_read_is_said_so(data: bytes):
    with pytest.raises(AirlocError, match="goal's picture cannot be read") as refused:
        read_photo(data, "goal's picture")
    assert "object at 0x" not in str(refused.value)


def test_a_picture_that_claims_too_much_is_refused():
    with pytest.raises(AirlocError, match="at most"):
        read_photo(encoded(np.zeros((12_000, 11_000), np.uint8)))
    header = bytearray(encoded(np.zeros((2, 2), np.uint8)))
    header[16:24] = (60_000).to_bytes(4, "big") * 2
    header[29:33] = zlib.crc32(header[12:29]).to_bytes(4, "big")
    with pytest.raises(AirlocError, match=r"claims more than .* at most 120 million"):
        read_photo(bytes(header))


def test_goals_larger_and_smaller_than_a_cell(world):
    large = goal_patch(world[52:256, 52:256], 48.0, 204.0)
    assert closeness(large, world[130:178, 130:178]) > 0.99
    small = goal_patch(world[130:154, 130:154], 48.0, 24.0)
    assert closeness(small[13:35, 13:35], world[131:153, 131:153]) > 0.9
    assert np.ptp(small[0, :, 0]) == 0
    assert closeness(goal_patch(world[130:178, 130:178]), world[130:178, 130:178]) > 0.999
