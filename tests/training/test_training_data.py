"""Training data: datasets, scales, folds, procedural areas and pairs."""

import math
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from airloc.areas import load_dataset
from airloc.areas.area import read_image, read_mask, tile_of
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training import data as data_module
from airloc.training.atlas import Atlas, resample
from airloc.training.data import (
    SYNTHETIC_FIRST,
    DataConfig,
    assign_folds,
    dataset_names,
    hold_out_fold,
    large_validation_areas,
    load_atlas,
    terms,
    training_areas,
    validation_areas,
)

pytestmark = pytest.mark.long

CPU = torch.device("cpu")
TILES = ("11_0_0", "11_5_0", "22_0_0", "33_0_0", "44_0_0")
SIDE = Grid(3, 3).size[0]


def save_image(folder: Path, name: str, colour: int, side: int = 200) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((side, side, 3), colour, dtype=np.uint8)).save(folder / name)


def shares(atlas: Atlas) -> dict[int, float]:
    """Sampling probability of each colour, for images of one colour."""
    each = torch.diff(atlas.cumulative, prepend=torch.zeros(1)).tolist()
    found: dict[int, float] = {}
    for share, first in zip(each, atlas.first.tolist(), strict=True):
        colour = int(atlas.pixels[first, 0])
        found[colour] = found.get(colour, 0.0) + share
    return found


def sizes(atlas: Atlas) -> list[tuple[int, int]]:
    return list(zip(atlas.height.tolist(), atlas.width.tolist(), strict=True))


def test_a_folder_of_images_is_used_at_its_own_and_coarser_resolutions(tmp_path):
    save_image(tmp_path, "a.png", 10)
    (tmp_path / "notes.txt").write_text("not an image")
    atlas = load_atlas(DataConfig(root=tmp_path, synthetic=0), 48, CPU)
    assert sizes(atlas) == [(200, 200), (150, 150), (100, 100), (70, 70)]
    assert sizes(load_atlas(DataConfig(root=tmp_path, synthetic=0), 152, CPU)) == [(200, 200)]


def test_datasets_are_sampled_by_their_weights_whatever_their_size(tmp_path):
    for n in range(3):
        save_image(tmp_path / "naip", f"{n}.png", 10)
    save_image(tmp_path / "masa" / "images", "a.png", 20)
    save_image(tmp_path / "elsewhere", "a.png", 30)
    atlas = load_atlas(
        DataConfig(root=tmp_path, datasets=("masa", "naip", "absent"), weights=(3.0, 1.0, 9.0), synthetic=0), 48, CPU
    )
    assert shares(atlas) == pytest.approx({20: 0.75, 10: 0.25})


def test_images_of_known_ground_size_are_resampled_to_cells_around_100_m(world):
    atlas = load_atlas(DataConfig(root=world, synthetic=0), 152, CPU)
    expected = [round(640 * 52 / (100 * share)) for share in (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)]
    assert sizes(atlas) == [(side, side) for side in expected] * 2


def test_a_ground_size_counts_without_a_split_too(tmp_path):
    save_image(tmp_path, "a.png", 10)
    (tmp_path / "windows.csv").write_text("image,side_m\na.png,400\n")
    atlas = load_atlas(DataConfig(root=tmp_path, synthetic=0), 152, CPU)
    assert sizes(atlas)[3] == (208, 208)


def test_what_is_validated_on_is_never_trained_on(world):
    data = DataConfig(root=world, synthetic=0)
    atlas = load_atlas(data, 256, CPU)
    grid = Grid(5, 5)
    (checked,) = validation_areas(data, grid)
    assert checked.name == "2.png"
    assert checked.ground_m == (500.0, 500.0)
    assert checked.image.shape == (256, 256, 3)
    trained = [read_image(world / "masa" / "images" / f"{n}.png") for n in range(2)]
    whole = {resample(image, size).tobytes() for image in trained for size in sizes(atlas)}
    rows = np.split(atlas.pixels.numpy(), atlas.first[1:].numpy())
    assert {row.tobytes() for row in rows} <= whole


