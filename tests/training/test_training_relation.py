import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.nn.functional import one_hot

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_relation
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training import relation as relation_module
from airloc.training.data import DataConfig, PairConfig, load_imagery, validation_areas
from airloc.training.photos import PhotoAugmentation
from airloc.training.relation import (
    FAR_GRID,
    FAR_WALK_LENGTH,
    GRID,
    SCALES,
    RelationConfig,
    _belief_card,
    _Board,
    all_pair_logits,
    average_weights,
    pair_logits,
    train_belief,
    train_relation,
    validate,
)
from airloc.training.relation_batches import RelationBatch, sample_batch
from airloc.vision.offsets import NUM_NEAR, NUM_OFFSETS, offset_index
from airloc.vision.relation import RelationNetwork, offsets_between_cells
from untrained import untrained_relation

pytestmark = pytest.mark.long

SMALL = Grid(3, 3)
CPU = torch.device("cpu")


class KilledError(Exception):
    """Stands for a kill between two saves."""


def tiny(world, **settings) -> RelationConfig:
    settings = {"steps": 5, "areas": 2, "goals": 2, "width": 2, "small_share": 0.5, "validate_every": 2, **settings}
    return RelationConfig(data=DataConfig(root=world, synthetic=0), **settings)


def fresh() -> RelationNetwork:
    torch.manual_seed(5)
    return RelationNetwork(2)


def same(a: RelationNetwork, b: RelationNetwork) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.mark.parametrize("mean_share", [0.0, 1.0])
def test_interrupted_and_resumed_it_ends_with_the_same_weights(world, tmp_path, mean_share):
    config = tiny(world, mean_share=mean_share)
    logged = []
    whole = train_relation(tmp_path / "whole", config, fresh(), on_step=lambda *step: logged.append(step))
    assert [step for step, _ in logged] == [2, 4, 5]
    assert all(math.isfinite(value) for _, metrics in logged for value in metrics.values())

    def killed(step, metrics):
        if step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train_relation(tmp_path / "parts", config, fresh(), on_step=killed)
    resumed = train_relation(tmp_path / "parts", config, RelationNetwork(2), on_step=lambda *_: None)
    assert same(whole, resumed)
    again = train_relation(tmp_path / "parts", config, RelationNetwork(2), on_step=lambda *_: pytest.fail("done"))
    assert same(whole, again)
    assert not whole.training


def test_a_training_ends_with_the_mean_of_its_last_weights(world, tmp_path):
    seen = []
    network = fresh()

    def keep(step, metrics):
        seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})

    train_relation(tmp_path, tiny(world, steps=6, mean_share=0.5), network, on_step=keep)
    for name, tensor in network.state_dict().items():
        expected = (seen[1][name].double() + seen[2][name].double()) / 2  # after the updates 4 and 6, not 2
        torch.testing.assert_close(tensor, expected.to(tensor.dtype), rtol=0, atol=0)


def random_batch(areas: int, glimpses: int, goals: int, seed: int) -> RelationBatch:
    generator = torch.Generator().manual_seed(seed)
    patches = (torch.randn(areas, count, 3, 48, 48, generator=generator) for count in (glimpses, goals))
    cells = (torch.zeros(areas, count, dtype=torch.long) for count in (glimpses, goals))
    return RelationBatch(*patches, *cells)


def test_pair_logits_of_batches_equal_those_of_single_pairs():
    network = untrained_relation(2)
    batches = [random_batch(2, 4, 3, seed=0), random_batch(1, 2, 5, seed=1)]
    with torch.no_grad():
        tables = pair_logits(network, batches)
        assert [table.shape for table in tables] == [(2, 4, 3, NUM_OFFSETS), (1, 2, 5, NUM_OFFSETS)]
        for number, area, glimpse, goal in ((0, 0, 3, 1), (0, 1, 0, 2), (1, 0, 1, 4)):
            batch = batches[number]
            alone = network(batch.glimpses[area, glimpse][None], batch.goals[area, goal][None])[0]
            torch.testing.assert_close(tables[number][area, glimpse, goal], alone, rtol=1e-3, atol=1e-3)


def test_validation_names_directions_and_cells(monkeypatch, world):
    areas = validation_areas(DataConfig(root=world, synthetic=0), GRID)
    table = 9.0 * one_hot(offsets_between_cells(GRID, CPU), NUM_OFFSETS)[None]
    monkeypatch.setattr(relation_module, "all_pair_logits", lambda network, areas, grid: table)
    metrics = validate(untrained_relation(2), areas[:1])
    assert metrics["val_accuracy"] == 1.0
    assert metrics["val_pair_loss"] < 0.01


