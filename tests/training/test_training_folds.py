import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.areas.area import tile_of
from airloc.areas.folder import read_windows
from airloc.areas.images import list_images
from airloc.errors import AirlocError
from airloc.evaluation.metrics import Overlap, pooled
from airloc.grid import Grid
from airloc.training.data import Data, deal, fold_overlaps, leave_out, load_atlas, validation_areas
from airloc.training.segmenter import SegmenterConfig, train_segmenter
from airloc.vision.embedder import Segmenter

CPU = torch.device("cpu")
TILES = ("11_0_0", "11_5_0", "22_0_0", "33_0_0", "44_0_0")


@pytest.fixture(scope="module")
def tiles(world, tmp_path_factory) -> Path:
    """Five windows of four tiles, all with masks; the index has one for validation and none for testing."""
    root = tmp_path_factory.mktemp("tiles")
    for part, source in (("images", "0.png"), ("masks", "0.png")):
        (root / "masa" / part).mkdir(parents=True)
        for name in TILES:
            shutil.copy(world / "masa" / part / source, root / "masa" / part / f"{name}.png")
    rows = [f"{name}.png,{name}.png,640,{'val' if name.startswith('44') else 'train'}" for name in TILES]
    (root / "masa" / "windows.csv").write_text("\n".join(["image,mask,side_m,split", *rows]))
    return root


@given(st.sets(st.text(max_size=5)), st.integers(1, 6))
def test_tiles_are_dealt_evenly_and_by_their_names_alone(names, folds):
    dealt = deal(sorted(names), folds)
    assert dealt == deal(sorted(names, reverse=True), folds)
    sizes = Counter(dealt.values())
    assert dealt.keys() == names
    assert all(abs(sizes[a] - sizes[b]) <= 1 for a in range(folds) for b in range(folds))


def test_every_picture_is_left_out_once_and_never_apart_from_its_tile():
    split_of = {f"{tile}_{n}_0.jpg": "val" if tile % 5 == 0 else "train" for tile in range(10, 33) for n in range(2)}
    split_of |= {"99_0_0.jpg": "test"}
    masked = {name for name in split_of if name.startswith("1")}
    left_out = Counter()
    for fold in range(4):
        after = leave_out(split_of, masked, "train", fold, 4)
        assert after["99_0_0.jpg"] == "test"
        out = [name for name, split in after.items() if split == "val"]
        assert not {tile_of(name) for name in out} & {tile_of(n) for n, split in after.items() if split == "train"}
        assert len(masked & set(out)) in (4, 6)
        left_out.update(out)
    assert left_out == Counter(split_of.keys() - {"99_0_0.jpg"})


def test_a_fold_is_checked_on_and_not_trained_on(tiles):
    checked = []
    for fold in range(4):
        data = Data(root=tiles, synthetic=0, fold=fold)
        out = [area.name for area in validation_areas(data, Grid())]
        assert len(load_atlas(data, 48, CPU, masks=True).first) == 7 * (len(TILES) - len(out))
        checked += out
    assert sorted(checked) == sorted(f"{name}.png" for name in TILES)


def test_a_folder_without_splits_is_trained_on_in_every_fold(tiles, tmp_path):
    both = shutil.copytree(tiles, tmp_path / "both")
    shutil.copytree(both / "masa" / "images", both / "naip")
    sizes = [
        len(load_atlas(Data(root=root, synthetic=0, fold=1), 152, CPU).first) - 3 * extra
        for root, extra in ((tiles, 0), (both, len(TILES)))
    ]
    assert sizes[0] == sizes[1]
    with pytest.raises(AirlocError, match=r"no tiles to leave out as the fold 1.*--root"):
        validation_areas(Data(fold=1), Grid())


