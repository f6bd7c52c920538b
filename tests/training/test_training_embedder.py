import math

import numpy as np
import pytest
import torch

from airloc.errors import AirlocError
from airloc.grid import MOVES
from airloc.task.cells import cut_patches
from airloc.training import embedder as embedder_module
from airloc.training import loop
from airloc.training.atlas import Atlas
from airloc.training.augment import apply_symmetry
from airloc.training.data import DataConfig, load_atlas, training_areas, validation_areas
from airloc.training.embedder import (
    GRID,
    SPAN,
    Distortions,
    EmbedderConfig,
    accuracy,
    adjacent_pairs,
    neighbour_pairs,
    normalise_embedding,
    pair_directions,
    sample_blocks,
    sample_pairs,
    train_embedder,
)
from airloc.vision.embedder import RGB_MEAN, RGB_STD, Layers, PatchEncoder
from untrained import untrained_encoder

pytestmark = pytest.mark.long

CPU = torch.device("cpu")


class KilledError(Exception):
    """Stands for a kill between two saves."""


def silent(step, metrics):
    del step, metrics


def tiny(world, **settings) -> EmbedderConfig:
    settings = {"steps": 5, "blocks": 1, "validate_every": 2, **settings}
    return EmbedderConfig(data=DataConfig(root=world, synthetic=0), **settings)


def fresh(sem_seg: bool = True) -> PatchEncoder:
    torch.manual_seed(5)
    return PatchEncoder(sem_seg)


@pytest.fixture(scope="module")
def atlas(world) -> Atlas:
    return load_atlas(DataConfig(root=world, synthetic=0), SPAN, CPU)


