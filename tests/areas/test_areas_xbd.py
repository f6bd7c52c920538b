"""xBD images are areas; subsets, pairs and building masks follow its names and labels."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.xbd import Xbd, draw_mask, parse_polygons, read_labels
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(5, 5)
HOUSE = "POLYGON ((0 0, 512 0, 512 512, 0 512, 0 0))"


def names(source: Xbd) -> list[str]:
    return [record.path.stem.removesuffix("_disaster") for record in source.records()]


def write(
    folder: Path, event: str, number: int, *, suffix: str = "png", kinds: tuple[str, ...] = ("pre", "post")
) -> None:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for when in kinds:
        image = np.full((64, 64, 3), number, dtype=np.uint8)
        Image.fromarray(image).save(folder / "images" / f"{event}_{number:08d}_{when}_disaster.{suffix}")


def label(folder: Path, name: str, *wkt: str, size: int = 1024) -> Path:
    (folder / "labels").mkdir(exist_ok=True)
    features = [{"properties": {"feature_type": "building"}, "wkt": text} for text in wkt]
    path = folder / "labels" / f"{name}.json"
    path.write_text(json.dumps({"features": {"xy": features}, "metadata": {"width": size, "height": size}}))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "hurricane-michael", 1)
    write(tmp_path, "hurricane-michael", 2, suffix="jpg")
    write(tmp_path, "socal-fire", 7)
    write(tmp_path, "palu-tsunami", 3, kinds=("post",))
    (tmp_path / "images" / "notes.txt").write_text("not an image")
    Image.new("RGB", (64, 64)).save(tmp_path / "images" / "unrelated.png")
    return tmp_path


def test_subsets_are_the_papers(root: Path) -> None:
    assert names(Xbd(root)) == ["hurricane-michael_00000001_pre", "hurricane-michael_00000002_pre"]
    assert names(Xbd(root, "disaster")) == ["palu-tsunami_00000003_post", "socal-fire_00000007_post"]
    assert names(Xbd(root, "post")) == ["hurricane-michael_00000001_post", "hurricane-michael_00000002_post"]
    assert names(Xbd(root, "before")) == ["socal-fire_00000007_pre"]
    assert len(names(Xbd(root, "all"))) == 7
    assert Xbd(root).count_areas() == {"pre": 2, "disaster": 2}


def test_one_image_is_one_area(root: Path) -> None:
    areas = list(Xbd(root, "all").areas(GRID))
    assert {area.image.shape for area in areas} == {(256, 256, 3)}
    assert all(area.mask is None and area.ground_m is None for area in areas)
    assert {(area.tile, area.split) for area in areas if "michael" not in area.name} == {
        ("palu-tsunami_00000003", "test"),
        ("socal-fire_00000007", "test"),
    }


def test_pairs_are_matched_by_name(root: Path) -> None:
    ((area, goal),) = Xbd(root, "disaster").pairs(GRID)
    assert (area.name, goal.name) == (
        "socal-fire_00000007_post_disaster.png",
        "socal-fire_00000007_pre_disaster.png",
    )
    ((earlier, later),) = Xbd(root, "disaster").record_pairs()
    assert (earlier.name, later.name) == (goal.name, area.name)
    assert len(Xbd(root, "pre").record_pairs()) == 2
    assert len(Xbd(root, "all").record_pairs()) == 3


def test_every_nth_image_of_the_training_event_validates(root: Path) -> None:
    dataset = Xbd(root, validation_every=2)
    assert [record.split for record in dataset.records()] == ["train", "val"]
    assert names(Xbd(root, split="val", validation_every=2)) == ["hurricane-michael_00000002_pre"]


def test_subfolders_are_searched_and_can_be_chosen(tmp_path: Path) -> None:
    write(tmp_path / "tier1", "hurricane-michael", 1)
    write(tmp_path / "hold", "hurricane-michael", 2)
    write(tmp_path / "hold", "hurricane-michael", 1)
    assert len(Xbd(tmp_path).scan()) == 4
    assert len(Xbd(tmp_path, tiers=("tier1",)).scan()) == 2
    assert names(Xbd(tmp_path, tiers=("tier1",))) == ["hurricane-michael_00000001_pre"]


def test_labels_become_masks_at_the_size_of_the_image(root: Path) -> None:
    label(root, "socal-fire_00000007_post_disaster", HOUSE)
    masks = {area.name: area.mask for area in Xbd(root, "disaster").areas(GRID)}
    mask = masks["socal-fire_00000007_post_disaster.png"]
    assert mask is not None
    assert mask[:120, :120].all()
    assert not mask[140:].any()
    assert masks["palu-tsunami_00000003_post_disaster.png"] is None


def test_other_features_are_not_buildings(tmp_path: Path) -> None:
    path = label(tmp_path, "x", HOUSE)
    path.write_text(path.read_text().replace('"building"', '"road"'))
    assert not read_labels(path, (64, 64)).any()


@pytest.mark.parametrize("text", ["", "{}", '{"features": {"xy": [{"wkt": "POINT (1 1)"}]}}', "[1]"])
def test_broken_labels_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(AirlocError, match=r"labels\.json"):
        read_labels(tmp_path / "labels.json", (64, 64))


@pytest.mark.parametrize(
    "wkt", ["POINT (1 1)", "POLYGON ((0 0, 1 1))", "POLYGON ((a b, c d, e f))", "POLYGON ((1, 2, 3))"]
)
def test_text_that_is_not_a_polygon_is_refused(tmp_path: Path, wkt: str) -> None:
    with pytest.raises(AirlocError, match=r"x\.json"):
        read_labels(label(tmp_path, "x", wkt), (64, 64))


def test_no_buildings_give_an_empty_mask(tmp_path: Path) -> None:
    mask = read_labels(label(tmp_path, "x", "POLYGON EMPTY"), (64, 48))
    assert mask.shape == (64, 48)
    assert not mask.any()


def test_holes_stay_open_and_hide_no_other_building() -> None:
    court = "POLYGON ((0 0, 20 0, 20 20, 0 20, 0 0), (5 5, 15 5, 15 15, 5 15, 5 5))"
    inner = "POLYGON ((8 8, 12 8, 12 12, 8 12, 8 8))"
    mask = draw_mask(parse_polygons(inner) + parse_polygons(court), (30, 30))
    assert (mask[2, 2], mask[6, 6], mask[10, 10], mask[25, 25]) == (True, False, True, False)


def test_multipolygons_are_several_polygons() -> None:
    text = "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1)), ((9 9, 12 9, 12 12, 9 9)))"
    assert [len(polygon) for polygon in parse_polygons(text)] == [2, 1]
    assert parse_polygons("POLYGON Z ((0 0 5, 4 0 5, 4 4 5, 0 0 5))")[0][0][1] == (4.0, 0.0)


def test_a_missing_folder_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=r"nowhere.*airloc data fetch xbd"):
        Xbd(tmp_path / "nowhere").scan()
    with pytest.raises(AirlocError, match="tier9"):
        Xbd(tmp_path, tiers=("tier9",)).scan()


def test_the_real_subset_loads(data_root: Path) -> None:
    assert Xbd(data_root / "xbd").count_areas() == {"pre": 101, "disaster": 42}
    assert len(Xbd(data_root / "xbd", "all").record_pairs()) == 143
    assert len(list(Xbd(data_root / "xbd", "disaster").areas(GRID))) == 42
