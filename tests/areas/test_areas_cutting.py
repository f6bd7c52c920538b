"""Pieces cover a picture without overlap, and know where they came from."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airloc.areas.area import (
    SearchArea,
    corners,
    crop_ground,
    cut_pieces,
    paper_size,
    piece_name,
    piece_size,
    tile_of,
    white_pixels,
)
from airloc.grid import Grid


@given(st.tuples(st.integers(1, 60), st.integers(1, 60)), st.tuples(st.integers(1, 30), st.integers(1, 30)))
def test_pieces_cover_all_but_a_rest_exactly_once(picture: tuple[int, int], piece: tuple[int, int]) -> None:
    covered = np.zeros(picture, dtype=int)
    for top, left in corners(picture, piece):
        assert covered[top : top + piece[0], left : left + piece[1]].shape == piece
        covered[top : top + piece[0], left : left + piece[1]] += 1
    height, width = picture[0] - picture[0] % piece[0], picture[1] - picture[1] % piece[1]
    assert (covered[:height, :width] == 1).all()
    assert covered.sum() == height * width


def test_the_papers_tile_gives_nine_areas_of_5x5_and_four_of_7x7() -> None:
    assert len(corners((1500, 1500), paper_size(Grid(5, 5)))) == 9
    assert len(corners((1500, 1500), paper_size(Grid(7, 7)))) == 4


@given(st.integers(100, 2000), st.integers(1, 9), st.integers(2, 9))
def test_pieces_have_the_aspect_of_the_grid(cut: int, rows: int, cols: int) -> None:
    grid = Grid(rows, cols)
    height, width = piece_size(cut, grid)
    assert max(height, width) == cut
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


def test_too_little_or_unknown_ground_gives_nothing() -> None:
    image = np.zeros((60, 60, 3), dtype=np.uint8)
    assert crop_ground(SearchArea("x", image), (10.0, 10.0)) is None
    assert crop_ground(SearchArea("x", image, ground_m=(60.0, 60.0)), (61.0, 10.0)) is None


def test_only_pure_white_counts_as_white() -> None:
    image = np.full((10, 10, 3), 254, dtype=np.uint8)
    image[0, :3] = 255
    image[1, 0] = (255, 255, 254)
    assert white_pixels(image) == 3


@given(st.text("abc_123. ", min_size=1, max_size=8), st.integers(0, 9999), st.integers(0, 9999))
def test_the_name_of_a_piece_tells_its_tile(stem: str, top: int, left: int) -> None:
    assert tile_of(piece_name(f"{stem}x.png", (top, left))) == f"{stem}x"


def test_other_names_tell_no_tile() -> None:
    assert tile_of("town.jpg") == tile_of("_1_2.jpg") == tile_of("town_7.jpg") == ""
