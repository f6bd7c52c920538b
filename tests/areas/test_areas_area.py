"""Areas are checked when made, and fitted to a grid without stretching."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.area import SearchArea, fit
from airloc.errors import AirlocError
from airloc.grid import Grid


def plain(height: int, width: int, *, masked: bool = False) -> SearchArea:
    image = np.zeros((height, width, 3), dtype=np.uint8)
    return SearchArea("plain", image, np.ones((height, width), dtype=np.bool_) if masked else None, (100.0, 200.0))


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(AirlocError, match=r"mask of area 'x' is 9 x 8 px, its image 20 x 10 px"):
        SearchArea("x", np.zeros((10, 20, 3), dtype=np.uint8), np.zeros((8, 9), dtype=np.bool_))


@pytest.mark.parametrize("image", [np.zeros((9, 9), np.uint8), np.zeros((9, 9, 3)), np.zeros((9, 9, 4), np.uint8)])
def test_what_is_no_rgb_image_is_refused(image: np.ndarray) -> None:
    with pytest.raises(AirlocError, match="RGB bytes"):
        SearchArea("x", image)


@pytest.mark.parametrize("size", [(47, 200), (200, 47)])
def test_an_image_smaller_than_a_cell_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(AirlocError, match="smaller than one cell of 48 px"):
        fit(plain(*size), Grid(5, 5))


@settings(max_examples=40, deadline=None)
@given(st.integers(48, 300), st.integers(48, 300), st.integers(1, 5), st.integers(2, 5))
def test_fitted_areas_have_the_size_of_the_grid(height: int, width: int, rows: int, cols: int) -> None:
    grid = Grid(rows, cols)
    fitted = fit(plain(height, width, masked=True), grid)
    assert fitted.image.shape == (*grid.size, 3)
    assert fitted.mask is not None
    assert fitted.mask.all()


def test_the_centre_is_kept_and_the_ground_size_follows() -> None:
    area = plain(256, 512)
    area.image[:, 128:384] = 255
    fitted = fit(area, Grid(5, 5))
    assert fitted.image.min() == 255
    assert fitted.ground_m == (100.0, 100.0)


def test_an_area_of_the_right_size_is_not_touched() -> None:
    area = plain(256, 256)
    assert fit(area, Grid(5, 5)) is area


def test_areas_without_a_tile_are_their_own_source() -> None:
    assert plain(50, 50).source == "plain"
