"""Dataset tasks: published datasets and windows become images to train on and search areas."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.agents.policy import VARIANTS
from airloc.areas import load_dataset
from airloc.areas.folder import read_windows
from airloc.areas.prepared import Prepared
from airloc.evaluation.benchmarks.paper import Setup
from airloc.experiments import training
from airloc.experiments.datasets import AREAS_FOLDER, IMAGES_SET
from airloc.experiments.graph import Task
from airloc.experiments.paper import PaperPlanner, Selection
from airloc.experiments.paper_data import PRESETS, PaperData
from airloc.experiments.runner import run_tasks
from airloc.experiments.store import Store
from airloc.grid import Grid
from airloc.training.pipeline import PRESETS as TRAINING_PRESETS
from small_reproduction import TINY, RecordedProgress


def image(path: Path, side: int, seed: int = 0) -> None:
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
    """Windows of Massachusetts with splits, and images of xBD."""
    root = tmp_path_factory.mktemp("windows")
    rows = [("image", "mask", "side_m", "split")]
    for number, split in enumerate(("train", "train", "val", "val")):
        name = f"100_{number}_0.png"
        image(root / "masa" / "images" / name, 720, number)
        mask(root / "masa" / "masks" / name, 720)
        rows.append((name, name if number != 1 else "", "720", split))
    with (root / "masa" / "windows.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    for number in range(11):
        image(root / "xbd" / "images" / f"hurricane-michael_{number:08d}_pre_disaster.png", 160, number)
    for number, event in enumerate(("socal-fire", "midwest-flooding")):
        for when in ("pre", "post"):
            image(root / "xbd" / "images" / f"{event}_{number:08d}_{when}_disaster.png", 380, number)
    return root


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Massachusetts in its published layout: tiles of four pieces of 5 x 5."""
    root = tmp_path_factory.mktemp("published")
    for number, split in enumerate(("train", "val", "test")):
        image(root / "masa" / split / f"tile_{number}.png", 1000, number)
        mask(root / "masa" / f"{split}_labels" / f"tile_{number}.png", 1000)
    return root


def result(task: Task, folder: Path) -> Path:
    store = Store(folder)
    run_tasks([task], store, RecordedProgress())
    return store.result_folder(task)


def test_windows_keep_their_pixels_masks_and_splits(windows: Path, tmp_path: Path):
    folder = result(PaperData(windows, TINY).images("masa"), tmp_path) / IMAGES_SET
    found = read_windows(folder / "images")
    assert [window.split for window in found.values()] == ["train", "train", "val", "val"]
    assert [window.mask is not None and window.mask.is_file() for window in found.values()] == [True, False, True, True]
    before, after = windows / "masa" / "images" / "100_0_0.png", folder / "images" / "00000.png"
    assert np.array_equal(np.asarray(Image.open(before)), np.asarray(Image.open(after)))


def test_published_tiles_become_pieces_at_their_own_resolution(published: Path, tmp_path: Path):
    folder = result(PaperData(published, TINY).images("masa"), tmp_path) / IMAGES_SET
    found = read_windows(folder / "images")
    assert len(found) == 12 - 2, "all but the test split of 15 %"
    assert {window.side_m for window in found.values()} == {500.0}
    assert {window.split for window in found.values()} == {"train", "val"}
    with Image.open(folder / "images" / "00000.png") as first:
        assert first.size == (500, 500)
    assert all(window.mask is not None for window in found.values())


def test_areas_keep_their_tiles_and_a_limit_spreads_over_them(published: Path, tmp_path: Path):
    task = PaperData(published, TINY).areas("masa", "test", "5x5")
    areas = list(Prepared(result(task, tmp_path) / AREAS_FOLDER).areas(Grid(5, 5)))
    assert len(areas) == TINY.area_limit == 2
    assert all(area.tile.startswith("tile_") and area.image.shape == (256, 256, 3) for area in areas)


