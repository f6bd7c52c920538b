"""Any folder of images is a dataset, with or without an index, and may hold pairs of images of the same place."""

import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.folder import Folder, partner, read_windows
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(5, 5)
HEADER = "image,mask,side_m,split\n"


def write(path: Path, height: int = 256, width: int = 256, value: int = 90) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((height, width, 3), value, dtype=np.uint8)).save(path)
    return path


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """Three windows, one with a mask, with their index in the parent folder."""
    for name, side in (("7_0_0.png", 750), ("7_0_750.png", 600), ("8_0_0.png", 512)):
        write(tmp_path / "images" / name, side, side)
    write(tmp_path / "masks" / "7_0_0.png", 750, 750, 255)
    rows = "7_0_0.png,7_0_0.png,750,train\n7_0_750.png,,600,val\n8_0_0.png,,512,val\n"
    (tmp_path / "windows.csv").write_text(HEADER + rows)
    return tmp_path / "images"


def names(folder: Folder, grid: Grid = GRID) -> list[str]:
    return [area.name for area in folder.areas(grid)]


def test_each_image_is_an_area_named_by_its_file(areas_folder: Path) -> None:
    (areas_folder / "notes.txt").write_text("not an image")
    write(areas_folder / "deeper" / "f.png")
    areas = list(Folder(areas_folder).areas(GRID))
    assert [area.name for area in areas] == ["a.png", "b.png", "c d.png", "e.png"]
    assert all(area.image.shape == (256, 256, 3) and area.mask is None for area in areas)


def test_only_the_selected_images_are_read(areas_folder: Path) -> None:
    (areas_folder / "a.png").write_text("broken, but not selected")
    assert names(Folder(areas_folder, names=("e.png", "c d.png"))) == ["c d.png", "e.png"]
    assert names(Folder(areas_folder, only=("e*", "c*"))) == ["c d.png", "e.png"]
    assert names(Folder(areas_folder, without=("a.png", "b*"))) == ["c d.png", "e.png"]


def test_unknown_names_are_named_with_their_folder(areas_folder: Path) -> None:
    with pytest.raises(AirlocError, match=rf"{areas_folder}.*'x\.png'.*1 more"):
        names(Folder(areas_folder, names=("y.png", "x.png")))


def test_images_are_cut_edge_to_edge(tmp_path: Path) -> None:
    write(tmp_path / "big.png", 1100, 1050)
    areas = list(Folder(tmp_path, cut=500).areas(GRID))
    assert [area.name for area in areas] == ["big_0_0.png", "big_0_500.png", "big_500_0.png", "big_500_500.png"]
    assert {area.tile for area in areas} == {"big.png"}


def test_cuts_take_the_aspect_of_the_grid(tmp_path: Path) -> None:
    write(tmp_path / "big.png", 400, 400)
    assert len(names(Folder(tmp_path, cut=400), Grid(2, 4))) == 2


def test_images_smaller_than_the_cut_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "large.png", 500, 500)
    write(tmp_path / "small.png", 400, 500)
    with caplog.at_level(logging.WARNING):
        assert names(Folder(tmp_path, cut=500)) == ["large_0_0.png"]
    assert "1 of" in caplog.text
    assert "500 x 500 px" in caplog.text


@pytest.mark.parametrize(("cut", "problem"), [(600, "600 x 600 px"), (0, "0 px"), (40, "48 px")])
def test_impossible_cuts_are_refused(tmp_path: Path, cut: int, problem: str) -> None:
    write(tmp_path / "small.png", 500, 500)
    with pytest.raises(AirlocError, match=problem):
        names(Folder(tmp_path, cut=cut))


def test_the_index_gives_ground_split_mask_and_tile(town: Path) -> None:
    areas = {area.name: area for area in Folder(town).areas(GRID)}
    first = areas["7_0_0.png"]
    assert (first.ground_m, first.split, first.tile) == ((750.0, 750.0), "train", "7")
    assert first.mask is not None
    assert first.mask.all()
    assert areas["8_0_0.png"].mask is None


def test_the_index_may_lie_beside_the_images(town: Path) -> None:
    (town / "windows.csv").write_text(HEADER + "8_0_0.png,,100,test\n")
    assert names(Folder(town, split="test")) == ["8_0_0.png"]


def test_a_split_is_picked_by_the_index(town: Path) -> None:
    assert names(Folder(town, split="val")) == ["7_0_750.png", "8_0_0.png"]


def test_an_empty_split_is_refused_with_those_that_exist(town: Path) -> None:
    with pytest.raises(AirlocError, match=r"'test'.*train, val"):
        names(Folder(town, split="test"))


