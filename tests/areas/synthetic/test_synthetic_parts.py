"""The parts that worlds are made of, with worked numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.synthetic import noise
from airloc.areas.synthetic.boxes import Kind, box, join, no_boxes, stamp
from airloc.areas.synthetic.canvas import Canvas, floats
from airloc.areas.synthetic.curves import Lake, curve
from airloc.areas.synthetic.plan import draw_plan
from airloc.areas.synthetic.regimes import REGIMES, Use
from airloc.areas.synthetic.render import cast_shadows
from airloc.seeding import stream


def test_a_canvas_has_its_origin_in_the_middle() -> None:
    canvas = Canvas(2, 4, 3.0)
    assert canvas.x.tolist() == [[-4.5, -1.5, 1.5, 4.5]]
    assert canvas.y.tolist() == [[-1.5], [1.5]]
    assert canvas.finer(2).ground_m == canvas.ground_m == (6.0, 12.0)


def test_thin_lines_fade_with_the_size_of_pixels() -> None:
    middle = floats([0.0])
    assert Canvas(1, 1, 0.1).line(middle, 0.2)[0] == 1.0
    assert Canvas(1, 1, 2.0).line(middle, 0.2)[0] < 0.1


def test_noise_is_normal_and_wraps_without_a_seam() -> None:
    tile = noise.tile("cloud")
    assert abs(tile.mean()) < 1e-3
    assert tile.std() == pytest.approx(1.0, abs=1e-3)
    steps = np.abs(np.diff(tile, axis=0)).mean()
    assert np.abs(tile[0] - tile[-1]).mean() < 2 * steps


def test_noise_at_points_agrees_with_noise_in_pixels() -> None:
    canvas = Canvas(64, 80, 2.0)
    pixels = noise.sample("cloud", canvas, 2.0, (17, 1000))
    points = noise.at("cloud", canvas.x, canvas.y, 2.0, (17, 1000))
    np.testing.assert_allclose(pixels, points, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), along=st.floats(-300, 300), right=st.floats(-20, 20))
def test_a_point_beside_a_curve_is_found_there(seed: int, along: float, right: float) -> None:
    one = curve(stream(seed, "test"), 400.0, 0.7, 30.0, 10.0, 0.2)
    x, y, cos, sin = one.point(floats([along]), floats([right]))
    _, found = one.locate(x, y)
    assert found[0] == pytest.approx(right, abs=1.5)
    assert np.hypot(cos, sin)[0] == pytest.approx(1.0, abs=1e-5)


def test_a_round_lake_has_the_distance_of_a_circle() -> None:
    lake = Lake(10.0, 0.0, 30.0, (0.0, 0.0, 0.0, 0.0))
    assert lake.outside(floats([10.0, 60.0]), floats([0.0, 0.0])).tolist() == pytest.approx([-30.0, 20.0], abs=0.01)


@pytest.mark.parametrize("regime", REGIMES)
def test_district_coordinates_can_be_inverted(regime: str) -> None:
    plan = draw_plan(1, regime, (512.0, 512.0))
    rng = stream(0, "test")
    x, y = floats(rng.uniform(-250, 250, (2, 200)))
    district = np.zeros(200, dtype=np.intp)
    place = plan.streets.locate(x, y, district)
    back_x, back_y = plan.streets.to_xy(place.a, place.b, district)
    assert np.hypot(back_x - x, back_y - y).max() < 1.0


def test_a_plan_has_a_use_for_every_block_and_knows_all_uses() -> None:
    seen = set()
    for regime in REGIMES:
        for seed in range(6):
            seen |= set(draw_plan(seed, regime, (512.0, 512.0)).uses.ravel().tolist())
    assert seen == {int(use) for use in Use}


def test_a_stamp_covers_the_pixels_of_a_turned_box() -> None:
    quarter = floats([np.pi / 2])
    boxes = box(
        floats([1.0]), floats([0.0]), np.cos(quarter), np.sin(quarter), 6.0, 2.0, 3.0, Kind.FLAT, floats([1, 2, 3])
    )
    (one,) = stamp(boxes, Canvas(10, 10, 1.0))
    rows, cols = np.divmod(one.pixel, 10)
    assert sorted(set(rows.tolist())) == [2, 3, 4, 5, 6, 7]
    assert sorted(set(cols.tolist())) == [5, 6]
    assert len(one.pixel) == 12


def test_boxes_outside_the_canvas_cover_nothing() -> None:
    far = box(floats([90.0]), floats([0.0]), floats([1.0]), floats([0.0]), 6.0, 2.0, 3.0, Kind.FLAT, floats([1, 2, 3]))
    assert sum(len(one.pixel) for one in stamp(join([far, no_boxes()]), Canvas(10, 10, 1.0))) == 0


@pytest.mark.parametrize(("sun", "step"), [((1.0, 0.0), (0, -1)), ((0.0, -1.0), (1, 0)), ((-1.0, 0.0), (0, 1))])
def test_a_shadow_falls_away_from_the_sun_and_is_as_long_as_the_tower_at_45_degrees(
    sun: tuple[float, float], step: tuple[int, int]
) -> None:
    height = np.zeros((41, 41), dtype=np.float32)
    height[20, 20] = 10.0
    shadow = cast_shadows(height, Canvas(41, 41, 1.0), sun, tan_elevation=1.0)
    rows, cols = np.nonzero(shadow)
    assert set(zip((rows - 20).tolist(), (cols - 20).tolist(), strict=True)) == {
        (n * step[0], n * step[1]) for n in range(1, 10)
    }