def test_of_xbd_michael_before_the_event_is_for_training_and_other_events_after_it_for_evaluation(
    windows: Path, tmp_path: Path
):
    data = PaperData(windows, TINY)
    found = read_windows(result(data.images("xbd-pre"), tmp_path / "a") / IMAGES_SET / "images")
    assert [window.split for window in found.values()].count("val") == 1
    assert len(found) == 11
    areas = list(
        Prepared(result(data.areas("xbd-disaster", "test", "7x7"), tmp_path / "b") / AREAS_FOLDER).areas(Grid(7, 7))
    )
    assert [area.name.endswith("_post_disaster.png") for area in areas] == [True, True]


def test_without_a_test_split_the_validation_windows_stand_in(windows: Path):
    data = PaperData(windows, TINY)
    assert data.areas("masa", "test", "5x5").key == data.areas("masa", "val", "5x5").key
    assert any("test set" in remark for remark in data.remarks())


@pytest.mark.slow
def test_real_data_trains_both_ways_of_the_third_table(windows: Path, tmp_path: Path):
    plan = PaperPlanner(PaperData(windows, TINY), seeds=1).plan(Selection(tables=(3,)))
    store = Store(tmp_path)
    run_tasks(plan.tasks, store, RecordedProgress(), command="airloc reproduce")
    found = plan.results(store)
    for trained_on in ("masa", "xbd-pre"):
        assert found[Setup("airloc", "xbd-disaster", "test", trained_on=trained_on)].record["areas"] == 2
    segmenters = {task.key for task in plan.tasks if task.kind.name == "segmenter"}
    assert len(segmenters) == 1, "the segmentation unit is that of Massachusetts in both"


@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_a_preset_trains_with_all_settings_of_the_training_of_that_name(windows: Path, preset: str, tmp_path: Path):
    data = PaperData(windows, PRESETS[preset])
    policy = PaperPlanner(data, seeds=5, seed=3).policy("airloc-priv", "masa")
    expected = TRAINING_PRESETS[preset]
    for task in (policy, policy.inputs["embedder"], policy.inputs["embedder"].inputs["segmenter"]):
        config = training._config(task.settings, tmp_path)
        assert config.for_segmenter == replace(expected.for_segmenter, data=config.data, seed=3)
    config = training._config(policy.settings, tmp_path)
    assert config == replace(expected, data=config.data, variant=VARIANTS["airloc-priv"], seeds=5, seed=3)
    assert (
        config.for_embedder
        == training._config(policy.inputs["embedder"].settings | {"variant": "airloc-priv"}, tmp_path).for_embedder
    )
    assert json.loads(json.dumps(policy.settings)) == policy.settings


def test_the_preset_tuned_trains_on_the_other_datasets_and_procedural_areas_too(windows: Path, tmp_path: Path):
    root = tmp_path / "data"
    shutil.copytree(windows / "masa", root / "masa")
    for number in range(2):
        image(root / "naip" / f"sacramento_2018_{number}.png", 64, seed=number)
    (root / "naip" / "windows.csv").write_text(
        "image,side_m,split\nsacramento_2018_0.png,154,\nsacramento_2018_1.png,154,\n"
    )
    tuned, paper = (PaperData(root, PRESETS[name]) for name in ("tuned", "paper"))
    written = result(tuned.images("masa"), tmp_path / "result")
    assert len(load_dataset(written / "naip").records()) == 2
    assert {area.ground_m for area in load_dataset(written / "naip").images()} == {(154.0, 154.0)}
    config = training._config(PaperPlanner(tuned).policy("airloc", "masa").settings, written)
    assert (config.data.datasets, config.data.weights, config.data.synthetic) == (("images", "naip"), (6.0, 2.0), 1500)
    alone = training._config(PaperPlanner(paper).policy("airloc", "masa").settings, written)
    assert (alone.data.datasets, alone.data.synthetic) == (("images",), 0)
    assert "more" not in paper.images("masa").settings
