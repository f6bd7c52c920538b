"""Gathering: data as it is published, or as windows, becomes pictures to train on and areas to fly over."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.folder import read_windows
from airloc.areas.prepared import Prepared
from airloc.experiments.data import PICTURES, Sources
from airloc.experiments.graph import Task
from airloc.experiments.paper import Asked, Planner, outcomes
from airloc.experiments.runner import run_here
from airloc.experiments.store import Store
from airloc.grid import Grid
from airloc.reports.outcomes import Setup
from small_reproduction import TINY, Silent


def picture(path: Path, side: int, seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    blocks = np.random.default_rng(seed).integers(0, 200, (-(-side // 10), -(-side // 10), 3), dtype=np.uint8)
    Image.fromarray(blocks.repeat(10, axis=0).repeat(10, axis=1)[:side, :side]).save(path)


def mask(path: Path, side: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    marks = np.zeros((side, side), dtype=np.uint8)
    marks[::3] = 255
    Image.fromarray(marks).save(path)


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows of Massachusetts with splits, and pictures of xBD."""
    root = tmp_path_factory.mktemp("windows")
    rows = [("image", "mask", "side_m", "split")]
    for number, split in enumerate(("train", "train", "val", "val")):
        name = f"100_{number}_0.png"
        picture(root / "masa" / "images" / name, 720, number)
        mask(root / "masa" / "masks" / name, 720)
        rows.append((name, name if number != 1 else "", "720", split))
    with (root / "masa" / "windows.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    for number in range(11):
        picture(root / "xbd" / "images" / f"hurricane-michael_{number:08d}_pre_disaster.png", 160, number)
    for number, event in enumerate(("socal-fire", "midwest-flooding")):
        for when in ("pre", "post"):
            picture(root / "xbd" / "images" / f"{event}_{number:08d}_{when}_disaster.png", 380, number)
    return root


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Massachusetts in its published layout: tiles of nine pieces of 5 x 5."""
    root = tmp_path_factory.mktemp("published")
    for number, split in enumerate(("train", "val", "test")):
        picture(root / "masa" / split / f"tile_{number}.png", 1500, number)
        mask(root / "masa" / f"{split}_labels" / f"tile_{number}.png", 1500)
    return root


def gathered(task: Task, folder: Path) -> Path:
    store = Store(folder)
    run_here([task], store, Silent(), device="cpu", command="")
    return store.place(task)


def test_windows_are_copied_with_their_masks_and_splits(windows: Path, tmp_path: Path):
    folder = gathered(Sources(windows, TINY).pictures("masa"), tmp_path) / PICTURES
    found = read_windows(folder / "images")
    assert [window.split for window in found.values()] == ["train", "train", "val", "val"]
    assert [window.mask is not None and window.mask.is_file() for window in found.values()] == [True, False, True, True]
    before = windows / "masa" / "images" / "100_0_0.png"
    assert (folder / "images" / "100_0_0.png").read_bytes() == before.read_bytes()


def test_published_tiles_become_pieces_at_their_own_resolution(published: Path, tmp_path: Path):
    folder = gathered(Sources(published, TINY).pictures("masa"), tmp_path) / PICTURES
    found = read_windows(folder / "images")
    assert len(found) == 27 - 4, "all but the test split of 15 %"
    assert {window.side_m for window in found.values()} == {500.0}
    assert {window.split for window in found.values()} == {"train", "val"}
    with Image.open(folder / "images" / "00000.png") as first:
        assert first.size == (500, 500)
    assert all(window.mask is not None for window in found.values())


def test_areas_keep_their_tiles_and_a_limit_spreads_over_them(published: Path, tmp_path: Path):
    task = Sources(published, TINY).areas("masa", "test", "5x5")
    areas = list(Prepared(gathered(task, tmp_path)).areas(Grid(5, 5)))
    assert len(areas) == TINY.most == 2
    assert all(area.tile.startswith("tile_") and area.image.shape == (256, 256, 3) for area in areas)


def test_of_xbd_michael_before_the_storm_trains_and_the_others_after_theirs_are_flown_over(
    windows: Path, tmp_path: Path
):
    sources = Sources(windows, TINY)
    found = read_windows(gathered(sources.pictures("xbd-pre"), tmp_path / "a") / PICTURES / "images")
    assert [window.split for window in found.values()].count("val") == 1
    assert len(found) == 11
    areas = list(Prepared(gathered(sources.areas("xbd-disaster", "test", "7x7"), tmp_path / "b")).areas(Grid(7, 7)))
    assert [area.name.endswith("_post_disaster.png") for area in areas] == [True, True]


def test_windows_without_a_test_split_are_validated_and_tested_on_the_same(windows: Path):
    sources = Sources(windows, TINY)
    assert sources.areas("masa", "test", "5x5").key == sources.areas("masa", "val", "5x5").key
    assert any("stand for the paper's test set" in remark for remark in sources.remarks())


@pytest.mark.slow
def test_real_data_trains_both_ways_of_the_third_table(windows: Path, tmp_path: Path):
    plan = Planner(Sources(windows, TINY), TINY, seeds=1).plan(Asked(tables=(3,)))
    store = Store(tmp_path)
    run_here(plan.tasks, store, Silent(), device="cpu", command="airloc reproduce")
    found = outcomes(plan, store)
    for trained_on in ("masa", "xbd-pre"):
        assert found[Setup("airloc", "xbd-disaster", "test", trained_on=trained_on)].score["areas"] == 2
    segmenters = {task.key for task in plan.tasks if task.kind == "segmenter"}
    assert len(segmenters) == 1, "the segmentation unit is that of Massachusetts in both"
