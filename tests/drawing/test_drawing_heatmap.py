import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from airloc.drawing.heatmap import belief_strip, draw_belief, percent, stack_vertically
from airloc.drawing.palette import luminance
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(2, 3)


def area() -> np.ndarray:
    return np.full((*GRID.size, 3), (60, 120, 60), dtype=np.uint8)


def corner(picture: np.ndarray, row: int, col: int) -> float:
    """Luminance of a cell away from its number, at scale 1."""
    red, green, blue = (int(v) for v in picture[52 * row + 4, 52 * col + 4])
    return luminance((red, green, blue))


@settings(max_examples=20, deadline=None)
@given(
    belief=arrays(np.float64, (2, 3), elements=st.floats(0, 1)),
    position=st.tuples(st.integers(-3, 4), st.integers(-3, 4)),
)
def test_any_belief_and_position_is_drawn_in_one_shape_for_one_margin(belief, position):
    picture = draw_belief(area(), GRID, belief, position=position, goal=(0, 0), scale=1, margin=1)
    assert picture.shape == (100 + 2 * 52 + 29, 152 + 2 * 52, 3)


def test_more_probable_cells_are_brighter():
    picture = draw_belief(area(), GRID, [[0.0, 0.1, 0.2], [0.3, 0.4, 0.0]], scale=1)
    seen = [corner(picture, *divmod(index, 3)) for index in range(5)]
    assert seen == sorted(seen)
    assert corner(picture, 1, 2) == seen[0]


def test_visited_cells_show_what_was_seen_and_so_does_the_position():
    picture = draw_belief(area(), GRID, np.full((2, 3), 1 / 6), visited=[(0, 0)], position=(1, 1), scale=1)
    assert picture[10, 10].tolist() == [60, 120, 60]
    assert picture[52 + 10, 52 + 10].tolist() == [60, 120, 60]
    assert picture[10, 52 + 10].tolist() != [60, 120, 60]


def test_the_same_top_gives_the_same_colour_to_the_same_probability_in_all_frames():
    one = draw_belief(area(), GRID, [[0.2, 0.8, 0], [0, 0, 0]], top=0.8, scale=1)
    two = draw_belief(area(), GRID, [[0.2, 0.3, 0.5], [0, 0, 0]], top=0.8, scale=1)
    assert corner(one, 0, 0) == corner(two, 0, 0)


def test_a_flat_belief_does_not_look_certain():
    grid = Grid(5, 5)
    image = np.zeros((*grid.size, 3), np.uint8)
    flat = draw_belief(image, grid, np.full((5, 5), 0.04), scale=1)
    sure = np.zeros((5, 5))
    sure[0, 0] = 1
    assert corner(flat, 0, 0) < 0.3 * corner(draw_belief(image, grid, sure, scale=1), 0, 0)


@pytest.mark.parametrize(
    "belief", [np.zeros((3, 2)), np.full((2, 3), np.nan), np.full((2, 3), -0.1), np.full((2, 3), 1.2), np.zeros(6)]
)
def test_what_is_no_belief_is_refused(belief):
    with pytest.raises(AirlocError):
        draw_belief(area(), GRID, belief)


@pytest.mark.parametrize("top", [0, -1, 2, float("nan")])
def test_a_top_that_is_no_probability_is_refused(top):
    with pytest.raises(AirlocError):
        draw_belief(area(), GRID, np.zeros((2, 3)), top=top)


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0, "0 %"), (1, "100 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (0.00051, "0.1 %"), (1e-9, "<0.1 %")],
)
def test_percent_is_short_and_never_hides_that_something_is_left(chance, text):
    assert percent(chance) == text


def test_a_strip_lays_frames_in_a_row_with_captions_above():
    frames = [np.full((56, 30, 3), value, np.uint8) for value in (10, 20, 30)]
    plain, named = belief_strip(frames), belief_strip(frames, ["one", "two", "a very long caption"])
    assert plain.shape == (56, 122, 3)
    assert named.shape == (56 + 24, 122, 3)
    assert np.array_equal(named[24:], plain)
    assert plain[0, 0, 0] == 10
    assert plain[0, 121, 0] == 30


def test_a_strip_may_have_rows_and_pictures_of_other_sizes_are_stacked_on_white():
    frames = [np.full((50, 30, 3), value, np.uint8) for value in (10, 20, 30)]
    strip = belief_strip(frames, columns=2)
    assert strip.shape == (116, 76, 3)
    assert strip[70, 0].tolist() == [30, 30, 30]
    assert strip[70, 50].tolist() == [255, 255, 255]
    assert stack_vertically([frames[0], frames[0][:, :10]], gap=0)[75, 20].tolist() == [255, 255, 255]


def test_a_path_shows_what_was_seen_with_its_marks_and_ends_at_the_position():
    belief, path = np.full((2, 3), 1 / 6), [(0, 0), (1, 1), (0, 2)]
    drawn = draw_belief(area(), GRID, belief, path=path, scale=1)
    plain = draw_belief(area(), GRID, belief, visited=path[:2], position=path[-1], scale=1)
    for row, col in path:
        assert drawn[52 * row + 40, 52 * col + 24].tolist() == [60, 120, 60]
    assert np.array_equal(drawn[:30, 104:110], plain[:30, 104:110]), "the position is outlined alike"
    changed = (drawn != plain).any(axis=2)
    assert [changed[52 * row + 14 : 52 * row + 34, 52 * col + 14 : 52 * col + 34].any() for row, col in path] == [
        True
    ] * 3


def test_a_goal_on_the_path_shares_its_cell_with_the_number():
    belief = np.full((2, 3), 1 / 6)
    away, found = (
        draw_belief(area(), GRID, belief, path=[(0, 0), (0, 1)], goal=goal, scale=1) for goal in ((1, 1), (0, 1))
    )
    yellow = np.array([255, 200, 40])
    for picture, row in ((away, 1), (found, 0)):
        cell = picture[52 * row + 6 : 52 * row + 42, 52 + 6 : 52 + 42]
        assert (np.abs(cell.astype(int) - yellow).max(axis=2) < 12).sum() > 30, "the disc of the letter G"


def test_the_legend_tells_colours_that_end_below_the_largest_probability():
    belief = [[0.9, 0.1, 0], [0, 0, 0]]
    ends, all_there = (draw_belief(area(), GRID, belief, top=top, scale=2)[200:] for top in (0.4, None))
    assert ends.shape == all_there.shape
    assert not np.array_equal(ends, all_there)


def test_an_empty_strip_and_missing_captions_are_refused():
    for frames, captions in [([], None), ([area()], ["a", "b"])]:
        with pytest.raises(AirlocError):
            belief_strip(frames, captions)


def test_numbers_are_left_out_where_cells_are_too_small_for_them():
    grid = Grid(2, 3, cell=20, gap=2)
    image = np.full((*grid.size, 3), 60, dtype=np.uint8)
    cell = draw_belief(image, grid, np.full((2, 3), 1 / 6), scale=1)[:20, :20]
    assert len(np.unique(cell.reshape(-1, 3), axis=0)) == 1
