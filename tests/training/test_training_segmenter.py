import math

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.area import SearchArea
from airloc.training import segmenter as segmenter_module
from airloc.training.data import Data
from airloc.training.segmenter import GRID, SegmenterConfig, overlap, train_segmenter
from airloc.vision.embedder import Segmenter

CPU = torch.device("cpu")


class KilledError(Exception):
    """Stands for a kill between two saves."""


def silent(step, figures):
    del step, figures


def tiny(root, **settings) -> SegmenterConfig:
    return SegmenterConfig(
        **{"data": Data(root=root, synthetic=0), "steps": 5, "batch": 4, "validate_every": 2, **settings}
    )


def fresh() -> Segmenter:
    torch.manual_seed(5)
    return Segmenter()


def same(a: Segmenter, b: Segmenter) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_interrupted_and_resumed_it_ends_with_the_same_weights_and_figures(world, tmp_path):
    told = []
    whole = train_segmenter(tmp_path / "whole", tiny(world), fresh(), on_step=lambda *step: told.append(step))
    assert [step for step, _ in told] == [2, 4, 5]
    assert all(math.isfinite(value) for _, figures in told for value in figures.values())
    assert {"loss", "iou", "f1", "tp", "fp", "fn"} == told[0][1].keys()

    def stop(step, figures):
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
    told = []
    settings = {"steps": 60, "batch": 8, "rate": 2e-2, "validate_every": 20}
    train_segmenter(tmp_path / "run", tiny(tmp_path, **settings), fresh(), on_step=lambda *step: told.append(step[1]))
    assert told[-1]["loss"] < 0.5 * told[0]["loss"]
    assert told[-1]["iou"] > 0.7
    assert told[-1]["f1"] == pytest.approx(2 * told[-1]["iou"] / (1 + told[-1]["iou"]))


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