def test_the_table_of_an_area_holds_every_pair(world):
    network = untrained_relation(2)
    areas = validation_areas(DataConfig(root=world, synthetic=0), SMALL)
    table = all_pair_logits(network, areas, SMALL)
    assert table.shape == (len(areas), 9, 9, NUM_OFFSETS)
    assert table[0, 0, 1].argmax() in range(NUM_OFFSETS)
    assert offset_index(0, 0) == NUM_NEAR // 2


def test_a_belief_agent_is_trained_saved_and_played(world, tmp_path):
    logged = []
    config = RelationConfig(
        data=DataConfig(root=world, synthetic=0), steps=2, areas=2, goals=2, width=2, validate_every=1
    )
    train_belief(tmp_path, config, device=CPU, command="airloc train belief", on_step=lambda *step: logged.append(step))
    assert [(stage, step) for stage, step, _ in logged] == [("relation", 1), ("relation", 2)]
    assert make_agent(str(tmp_path / "agent")).network.width == 2
    written = (tmp_path / "agent" / "card.md").read_text()
    assert "`airloc train belief`" in written
    assert "8-way accuracy" in written


def test_it_trains_on_photos_with_errors(world, tmp_path):
    logged = []
    photos = PhotoAugmentation(flight_probability=0.5, area_compression_probability=0.5)
    train_relation(
        tmp_path, tiny(world, photos=photos, steps=2), fresh(), on_step=lambda step, metrics: logged.append(metrics)
    )
    assert all(math.isfinite(value) for metrics in logged for value in metrics.values())
    assert logged


def test_the_card_says_the_terms():
    metrics = {"val_accuracy": 0.5, "val_pair_loss": 2.0}
    assert "CC BY-NC-SA 4.0" in _belief_card(RelationConfig(), metrics, "c", "CC BY-NC-SA 4.0")
    assert "those of the training data" in _belief_card(RelationConfig(), metrics, "c")


def test_training_goes_on_from_the_weights_of_another_agent(world, tmp_path):
    data = DataConfig(root=world, synthetic=0)
    config = RelationConfig(
        data=data, steps=1, areas=2, goals=2, width=2, validate_every=1, learning_rate=1e-9, weight_decay=0.0
    )

    def train(name: str, settings: RelationConfig) -> torch.Tensor:
        train_belief(tmp_path / name, settings, device=CPU, command="c", on_step=lambda *_: None)
        return load_relation(load_checkpoint(tmp_path / name / "agent")).judge[0].weight

    first, other = train("first", config), train("other", replace(config, seed=5))
    begun = train("second", replace(config, seed=5, init_from=str(tmp_path / "first" / "agent")))
    torch.testing.assert_close(begun, first, atol=1e-5, rtol=0)
    assert not torch.allclose(other, first, atol=1e-5)
    assert str(tmp_path / "first" / "agent") in (tmp_path / "second" / "agent" / "card.md").read_text()
    deeper = replace(config, seed=5, blocks=2, init_from=str(tmp_path / "first" / "agent"))
    torch.testing.assert_close(train("deeper", deeper), first, atol=1e-5, rtol=0)
    assert load_relation(load_checkpoint(tmp_path / "deeper" / "agent")).blocks == 2
    coarser = replace(deeper, chroma_scale=2)
    torch.testing.assert_close(train("coarser", coarser), first, atol=1e-5, rtol=0)
    assert load_relation(load_checkpoint(tmp_path / "coarser" / "agent")).chroma_scale == 2
    with pytest.raises(AirlocError, match=r"width 2.*width = 3"):
        train("third", replace(config, width=3, init_from=str(tmp_path / "first" / "agent")))


def test_weights_are_averaged_by_the_share_of_the_initial_ones():
    trained = {"weight": torch.tensor([1.0, 2.0]), "count": torch.tensor(8)}
    initial = {"weight": torch.tensor([3.0, -2.0]), "count": torch.tensor(0)}
    quarter = average_weights(trained, initial, 0.25)
    assert quarter["weight"].tolist() == [1.5, 1.0]
    assert quarter["count"].dtype == torch.int64
    assert int(quarter["count"]) == 6
    for share, expected in ((0.0, trained), (1.0, initial)):
        mean = average_weights(trained, initial, share)
        assert all(torch.equal(mean[name], expected[name]) for name in expected)


