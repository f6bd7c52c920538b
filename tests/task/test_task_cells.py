import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.cells import ORIENTATIONS, CellTable, cut_patches, flip_cells, flip_image

grids = st.builds(Grid, st.integers(1, 4), st.integers(2, 4), st.integers(1, 9), st.integers(0, 3))


def image_for(grid: Grid, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*grid.size, 3), dtype=np.uint8)


@given(grids)
def test_patches_are_the_pixels_of_the_cells_boxes(grid: Grid):
    image = image_for(grid)
    patches = cut_patches(image, grid)
    for cell in grid.cells():
        left, top, right, bottom = grid.box(cell)
        assert np.array_equal(patches[grid.index(cell)], image[top:bottom, left:right])


def test_cells_outside_show_black():
    grid = Grid(3, 4, 8, 2)
    table = CellTable([image_for(grid)], grid)
    outside = torch.tensor([(-1, 0), (0, -1), (3, 0), (0, 4), (-9, 99)])
    assert table.patches(torch.zeros(5, dtype=torch.long), outside).max() == 0


def test_a_table_gathers_from_the_right_area():
    grid = Grid(3, 4, 8, 2)
    images = [image_for(grid, seed) for seed in range(3)]
    table = CellTable(images, grid)
    for area, image in enumerate(images):
        patch = table.patches(torch.tensor([area]), torch.tensor([(2, 1)]))[0].numpy()
        assert np.array_equal(patch, image[20:28, 10:18])


def test_the_mean_patch_leaves_the_black_row_out():
    grid = Grid(2, 2, 4, 0)
    white = np.full((8, 8, 3), 255, dtype=np.uint8)
    assert CellTable([white], grid).mean_patch().min() == 255


def test_areas_are_fitted_to_the_grid_on_the_way():
    table = CellTable.from_areas([SearchArea("x", image_for(Grid(5, 5, 60, 0)))], Grid(5, 5))
    assert table.array.shape == (26, 48, 48, 3)


def test_no_areas_and_images_of_another_size_are_refused():
    with pytest.raises(AirlocError):
        CellTable([], Grid(5, 5))
    with pytest.raises(AirlocError, match="256 x 256"):
        CellTable([np.zeros((10, 10, 3), dtype=np.uint8)], Grid(5, 5))


@given(grids, st.integers(0, ORIENTATIONS - 1))
def test_flipped_areas_hold_the_flipped_patches_at_the_flipped_cells(grid: Grid, orientation: int):
    image = image_for(grid)
    flipped = cut_patches(np.ascontiguousarray(flip_image(image, orientation)), grid)
    for cell in grid.cells():
        row, col = flip_cells(np.array(cell), orientation, grid).tolist()
        expected = flip_image(cut_patches(image, grid)[grid.index(cell)], orientation)
        assert np.array_equal(flipped[grid.index((row, col))], expected)
