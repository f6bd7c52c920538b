"""Photos become glimpses: cropped to the cell from any pose; unreadable photos are errors."""

import io
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import EpsImagePlugin, Image

from airloc.areas.area import read_image
from airloc.errors import AirlocError
from airloc.missions.photos import (
    PhotoPose,
    centre_crop,
    crop_to_cell,
    crop_to_view,
    is_uniform,
    make_goal,
    read_photo,
)
from field_files import ground


def encoded(image: np.ndarray, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind, **options)
    return buffer.getvalue()


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.ravel().astype(float), b.ravel().astype(float))[0, 1])


@pytest.fixture(scope="module")
def world() -> np.ndarray:
    return ground(6)


def test_a_photo_with_a_larger_footprint_is_cropped_to_the_cell(world):
    crop, coverage = crop_to_cell(world[52:256, 52:256], 48.0, PhotoPose(width_m=204.0))
    assert coverage == 1.0
    assert correlation(crop, world[130:178, 130:178]) > 0.99


def test_a_photo_with_an_offset_is_cropped_at_the_cell(world):
    crop, coverage = crop_to_cell(world[52:256, 52:256], 48.0, PhotoPose(204.0, right_m=20.0, up_m=-10.0))
    assert coverage == 1.0
    assert correlation(crop, world[120:168, 110:158]) > 0.98


@pytest.mark.parametrize("rotation", [90.0, 180.0, -90.0])
def test_a_rotated_photo_is_rotated_back(world, rotation: float):
    north_up = world[52:256, 52:256]
    photo = np.rot90(north_up, round(rotation / 90))
    crop, _ = crop_to_cell(np.ascontiguousarray(photo), 48.0, PhotoPose(204.0, rotation=rotation))
    assert correlation(crop, world[130:178, 130:178]) > 0.98


def test_the_coverage_of_a_partial_photo_is_reported(world):
    _, coverage = crop_to_cell(world[:100, :100], 100.0, PhotoPose(100.0, right_m=50.0))
    assert coverage == pytest.approx(0.5, abs=0.02)
    _, coverage = crop_to_cell(world[:100, :100], 100.0, PhotoPose(50.0))
    assert coverage == pytest.approx(0.25, abs=0.02)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 60), st.integers(1, 60), st.floats(0.1, 1000), st.floats(-500, 500), st.floats(-500, 500),
    st.floats(-720, 720), st.floats(0.5, 500),
)  # fmt: skip
def test_any_photo_in_any_pose_gives_a_glimpse(height, width, footprint, right, up, rotation, cell):
    photo = np.full((height, width, 3), 9, dtype=np.uint8)
    crop, coverage = crop_to_cell(photo, cell, PhotoPose(footprint, right, up, rotation))
    assert (crop.shape, crop.dtype) == ((48, 48, 3), np.uint8)
    assert 0 <= coverage <= 1
    assert centre_crop(photo).shape == (48, 48, 3)


def test_the_exif_orientation_is_applied(world):
    image = Image.fromarray(world[:100, :60])
    exif = image.getexif()
    exif[0x0112] = 8
    buffer = io.BytesIO()
    image.rotate(-90, expand=True).save(buffer, "JPEG", quality=95, exif=exif)
    assert read_photo(buffer.getvalue()).shape[:2] == (100, 60)


def test_a_photo_of_16_bits_or_with_transparency_is_read_as_a_file_of_it_is(world, tmp_path):
    deep = Image.fromarray(world[:60, :60].mean(axis=2).astype(np.uint16) * 16)
    clear = Image.fromarray(world[:60, :60]).convert("RGBA")
    clear.putalpha(Image.fromarray(np.where(np.arange(60) < 30, 0, 255)[None].repeat(60, 0).astype(np.uint8)))
    for image in (deep, clear):
        image.save(tmp_path / "photo.png")
        photo = read_photo((tmp_path / "photo.png").read_bytes())
        assert np.array_equal(photo, read_image(tmp_path / "photo.png"))
        assert photo.std() > 10


@pytest.mark.parametrize("data", [b"", b"no image", encoded(np.zeros((50, 50, 3), np.uint8))[:60]])
def test_unreadable_data_is_an_error_that_names_the_photo(data: bytes):
    with pytest.raises(AirlocError, match="goal image") as error:
        read_photo(data, "goal image")
    assert "object at 0x" not in str(error.value)


