"""The locator says where in a photo a goal lies: at any shift, turn and scale, whatever the light."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from airloc.agents.pretrained import pretrained_locator
from airloc.areas.changes import _cut
from airloc.vision.locator import GoalViews, Sighting, SightingCalibration, judge
from field_files import ground

CENTRE = (154, 154)
"""Centre of the photo in the world, in pixels."""
ALL_SEEN = np.ones((96, 96), dtype=np.bool_)
MAX_ERROR = 3 / 48


@pytest.fixture(scope="module")
def world() -> np.ndarray:
    return ground(6)


@pytest.fixture(scope="module")
def photo(world: np.ndarray) -> np.ndarray:
    return world[106:202, 106:202]


def views_of(goal: np.ndarray, *turn_and_scale: tuple[float, float], **named: tuple[float, float]) -> GoalViews:
    return GoalViews(goal, pretrained_locator(), *turn_and_scale, **named)


def cut(world: np.ndarray, down: float, right: float, turn: float = 0.0, side: int = 48) -> np.ndarray:
    """Cut a goal whose centre is off the photo's centre by pixels, with a camera that is turned clockwise."""
    return _cut(world, (CENTRE[0] + down, CENTRE[1] + right), side, turn)


def assert_at(sighting: Sighting, down: float, right: float, max_error: float = MAX_ERROR) -> None:
    assert math.dist((sighting.down, sighting.right), (down / 48, right / 48)) <= max_error


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(
    st.integers(-24, 24), st.integers(-24, 24), st.floats(-180, 180), st.integers(24, 36).map(lambda half: 2 * half)
)  # fmt: skip
def test_a_goal_anywhere_turned_by_any_angle_and_up_to_one_and_a_half_cells_wide_is_located(
    world, photo, down: int, right: int, turn: float, side: int
):
    sighting = views_of(cut(world, down, right, turn, side), (-180.0, 180.0)).locate(photo, ALL_SEEN)
    assert_at(sighting, down, right)
    assert abs((sighting.turn - turn + 180) % 360 - 180) < 6
    assert sighting.score > 0.5


@pytest.mark.parametrize("factor", [1 / 1.5, 0.8, 1.25, 1.5])
def test_a_goal_of_unknown_width_is_located_and_its_width_estimated(world, photo, factor: float):
    goal = Image.fromarray(cut(world, 6, -10, side=round(48 * factor))).resize((48, 48), Image.Resampling.LANCZOS)
    sighting = views_of(np.asarray(goal), scale=(1 / 1.6, 1.6)).locate(photo, ALL_SEEN)
    assert_at(sighting, 6, -10)
    assert sighting.scale == pytest.approx(factor, rel=0.12)  # a step of scales


def test_a_goal_partly_outside_the_photo_is_located(world, photo):
    assert_at(views_of(cut(world, -40, 8)).locate(photo, ALL_SEEN), -40, 8)
    seen = ALL_SEEN.copy()
    seen[:, 68:] = False
    assert_at(views_of(cut(world, 4, 14)).locate(photo, seen), 4, 14)


def test_unrelated_ground_scores_lower_than_the_goal(world, photo):
    elsewhere = [ground(6, seed=seed)[130:178, 130:178] for seed in (1, 2, 3)]
    for turn in ((-6.0, 6.0), (-180.0, 180.0)):
        own = views_of(cut(world, 12, -8), turn).locate(photo, ALL_SEEN)
        others = [views_of(goal, turn).locate(photo, ALL_SEEN) for goal in elsewhere]
        assert own.score > max(other.score for other in others) + 0.2
        assert own.margin > max(other.margin for other in others)


def test_a_goal_without_structure_is_not_textured(world):
    noise = np.random.default_rng(0).normal(90, 2, (48, 48, 3)).astype(np.uint8)
    for flat in (np.full((48, 48, 3), 120, np.uint8), noise):
        assert not views_of(flat, (-180.0, 180.0)).textured
    assert views_of(cut(world, 0, 0)).textured


def test_scores_do_not_depend_on_brightness_and_contrast(world, photo):
    goal = cut(world, 9, 9, 20.0)
    plain = views_of(goal, (14.0, 26.0)).locate(photo, ALL_SEEN)
    for gain, offset in ((0.5, 60.0), (0.8, 0.0)):
        other = views_of((gain * goal + offset).astype(np.uint8), (14.0, 26.0)).locate(photo, ALL_SEEN)
        assert other.score == pytest.approx(plain.score, abs=0.05)
        assert_at(other, 9, 9)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_pixels_that_are_not_seen_do_not_matter(world, photo, seed: int):
    rng = np.random.default_rng(seed)
    top, left = rng.integers(0, 60, 2)
    seen = ALL_SEEN.copy()
    seen[top : top + 40, left : left + 30] = False
    changed = np.where(seen[..., None], photo, rng.integers(0, 256, photo.shape, dtype=np.uint8))
    views = views_of(cut(world, 5, -20))
    assert views.locate(photo, seen) == views.locate(changed, seen)


def test_a_photo_that_shows_nothing_has_no_sighting(world, photo):
    assert views_of(cut(world, 0, 0)).locate(photo, ~ALL_SEEN).score == -1


@pytest.mark.parametrize("rows", [1, 2, 8])
def test_a_photo_that_shows_a_strip_alone_says_nothing_about_the_goal(rows: int):
    picture = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    photo = np.random.default_rng(1).integers(0, 256, (96, 96, 3), dtype=np.uint8)
    seen = np.zeros((96, 96), dtype=np.bool_)
    seen[40 : 40 + rows] = True
    calibration = SightingCalibration(score=8.2, margin=9.7, verified=1.0, network=0.7, constant=-7.66)
    verdict = judge(views_of(picture), calibration, lambda photo, goal: -1.0, photo, seen, own=0.25)
    assert verdict == (0.25, 0.0, 0.0)


@pytest.mark.parametrize("noise", [0, 1])
@pytest.mark.parametrize("value", [0, 120, 255])
def test_a_photo_of_one_colour_says_nothing_about_the_goal(world, value: int, noise: int):
    """The verifier was not trained on such photos, and takes them for the goal."""
    grains = np.random.default_rng(0).integers(-noise, noise + 1, (96, 96, 3))
    photo = np.clip(value + grains, 0, 255).astype(np.uint8)
    photo[:, :20] = 77  # not seen
    seen = ALL_SEEN.copy()
    seen[:, :20] = False
    calibration = SightingCalibration(score=1.1, margin=4.35, verified=0.57, network=0.42, constant=-1.42)
    verdict = judge(views_of(cut(world, 5, -20)), calibration, lambda photo, goal: -5.0, photo, seen, own=0.02)
    assert verdict == (0.02, 0.0, 0.0)