def test_a_larger_grid_is_checked_on_ground_that_is_known_to_hold_it(tmp_path):
    for name in ("small.png", "large.png", "unknown.png"):
        save_image(tmp_path, name, 10, side=400)
    (tmp_path / "windows.csv").write_text(
        "image,side_m,split\nsmall.png,600,val\nlarge.png,800,val\nunknown.png,,val\n"
    )
    (found,) = large_validation_areas(DataConfig(root=tmp_path), Grid(7, 7))
    assert (found.name, found.ground_m, found.image.shape) == ("large.png", (700.0, 700.0), (360, 360, 3))
    assert len(validation_areas(DataConfig(root=tmp_path), Grid(5, 5))) == 3
    assert large_validation_areas(DataConfig(), Grid(7, 7)) == []


def test_eight_validation_windows_of_massachusetts_hold_7_by_7(data_root):
    assert len(large_validation_areas(DataConfig(root=data_root), Grid(7, 7))) == 8


def test_masks_are_stored_with_their_images(world):
    atlas = load_atlas(DataConfig(root=world, synthetic=0), 48, CPU, masks=True)
    at = sizes(atlas)[0]
    mask = resample(read_mask(world / "masa" / "masks" / "0.png").astype(np.uint8) * 255, at) >= 128
    assert np.array_equal(atlas.pixels[: at[0] * at[1], 3].numpy().reshape(at) > 0, mask)
    assert mask.any()


def test_images_without_masks_are_skipped_for_segmentation_or_refused(tmp_path, world):
    save_image(tmp_path / "naip", "a.png", 10)
    with pytest.raises(AirlocError, match=r"--synthetic 500"):
        load_atlas(DataConfig(root=tmp_path, synthetic=0), 48, CPU, masks=True)
    both = shutil.copytree(world, tmp_path / "both")
    save_image(both / "naip", "a.png", 10)
    assert len(sizes(load_atlas(DataConfig(root=both, synthetic=0), 48, CPU))) == 14 + 4
    assert len(sizes(load_atlas(DataConfig(root=both, synthetic=0), 48, CPU, masks=True))) == 14


def test_only_files_of_a_name_are_read(tmp_path):
    for n, name in enumerate(("michael_1_pre", "michael_1_post", "fire_1_pre")):
        save_image(tmp_path / "xbd" / "images", f"{name}.png", 10 * n + 10)
    (tmp_path / "xbd" / "images" / "fire_2_pre.png").write_text("broken, and never opened")
    data = DataConfig(root=tmp_path, datasets=("xbd",), weights=(1.0,), only="michael_*_pre*", synthetic=0)
    assert set(shares(load_atlas(data, 48, CPU))) == {10}
    with pytest.raises(AirlocError, match=r"flood\*.*--only"):
        load_atlas(replace(data, only="flood*"), 48, CPU)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (("masa", "naip"), ""),
        (("masa", "xbd"), "CC BY-NC-SA 4.0"),
        (("xbd", "deepglobe"), "CC BY-NC-SA 4.0 and the terms of DeepGlobe 2018 (research only)"),
        (("masa", "absent"), ""),
    ],
)
def test_terms_are_those_of_the_sets_that_are_there(tmp_path, sets, said):
    for name in ("masa", "naip", "deepglobe"):
        save_image(tmp_path / name, "a.png", 10)
    save_image(tmp_path / "xbd" / "images", "a.png", 10)
    assert terms(DataConfig(root=tmp_path, datasets=sets, weights=(1.0,) * len(sets))) == said
    assert terms(DataConfig(root=tmp_path / "xbd")) == "CC BY-NC-SA 4.0"
    assert terms(DataConfig()) == ""


def test_the_names_of_the_datasets_are_those_of_the_folders_that_are_there(tmp_path):
    for name in ("masa", "naip"):
        save_image(tmp_path / "all" / name, "a.png", 10)
    save_image(tmp_path / "photos", "a.png", 10)
    assert dataset_names(DataConfig(root=tmp_path / "all")) == "masa, naip"
    assert dataset_names(DataConfig(root=tmp_path / "photos")) == "photos"
    assert dataset_names(DataConfig()) == "none"


def test_a_folder_without_an_index_is_checked_on_unseen_procedural_areas(tmp_path):
    save_image(tmp_path, "a.png", 10)
    grid = Grid(1, 2)
    checked = validation_areas(DataConfig(root=tmp_path), grid)
    assert len(checked) == 40
    expected = generate(SYNTHETIC_FIRST - 40, grid.size, metres_per_px=100 / grid.pitch)
    assert np.array_equal(checked[0].image, expected.image)
    assert validation_areas(DataConfig(), grid) == checked


