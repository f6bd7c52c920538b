"""NAIP tiles: the same city and number in another year is the same place."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.naip import Naip
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(2, 2)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two places in three years, one in one year, and a file of another name."""
    names = [f"long_beach_{year}_{number}" for year in (2016, 2018, 2020) for number in (1, 10)]
    for number, name in enumerate([*names, "bishop_2020_1", "readme"]):
        Image.fromarray(np.full((120, 120, 3), number, dtype=np.uint8)).save(tmp_path / f"{name}.png")
    return tmp_path


def test_every_two_years_of_a_place_are_a_pair_of_images(root: Path) -> None:
    pairs = [(earlier.name, later.name) for earlier, later in Naip(root).record_pairs()]
    assert len(pairs) == 6
    assert ("long_beach_2016_10.png", "long_beach_2018_10.png") in pairs
    assert all(earlier.split("_")[-1] == later.split("_")[-1] and earlier < later for earlier, later in pairs)


def test_each_area_has_one_goal_from_the_earliest_year(root: Path) -> None:
    goal_of = {area.name: goal.name for area, goal in Naip(root).pairs(GRID)}
    assert goal_of == {
        f"long_beach_{year}_{number}.png": f"long_beach_2016_{number}.png"
        for year in (2018, 2020)
        for number in (1, 10)
    }


def test_years_can_be_selected(root: Path) -> None:
    assert len(Naip(root, years=(2018, 2020)).records()) == 5
    assert {goal.name for _, goal in Naip(root, years=(2018, 2020)).pairs(GRID)} == {
        "long_beach_2018_1.png",
        "long_beach_2018_10.png",
    }
    with pytest.raises(AirlocError, match=r"1999.*2016, 2018, 2020"):
        Naip(root, years=(1999,)).records()


def test_one_city_can_be_kept_for_validation(root: Path) -> None:
    assert {record.split for record in Naip(root).records()} == {""}
    val = Naip(root, validation_city="bishop", split="val").records()
    assert [record.name for record in val] == ["bishop_2020_1.png"]


def test_the_ground_size_is_given_on_request(root: Path) -> None:
    assert {area.ground_m for area in Naip(root).areas(GRID)} == {None}
    (area, *_) = Naip(root, metres_per_pixel=0.6).images()
    assert area.ground_m == pytest.approx((72.0, 72.0))


def test_a_missing_folder_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=r"nowhere.*airloc data fetch naip"):
        Naip(tmp_path / "nowhere").scan()


def test_the_real_tiles_have_1422_pairs(data_root: Path) -> None:
    dataset = Naip(data_root / "naip")
    assert len(dataset.records()) == 1453
    assert len(dataset.record_pairs()) == 1422