def test_a_training_with_an_initial_share_of_one_returns_the_initial_weights(world, tmp_path):
    config = tiny(world, steps=1, learning_rate=0.1)

    def train(name: str, settings: RelationConfig) -> dict[str, torch.Tensor]:
        train_belief(tmp_path / name, settings, device=CPU, command="c", on_step=lambda *_: None)
        return load_relation(load_checkpoint(tmp_path / name / "agent")).state_dict()

    first = train("first", config)
    further = replace(config, seed=1, init_from=str(tmp_path / "first" / "agent"))
    trained, averaged = train("trained", further), train("averaged", replace(further, initial_share=1.0))
    assert all(torch.equal(averaged[name], first[name]) for name in first)
    assert not all(torch.equal(trained[name], first[name]) for name in first)
    assert "100 % of the average" in (tmp_path / "averaged" / "agent" / "card.md").read_text()


def train_on(root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings) -> dict[Grid, RelationBatch]:
    """Train for two updates, and return the last batch of each grid."""
    batches: dict[Grid, RelationBatch] = {}

    def sample(crops, grid, *options):
        batches[grid] = sample_batch(crops, grid, *options)
        return batches[grid]

    monkeypatch.setattr(relation_module, "sample_batch", sample)
    logged = []
    config = tiny(root, steps=2, **settings)
    train_relation(folder, config, fresh(), on_step=lambda step, metrics: logged.append(metrics))
    assert all(math.isfinite(value) for metrics in logged for value in metrics.values())
    return batches


def test_a_board_of_12_by_12_trains_on_the_cells_of_one_walk(world, tmp_path, monkeypatch):
    batches = train_on(world, tmp_path, monkeypatch, areas=3, small_share=0.0, far_share=0.6)
    assert batches.keys() == {GRID, FAR_GRID}
    far = batches[FAR_GRID]
    assert far.glimpses.shape[:2] == far.observed.shape == (2, FAR_WALK_LENGTH)
    assert all(len(set(cells.tolist())) == FAR_WALK_LENGTH for cells in far.observed)
    row, col = far.observed // 12, far.observed % 12
    assert all(((part[:, 1:] - part[:, :-1]).abs() <= 1).all() for part in (row, col))


def test_boards_that_no_image_fits_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "images").mkdir()
    Image.fromarray(generate(1, (200, 200)).image).save(tmp_path / "images" / "a.png")  # 300 px at the finest scale
    shares = {"areas": 4, "small_share": 0.25, "large_share": 0.25, "far_share": 0.25}
    batches = train_on(tmp_path / "images", tmp_path / "run", monkeypatch, **shares)
    assert batches.keys() == {GRID, Grid(3, 3)}
    assert len(batches[GRID].cell) == 1


def test_images_too_small_for_5_by_5_are_refused_with_a_cure(tmp_path):
    (tmp_path / "images").mkdir()
    Image.fromarray(generate(1, (160, 160)).image).save(tmp_path / "images" / "a.png")
    with pytest.raises(AirlocError, match=r"no images of 256 px.*--root"):
        train_relation(tmp_path / "run", tiny(tmp_path / "images"), fresh(), on_step=lambda *_: None)


def test_small_boards_have_fewer_goals_and_shorter_walks(world):
    imagery = load_imagery(DataConfig(root=world, synthetic=0), PairConfig(), CPU, SCALES)
    board = _Board.create(imagery, SMALL, areas=2, goals=20)
    assert board.goals == 9
    assert board.walks.shape[1] == 8
    assert torch.equal(board.observed(), torch.arange(9).expand(2, -1))


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"width": 1_000_000}, "width = 1000000"),
        ({"steps": 0}, "steps = 0"),
        ({"learning_rate": math.nan}, "learning_rate = nan"),
        ({"learning_rate": -1.0}, "learning_rate = -1"),
        ({"weight_decay": math.nan}, "weight_decay = nan"),
        ({"small_share": 1.0}, "small_share = 1"),
        ({"far_share": -0.1}, "far_share = -0.1"),
        ({"blocks": -1}, "blocks = -1"),
        ({"direction_weight": -1.0}, "direction_weight = -1"),
        ({"init_from": "belief", "initial_share": -0.1}, "initial_share = -0.1"),
        ({"init_from": "belief", "initial_share": 1.1}, "initial_share = 1.1"),
        ({"init_from": "belief", "initial_share": math.nan}, "initial_share = nan"),
        ({"initial_share": 0.28}, "initial_share = 0.28.*--init-from"),
    ],
)
def test_invalid_settings_are_refused(settings, facts):
    with pytest.raises(AirlocError, match=facts):
        RelationConfig(**settings)