def test_synthetic_areas_alone_need_no_pool_when_few(monkeypatch):
    monkeypatch.setattr(data_module, "ProcessPoolExecutor", None)
    atlas = load_atlas(DataConfig(synthetic=2), 152, CPU)
    assert sizes(atlas) == [(320, 320), (240, 240), (160, 160)] * 2
    expected = generate(SYNTHETIC_FIRST, (320, 320), metres_per_px=2.0).image
    assert np.array_equal(atlas.pixels[: 320 * 320].numpy().reshape(320, 320, 3), expected)


@pytest.mark.slow
def test_many_synthetic_areas_are_made_by_several_processes():
    script = (
        "from airloc.training import data\n"
        "data.CHUNK = 2\n"
        "areas = data.generate_parallel(data._procedural_image, data.SYNTHETIC_FIRST, 3, 'areas')\n"
        "print(len(areas), areas[-1].name, areas[-1].image.sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    last = generate(SYNTHETIC_FIRST + 2, (320, 320), metres_per_px=2.0)
    assert done.stdout.split() == ["3", last.name, str(last.image.sum())]


def test_a_data_folder_that_is_not_there_is_refused():
    with pytest.raises(AirlocError, match="/no/such/folder"):
        load_atlas(DataConfig(root=Path("/no/such/folder")), 48, CPU)


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"datasets": ("a", "b"), "weights": (1.0,)}, r"2 datasets \(a, b\) and 1 weights.*--weights"),
        ({"weights": (1.0, math.nan, 1.0)}, "weights = nan"),
        ({"weights": (1.0, -1.0, 1.0)}, "weights = -1"),
        ({"synthetic": -1}, "synthetic = -1"),
        ({"synthetic_weight": math.inf}, "synthetic_weight = inf"),
        ({"fold": 4}, "fold 4 of 4"),
        ({"fold": -1}, "fold -1 of 4"),
        ({"fold": 0, "folds": 1}, "fold 0 of 1"),
    ],
)
def test_invalid_settings_are_refused(settings, facts):
    with pytest.raises(AirlocError, match=facts):
        DataConfig(**settings)


def test_data_without_images_to_train_on_is_refused(tmp_path, world):
    with pytest.raises(AirlocError, match="--synthetic"):
        load_atlas(DataConfig(synthetic=0), 48, CPU)
    with pytest.raises(AirlocError, match=f"{tmp_path}.*masa, naip, austin"):
        load_atlas(DataConfig(root=tmp_path), 48, CPU)
    with pytest.raises(AirlocError, match=r"'trian'.*--split"):
        load_atlas(DataConfig(root=world, split="trian"), 48, CPU)
    save_image(tmp_path, "small.png", 10, side=40)
    with pytest.raises(AirlocError, match="--root"):
        load_atlas(DataConfig(root=tmp_path, synthetic=0), 48, CPU)


@pytest.mark.parametrize("name", ["", "masa"])
def test_what_data_prepare_writes_can_be_trained_on(airloc, world, tmp_path, name):
    """Both as the data folder itself and as a dataset of a data folder."""
    folder = tmp_path / "data" / name
    folder.parent.mkdir(exist_ok=True)
    outcome = airloc("data", "prepare", "folder", "--path", world / "masa", "--out", folder)
    assert outcome.code == 0, outcome
    config = DataConfig(root=tmp_path / "data", synthetic=0)
    areas = list(load_dataset(folder, split="train").images())
    atlas = load_atlas(config, 256, CPU, masks=True)
    assert len(set(areas[0].image.shape[:2])) == 1
    assert (256, 256) in sizes(atlas) or len(atlas.first) > 0
    assert [area.name for area in validation_areas(config, Grid())] == ["2.png"]
    assert all(area.split == "train" for area in areas)


def test_a_published_layout_can_be_trained_on(tmp_path):
    """A fake of the layout of xBD: only the images of the training event before the disaster are used."""
    for n, event in enumerate(("hurricane-michael", "hurricane-matthew")):
        for day in ("pre", "post"):
            save_image(tmp_path / "xbd" / "train" / "images", f"{event}_0000000{n}_{day}_disaster.png", 10 + n)
    config = DataConfig(root=tmp_path, datasets=("xbd",), weights=(1.0,), synthetic=0)
    assert set(shares(load_atlas(config, 48, CPU))) == {10}
    assert terms(config) == "CC BY-NC-SA 4.0"


