import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.metrics import Overlap, pooled
from airloc.grid import Grid
from airloc.training import loop
from airloc.training import segmenter as segmenter_module
from airloc.training.data import DataConfig, validation_areas
from airloc.training.segmenter import GRID, SegmenterConfig, fold_overlaps, overlap, train_segmenter
from airloc.vision.embedder import Segmenter

CPU = torch.device("cpu")


class KilledError(Exception):
    """Stands for a kill between two saves."""


def silent(step, metrics):
    del step, metrics


def tiny(root, **settings) -> SegmenterConfig:
    return SegmenterConfig(
        **{"data": DataConfig(root=root, synthetic=0), "steps": 5, "batch": 4, "validate_every": 2, **settings}
    )


def fresh() -> Segmenter:
    torch.manual_seed(5)
    return Segmenter()


def same(a: Segmenter, b: Segmenter) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_interrupted_and_resumed_it_ends_with_the_same_weights_and_metrics(world, tmp_path):
    logged = []
    whole = train_segmenter(tmp_path / "whole", tiny(world), fresh(), on_step=lambda *step: logged.append(step))
    assert [step for step, _ in logged] == [2, 4, 5]
    assert all(math.isfinite(value) for _, metrics in logged for value in metrics.values())
    assert {"loss", "iou", "f1", "tp", "fp", "fn"} == logged[0][1].keys()

    def stop(step, metrics):
        if step == 2:
            raise KilledError

    with pytest.raises(KilledError):
        train_segmenter(tmp_path / "broken", tiny(world), fresh(), on_step=stop)
    resumed = train_segmenter(tmp_path / "broken", tiny(world), Segmenter(), on_step=silent)
    assert same(whole, resumed)
    assert not resumed.training
    assert (tmp_path / "broken" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()


def test_what_is_done_is_not_done_again(world, tmp_path, monkeypatch):
    done = train_segmenter(tmp_path, tiny(world, steps=1), fresh(), on_step=silent)
    monkeypatch.setattr(segmenter_module, "load_atlas", None)
    assert same(train_segmenter(tmp_path, tiny(world, steps=1), Segmenter(), on_step=silent), done)


def test_it_learns_that_buildings_are_bright(tmp_path):
    chance = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    lines = ["image,mask,split"]
    for n, split in enumerate(("train", "train", "val")):
        mask = chance.random((16, 16)).repeat(16, axis=0).repeat(16, axis=1) < 0.3
        image = np.where(mask, 200, 60)[..., None] + chance.integers(-30, 30, (256, 256, 3))
        Image.fromarray(image.astype(np.uint8)).save(tmp_path / "images" / f"{n}.png")
        Image.fromarray(mask).save(tmp_path / "masks" / f"{n}.png")
        lines.append(f"{n}.png,{n}.png,{split}")
    (tmp_path / "windows.csv").write_text("\n".join(lines))
    logged = []
    settings = {"steps": 60, "batch": 8, "learning_rate": 2e-2, "validate_every": 20}
    train_segmenter(tmp_path / "run", tiny(tmp_path, **settings), fresh(), on_step=lambda *step: logged.append(step[1]))
    assert logged[-1]["loss"] < 0.5 * logged[0]["loss"]
    assert logged[-1]["iou"] > 0.7
    assert logged[-1]["f1"] == pytest.approx(2 * logged[-1]["iou"] / (1 + logged[-1]["iou"]))


def test_overlap_counts_the_pixels_of_cells_and_not_of_gaps():
    class Left(torch.nn.Module):
        """Calls the left half of every patch a building."""

        def forward(self, patches: torch.Tensor) -> torch.Tensor:
            logits = torch.full_like(patches[:, :1], -1.0)
            logits[..., :24] = 1.0
            return logits

    mask = np.zeros(GRID.size, dtype=bool)
    for row, col in GRID.cells():
        left, top, _, bottom = GRID.box((row, col))
        mask[top:bottom, left + 12 : left + 36] = True
    mask[48:52] = True  # a gap
    area = SearchArea("a", np.zeros((*GRID.size, 3), dtype=np.uint8), mask)
    half = GRID.count * 48 * 12
    assert overlap(Left(), [area], CPU) == (half, half, half)
    assert overlap(Left(), [], CPU) is None


@pytest.fixture(scope="module")
def runs(tiles, tmp_path_factory) -> list[Path]:
    """A short run of the segmentation unit for each of two folds, where `airloc train` puts them."""
    folders = [tmp_path_factory.mktemp("run") for _ in range(2)]
    for fold, folder in enumerate(folders):
        config = SegmenterConfig(data=DataConfig(root=tiles, synthetic=0, fold=fold, folds=2), steps=1, batch=2)
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
    return validation_areas(DataConfig(root=Path(root), synthetic=0, fold=fold, folds=2), Grid())


def test_an_incomplete_cross_validation_is_refused(runs, tmp_path):
    first, second = (run / "segmenter" for run in runs)
    broken = shutil.copytree(second, tmp_path / "broken")
    (broken / "metrics.jsonl").write_text("")
    for folders, facts in (
        ([first], "--fold 1"),
        ([first, first], str(first)),
        ([tmp_path], str(tmp_path)),
        ([first, broken], "metrics.jsonl"),
    ):
        with pytest.raises(AirlocError, match=facts):
            fold_overlaps(folders)


def test_overlap_in_worked_numbers():
    assert (Overlap(2, 1, 1).iou, Overlap(2, 1, 1).f1) == (0.5, pytest.approx(2 / 3))
    assert (Overlap(0, 0, 0).iou, Overlap(0, 0, 0).f1) == (0, 0)


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"steps": 0}, "steps = 0"),
        ({"learning_rate": math.nan}, "learning_rate = nan"),
        ({"building_weight": -1.0}, "building_weight = -1"),
        ({"jitter": 1.5}, "jitter = 1.5"),
    ],
)
def test_invalid_settings_are_refused(settings, facts):
    with pytest.raises(AirlocError, match=facts):
        SegmenterConfig(**settings)


def test_until_convergence_it_stops_and_ends_with_the_best_weights(world, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "PATIENCE", 2)
    counts = iter(Overlap(hits, 5, 5) for hits in (1, 3, 2, 3))
    monkeypatch.setattr(segmenter_module, "overlap", lambda *_: next(counts, None))
    config, steps = tiny(world, steps=9, validate_every=1, schedule="constant", keep="best"), []
    found = train_segmenter(tmp_path / "run", config, fresh(), on_step=lambda step, _: steps.append(step))
    assert steps == [1, 2, 3, 4]
    expected = train_segmenter(tmp_path / "two", tiny(world, steps=2, schedule="constant"), fresh(), on_step=silent)
    assert same(found, expected)
    again = train_segmenter(tmp_path / "run", config, Segmenter(), on_step=None)
    assert same(again, expected), "a finished run is only loaded"
    unmasked = train_segmenter(tmp_path / "none", tiny(world, steps=2, keep="best"), fresh(), on_step=silent)
    assert not same(unmasked, fresh()), "without validation masks the last weights are kept"
