"""Areas are checked when made, fitted to a grid without stretching, and cut into pieces without overlap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.area import (
    SearchArea,
    corners,
    crop_ground,
    cut_pieces,
    fit,
    paper_size,
    piece_name,
    piece_size,
    tile_of,
    white_pixels,
)
from airloc.errors import AirlocError
from airloc.grid import Grid


def plain(height: int, width: int, *, masked: bool = False) -> SearchArea:
    image = np.zeros((height, width, 3), dtype=np.uint8)
    return SearchArea("plain", image, np.ones((height, width), dtype=np.bool_) if masked else None, (100.0, 200.0))


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(AirlocError, match=r"'x'.*9 x 8 px.*20 x 10 px"):
        SearchArea("x", np.zeros((10, 20, 3), dtype=np.uint8), np.zeros((8, 9), dtype=np.bool_))


@pytest.mark.parametrize("image", [np.zeros((9, 9), np.uint8), np.zeros((9, 9, 3)), np.zeros((9, 9, 4), np.uint8)])
def test_an_array_that_is_not_rgb_is_refused(image: np.ndarray) -> None:
    with pytest.raises(AirlocError, match="height, width, 3"):
        SearchArea("x", image)


@pytest.mark.parametrize("size", [(47, 200), (200, 47)])
def test_an_image_smaller_than_a_cell_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(AirlocError, match="48 px"):
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


def test_an_area_of_the_right_size_is_not_resampled() -> None:
    area = plain(256, 256)
    assert fit(area, Grid(5, 5)) is area


def test_areas_without_a_tile_are_their_own_source() -> None:
    assert plain(50, 50).source == "plain"


@given(st.tuples(st.integers(1, 60), st.integers(1, 60)), st.tuples(st.integers(1, 30), st.integers(1, 30)))
def test_pieces_cover_the_image_once_except_a_remainder(image: tuple[int, int], piece: tuple[int, int]) -> None:
    covered = np.zeros(image, dtype=int)
    for top, left in corners(image, piece):
        assert covered[top : top + piece[0], left : left + piece[1]].shape == piece
        covered[top : top + piece[0], left : left + piece[1]] += 1
    height, width = image[0] - image[0] % piece[0], image[1] - image[1] % piece[1]
    assert (covered[:height, :width] == 1).all()
    assert covered.sum() == height * width


def test_the_papers_tile_gives_nine_areas_of_5x5_and_four_of_7x7() -> None:
    assert len(corners((1500, 1500), paper_size(Grid(5, 5)))) == 9
    assert len(corners((1500, 1500), paper_size(Grid(7, 7)))) == 4


@given(st.integers(100, 2000), st.integers(1, 9), st.integers(2, 9))
def test_pieces_have_the_aspect_of_the_grid(side: int, rows: int, cols: int) -> None:
    grid = Grid(rows, cols)
    height, width = piece_size(side, grid)
    assert max(height, width) == side
    assert abs(height * grid.size[1] - width * grid.size[0]) <= max(grid.size)


def test_a_piece_carries_pixels_mask_ground_and_tile() -> None:
    values = np.arange(600 * 400 * 3, dtype=np.uint32).reshape(600, 400, 3).astype(np.uint8)
    whole = SearchArea("town.png", values, values[..., 0] > 99, (600.0, 400.0), split="val")
    pieces = list(cut_pieces(whole, (300, 200)))
    assert [piece.name for piece in pieces] == ["town_0_0.png", "town_0_200.png", "town_300_0.png", "town_300_200.png"]
    last = pieces[-1]
    assert (last.image == values[300:, 200:]).all()
    assert last.mask is not None
    assert (last.mask == (values[300:, 200:, 0] > 99)).all()
    assert (last.ground_m, last.tile, last.split) == ((300.0, 200.0), "town.png", "val")


def test_the_centre_of_a_known_ground_is_cropped() -> None:
    image = np.zeros((750, 750, 3), dtype=np.uint8)
    image[125:625, 125:625] = 255
    cropped = crop_ground(SearchArea("x", image, image[..., 0] > 0, ground_m=(750.0, 750.0)), (500.0, 500.0))
    assert cropped is not None
    assert cropped.image.shape == (500, 500, 3)
    assert cropped.image.min() == 255
    assert cropped.mask is not None
    assert cropped.mask.all()
    assert cropped.ground_m == (500.0, 500.0)


def test_an_area_of_smaller_or_unknown_ground_is_not_cropped() -> None:
    image = np.zeros((60, 60, 3), dtype=np.uint8)
    assert crop_ground(SearchArea("x", image), (10.0, 10.0)) is None
    assert crop_ground(SearchArea("x", image, ground_m=(60.0, 60.0)), (61.0, 10.0)) is None


def test_only_pure_white_counts_as_white() -> None:
    image = np.full((10, 10, 3), 254, dtype=np.uint8)
    image[0, :3] = 255
    image[1, 0] = (255, 255, 254)
    assert white_pixels(image) == 3


@given(st.text("abc_123. ", min_size=1, max_size=8), st.integers(0, 9999), st.integers(0, 9999))
def test_the_name_of_a_piece_contains_its_tile(stem: str, top: int, left: int) -> None:
    assert tile_of(piece_name(f"{stem}x.png", (top, left))) == f"{stem}x"


def test_other_names_have_no_tile() -> None:
    assert tile_of("town.jpg") == tile_of("_1_2.jpg") == tile_of("town_7.jpg") == ""
