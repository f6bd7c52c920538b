import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.drawing.canvas import Canvas, Frame, dashes
from airloc.drawing.palette import GOAL, MARGIN, OUTSIDE, PATH_A, PATH_B
from airloc.drawing.trajectory import draw_team, draw_trajectory, place_circles
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(3, 4)
cells = st.tuples(st.integers(-40, 40), st.integers(-40, 40))


def area(grid: Grid = GRID, value: int = 90) -> np.ndarray:
    return np.full((*grid.size, 3), value, dtype=np.uint8)


def share(picture: np.ndarray, colour: tuple[int, int, int]) -> float:
    return float((picture == np.array(colour)).all(axis=-1).mean())


@settings(max_examples=25, deadline=None)
@given(path=st.lists(cells, max_size=12), goal=st.none() | cells, dim=st.booleans(), margin=st.integers(0, 2))
def test_any_path_is_drawn_and_the_margin_alone_sets_the_shape(path, goal, dim, margin):
    grid = Grid(3, 4, cell=16, gap=2)
    picture = draw_trajectory(area(grid), grid, path, goal, scale=1, dim_unvisited=dim, margin=margin)
    assert picture.shape == (grid.size[0] + 2 * margin * 18, grid.size[1] + 2 * margin * 18, 3)
    assert picture.dtype == np.uint8


@given(path=st.lists(cells, min_size=1, max_size=12))
def test_the_frame_holds_the_grid_and_every_cell_up_to_the_limit(path):
    frame = Frame.around(GRID, path, 2)
    height, width = frame.size
    limit = max(GRID.shape)
    for cell in [*path, *GRID.cells()]:
        left, top, right, bottom = frame.box(cell)
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        if -limit <= cell[0] < GRID.rows + limit and -limit <= cell[1] < GRID.cols + limit:
            assert frame.clamp(cell) == cell


def test_a_path_inside_needs_no_margin():
    assert draw_trajectory(area(), GRID, [(0, 0), (1, 1)], (2, 3), scale=2).shape == (2 * 152, 2 * 204, 3)


def test_a_step_over_the_border_adds_one_cell_of_margin_on_that_side_with_what_was_seen_there():
    picture = draw_trajectory(area(), GRID, [(0, 0), (-1, 1)], (2, 3), scale=2)
    assert picture.shape == (2 * (152 + 52), 2 * 204, 3)
    assert tuple(picture[4, 2 * 52 + 4]) == OUTSIDE


def test_the_picture_is_made_of_the_image():
    picture = draw_trajectory(area(value=90), GRID, [(0, 0)], None, scale=1)
    assert tuple(picture[130, 180]) == (90, 90, 90)


def test_unvisited_cells_are_dimmed_and_visited_ones_are_not():
    picture = draw_trajectory(area(value=90), GRID, [(0, 0), (1, 1)], None, scale=1, dim_unvisited=True)
    assert picture[56, 90].tolist() == [90, 90, 90]
    assert picture[130, 180].max() < 45
    wider = draw_trajectory(area(), GRID, [(0, 0)], None, scale=1, dim_unvisited=True, margin=1)
    assert tuple(wider[0, 0]) == MARGIN


def test_a_visit_outside_never_reveals_a_cell_of_the_area_when_there_is_no_margin():
    picture = draw_trajectory(area(value=90), GRID, [(0, -1)], None, scale=1, dim_unvisited=True, margin=0)
    assert picture[6, 6].max() < 45


def test_the_outline_of_a_goal_not_found_is_dashed():
    found, missed = (draw_trajectory(area(), GRID, [(0, 0)], (2, 3), scale=2, found=found) for found in (True, False))
    assert share(found, GOAL) > 1.2 * share(missed, GOAL) > 0


def test_found_is_taken_from_the_path_by_default():
    path = [(1, 2), (2, 3)]
    assert np.array_equal(
        draw_trajectory(area(), GRID, path, (2, 3)), draw_trajectory(area(), GRID, path, (2, 3), found=True)
    )


def test_a_path_has_its_colour_and_a_dashed_one_less_of_it():
    solid, dashed = (
        draw_trajectory(area(), GRID, [(0, 0), (2, 2)], None, colour=PATH_B, dashed=dashed) for dashed in (False, True)
    )
    assert share(solid, PATH_B) > share(dashed, PATH_B) > 0
    assert share(solid, PATH_A) == 0


@given(st.integers(1, 40), st.tuples(st.floats(-3, 3), st.floats(-3, 3)))
def test_the_marks_of_a_cell_lie_inside_it_and_never_overlap(count, towards):
    places, radius = place_circles(count, towards)
    assert len(places) == count
    assert all(max(abs(x), abs(y)) + radius <= 0.5 for x, y in places)
    assert all(math.dist(a, b) >= 2 * radius for a, b in itertools.combinations(places, 2))


def test_marks_stay_legible_up_to_seven_visits_of_one_cell():
    assert place_circles(7)[1] * 48 * 3 > 20


def test_larger_images_of_the_same_shape_are_welcome():
    large = np.full((152 * 3, 204 * 3, 3), 50, dtype=np.uint8)
    assert draw_trajectory(large, GRID, [(0, 0)], (1, 1), scale=1).shape == (152, 204, 3)


@pytest.mark.parametrize(
    "image", [np.zeros((152, 152, 3), np.uint8), np.zeros((152, 204), np.uint8), np.zeros((152, 204, 3))]
)
def test_images_of_another_shape_or_type_are_refused(image):
    with pytest.raises(AirlocError):
        draw_trajectory(image, GRID, [(0, 0)], (1, 1))


@pytest.mark.parametrize("options", [{"scale": 0}, {"margin": -1}])
def test_impossible_scales_and_margins_are_refused(options):
    with pytest.raises(AirlocError):
        draw_trajectory(area(), GRID, [(0, 0)], (1, 1), **options)


def test_edges_are_antialiased():
    canvas = Canvas(20, 20)
    canvas.disc((10, 10), 6, (255, 255, 255))
    values = np.unique(canvas.over(np.zeros((20, 20, 3), np.uint8)))
    assert len(values) > 4


def test_dashes_and_gaps_have_the_same_length_and_go_on_around_corners():
    pieces = dashes([(0, 0), (5, 0), (5, 5)], 2)
    assert pieces == [[(0, 0), (2, 0)], [(4, 0), (5, 0)], [(5, 0), (5, 1)], [(5, 3), (5, 5)]]


def test_dashes_survive_a_stay_in_place():
    assert dashes([(1, 1), (1, 1)], 2) == []


def test_a_leg_bends_where_it_is_flown_and_its_mark_lies_where_the_photo_is_taken():
    image, grid = np.zeros((256, 256, 3), np.uint8), Grid(5, 5)
    legs = [[[(2.0, 0.0)], [(0.25, 1.5), (2.0, 3.75)]]]
    drawn = draw_team(image, grid, [[(2, 0), (2, 4)]], None, scale=2, legs=legs).astype(int)

    def shows(row: float, col: float, colour=PATH_A) -> bool:
        y, x = (round(2 * (52 * side + 24)) for side in (row, col))
        return bool((abs(drawn[y - 3 : y + 4, x - 3 : x + 4] - colour).max(axis=-1) < 40).any())

    assert all(shows(row, col) for row, col in [(1.125, 0.75), (0.25, 1.5), (1.125, 2.625), (2.1, 3.75)])
    assert not shows(2, 2), "the straight way"
