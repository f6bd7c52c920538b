"""Areas are cut from a georeferenced image side by side, at the given ground size."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.geotiff import GeoTiff
from airloc.errors import AirlocError
from airloc.grid import Grid
from field_files import ground, write_geographic, write_projected


@pytest.mark.parametrize("write", [write_projected, write_geographic])
def test_areas_lie_side_by_side_and_show_their_ground(tmp_path: Path, write):
    image = ground(6)
    areas = list(GeoTiff(write(tmp_path / "ortho.tif", image), cell_metres=96.0).areas(Grid(2, 3)))
    assert [area.name for area in areas] == [f"ortho_{row}_{col}" for row in range(3) for col in range(2)]
    assert {area.source for area in areas} == {"ortho"}, "areas of one image are not independent"
    assert areas[0].ground_m == pytest.approx((2 * 104 - 8, 3 * 104 - 8))
    wanted = image[104 : 104 + 100, 156 : 156 + 152]
    assert np.corrcoef(areas[3].image.ravel().astype(float), wanted.ravel().astype(float))[0, 1] > 0.9


def test_areas_with_holes_are_left_out(tmp_path: Path):
    image = np.maximum(ground(4), 1)
    image[:100, :100] = 0
    areas = list(GeoTiff(write_projected(tmp_path / "a.tif", image, nodata=0), cell_metres=96.0).areas(Grid(2, 2)))
    assert [area.name for area in areas] == ["a_0_1", "a_1_0", "a_1_1"]


def test_images_for_training_are_the_largest_blocks_without_holes(tmp_path: Path):
    dataset = GeoTiff(write_projected(tmp_path / "a.tif", ground(7)), cell_metres=96.0)
    assert [image.image.shape for image in dataset.images()] == [(*Grid(7, 7).size, 3)]
    image = np.maximum(ground(4), 1)
    image[:100, :100] = 0
    dataset = GeoTiff(write_projected(tmp_path / "b.tif", image, nodata=0), cell_metres=96.0)
    assert [record.name for record in dataset.records()] == ["b_0_1", "b_1_0", "b_1_1"]
    for record, whole in zip(dataset.records(), dataset.images(), strict=True):
        assert (dataset.read(record).image == whole.image).all()


def test_an_image_that_is_too_small_is_named(tmp_path: Path):
    path = write_projected(tmp_path / "small.tif", ground(4))
    with pytest.raises(AirlocError, match=r"small\.tif"):
        list(GeoTiff(path, cell_metres=96.0).areas(Grid(5, 5)))


def test_the_command_shows_them(airloc, tmp_path: Path):
    path = write_projected(tmp_path / "ortho.tif", ground(6))
    outcome = airloc(
        "data", "show", "--out", tmp_path / "sheet.png", "--grid", "3x3", "geotiff", "--path", path, "--cell-metres", 96
    )
    assert outcome.code == 0, outcome
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 500
