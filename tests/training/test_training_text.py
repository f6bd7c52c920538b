"""The text network is trained from captions, resumes to the same weights, and turned areas have turned captions."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents.pretrained import load_text
from airloc.areas.captions import cell_facts
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.training import runs
from airloc.training import text as training
from airloc.training.augment import random_views
from airloc.training.text import (
    TextConfig,
    area_loss,
    drop_rows,
    fit_text,
    load_text_data,
    recall,
    train_text,
)
from airloc.training.text_data import (
    GRID,
    CaptionedImages,
    predict_mask,
    read_masked_images,
    turn_image,
    turn_land,
)
from airloc.vision.sentences import DIM, ROWS
from airloc.vision.text import TextNetwork
from untrained import untrained_text

CPU = torch.device("cpu")
SMALL = TextConfig(
    procedural=2, variants=2, masked=3, captions=1, width=8, features=16, steps=4, areas=2, goals=3, validate_every=2
)


@pytest.fixture(autouse=True)
def small_validation(monkeypatch):
    monkeypatch.setattr(training, "VALIDATION_AREAS", 1)


def test_a_land_cover_turns_with_its_image():
    ((area, land),) = Synthetic(count=1, seed=5, regime="coast").land_covers(GRID)
    for symmetry in range(8):
        turned = turn_land(land, symmetry)
        assert np.array_equal(turned.classes, turn_image(land.classes, symmetry))
    north, south = (cell_facts(turn_land(land, symmetry), GRID) for symmetry in (0, 2))
    assert [facts.get("N") for facts in north[5:10]] == [facts.get("S") for facts in south[15:20]]
    assert area.image.shape == (256, 256, 3)


def test_rows_are_dropped_but_never_all():
    torch.manual_seed(0)
    rows = torch.randn(400, ROWS, DIM)
    rows[:200, 1:] = 0
    rows[200:, 5:] = 0
    left, whole = drop_rows(rows)
    kept = (left != 0).any(dim=2)
    assert kept.any(dim=1).all()
    assert kept[:200, 0].all()
    assert (~kept[200:, 0]).float().mean() == pytest.approx(0.5, abs=0.07)
    assert (~kept[200:, 1:5].any(dim=1)).float().mean() == pytest.approx(0.15, abs=0.07)
    assert (~whole[200:]).float().mean() == pytest.approx(0.35, abs=0.07)
    assert kept[200:][~whole[200:], 1:5].float().mean() == pytest.approx(0.7, abs=0.07)


def test_views_of_images_keep_their_size_and_differ():
    torch.manual_seed(0)
    images = torch.rand(6, 3, 24, 24)
    views = random_views(images)
    assert views.shape == images.shape
    assert (views - images).abs().mean(dim=(1, 2, 3)).min() > 0.01
    assert views.min() >= 0
    assert views.max() <= 1


def test_the_segmentation_unit_predicts_masks_of_images_without_any(world: Path):
    pairs = read_masked_images(world / "masa", (world / "masa",))
    assert all(mask.shape == image.shape[:2] and mask.dtype == bool for image, mask in pairs)
    assert predict_mask(np.zeros((100, 130, 3), dtype=np.uint8)).shape == (100, 130)


def test_recall_in_worked_numbers():
    network = untrained_text()
    images = torch.randint(0, 256, (3, 96, 96, 3), dtype=torch.uint8)
    table = torch.cat([torch.zeros(1, DIM), torch.randn(3, DIM)])
    rows = torch.zeros(3, 2, ROWS, dtype=torch.long)
    rows[..., 0] = torch.arange(1, 4)[:, None]
    found = recall(network, CaptionedImages(images, rows, table))
    assert found["text_to_image_5"] == found["image_to_text_10"] == 1.0
    assert 0 <= found["text_to_image_1"] <= 1


@pytest.mark.long
@pytest.mark.parametrize("stop", [2, 3])
def test_interrupted_and_resumed_it_ends_with_the_same_weights(world: Path, tmp_path: Path, monkeypatch, stop: int):
    monkeypatch.setattr(runs, "SAVE_SECONDS", 0.0)  # saves between validations, which are after steps 2 and 4
    config = replace(SMALL, masks=world / "masa")
    data = load_text_data(config, CPU)

    def weights(folder: str, *parts: int) -> dict[str, torch.Tensor]:
        """Train in parts: each is killed after its number of updates, so that no update is made twice."""
        for updates in parts:
            torch.manual_seed(0)
            network = TextNetwork(config.width, config.features)
            left = iter(range(updates))

            def loss(*given, left=left):
                if next(left, None) is None:
                    raise KeyboardInterrupt
                return area_loss(*given)

            monkeypatch.setattr(training, "area_loss", loss)
            with suppress(KeyboardInterrupt):
                fit_text(tmp_path / folder, config, network, data, lambda step, metrics: None)
        return network.state_dict()

    whole, resumed = weights("whole", 4), weights("resumed", stop, 4 - stop)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())
    logged = [[json.loads(line) for line in (tmp_path / one / "metrics.jsonl").open()] for one in ("whole", "resumed")]
    assert [line["walk_loss"] for line in logged[0]] == [line["walk_loss"] for line in logged[1]]


@pytest.mark.long
def test_a_training_writes_a_checkpoint_that_loads(world: Path, tmp_path: Path):
    steps = []
    config = replace(SMALL, masks=world / "masa", captioned_terms="the terms of these images")
    train_text(tmp_path, config, device=CPU, command="airloc train text", on_step=lambda *step: steps.append(step[1]))
    assert steps == [2, 4]
    network = load_text(str(tmp_path / "agent"))
    assert (network.width, network.features) == (8, 16)
    card = (tmp_path / "agent" / "card.md").read_text()
    assert "airloc train text" in card
    assert "the terms of these images" in card


def test_invalid_settings_are_refused():
    with pytest.raises(AirlocError, match="variants"):
        TextConfig(variants=9)
