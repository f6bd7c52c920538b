"""The images of Dubai are cut into test areas with building masks."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.dubai import Dubai, building_colours
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(2, 2)
LAND, MASK_COLOUR, CLASS_COLOUR = (132, 41, 246), (60, 16, 152), (208, 2, 27)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two scenes of one image each, of other sizes, under one file name."""
    for scene, size, colour in ((1, (250, 430), MASK_COLOUR), (2, (410, 200), CLASS_COLOUR)):
        for kind, name in (("images", "image_part_001.jpg"), ("masks", "image_part_001.png")):
            folder = tmp_path / f"Tile {scene}" / kind
            folder.mkdir(parents=True)
            pixels = np.full((*size, 3), LAND if kind == "masks" else 80, dtype=np.uint8)
            if kind == "masks":
                pixels[:200, :200] = colour
            Image.fromarray(pixels).save(folder / name)
    classes = [{"title": "Water", "color": "#50E3C2"}, {"title": "Building", "color": "#D0021B"}]
    (tmp_path / "classes.json").write_text(json.dumps({"classes": classes}))
    return tmp_path


def test_images_become_test_areas_with_unique_names(root: Path) -> None:
    areas = list(Dubai(root).areas(GRID))
    assert [area.name for area in areas] == [
        "Tile 1 image_part_001_0_0.jpg",
        "Tile 1 image_part_001_0_200.jpg",
        "Tile 2 image_part_001_0_0.jpg",
        "Tile 2 image_part_001_200_0.jpg",
    ]
    assert {(area.tile, area.split) for area in areas} == {("Tile 1", "test"), ("Tile 2", "test")}
    assert Dubai(root).count_areas() == {"test": 0}, "no image is as large as a 5 x 5 area"


def test_buildings_have_the_colour_of_the_masks_or_of_the_classes(root: Path) -> None:
    masks = [area.mask for area in Dubai(root).areas(GRID)]
    assert [mask is not None and bool(mask.all()) for mask in masks] == [True, False, True, False]
    assert building_colours(root) == [MASK_COLOUR, CLASS_COLOUR]


def test_without_classes_the_colour_of_the_masks_counts(root: Path) -> None:
    (root / "classes.json").unlink()
    assert building_colours(root) == [MASK_COLOUR]


@pytest.mark.parametrize("text", ["", "[]", '{"classes": [{"title": "Building", "color": "red"}]}'])
def test_broken_classes_are_refused(root: Path, text: str) -> None:
    (root / "classes.json").write_text(text)
    with pytest.raises(AirlocError, match=r"classes\.json"):
        list(Dubai(root).areas(GRID))


def test_white_pieces_are_dropped(root: Path) -> None:
    path = root / "Tile 1" / "images" / "image_part_001.jpg"
    image = np.asarray(Image.open(path)).copy()
    image[:48, :48] = 255
    Image.fromarray(image).save(path, quality=100)
    assert len(list(Dubai(root).areas(GRID))) == 3
    assert len(list(Dubai(root, max_white=10**9).areas(GRID))) == 4


def test_an_image_without_a_mask_gives_areas_without_one(root: Path) -> None:
    (root / "Tile 1" / "masks" / "image_part_001.png").unlink()
    assert [area.mask is None for area in Dubai(root).areas(GRID)] == [True, True, False, False]


def test_a_mask_of_another_size_is_refused(root: Path) -> None:
    Image.new("RGB", (9, 9)).save(root / "Tile 1" / "masks" / "image_part_001.png")
    with pytest.raises(AirlocError, match="is 9 x 9 px"):
        list(Dubai(root).areas(GRID))


def test_a_missing_folder_names_the_command(tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(AirlocError, match=rf"{folder.name}.*airloc data fetch dubai"):
            Dubai(folder).scan()


@pytest.mark.long  # `test_the_real_data_is_counted` counts the same areas without their masks
def test_the_real_set_gives_154_of_the_papers_196_areas(data_root: Path) -> None:
    dataset = Dubai(data_root / "dubai")
    areas = list(dataset.areas(Grid(5, 5)))
    assert len(dataset.scan()) == 72
    assert len(areas) == len({area.name for area in areas}) == 154
    assert Counter(area.mask is None for area in areas) == {False: 154}
    assert 0.1 < np.mean([area.mask.mean() for area in areas if area.mask is not None]) < 0.15
    assert len({area.tile for area in areas}) == 8
