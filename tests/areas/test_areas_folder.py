"""Any folder of pictures is a source, with or without an index."""

import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.folder import Folder, read_area, read_windows
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(5, 5)
HEADER = "image,mask,side_m,split\n"


def picture(path: Path, height: int = 256, width: int = 256, value: int = 90) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((height, width, 3), value, dtype=np.uint8)).save(path)
    return path


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """Three windows, one with a mask, with their index in the parent folder."""
    for name, side in (("7_0_0.png", 750), ("7_0_750.png", 600), ("8_0_0.png", 512)):
        picture(tmp_path / "images" / name, side, side)
    picture(tmp_path / "masks" / "7_0_0.png", 750, 750, 255)
    rows = "7_0_0.png,7_0_0.png,750,train\n7_0_750.png,,600,val\n8_0_0.png,,512,val\n"
    (tmp_path / "windows.csv").write_text(HEADER + rows)
    return tmp_path / "images"


def names(folder: Folder, grid: Grid = GRID) -> list[str]:
    return [area.name for area in folder.areas(grid)]


def test_each_picture_is_an_area_named_by_its_file(areas_folder: Path) -> None:
    (areas_folder / "notes.txt").write_text("no picture")
    picture(areas_folder / "deeper" / "f.png")
    areas = list(Folder(areas_folder).areas(GRID))
    assert [area.name for area in areas] == ["a.png", "b.png", "c d.png", "e.png"]
    assert all(area.image.shape == (256, 256, 3) and area.mask is None for area in areas)


def test_only_the_pictures_asked_for_are_read(areas_folder: Path) -> None:
    (areas_folder / "a.png").write_text("broken, but nobody asks for it")
    assert names(Folder(areas_folder, only=("e.png", "c d.png"))) == ["c d.png", "e.png"]


def test_unknown_names_are_named_with_their_folder(areas_folder: Path) -> None:
    with pytest.raises(AirlocError, match=rf"{areas_folder} has no picture 'x\.png' \(nor 1 others\)"):
        names(Folder(areas_folder, only=("y.png", "x.png")))


def test_pictures_are_cut_edge_to_edge(tmp_path: Path) -> None:
    picture(tmp_path / "big.png", 1100, 1050)
    areas = list(Folder(tmp_path, cut=500).areas(GRID))
    assert [area.name for area in areas] == ["big_0_0.png", "big_0_500.png", "big_500_0.png", "big_500_500.png"]
    assert {area.tile for area in areas} == {"big.png"}


def test_cuts_take_the_aspect_of_the_grid(tmp_path: Path) -> None:
    picture(tmp_path / "big.png", 400, 400)
    assert len(names(Folder(tmp_path, cut=400), Grid(2, 4))) == 2


def test_pictures_smaller_than_the_cut_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    picture(tmp_path / "large.png", 500, 500)
    picture(tmp_path / "small.png", 400, 500)
    with caplog.at_level(logging.WARNING):
        assert names(Folder(tmp_path, cut=500)) == ["large_0_0.png"]
    assert "1 of" in caplog.text
    assert "500 x 500 px" in caplog.text


@pytest.mark.parametrize(("cut", "problem"), [(600, "600 x 600 px"), (0, "Cannot cut"), (40, "smaller than one cell")])
def test_impossible_cuts_are_refused(tmp_path: Path, cut: int, problem: str) -> None:
    picture(tmp_path / "small.png", 500, 500)
    with pytest.raises(AirlocError, match=problem):
        names(Folder(tmp_path, cut=cut))


def test_the_index_gives_ground_split_mask_and_tile(town: Path) -> None:
    areas = {area.name: area for area in Folder(town).areas(GRID)}
    first = areas["7_0_0.png"]
    assert (first.ground_m, first.split, first.tile) == ((750.0, 750.0), "train", "7")
    assert first.mask is not None
    assert first.mask.all()
    assert areas["8_0_0.png"].mask is None