@pytest.mark.parametrize(("cells", "count"), [(5, 3), (6, 2), (7, 1)])
def test_cell_metres_crops_the_centre_and_leaves_small_images_out(
    town: Path, cells: int, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    areas = list(Folder(town, cell_metres=100).areas(Grid(cells, cells)))
    assert len(areas) == count
    assert all(area.ground_m == (100.0 * cells, 100.0 * cells) for area in areas)
    assert ("left out" in caplog.text) == (count < 3)


def test_cell_metres_needs_a_ground_size(areas_folder: Path) -> None:
    with pytest.raises(AirlocError, match=r"500 x 500 m.*windows\.csv"):
        names(Folder(areas_folder, cell_metres=100))


def test_a_mask_of_another_size_is_refused(town: Path) -> None:
    write(town.parent / "masks" / "7_0_0.png", 300, 300)
    with pytest.raises(AirlocError, match=r"7_0_0\.png.*300 x 300 px.*750 x 750 px"):
        names(Folder(town))


def test_a_missing_mask_is_named(town: Path) -> None:
    (town.parent / "masks" / "7_0_0.png").unlink()
    with pytest.raises(AirlocError, match=r"masks/7_0_0\.png"):
        names(Folder(town))


@pytest.mark.parametrize("text", ["file,side\n", HEADER + "a.png,,wide,\n", HEADER + "a.png,,-3,\n", HEADER + ",,1,\n"])
def test_a_broken_index_is_refused(town: Path, text: str) -> None:
    (town.parent / "windows.csv").write_text(text)
    with pytest.raises(AirlocError, match=r"windows\.csv"):
        names(Folder(town))


def test_an_index_that_is_not_text_is_refused(town: Path) -> None:
    (town.parent / "windows.csv").write_bytes(b"image\n\xff\xfe\n")
    with pytest.raises(AirlocError, match=r"windows\.csv"):
        read_windows(town)


def test_an_index_may_have_names_only(town: Path) -> None:
    (town.parent / "windows.csv").write_text("image\n7_0_0.png\n")
    assert read_windows(town)["7_0_0.png"].side_m is None


def test_an_image_smaller_than_a_cell_is_named(tmp_path: Path) -> None:
    write(tmp_path / "dot.png", 20, 20)
    with pytest.raises(AirlocError, match=r"dot\.png.*20 x 20 px"):
        names(Folder(tmp_path))


def test_ground_size_follows_the_aspect_of_the_image(tmp_path: Path) -> None:
    write(tmp_path / "wide.png", 100, 200)
    (tmp_path / "windows.csv").write_text("image,side_m\nwide.png,400\n")
    assert [area.ground_m for area in Folder(tmp_path).images()] == [(200.0, 400.0)]


def test_the_ground_size_may_be_given_per_pixel(tmp_path: Path) -> None:
    write(tmp_path / "wide.png", 100, 200)
    assert [area.ground_m for area in Folder(tmp_path, metres_per_pixel=0.5).images()] == [(50.0, 100.0)]
    for metres in (0.0, float("nan"), float("inf")):
        with pytest.raises(AirlocError, match="--metres-per-pixel"):
            Folder(tmp_path, metres_per_pixel=metres)


@pytest.mark.parametrize("metres", [0, -1, float("nan"), float("inf")])
def test_cells_must_have_a_size(tmp_path: Path, metres: float) -> None:
    with pytest.raises(AirlocError, match="--cell-metres"):
        Folder(tmp_path, cell_metres=metres)


def test_images_keep_their_size_and_the_index(town: Path) -> None:
    images = {image.name: image for image in Folder(town).images()}
    assert images["7_0_0.png"].image.shape == (750, 750, 3)
    assert (images["7_0_0.png"].split, images["7_0_0.png"].mask is not None) == ("train", True)


def test_a_folder_is_read_from_its_subfolder_images(town: Path) -> None:
    assert names(Folder(town.parent)) == names(Folder(town))


def test_the_real_windows_load_with_splits_and_masks(data_root: Path) -> None:
    areas = list(Folder(data_root / "masa" / "images", cell_metres=100).areas(GRID))
    assert len(areas) == 96
    assert sum(area.split == "train" for area in areas) == 76
    assert sum(area.mask is not None for area in areas) == 32
    assert len({area.tile for area in areas}) == 50
    assert all(area.ground_m == (500.0, 500.0) for area in areas)


def test_real_mosaics_are_cut(data_root: Path) -> None:
    assert len(names(Folder(data_root / "austin", cut=500))) == 50


PRE, POST = "fire_00000001_pre_disaster.png", "fire_00000001_post_disaster.png"


def folder_of(path: Path, *names: str) -> Path:
    for name in names:
        write(path / name)
    return path


def pairs(areas: Path, goals: Path | None = None, **options: object) -> list[tuple[str, str]]:
    dataset = Folder(areas, goals=goals, **options)  # type: ignore[arg-type]
    return [(area.name, goal.name) for area, goal in dataset.pairs(GRID)]


@pytest.fixture
def day_and_night(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders of the same three places, the second dark, with an index beside the first."""
    day, night = tmp_path / "set" / "day", tmp_path / "night"
    day.mkdir(parents=True)
    night.mkdir()
    for number, name in enumerate(("a.png", "b.png", "c.png")):
        image = np.random.default_rng(number).integers(0, 256, size=(120, 120, 3), dtype=np.uint8)
        Image.fromarray(image).save(day / name)
        Image.fromarray(image // 4).save(night / name)
    (tmp_path / "set" / "windows.csv").write_text("image,side_m,split\na.png,500,train\nb.png,400,val\nc.png,500,val\n")
    return day, night


def test_goals_come_from_the_image_of_the_same_name_in_another_folder(day_and_night: tuple[Path, Path]) -> None:
    day, night = day_and_night
    found = list(Folder(day, goals=night).pairs(GRID))
    assert [(area.name, goal.name) for area, goal in found] == [(name, name) for name in ("a.png", "b.png", "c.png")]
    for area, goal in found:
        assert area.image.shape == goal.image.shape == (256, 256, 3)
        assert goal.image.mean() < area.image.mean() / 3


def test_pairs_are_selected_by_split_name_and_ground(day_and_night: tuple[Path, Path]) -> None:
    day, night = day_and_night
    assert pairs(day, night, split="val") == [("b.png", "b.png"), ("c.png", "c.png")]
    assert pairs(day, night, names=("c.png",)) == [("c.png", "c.png")]
    assert pairs(day, night, without=("a*",)) == [("b.png", "b.png"), ("c.png", "c.png")]
    assert pairs(day, night, cell_metres=100) == [("a.png", "a.png"), ("c.png", "c.png")]
    ((area, goal),) = Folder(day, goals=night, names=("a.png",), cell_metres=50).pairs(GRID)
    assert area.ground_m == goal.ground_m == (250, 250)
    with pytest.raises(AirlocError, match="'test'"):
        pairs(day, night, split="test")


def test_the_same_name_comes_before_the_partner(tmp_path: Path) -> None:
    areas, goals = folder_of(tmp_path / "areas", POST), folder_of(tmp_path / "goals", PRE, POST)
    assert pairs(areas, goals) == [(POST, POST)]


def test_without_the_same_name_the_partner_is_the_goal(tmp_path: Path) -> None:
    areas, goals = folder_of(tmp_path / "areas", PRE, POST), folder_of(tmp_path / "goals", PRE)
    assert sorted(pairs(areas, goals)) == [(POST, PRE), (PRE, PRE)]


def test_in_one_folder_only_the_post_disaster_images_are_areas(tmp_path: Path) -> None:
    both = folder_of(tmp_path / "both", PRE, POST, "town.png")
    (tmp_path / "link").symlink_to(both)
    assert pairs(both) == pairs(both, both) == pairs(both, tmp_path / "link") == [(POST, PRE)]


def test_a_missing_goal_is_named_with_its_folder(tmp_path: Path) -> None:
    areas, goals = folder_of(tmp_path / "areas", "a.png", POST), folder_of(tmp_path / "goals", "b.png")
    with pytest.raises(AirlocError, match=r"goals.*'a\.png'"):
        pairs(areas, goals, names=("a.png",))
    with pytest.raises(AirlocError, match=f"'{POST}' or '{PRE}'"):
        pairs(areas, goals, names=(POST,))


def test_an_unknown_area_is_named_with_its_folder(tmp_path: Path) -> None:
    areas, goals = folder_of(tmp_path / "areas", "a.png"), folder_of(tmp_path / "goals", "b.png")
    with pytest.raises(AirlocError, match=r"areas.*'b\.png'"):
        pairs(areas, goals, names=("b.png",))


def test_one_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    both = folder_of(tmp_path / "both", "a.png", PRE)
    with pytest.raises(AirlocError, match=r"both.*post_disaster"):
        pairs(both)
    with pytest.raises(AirlocError, match=PRE):
        pairs(both, names=(PRE,))


def test_an_area_without_an_image_before_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=PRE):
        pairs(folder_of(tmp_path / "both", POST))


def test_partners_are_mutual() -> None:
    assert (partner(PRE), partner(POST), partner("town.png")) == (POST, PRE, None)


def test_image_pairs_leave_images_without_a_partner_out(tmp_path: Path) -> None:
    both = folder_of(tmp_path / "both", PRE, POST, "flood_00000002_pre_disaster.png", "town.png")
    assert [(earlier.name, later.name) for earlier, later in Folder(both).record_pairs()] == [(PRE, POST)]
    with pytest.raises(AirlocError, match="both"):
        list(Folder(both, only=("town*",)).record_pairs())


def test_the_real_pairs_are_all_found(data_root: Path) -> None:
    assert len(Folder(data_root / "xbd" / "images").record_pairs()) == 143