def same(a: PatchEncoder, b: PatchEncoder) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_interrupted_and_resumed_it_ends_with_the_same_weights_and_metrics(world, tmp_path):
    logged = []
    whole = train_embedder(tmp_path / "whole", tiny(world), fresh(), on_step=lambda *step: logged.append(step))
    assert [step for step, _ in logged] == [2, 4, 5]
    assert all(math.isfinite(value) for _, metrics in logged for value in metrics.values())
    assert all(0 <= metrics["val_accuracy"] <= 1 for _, metrics in logged)

    def stop(step, metrics):
        if step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train_embedder(tmp_path / "broken", tiny(world), fresh(), on_step=stop)
    other = PatchEncoder().train()
    other.segmenter.load_state_dict(whole.segmenter.state_dict())
    resumed = train_embedder(tmp_path / "broken", tiny(world), other, on_step=silent)
    assert same(whole, resumed)
    assert (tmp_path / "broken" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()
    assert not any(module.training for module in resumed.modules())


def test_what_is_done_is_not_done_again(world, tmp_path, monkeypatch):
    done = train_embedder(tmp_path, tiny(world, steps=1), fresh(), on_step=silent)
    monkeypatch.setattr(embedder_module, "load_atlas", None)
    monkeypatch.setattr(embedder_module, "validation_areas", None)
    again = PatchEncoder()
    again.segmenter.load_state_dict(done.segmenter.state_dict())
    assert same(train_embedder(tmp_path, tiny(world, steps=1), again, on_step=silent), done)


def test_normalising_the_embedding_scales_c_alone_to_one_standard_deviation(atlas):
    encoder = untrained_encoder()
    torch.manual_seed(1)
    current, goal = (encoder.add_mask(sample_blocks(atlas, 14, 0.0)) for _ in range(2))
    with torch.no_grad():
        before, prior_before = encoder.embedder(current, goal)
        normalise_embedding(encoder, atlas, 14)
        after, prior_after = encoder.embedder(current, goal)
    torch.testing.assert_close(prior_after, prior_before, rtol=1e-3, atol=1e-3)
    ratio = after.std(dim=0) / before.std(dim=0)
    torch.testing.assert_close(after, before * ratio, rtol=1e-3, atol=1e-4)
    assert float(after.std(dim=0).median()) == pytest.approx(0.3, abs=0.04)
    assert float(after.std(dim=0).min()) > 0.2
    assert float(after.std(dim=0).max()) < 0.45


def test_neighbours_are_all_adjacent_pairs_of_a_block_in_their_direction():
    cells = torch.arange(2 * 9)
    current, goal = neighbour_pairs(cells, 100 + cells)
    direction = pair_directions(2, CPU)
    assert len(current) == len(goal) == len(direction) == 2 * 40
    assert len(set(zip(current.tolist(), goal.tolist(), strict=True))) == 80, "no pair twice"
    goal = goal - 100
    assert torch.equal(current // 9, goal // 9), "both of one block"
    step = torch.stack([goal % 9 // 3 - current % 9 // 3, goal % 3 - current % 3], dim=1)
    assert torch.equal(step, torch.from_numpy(MOVES)[direction])


def test_drawn_neighbours_lie_in_their_direction_however_the_block_is_turned():
    """The channels of the image are row and column, so that a patch shows its place and its symmetry."""
    row, col = torch.meshgrid(torch.arange(SPAN), torch.arange(SPAN), indexing="ij")
    image = torch.stack([row, col, torch.zeros_like(row)], dim=2).to(torch.uint8).numpy()
    torch.manual_seed(0)
    patches = sample_blocks(Atlas.from_images([image], [1.0], "cpu"), 40, strength=0.0)
    places = (patches * RGB_STD + RGB_MEAN)[:, :2] * 255  # row and column of every pixel, (9 B, 2, S, S)
    current, goal = neighbour_pairs(places, places)
    steps = torch.from_numpy(MOVES)[pair_directions(40, CPU)].float()
    down, right = current.diff(dim=2).mean(dim=(2, 3)), current.diff(dim=3).mean(dim=(2, 3))  # each (P, 2), a unit
    moved = (goal - current).mean(dim=(2, 3)) / GRID.pitch
    torch.testing.assert_close(moved, steps[:, :1] * down + steps[:, 1:] * right, rtol=0, atol=1e-3)
    turns = torch.cat([down, right], dim=1).round().unique(dim=0)
    assert len(turns) == 8, "all symmetries are drawn"


def test_it_trains_on_photos(world, tmp_path):
    logged = []
    train_embedder(
        tmp_path, tiny(world, steps=2, photos=0.5), fresh(False), on_step=lambda step, metrics: logged.append(metrics)
    )
    assert all(math.isfinite(value) for metrics in logged for value in metrics.values())
    assert logged


def test_validation_pairs_are_all_adjacent_pairs_of_the_grid(world):
    (area,) = validation_areas(DataConfig(root=world), GRID)
    pairs = adjacent_pairs([area, area], CPU)
    assert len(pairs.direction) == 2 * 144
    patches = torch.from_numpy(cut_patches(area.image, GRID))
    assert torch.equal(pairs.patches, torch.cat([patches, patches]))
    cell = torch.stack([pairs.current % 25 // 5, pairs.current % 25 % 5], dim=1)
    goal = torch.stack([pairs.goal % 25 // 5, pairs.goal % 25 % 5], dim=1)
    assert torch.equal(goal - cell, torch.from_numpy(MOVES)[pairs.direction])
    assert torch.equal(pairs.current // 25, pairs.goal // 25), "both patches of one area"
    encoder = untrained_encoder()
    with torch.no_grad():
        _, u = encoder.embedder(
            encoder.preprocess(pairs.patches[pairs.current]), encoder.preprocess(pairs.patches[pairs.goal])
        )
    assert accuracy(encoder, pairs) == float((u.argmax(dim=1) == pairs.direction).double().mean())


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"blocks": 0}, "blocks = 0"),
        ({"learning_rate": math.inf}, "learning_rate = inf"),
        ({"jitter": -0.5}, "jitter = -0.5"),
        ({"photos": 1.5}, "photos = 1.5"),
    ],
)
def test_invalid_settings_are_refused(settings, facts):
    with pytest.raises(AirlocError, match=facts):
        EmbedderConfig(**settings)


@pytest.fixture(scope="module")
def areas(world) -> tuple[Atlas, torch.Tensor]:
    """The atlas of the search areas, and their cells, (N, S, S, 3)."""
    config = DataConfig(root=world, synthetic=0)
    cells = np.concatenate([cut_patches(area.image, GRID) for area in training_areas(config, GRID, 99)])
    return load_atlas(config, SPAN, CPU, crops="grid"), torch.from_numpy(cells)


def same_cell(patches: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    """Index of the cell that each standardised patch shows, (B,)."""
    shown = (patches * RGB_STD + RGB_MEAN).mul(255).round().permute(0, 2, 3, 1).flatten(1)
    distance = torch.cdist(shown, cells.float().flatten(1), compute_mode="donot_use_mm_for_euclid_dist")
    assert float(distance.min(dim=1).values.max()) < 1e-2, "a patch that is no cell"
    return distance.argmin(dim=1)


def test_pairs_are_adjacent_cells_of_the_search_areas_with_their_direction(areas):
    torch.manual_seed(0)
    atlas, cells = areas
    patches, direction = sample_pairs(atlas, 300, Distortions(1, 0.0), GRID.pitch)
    here, there = (same_cell(some, cells) for some in patches.chunk(2))
    assert torch.equal(here // GRID.count, there // GRID.count), "both cells are of one area"
    step = torch.stack([there % 25 // 5 - here % 25 // 5, there % 5 - here % 5], dim=1)
    assert np.array_equal(step, MOVES[direction])
    assert len(here.unique()) == len(cells)
    assert len(direction.unique()) == 8


@pytest.mark.parametrize("symmetry", range(8))
def test_the_direction_of_a_pair_turns_with_its_patches(areas, symmetry):
    _, cells = areas
    area = cells[:25].view(5, 5, 48, 48, 3)
    whole = area.permute(4, 0, 2, 1, 3).reshape(1, 3, 240, 240).float()
    turned = apply_symmetry(whole, torch.tensor([symmetry]))[0].view(3, 5, 48, 5, 48).permute(1, 3, 0, 2, 4)
    for direction, (row, col) in enumerate(MOVES.tolist()):
        pair = area[2, 2], area[2 + row, 2 + col]
        found = []
        for patch in pair:
            alone = apply_symmetry(patch.permute(2, 0, 1)[None].float(), torch.tensor([symmetry]))[0]
            found.append(next((r, c) for r in range(5) for c in range(5) if torch.equal(turned[r, c], alone)))
        step = [found[1][0] - found[0][0], found[1][1] - found[0][1]]
        assert MOVES[embedder_module._turned_directions(CPU)[symmetry, direction]].tolist() == step


def test_blocks_on_the_grid_are_cells_of_the_search_areas(areas):
    torch.manual_seed(0)
    atlas, cells = areas
    shown = same_cell(sample_blocks(atlas, 40, 0.0, symmetries=1, step=GRID.pitch), cells).view(40, 9)
    assert torch.equal(shown - shown[:, :1], torch.tensor([0, 1, 2, 5, 6, 7, 10, 11, 12]).expand(40, -1))


def test_the_papers_training_of_the_embedder_learns(world, tmp_path):
    """Pairs, flips, a constant learning rate and no batch normalisation; two areas are learnt by heart."""
    torch.manual_seed(0)
    layers = Layers(batch_norm=False, branches="paper", unet="paper", mask="binary")
    config = tiny(
        world,
        sem_seg=False,
        steps=24,
        batches="pairs",
        pairs=16,
        learning_rate=1e-3,
        schedule="constant",
        crops="grid",
        augmentation="flips",
        rescale=False,
        layers=layers,
        validate_every=8,
    )
    logged = []
    encoder = PatchEncoder(False, layers)
    train_embedder(tmp_path, config, encoder, on_step=lambda step, metrics: logged.append(metrics["loss"]))
    assert all(math.isfinite(loss) for loss in logged)
    assert logged[-1] < logged[0]


def test_both_patches_of_all_pairs_are_segmented_in_one_pass(world, tmp_path, monkeypatch):
    passes, add_mask = [], PatchEncoder.add_mask
    monkeypatch.setattr(
        PatchEncoder, "add_mask", lambda encoder, rgb: passes.append(len(rgb)) or add_mask(encoder, rgb)
    )
    config = tiny(world, steps=2, batches="pairs", pairs=6, rescale=False)
    train_embedder(tmp_path, config, fresh(), on_step=silent)
    assert passes == [12, 12, 25], "two updates, and a validation on one area"


def test_photos_need_blocks_at_any_offset(world):
    for settings in ({"batches": "pairs"}, {"crops": "grid"}):
        with pytest.raises(AirlocError, match="--embedder blocks"):
            tiny(world, photos=0.5, **settings)


@pytest.fixture
def converging(monkeypatch):
    """Two validations without better weights end a training, and the second of all validations is the best."""
    monkeypatch.setattr(loop, "PATIENCE", 2)
    values = iter((0.2, 0.4, 0.3, 0.4))
    monkeypatch.setattr(embedder_module, "accuracy", lambda *_: next(values, 0.0))


def test_until_convergence_it_stops_and_ends_with_the_best_weights(world, tmp_path, converging):
    config, steps = tiny(world, steps=9, validate_every=1, schedule="constant", rescale=False, keep="best"), []
    found = train_embedder(tmp_path / "run", config, fresh(False), on_step=lambda step, _: steps.append(step))
    assert steps == [1, 2, 3, 4]
    best = tiny(world, steps=2, validate_every=9, schedule="constant", rescale=False)
    expected = train_embedder(tmp_path / "two", best, fresh(False), on_step=silent)
    assert same(found, expected)
    again = train_embedder(tmp_path / "run", config, fresh(False), on_step=None)
    assert same(again, expected), "a finished run is only loaded"


def test_stopped_after_its_best_weights_it_resumes_with_them(world, tmp_path, converging):
    config = tiny(world, steps=9, validate_every=1, schedule="constant", rescale=False, keep="best")

    def stop(step, metrics):
        if step == 3:
            raise KilledError

    with pytest.raises(KilledError):
        train_embedder(tmp_path / "run", config, fresh(False), on_step=stop)
    found = train_embedder(tmp_path / "run", config, fresh(False), on_step=silent)
    best = tiny(world, steps=2, validate_every=9, schedule="constant", rescale=False)
    assert same(found, train_embedder(tmp_path / "two", best, fresh(False), on_step=silent))