@given(st.sets(st.text(max_size=5)), st.integers(1, 6))
def test_tiles_are_assigned_evenly_and_by_their_names_alone(names, folds):
    assigned = assign_folds(sorted(names), folds)
    assert assigned == assign_folds(sorted(names, reverse=True), folds)
    sizes = Counter(assigned.values())
    assert assigned.keys() == names
    assert all(abs(sizes[a] - sizes[b]) <= 1 for a in range(folds) for b in range(folds))


def test_every_image_is_held_out_once_together_with_its_tile():
    split_of = {f"{tile}_{n}_0.jpg": "val" if tile % 5 == 0 else "train" for tile in range(10, 33) for n in range(2)}
    split_of |= {"99_0_0.jpg": "test"}
    masked = {name for name in split_of if name.startswith("1")}
    held_out = Counter()
    for fold in range(4):
        after = hold_out_fold(split_of, masked, "train", fold, 4)
        assert after["99_0_0.jpg"] == "test"
        out = [name for name, split in after.items() if split == "val"]
        assert not {tile_of(name) for name in out} & {tile_of(n) for n, split in after.items() if split == "train"}
        assert len(masked & set(out)) in (4, 6)
        held_out.update(out)
    assert held_out == Counter(split_of.keys() - {"99_0_0.jpg"})


def test_a_fold_is_validated_on_and_not_trained_on(tiles):
    held = []
    for fold in range(4):
        data = DataConfig(root=tiles, synthetic=0, fold=fold)
        out = [area.name for area in validation_areas(data, Grid())]
        assert len(load_atlas(data, 48, CPU, masks=True).first) == 7 * (len(TILES) - len(out))
        held += out
    assert sorted(held) == sorted(f"{name}.png" for name in TILES)


def test_a_folder_without_splits_is_trained_on_in_every_fold(tiles, tmp_path):
    both = shutil.copytree(tiles, tmp_path / "both")
    shutil.copytree(both / "masa" / "images", both / "naip")
    sizes = [
        len(load_atlas(DataConfig(root=root, synthetic=0, fold=1), 152, CPU).first) - 3 * extra
        for root, extra in ((tiles, 0), (both, len(TILES)))
    ]
    assert sizes[0] == sizes[1]
    with pytest.raises(AirlocError, match=r"fold 1.*--root"):
        validation_areas(DataConfig(fold=1), Grid())


def test_where_no_index_names_splits_images_themselves_are_assigned(tiles, tmp_path):
    shutil.copytree(tiles / "masa" / "images", tmp_path / "xbd")
    data = DataConfig(root=tmp_path, datasets=("xbd",), weights=(1.0,), synthetic=0)
    out = [area.name for n in range(2) for area in validation_areas(replace(data, fold=n, folds=2), Grid())]
    assert sorted(out) == sorted(f"{name}.png" for name in TILES)
    assert len(load_atlas(replace(data, fold=0, folds=2), 152, CPU).first) < 3 * len(TILES)


def test_every_masked_window_of_massachusetts_is_held_out_once(data_root):
    records = load_dataset(data_root / "masa").records()
    split_of = {record.name: record.split for record in records}
    masked = {record.name for record in records if record.mask is not None}
    folds = [hold_out_fold(split_of, masked, "train", fold, 4) for fold in range(4)]
    out = [{name for name, split in fold.items() if split == "val"} for fold in folds]
    assert sum(len(masked & names) for names in out) == len(masked) == 32
    assert all(5 <= len(masked & names) <= 11 for names in out)
    assert all(18 <= len(names) <= 30 for names in out)


def test_search_areas_are_the_centres_of_the_images_with_cells_of_100_m(world):
    config, grid = DataConfig(root=world, synthetic=0), Grid(5, 5)
    areas = training_areas(config, grid, limit=99)
    assert [area.image.shape for area in areas] == [(256, 256, 3)] * 2
    assert all(area.ground_m == (500.0, 500.0) for area in areas), "of 640 m"
    assert len(training_areas(config, grid, limit=1)) == 1
    atlas = load_atlas(config, 48, torch.device("cpu"), masks=True, crops="grid")
    assert atlas.height.tolist() == atlas.width.tolist() == [256, 256]
    assert np.array_equal(atlas.pixels[: 256 * 256, :3].view(256, 256, 3), areas[0].image)
    index, top, left = atlas.sample(500, 48, grid.pitch)
    assert sorted({*top.tolist(), *left.tolist()}) == [0, 52, 104, 156, 208], "the cells of the grid"
    assert set(index.tolist()) == {0, 1}
