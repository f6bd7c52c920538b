import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.drawing.canvas import fit_text, text_width
from airloc.drawing.sheet import contact_sheet, draw_grid
from airloc.errors import AirlocError
from airloc.grid import Grid


def picture(height: int, width: int, value: int = 40) -> np.ndarray:
    return np.full((height, width, 3), value, dtype=np.uint8)


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=7),
    columns=st.integers(1, 9),
    caption=st.text(max_size=60),
)
def test_any_pictures_with_any_captions_make_a_sheet_as_wide_as_its_columns(sizes, columns, caption):
    sheet = contact_sheet([picture(*size) for size in sizes], [caption] * len(sizes), columns=columns, tile=32)
    used = min(columns, len(sizes))
    assert sheet.shape[1] == used * (32 + 6) + 6


def test_pictures_keep_their_aspect_and_the_ground_is_white():
    sheet = contact_sheet([picture(20, 80)], ["wide"], columns=1, tile=64)
    dark = (sheet[: 6 + 64] == 40).all(axis=2)
    assert dark.sum() == 64 * 16
    assert sheet[0, 0].tolist() == [255, 255, 255]


def test_a_row_is_as_high_as_its_highest_picture():
    high, flat = picture(64, 64), picture(16, 64)
    both, flats = (contact_sheet([first, flat], ["", ""], columns=2, tile=64) for first in (high, flat))
    assert both.shape[0] - flats.shape[0] == 64 - 16


def test_a_title_adds_a_head():
    plain, titled = (contact_sheet([picture(9, 9)], [""], columns=1, tile=64, title=title) for title in (None, "Title"))
    assert titled.shape[0] > plain.shape[0]
    assert np.array_equal(titled[-plain.shape[0] + 7 :], plain[7:])


@pytest.mark.parametrize(
    ("count", "captions", "columns", "tile"), [(0, 0, 1, 64), (2, 1, 1, 64), (1, 1, 0, 64), (1, 1, 1, 3)]
)
def test_what_makes_no_sheet_is_refused(count, captions, columns, tile):
    with pytest.raises(AirlocError):
        contact_sheet([picture(9, 9)] * count, [""] * captions, columns=columns, tile=tile)


def test_the_grid_shades_gaps_and_leaves_cells_as_they_are():
    grid = Grid(2, 2)
    drawn = draw_grid(picture(*grid.size, 200), grid)
    assert drawn.shape == (100, 100, 3)
    assert drawn[20, 20].tolist() == [200, 200, 200]
    assert drawn[50, 20].max() <= 100


@given(st.text(max_size=80), st.floats(5, 30), st.floats(0, 200))
def test_a_shortened_text_fits_or_is_an_ellipsis_alone(text, size, width):
    short = fit_text(text, size, width)
    assert short == "…" or text_width(short, size) <= width
