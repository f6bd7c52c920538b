"""Which source a command's --areas stands for, and pairs of areas and goals."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.folder import Folder
from airloc.areas.pairs import Names
from airloc.areas.prepared import Prepared, write_prepared
from airloc.areas.registry import choose_source, load_pairs
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(5, 5)


def test_a_place_stands_for_its_source(areas_folder: Path, tmp_path: Path):
    assert choose_source(None, count=3, seed=4) == Synthetic(count=3, seed=4)
    folder = choose_source(areas_folder, split="val", cell_metres=100, only=["a.png"])
    assert folder == Folder(areas_folder, split="val", cell_metres=100, only=("a.png",))
    cache = tmp_path / "cache"
    write_prepared(Folder(areas_folder).areas(GRID), GRID, cache, source={})
    assert choose_source(cache, split="val") == Prepared(cache, split="val")


@pytest.mark.parametrize("metres", [0, -1, float("nan"), float("inf")])
def test_cells_have_a_size(areas_folder: Path, metres: float):
    with pytest.raises(AirlocError, match="above 0"):
        choose_source(areas_folder, cell_metres=metres)
    with pytest.raises(AirlocError, match="above 0"):
        load_pairs(areas_folder, areas_folder, GRID, cell_metres=metres)


def test_procedural_areas_have_no_splits_and_no_other_ground():
    for options in ({"split": "val"}, {"cell_metres": 100.0}):
        with pytest.raises(AirlocError, match="Give --areas too"):
            choose_source(None, **options)


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


def test_pairs_are_in_step(day_and_night: tuple[Path, Path]):
    flown, shown = load_pairs(*day_and_night, GRID)
    assert [area.name for area in flown] == [area.name for area in shown] == ["a.png", "b.png", "c.png"]
    assert all(area.image.shape == (256, 256, 3) for area in (*flown, *shown))
    assert all(b.image.mean() < a.image.mean() / 3 for a, b in zip(flown, shown, strict=True))


def test_pairs_can_be_chosen_by_split_by_name_and_by_ground(day_and_night: tuple[Path, Path]):
    flown, shown = load_pairs(*day_and_night, GRID, split="val")
    assert [area.name for area in flown] == [area.name for area in shown] == ["b.png", "c.png"]
    assert [area.name for area in load_pairs(*day_and_night, GRID, only=["c.png"])[0]] == ["c.png"]
    near, _ = load_pairs(*day_and_night, GRID, only=["a.png"], cell_metres=50)
    assert near[0].ground_m == (250, 250)
    with pytest.raises(AirlocError, match="split 'test'"):
        load_pairs(*day_and_night, GRID, split="test")
    with pytest.raises(AirlocError, match=r"b\.png is not known to cover"):
        load_pairs(*day_and_night, GRID, cell_metres=100)


def test_pairs_come_from_prepared_caches_too(day_and_night: tuple[Path, Path], tmp_path: Path):
    caches = tmp_path / "day-cache", tmp_path / "night-cache"
    for folder, cache in zip(day_and_night, caches, strict=True):
        write_prepared(Folder(folder).areas(GRID), GRID, cache, source={})
    for options in ({}, {"split": "val"}, {"only": ["c.png", "a.png"]}, {"names": Names(without=("a*",))}):
        wanted, got = load_pairs(*day_and_night, GRID, **options), load_pairs(*caches, GRID, **options)
        for side in (0, 1):
            assert [area.name for area in got[side]] == [area.name for area in wanted[side]]
            assert all(np.array_equal(a.image, b.image) for a, b in zip(got[side], wanted[side], strict=True))


def test_one_cache_may_hold_both_pictures_of_every_place(tmp_path: Path):
    write_prepared(Synthetic(count=2, disaster="any").areas(GRID), GRID, tmp_path / "pairs", source={})
    flown, shown = load_pairs(tmp_path / "pairs", tmp_path / "pairs", GRID)
    assert len(flown) == 2
    for after, before in zip(flown, shown, strict=True):
        assert (after.name, before.name) == (f"{after.tile}_post_disaster", f"{after.tile}_pre_disaster")
        assert after.tile == before.tile
        assert not np.array_equal(after.image, before.image)


def test_a_cache_goes_with_a_cache_and_is_cut_already(areas_folder: Path, tmp_path: Path):
    cache, other = tmp_path / "cache", tmp_path / "other"
    write_prepared(Folder(areas_folder).areas(GRID), GRID, cache, source={})
    shutil.copytree(areas_folder, other)
    for areas, goals in ((cache, other), (other, cache)):
        with pytest.raises(AirlocError, match="Prepare both, or neither"):
            load_pairs(areas, goals, GRID)
    with pytest.raises(AirlocError, match="cut already"):
        load_pairs(cache, cache, GRID, cell_metres=100)
    with pytest.raises(AirlocError, match="holds no pictures named"):
        load_pairs(cache, cache, GRID)
