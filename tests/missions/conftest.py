"""Fixtures of the missions tests."""

import numpy as np
import pytest

from airloc.areas.area import SearchArea
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from browser_pages import chromium, open_page  # noqa: F401
from field_files import ground, write_projected
from field_server import SearchGround

GRID = Grid(5, 5)


@pytest.fixture(scope="session")
def areas() -> list[SearchArea]:
    """Four synthetic areas under a 5 x 5 grid."""
    return list(Synthetic(count=4, seed=5).areas(GRID))


@pytest.fixture(scope="session")
def patches(areas: list[SearchArea]) -> np.ndarray:
    """The patches of the first area, (25, 48, 48, 3)."""
    return cut_patches(areas[0].image, GRID)


@pytest.fixture(scope="session")
def search_ground(tmp_path_factory: pytest.TempPathFactory) -> SearchGround:
    """A search area of 4 x 4 cells inside an image of 9 x 9."""
    return SearchGround(write_projected(tmp_path_factory.mktemp("ground") / "ground.tif", ground(9)))