def test_a_photo_that_is_a_program_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ghostscript, started = tmp_path / "gs", tmp_path / "started"
    ghostscript.write_text(f"#!/bin/sh\ntouch {started}\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    with pytest.raises(AirlocError, match="unknown image format"):
        read_photo(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 99 99\n%%EndComments\nshowpage\n")
    assert not started.exists()


@pytest.mark.parametrize("kind", ["BMP", "GIF", "JPEG", "JPEG2000", "MPO", "PNG", "TIFF", "WEBP"])
def test_photos_have_the_formats_of_cameras(world, kind: str):
    assert read_photo(encoded(world[:60, :80], kind)).shape == (60, 80, 3)


def test_an_image_with_too_many_pixels_is_an_error_that_names_the_limit():
    with pytest.raises(AirlocError, match="120 million"):
        read_photo(encoded(np.zeros((12_000, 11_000), np.uint8)))
    header = bytearray(encoded(np.zeros((2, 2), np.uint8)))
    header[16:24] = (60_000).to_bytes(4, "big") * 2
    header[29:33] = zlib.crc32(header[12:29]).to_bytes(4, "big")
    with pytest.raises(AirlocError, match="120 million"):
        read_photo(bytes(header))


def test_goal_images_larger_and_smaller_than_a_cell_have_the_scale_of_the_cells(world):
    large = make_goal(world[52:256, 52:256], 48.0, (204.0, 204.0), 0.0)
    assert correlation(large.patch, world[130:178, 130:178]) > 0.99
    assert large.picture.shape == (72, 72, 3), "what lies beyond one and a half cells is not used"
    small = make_goal(world[130:154, 130:154], 48.0, (24.0, 24.0), 0.0)
    assert small.picture.shape == (24, 24, 3)
    assert correlation(small.patch[13:35, 13:35], world[131:153, 131:153]) > 0.9
    same = make_goal(world[130:178, 130:178])
    assert correlation(same.patch, world[130:178, 130:178]) > 0.999
    assert (same.turn, same.scale, large.scale) == (None, (1.0, 1.0), (1.0, 1.0))


def test_a_range_of_widths_is_a_range_of_scales_around_their_geometric_mean(world):
    goal = make_goal(world[130:178, 130:178], 60.0, (50.0, 72.0))
    assert goal.picture.shape == (48, 48, 3)
    assert goal.scale[0] < 50 / 60 < 1 < 72 / 60 < goal.scale[1]
    views = goal.views()
    assert (views.scales[0], views.scales[-1]) == pytest.approx(goal.scale)
    assert len(views.turns) == 40, "a goal of unknown heading is turned by a whole circle"


@pytest.mark.parametrize("turn", [90.0, 180.0, -90.0])
def test_a_goal_of_known_heading_is_turned_like_the_grid_and_its_picture_stays(world, turn: float):
    upright = world[130:178, 130:178]
    photo = np.ascontiguousarray(np.rot90(upright, round(turn / 90)))  # the camera is turned clockwise
    goal = make_goal(photo, turn=turn)
    assert np.array_equal(goal.patch, upright)
    assert np.array_equal(goal.picture, photo)
    assert np.mean(goal.views().turns) == pytest.approx(turn)


@settings(max_examples=20, deadline=None)
@given(st.floats(-30, 30), st.floats(-30, 30), st.floats(-180, 180), st.floats(150, 250))
def test_the_middle_of_a_view_is_the_glimpse(world, right: float, up: float, rotation: float, width: float):
    pose = PhotoPose(width, right, up, rotation)
    glimpse, coverage = crop_to_cell(world[:200, :204], 48.0, pose)
    view = crop_to_view(world[:200, :204], 48.0, pose)
    assert (view.pixels.shape, view.seen.shape) == ((96, 96, 3), (96, 96))
    middle = view.pixels[24:72, 24:72].astype(int)
    assert np.abs(middle - glimpse).max() <= 2
    assert abs(view.seen[24:72, 24:72].mean() - coverage) < 0.06


def test_a_view_is_not_seen_beyond_the_border_of_the_photo(world):
    view = crop_to_view(world[:100, :100], 48.0, PhotoPose(100.0, right_m=26.0))
    assert view.seen[:, 24:].all()
    assert not view.seen[:, :23].any()
    assert view.pixels[:, :23].max() == 0


def test_a_patch_of_one_colour_is_uniform(world):
    assert is_uniform(np.full((48, 48, 3), 90, np.uint8))
    assert not is_uniform(world[130:178, 130:178])
