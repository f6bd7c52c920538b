"""Conditions: what they change, what they leave, and how mirrors move cells."""

import numpy as np
import pytest

from airloc.areas.area import SearchArea, fit
from airloc.areas.synthetic import generate
from airloc.evaluation.conditions import CONDITIONS, jpeg
from airloc.grid import Grid
from airloc.task.cells import cut_patches

GRID = Grid(3, 3)
SEEN_AT_ONCE = ("mirrored", "transposed")


@pytest.fixture(scope="module")
def area() -> SearchArea:
    """A procedural area, which was never compressed, at the size of the grid."""
    return SearchArea("town.png", generate(3, size=GRID.size, regime="suburb").image)


def boundary_steps(image: np.ndarray, period: int = 8) -> np.ndarray:
    """Return the mean step between neighbouring columns, by the position of the right one modulo a period."""
    steps = np.abs(np.diff(image.astype(float), axis=1)).mean(axis=(0, 2))
    return np.array([steps[(np.arange(len(steps)) + 1) % period == position].mean() for position in range(period)])


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_condition_keeps_the_size_and_repeats_with_its_seed(name: str, area: SearchArea):
    once, twice = (CONDITIONS[name].apply(name, area, GRID, seed=4) for _ in range(2))
    assert once.image.shape == (*GRID.size, 3)
    assert once.image.dtype == np.uint8
    assert np.array_equal(once.image, twice.image)
    assert not np.array_equal(once.image, area.image)


@pytest.mark.parametrize("name", [name for name in CONDITIONS if name not in SEEN_AT_ONCE])
def test_no_condition_but_a_mirror_hides_the_ground(name: str, area: SearchArea):
    changed = CONDITIONS[name].apply(name, area, GRID, seed=0).image
    assert np.corrcoef(changed.ravel(), area.image.ravel())[0, 1] > 0.85


def test_the_block_grid_lies_where_the_phase_says(area: SearchArea):
    rng = np.random.default_rng(0)
    aligned = jpeg(area.image, rng, quality=30)
    moved = jpeg(area.image, rng, quality=30, phase=(3, 3))
    assert boundary_steps(aligned).argmax() == 0
    assert boundary_steps(moved).argmax() == 5  # the first block is three pixels shorter


def test_cells_are_compressed_alone_and_the_gap_is_not(area: SearchArea):
    changed = CONDITIONS["jpeg-50-cells"].apply("jpeg-50-cells", area, GRID, seed=0).image
    gap = slice(GRID.cell, GRID.pitch)
    assert np.array_equal(changed[gap], area.image[gap])
    rng = np.random.default_rng(0)
    for before, after in zip(cut_patches(area.image, GRID), cut_patches(changed, GRID), strict=True):
        assert np.array_equal(jpeg(before, rng, quality=50), after)


def test_areas_are_changed_before_they_are_resampled_to_the_grid():
    large = SearchArea("large.png", generate(3, size=(250, 250), regime="suburb").image)
    changed = CONDITIONS["jpeg-50"].apply("jpeg-50", large, GRID, seed=0)
    saved = SearchArea("large.png", jpeg(large.image, np.random.default_rng(0), quality=50))
    assert np.array_equal(changed.image, fit(saved, GRID).image)


@pytest.mark.parametrize("name", ["mirrored", "transposed"])
def test_mirrors_take_the_cells_with_them(name: str, area: SearchArea):
    condition = CONDITIONS[name]
    after = cut_patches(condition.apply(name, area, GRID, seed=0).image, GRID)
    before = cut_patches(area.image, GRID)
    for cell in GRID.cells():
        moved = tuple(condition.move_cells(np.array(cell), GRID).tolist())
        expected = before[GRID.index(cell)][:, ::-1] if name == "mirrored" else before[GRID.index(cell)].swapaxes(0, 1)
        assert np.array_equal(after[GRID.index(moved)], expected)
