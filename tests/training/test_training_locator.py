"""The training of the locator: goals lie where batches say, and the scores are those of the locator."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_locator
from airloc.errors import AirlocError
from airloc.training import locator as locator_module
from airloc.training import runs
from airloc.training.atlas import CropSampler
from airloc.training.data import DataConfig, PairConfig, load_pairs
from airloc.training.locator import (
    NEVER,
    SCALES,
    LocatorConfig,
    contrast_loss,
    correlate,
    train_locator,
    verification_loss,
)
from airloc.training.locator_batches import CROP, LocatorAugmentation, LocatorBatch, _middles, sample_batch
from airloc.vision.feature_map import FeatureMap
from airloc.vision.locator import _Photo, _Views
from airloc.vision.locator_network import LocatorNetwork

pytestmark = pytest.mark.long

CPU = torch.device("cpu")
PLAIN = LocatorAugmentation(
    turn=0, scale=1, footprint=(2, 2), change_probability=0, damage_probability=0, warp=0, jitter=0, error=0
)  # of the differences only position, softness and compression remain


class KilledError(Exception):
    """Stands for a kill between two saves."""


@pytest.fixture(scope="module")
def crops() -> CropSampler:
    return CropSampler(load_pairs(PairConfig(disaster_pairs=2), None, CPU, SCALES), CROP, 0)


@pytest.fixture(scope="module")
def network() -> LocatorNetwork:
    torch.manual_seed(0)
    return LocatorNetwork(4, 6).eval()


def tiny(**settings) -> LocatorConfig:
    settings = {
        "steps": 3,
        "batch": 4,
        "hard": 2,
        "width": 2,
        "channels": 3,
        "verifier": (3, 3),
        "validate_every": 1,
        **settings,
    }
    data = DataConfig(synthetic=2, datasets=(), weights=())
    return LocatorConfig(data=data, pairs=PairConfig(disaster_pairs=1, pairs_share=0.5), **settings)


def train(folder: Path, config: LocatorConfig, on_step=lambda *_: None) -> None:
    train_locator(folder, config, device=CPU, command="airloc train locator", on_step=on_step)


def test_a_goal_shows_the_ground_of_its_photo_at_the_offset(crops: CropSampler):
    torch.manual_seed(1)
    crops.imagery.pixels[:, 3:] = crops.imagery.pixels[:, :3]  # the same day
    batch = sample_batch(crops, 12, PLAIN)
    errors = []
    for photo, goal, seen, offset in zip(batch.photos, batch.goals, batch.goals_seen, batch.offset, strict=True):
        top, left = (round(48 + float(part) - 36) for part in offset)
        rows, cols = slice(max(0, -top), min(72, 96 - top)), slice(max(0, -left), min(72, 96 - left))
        below = photo[:, top + rows.start : top + rows.stop, left + cols.start : left + cols.stop]
        shown = seen[:, rows, cols].expand_as(below) > 0
        errors.append(float((below - goal[:, rows, cols])[shown].abs().mean()))
        moved = photo.roll(12, 2)[:, top + rows.start : top + rows.stop, left + cols.start : left + cols.stop]
        assert errors[-1] < 0.7 * float((moved - goal[:, rows, cols])[shown].abs().mean())
    assert np.median(errors) < 0.05


@pytest.mark.slow
def test_goals_show_squares_of_all_sizes_and_photos_show_rectangles(crops: CropSampler):
    batch = sample_batch(crops, 200, LocatorAugmentation())
    widths = batch.goals_seen.sum(dim=(1, 2, 3)).sqrt() / 48
    assert 0.6 < float(widths.min()) < 0.75
    assert 1.25 < float(widths.max()) < 1.5, "corners beyond the canvas are cut off"
    rows, cols = (batch.photos_seen.amax(dim=axis).sum(dim=(1, 2)) for axis in (3, 2))
    assert torch.equal(rows * cols, batch.photos_seen.sum(dim=(1, 2, 3)))
    assert 50 <= float(rows.min()) < 60 < 90 < float(rows.max()) <= 96


def test_the_scores_are_those_of_the_locator(network: LocatorNetwork, crops: CropSampler):
    torch.manual_seed(2)
    batch = sample_batch(crops, 4, LocatorAugmentation())
    with torch.no_grad():
        table = correlate(network, batch)
    features = FeatureMap({name: value.numpy() for name, value in network.state_dict().items()})
    for goal in range(3):
        views = _Views(np.zeros((48, 48, 3), np.uint8), features, [(0.0, 1.0)])
        pixels = batch.goals[goal].permute(1, 2, 0).numpy()[None]
        views._features, views._valid = features.encode(pixels, batch.goals_seen[goal].numpy() > 0)
        for photo in range(3):
            image = (batch.photos[photo] * 255).round().byte().permute(1, 2, 0).numpy()
            seen = batch.photos_seen[photo, 0].numpy() > 0
            encoded = _Photo(image, seen, features, border=96)
            score, wanted = views._scores(encoded)[0], table.scores[goal, photo].numpy()
            shown = (score > -1) & (wanted > NEVER)
            assert (shown == (wanted > NEVER)).mean() > 0.99
            assert score[shown] == pytest.approx(wanted[shown], abs=0.02)


def batch_of(offset: list[list[float]], place: list[int], crop: list[int] | None = None) -> LocatorBatch:
    empty, crops = torch.zeros(len(place), 1), torch.arange(len(place)) if crop is None else torch.tensor(crop)
    return LocatorBatch(empty, empty, empty, empty, torch.tensor(offset), torch.tensor(place), crops)


def test_the_contrast_is_lowest_where_every_goal_agrees_with_its_own_photo_at_its_offset():
    batch = batch_of([[0.0, 8.0], [-12.0, 0.0]], [0, 1])
    scores = torch.zeros(2, 2, 25, 25)
    flat, located = contrast_loss(scores, batch, 24.0)
    assert float(flat) == pytest.approx(1.5 * math.log(2 * 625 / 9), abs=0.01)
    assert float(located) == 0
    scores[0, 0, 12, 14] = scores[1, 1, 9, 12] = 1.0
    right, located = contrast_loss(scores, batch, 24.0)
    assert float(right) < 1e-3
    assert float(located) == 1
    elsewhere = scores.clone()
    elsewhere[0, 1, 0, 0] = 2.0
    wrong, located = contrast_loss(elsewhere, batch, 24.0)
    assert float(wrong) > 10
    assert float(located) == 0.5


@pytest.mark.parametrize(("crop", "negative"), [([0, 1], False), ([0, 0], True)])
def test_photos_of_one_place_are_negatives_only_if_they_lie_side_by_side_in_one_crop(crop: list[int], negative: bool):
    scores = torch.zeros(2, 2, 25, 25)
    scores[0, 0, 12, 14] = scores[1, 1, 9, 12] = 1.0
    scores[0, 1, 3, 3] = 2.0
    loss, located = contrast_loss(scores, batch_of([[0.0, 8.0], [-12.0, 0.0]], [4, 4], crop), 24.0)
    assert (float(loss) > 10) is negative
    assert float(located) == (0.5 if negative else 1)


def test_the_two_photos_of_a_crop_lie_side_by_side_and_no_goal_lies_in_the_other_one(crops: CropSampler):
    torch.manual_seed(3)
    middle = _middles(200, CPU).view(200, 2, 2)
    batch = sample_batch(crops, 6, PLAIN)
    assert batch.crop.tolist() == [0, 0, 1, 1, 2, 2]
    assert batch.place[::2].tolist() == batch.place[1::2].tolist()
    apart = middle[:, 1, 1] - middle[:, 0, 1]
    assert float(apart.min()) >= 2 * 48
    assert float(middle.abs().max()) + 48 <= CROP / 2, "photos lie in the crop"
    assert float(apart.min()) - LocatorAugmentation().offset * 48 > 48, "half a photo"


def test_the_verification_has_a_gradient_for_all_its_layers(network: LocatorNetwork, crops: CropSampler):
    batch = sample_batch(crops, 4, LocatorAugmentation())
    network.zero_grad()
    loss, correct = verification_loss(network, correlate(network, batch), batch, hard=2)
    loss.backward()
    assert 0 <= float(correct) <= 1
    layers = [*network.verifier, network.dense, network.answer, network.features, network.stem]
    assert all(float(layer.weight.grad.abs().max()) > 0 for layer in layers)


def test_interrupted_and_resumed_it_ends_with_the_same_weights(tmp_path: Path):
    logged = []
    train(tmp_path / "whole", tiny(), lambda *step: logged.append(step))
    assert [(stage, step) for stage, step, _ in logged] == [("locator", 1), ("locator", 2), ("locator", 3)]
    assert all(math.isfinite(value) for _, _, metrics in logged for value in metrics.values())

    def killed(stage, step, metrics):
        if step == 2:
            raise KilledError

    with pytest.raises(KilledError):
        train(tmp_path / "parts", tiny(), killed)
    train(tmp_path / "parts", tiny())
    whole, parts = (load_checkpoint(tmp_path / name / "locator") for name in ("whole", "parts"))
    assert all(torch.equal(whole.tensors[name], parts.tensors[name]) for name in whole.tensors)
    assert load_locator(whole).channels == 3
    assert "`airloc train locator`" in whole.card


def test_killed_between_validations_it_goes_on_from_a_save_of_the_last_30_seconds(tmp_path: Path, monkeypatch):
    config = tiny(validate_every=3)
    train(tmp_path / "whole", config)
    monkeypatch.setattr(runs, "SAVE_SECONDS", 0.0)
    updates = []

    def killed(*arguments):
        updates.append(0)
        if len(updates) == 3:
            raise KilledError
        return correlate(*arguments)

    monkeypatch.setattr(locator_module, "correlate", killed)
    with pytest.raises(KilledError):
        train(tmp_path / "broken", config)
    monkeypatch.setattr(locator_module, "correlate", correlate)
    assert runs.read_state(tmp_path / "broken" / "network" / "state.pt")[0] == 1
    train(tmp_path / "broken", config)
    metrics = [(tmp_path / name / "network" / "metrics.jsonl").read_bytes() for name in ("broken", "whole")]
    assert metrics[0] == metrics[1]


def test_a_config_out_of_bounds_is_refused():
    with pytest.raises(AirlocError, match="batch"):
        tiny(batch=2)
    with pytest.raises(AirlocError, match="even number"):
        tiny(batch=5)
    with pytest.raises(AirlocError, match="turn"):
        LocatorAugmentation(turn=90)


def test_a_checkpoint_of_another_kind_is_no_locator(tmp_path: Path):
    train(tmp_path, tiny(steps=1))
    checkpoint = load_checkpoint(tmp_path / "locator")
    checkpoint.config["kind"] = "belief"
    with pytest.raises(AirlocError, match="'belief', not 'locator'"):
        load_locator(checkpoint)
    checkpoint.config.update(kind="locator", width=0)
    with pytest.raises(AirlocError, match="width, channels and verifier"):
        load_locator(checkpoint)
    checkpoint.config.update(width=2, verifier=3)
    with pytest.raises(AirlocError, match="width, channels and verifier"):
        load_locator(checkpoint)