def test_where_no_index_names_splits_pictures_themselves_are_dealt(tiles, tmp_path):
    shutil.copytree(tiles / "masa" / "images", tmp_path / "xbd")
    data = Data(root=tmp_path, sets=("xbd",), weights=(1.0,), synthetic=0)
    out = [area.name for n in range(2) for area in validation_areas(replace(data, fold=n, folds=2), Grid())]
    assert sorted(out) == sorted(f"{name}.png" for name in TILES)
    assert len(load_atlas(replace(data, fold=0, folds=2), 152, CPU).first) < 3 * len(TILES)


@pytest.mark.parametrize(("fold", "folds"), [(4, 4), (-1, 4), (0, 1)])
def test_a_fold_that_is_not_there_is_refused(fold, folds):
    with pytest.raises(AirlocError, match=f"no fold {fold} among {folds}"):
        Data(fold=fold, folds=folds)


@pytest.fixture(scope="module")
def runs(tiles, tmp_path_factory) -> list[Path]:
    """A short run of the segmentation unit for each of two folds, where `airloc train` puts them."""
    folders = [tmp_path_factory.mktemp("run") for _ in range(2)]
    for fold, folder in enumerate(folders):
        config = SegmenterConfig(data=Data(root=tiles, synthetic=0, fold=fold, folds=2), steps=1, batch=2)
        train_segmenter(folder / "segmenter", config, Segmenter(), on_step=lambda *_: None)
    return folders


def test_counts_are_pooled_exactly_over_all_folds(runs, airloc, tmp_path):
    counts = fold_overlaps([run / "segmenter" for run in runs])
    for fold, run in enumerate(runs):
        logged = json.loads((run / "segmenter" / "metrics.jsonl").read_text().splitlines()[-1])
        assert counts[fold] == (logged["tp"], logged["fp"], logged["fn"])
        assert (counts[fold].iou, counts[fold].f1) == pytest.approx((logged["iou"], logged["f1"]))
    whole = pooled(counts.values())
    out = tmp_path / "folds.json"
    assert airloc("analyse", "folds", *runs, "--json", out).code == 0
    assert json.loads(out.read_text())["pooled"] == {**whole._asdict(), "iou": whole.iou, "f1": whole.f1}
    buildings = sum(int(area.mask.sum()) for fold in range(2) for area in _masked(runs[fold], fold))
    assert 0 < whole.tp + whole.fn <= buildings


def _masked(run: Path, fold: int):
    root = json.loads((run / "segmenter" / "config.json").read_text())["settings"]["data"]["root"]
    return validation_areas(Data(root=Path(root), synthetic=0, fold=fold, folds=2), Grid())


def test_what_is_no_complete_cross_validation_is_refused(runs, airloc, tmp_path):
    assert airloc("analyse", "folds", runs[0]).refused("The fold 1 is missing", "--fold 1")
    assert airloc("analyse", "folds", runs[0], runs[0]).refused("is not another fold")
    assert airloc("analyse", "folds", tmp_path).refused("is no run of a segmentation unit that left a fold out")
    broken = shutil.copytree(runs[1], tmp_path / "broken")
    (broken / "segmenter" / "metrics.jsonl").write_text("")
    assert airloc("analyse", "folds", runs[0], broken).refused("metrics.jsonl", "has no counts")


def test_every_masked_window_of_massachusetts_is_left_out_once(data_root):
    folder = data_root / "masa" / "images"
    windows = read_windows(folder)
    split_of = {path.name: windows[path.name].split for path in list_images(folder)}
    masked = {name for name, window in windows.items() if window.mask}
    folds = [leave_out(split_of, masked, "train", fold, 4) for fold in range(4)]
    out = [{name for name, split in fold.items() if split == "val"} for fold in folds]
    assert sum(len(masked & names) for names in out) == len(masked) == 32
    assert all(5 <= len(masked & names) <= 11 for names in out)
    assert all(18 <= len(names) <= 30 for names in out)


def test_overlap_in_worked_numbers():
    assert (Overlap(2, 1, 1).iou, Overlap(2, 1, 1).f1) == (0.5, pytest.approx(2 / 3))
    assert (Overlap(0, 0, 0).iou, Overlap(0, 0, 0).f1) == (0, 0)
