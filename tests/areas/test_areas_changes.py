"""Goal images that differ from what the flight sees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.areas.changes import CHANGES, GoalTransform, adjust_colours, blur_image, check_change, cut_goal, downsample
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid
from airloc.task.cells import cut_patches

GRID = Grid(5, 5)

cells = st.tuples(st.integers(0, 4), st.integers(0, 4))
seeds = st.integers(0, 2**32)


def noise(seed: int, grid: Grid) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size=(*grid.size, 3), dtype=np.uint8)


def drawn(name: str, seed: int, strength: float = 1.0) -> GoalTransform:
    return CHANGES[name](np.random.default_rng(seed), strength)


def places(grid: Grid) -> np.ndarray:
    """An image whose colours tell where a pixel lies: (row, col, 0)."""
    rows, cols = np.mgrid[: grid.size[0], : grid.size[1]]
    return np.stack([rows, cols, np.zeros_like(rows)], axis=2).astype(np.uint8)


def grey(values: list[list[int]]) -> np.ndarray:
    return np.repeat(np.array(values, dtype=np.uint8)[..., None], 3, axis=2)


@pytest.mark.parametrize("grid", [GRID, Grid(1, 3), Grid(3, 2, cell=5, gap=1)], ids=str)
@pytest.mark.parametrize("name", CHANGES)
def test_without_strength_the_goal_is_the_cell(name: str, grid: Grid):
    image = noise(1, grid)
    for cell, patch in zip(grid.cells(), cut_patches(image, grid), strict=True):
        assert np.array_equal(cut_goal(image, grid, cell, drawn(name, 7, strength=0.0)), patch)


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_changes_the_image_of_every_cell(name: str):
    image = noise(0, GRID)
    for cell, patch in zip(GRID.cells(), cut_patches(image, GRID), strict=True):
        goal = cut_goal(image, GRID, cell, drawn(name, seed=3))
        assert (goal.shape, goal.dtype) == (patch.shape, patch.dtype)
        assert (goal != patch).mean() > 0.5
        assert np.array_equal(goal, cut_goal(image, GRID, cell, drawn(name, seed=3)))
        assert not np.array_equal(goal, cut_goal(image, GRID, cell, drawn(name, seed=4))) or name == "coarse"


@given(cell=cells, seed=seeds)
def test_a_cut_off_the_grid_stays_inside_and_within_half_a_cell(cell: Cell, seed: int):
    goal = cut_goal(places(GRID), GRID, cell, drawn("off-grid", seed))
    top, left = goal[0, 0, :2].tolist()
    assert np.array_equal(goal, places(GRID)[top : top + 48, left : left + 48])
    assert max(abs(top - 52 * cell[0]), abs(left - 52 * cell[1])) <= 24


@given(cell=cells, seed=seeds)
def test_a_turned_cut_shows_no_ground_twice_and_keeps_its_centre_nearest_to_the_cell(cell: Cell, seed: int):
    view = GoalTransform(shift=drawn("off-grid", seed).shift, rotation=drawn("turned", seed).rotation)
    goal = cut_goal(places(GRID), GRID, cell, view).astype(np.float64)
    corners = goal[[0, 0, -1, -1], [0, -1, 0, -1], :2]
    middle = corners.mean(axis=0) + 0.5  # centres of pixels lie half a pixel on
    assert np.abs(middle - [52 * cell[0] + 24, 52 * cell[1] + 24]).max() <= 25
    # The rim of the area would be shown repeatedly by a cut that leaves it: sides keep their length.
    top = goal[0, -1, :2] - goal[0, 0, :2]
    assert np.hypot(*top) == pytest.approx(47, abs=1.5)


@given(
    st.floats(-180, 180), st.floats(1 / 1.5, 1.5), st.tuples(st.integers(-20, 20), st.integers(-20, 20)), st.booleans()
)  # fmt: skip
def test_an_upright_goal_is_the_ground_around_its_centre(
    rotation: float, scale: float, shift: tuple[int, int], upright: bool
):
    transform = GoalTransform((shift[0] / 48, shift[1] / 48), rotation, scale, upright=upright)
    goal = cut_goal(places(GRID), GRID, (2, 2), transform).astype(int)
    top, left = 104 + shift[0], 104 + shift[1]
    reach = 10  # inside the image at any rotation and scale
    middle = slice(24 - reach, 24 + reach)
    ground = places(GRID)[top : top + 48, left : left + 48].astype(int)
    if upright:
        assert np.abs(goal[middle, middle] - ground[middle, middle]).max() <= 2
    else:
        assert np.abs(goal[23:25, 23:25].mean(axis=(0, 1)) - ground[23:25, 23:25].mean(axis=(0, 1))).max() <= 2


def test_cuts_go_to_the_other_side_where_they_would_leave():
    for cell, shift, corner in (((0, 0), (-0.25, -0.5), (12, 24)), ((4, 4), (0.25, 0.5), (196, 184))):
        assert cut_goal(places(GRID), GRID, cell, GoalTransform(shift=shift))[0, 0, :2].tolist() == list(corner)
    row = Grid(1, 3)
    assert cut_goal(places(row), row, (0, 1), GoalTransform(shift=(0.5, 0.5)))[0, 0, :2].tolist() == [0, 52 + 24]


def test_a_camera_turned_clockwise_sees_north_on_its_left():
    goal = cut_goal(places(GRID), GRID, (2, 2), GoalTransform(rotation=90.0)).astype(int)
    assert np.array_equal(goal, np.rot90(places(GRID)[104:152, 104:152], 1))


def test_worked_numbers_of_coarse_pixels():
    goal = grey([[0, 40, 100, 100], [40, 80, 100, 100], [0, 0, 200, 200], [0, 0, 200, 200]])
    # Means of 2 x 2: 40, 100, 0, 200; between their centres a quarter and three quarters of the way.
    row = [40, 55, 85, 100]
    below = [0, 50, 150, 200]
    wanted = [row, [30, 54, 101, 125], [10, 51, 134, 175], below]
    assert np.abs(downsample(goal, 2.0).astype(int) - grey(wanted)).max() <= 1
    assert np.array_equal(downsample(goal, 1.0), goal)


def test_worked_numbers_of_blur():
    point = np.zeros((7, 7, 3), dtype=np.uint8)
    point[3, 3] = 250
    weights = np.exp([-4.5, -2.0, -0.5, 0.0, -0.5, -2.0, -4.5])
    weights /= weights.sum()
    assert np.array_equal(blur_image(point, 1.0)[..., 1], np.round(250 * np.outer(weights, weights)))
    flat = np.full((9, 9, 3), 77, dtype=np.uint8)
    assert np.array_equal(blur_image(flat, 1.5), flat)


def test_blur_mixes_in_the_ground_around_the_cell():
    image = np.zeros((*GRID.size, 3), dtype=np.uint8)
    image[100:104] = 255  # the gap above the third row
    goal = cut_goal(image, GRID, (2, 2), GoalTransform(blur=1.0))
    assert goal[0, 24, 0] > 50
    assert goal[4:].max() == 0


def test_worked_numbers_of_photometric_change():
    goal = np.array([[[100, 150, 200], [50, 50, 50]]], dtype=np.uint8)
    assert adjust_colours(goal, GoalTransform(saturation=0.0)).tolist() == [[[150, 150, 150], [50, 50, 50]]]
    assert adjust_colours(goal, GoalTransform(saturation=2.0)).tolist() == [[[50, 150, 250], [50, 50, 50]]]
    assert adjust_colours(goal, GoalTransform(contrast=0.5)).tolist() == [[[100, 125, 150], [75, 75, 75]]]
    assert adjust_colours(goal, GoalTransform(channel_gains=(1.1, 0.5, 2.0))).tolist() == [
        [[110, 75, 255], [55, 25, 100]]
    ]
    assert adjust_colours(goal, GoalTransform(gamma=2.0)).tolist() == [[[39, 88, 157], [10, 10, 10]]]


@given(seed=seeds)
def test_views_stay_within_their_limits(seed: int):
    assert 0.5 <= drawn("blur", seed).blur <= 1.5
    assert abs(drawn("turned", seed).rotation) <= 10
    assert drawn("coarse", seed) == GoalTransform(downsampling=2.0)
    everything = drawn("all", seed)
    assert (everything.downsampling, everything.blur > 0) == (2.0, True)
    assert everything.rotation != 0
    assert everything.shift != (0, 0)
    assert everything.gamma != 1


def test_unknown_changes_and_strengths_are_refused():
    with pytest.raises(AirlocError, match=r"'off_grid'.*'off-grid'.*photometric, blur"):
        check_change("off_grid")
    for strength in (-0.1, 1.1, float("nan")):
        with pytest.raises(AirlocError, match="0"):
            check_change("blur", strength)