def test_the_index_may_lie_beside_the_pictures(town: Path) -> None:
    (town / "windows.csv").write_text(HEADER + "8_0_0.png,,100,test\n")
    assert names(Folder(town, split="test")) == ["8_0_0.png"]


def test_a_split_is_picked_by_the_index(town: Path) -> None:
    assert names(Folder(town, split="val")) == ["7_0_750.png", "8_0_0.png"]


def test_a_split_nobody_is_in_is_refused(town: Path) -> None:
    with pytest.raises(AirlocError, match="in the split 'test'"):
        names(Folder(town, split="test"))


@pytest.mark.parametrize(("cells", "count"), [(5, 3), (6, 2), (7, 1)])
def test_metres_a_cell_crop_the_centre_and_leave_small_ones_out(
    town: Path, cells: int, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    areas = list(Folder(town, cell_metres=100).areas(Grid(cells, cells)))
    assert len(areas) == count
    assert all(area.ground_m == (100.0 * cells, 100.0 * cells) for area in areas)
    assert ("left out" in caplog.text) == (count < 3)


def test_metres_a_cell_need_a_ground_size(areas_folder: Path) -> None:
    with pytest.raises(AirlocError, match=r"500 x 500 m asked for.*windows\.csv"):
        names(Folder(areas_folder, cell_metres=100))


def test_a_mask_of_another_size_is_refused(town: Path) -> None:
    picture(town.parent / "masks" / "7_0_0.png", 300, 300)
    with pytest.raises(AirlocError, match=r"mask of area '7_0_0\.png' is 300 x 300 px, its image 750 x 750 px"):
        names(Folder(town))


def test_a_mask_that_is_not_there_is_named(town: Path) -> None:
    (town.parent / "masks" / "7_0_0.png").unlink()
    with pytest.raises(AirlocError, match=r"There is no picture .*masks"):
        names(Folder(town))


@pytest.mark.parametrize("text", ["file,side\n", HEADER + "a.png,,wide,\n", HEADER + "a.png,,-3,\n", HEADER + ",,1,\n"])
def test_a_broken_index_is_refused(town: Path, text: str) -> None:
    (town.parent / "windows.csv").write_text(text)
    with pytest.raises(AirlocError, match=r"windows\.csv"):
        names(Folder(town))


def test_an_index_that_is_no_text_is_refused(town: Path) -> None:
    (town.parent / "windows.csv").write_bytes(b"image\n\xff\xfe\n")
    with pytest.raises(AirlocError, match="Cannot read the index"):
        read_windows(town)


def test_an_index_may_have_names_only(town: Path) -> None:
    (town.parent / "windows.csv").write_text("image\n7_0_0.png\n")
    assert read_windows(town)["7_0_0.png"].side_m is None


def test_a_picture_smaller_than_a_cell_is_named(tmp_path: Path) -> None:
    picture(tmp_path / "dot.png", 20, 20)
    with pytest.raises(AirlocError, match=r"'dot\.png' is 20 x 20 px, smaller than one cell"):
        names(Folder(tmp_path))


def test_ground_follows_the_aspect_of_the_picture(tmp_path: Path) -> None:
    path = picture(tmp_path / "wide.png", 100, 200)
    (tmp_path / "windows.csv").write_text("image,side_m\nwide.png,400\n")
    assert read_area(path, read_windows(tmp_path)["wide.png"]).ground_m == (200.0, 400.0)


def test_the_real_windows_load_with_splits_and_masks(data_root: Path) -> None:
    areas = list(Folder(data_root / "masa" / "images", cell_metres=100).areas(GRID))
    assert len(areas) == 96
    assert sum(area.split == "train" for area in areas) == 76
    assert sum(area.mask is not None for area in areas) == 32
    assert len({area.tile for area in areas}) == 50
    assert all(area.ground_m == (500.0, 500.0) for area in areas)


def test_real_mosaics_are_cut(data_root: Path) -> None:
    assert len(names(Folder(data_root / "austin", cut=500))) == 50
