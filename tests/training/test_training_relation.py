import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_relation
from airloc.agents.registry import make_agent
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training import relation as relation_module
from airloc.training.data import DataConfig, validation_areas
from airloc.training.photos import PhotoAugmentation
from airloc.training.relation import (
    GRID,
    RelationConfig,
    _belief_card,
    all_pair_logits,
    direction_loss,
    pair_logits,
    pair_loss,
    train_belief,
    train_relation,
    validate,
    walk_loss,
)
from airloc.training.relation_batches import RelationBatch
from airloc.vision.offsets import NUM_OFFSETS, offset_index
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


def test_interrupted_and_resumed_it_ends_with_the_same_weights(world, tmp_path):
    logged = []
    whole = train_relation(tmp_path / "whole", tiny(world), fresh(), on_step=lambda *step: logged.append(step))
    assert [step for step, _ in logged] == [2, 4, 5]
    assert all(math.isfinite(value) for _, metrics in logged for value in metrics.values())

    def killed(step, metrics):
        if step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train_relation(tmp_path / "parts", tiny(world), fresh(), on_step=killed)
    resumed = train_relation(tmp_path / "parts", tiny(world), RelationNetwork(2), on_step=lambda *_: None)
    assert same(whole, resumed)
    again = train_relation(tmp_path / "parts", tiny(world), RelationNetwork(2), on_step=lambda *_: pytest.fail("done"))
    assert same(whole, again)
    assert not whole.training


def test_pair_logits_of_a_batch_equal_those_of_single_pairs():
    network = untrained_relation(2)
    generator = torch.Generator().manual_seed(0)
    glimpses, goals = (torch.randn(2, count, 3, 48, 48, generator=generator) for count in (4, 3))
    with torch.no_grad():
        table = pair_logits(network, RelationBatch(glimpses, goals, torch.zeros(2, 3, dtype=torch.long)))
        for area, glimpse, goal in ((0, 3, 1), (1, 0, 2)):
            alone = network(glimpses[area, glimpse][None], goals[area, goal][None])[0]
            torch.testing.assert_close(table[area, glimpse, goal], alone, rtol=1e-3, atol=1e-3)


def perfect(grid: Grid, goal: torch.Tensor, margin: float) -> torch.Tensor:
    """Logits (1, C, G, O) that name every offset with a margin."""
    table = torch.zeros(1, grid.count, goal.shape[1], NUM_OFFSETS)
    for cell in range(grid.count):
        for n, target in enumerate(goal[0].tolist()):
            table[0, cell, n, offsets_between_cells(grid, CPU)[cell, target]] = margin
    return table


def by_cell(logits: torch.Tensor, grid: Grid) -> torch.Tensor:
    return logits.gather(3, offsets_between_cells(grid, CPU)[None, :, None].expand(*logits.shape[:3], -1))


def test_losses_vanish_for_one_who_knows_and_are_those_of_chance_for_one_who_does_not():
    goal = torch.tensor([[4, 0]])
    walks = torch.tensor([[8, 5]])
    torch.manual_seed(0)
    for margin, pair, direction in ((0.0, math.log(9), math.log(8)), (40.0, 0.0, 0.0)):
        logits = perfect(SMALL, goal, margin)
        assert float(pair_loss(by_cell(logits, SMALL), goal)) == pytest.approx(pair, abs=1e-4)
        assert float(direction_loss(logits, goal, SMALL)) == pytest.approx(direction, abs=1e-4)
        loss, right = walk_loss(by_cell(logits, SMALL), goal, walks)
        if margin:
            assert float(loss) == pytest.approx(0, abs=1e-4)
            assert float(right) == 1
        else:
            assert math.log(7) - 1e-4 <= float(loss) <= math.log(8) + 1e-4


def test_the_walks_loss_is_the_belief_of_all_glimpses_before_the_goal(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 9, 1, 9, generator=generator)
    goal, walks = torch.tensor([[4]]), torch.tensor([[0, 1, 4, 5]])
    monkeypatch.setattr(torch, "randint", lambda *given, device: torch.full(given[-1], 4 if len(given) == 3 else 0))
    loss, _ = walk_loss(logits, goal, walks)
    belief = (logits[0, 0, 0] + logits[0, 1, 0]).clone()  # the walk reaches the goal at its third cell
    belief[[0, 1]] = -torch.inf
    assert float(loss) == pytest.approx(float(cross_entropy(belief[None], goal[0])), abs=1e-5)


def test_walks_that_begin_on_the_goal_do_not_count():
    logits = torch.randn(1, 9, 2, 9, generator=torch.Generator().manual_seed(0))
    loss, right = walk_loss(logits, torch.tensor([[4, 8]]), torch.tensor([[4, 5, 8]]))
    assert math.isfinite(float(loss))
    assert float(right) in (0.0, 1.0)


def test_validation_names_directions_and_cells(monkeypatch, world):
    areas = validation_areas(DataConfig(root=world, synthetic=0), GRID)
    table = perfect(GRID, torch.arange(25)[None], 9.0)
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
    assert offset_index(0, 0) == NUM_OFFSETS // 2


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
    with pytest.raises(AirlocError, match=r"width 2.*width = 3"):
        train("third", replace(config, width=3, init_from=str(tmp_path / "first" / "agent")))


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"width": 1_000_000}, "width = 1000000"),
        ({"steps": 0}, "steps = 0"),
        ({"learning_rate": math.nan}, "learning_rate = nan"),
        ({"learning_rate": -1.0}, "learning_rate = -1"),
        ({"weight_decay": math.nan}, "weight_decay = nan"),
        ({"small_share": 1.0}, "small_share = 1"),
        ({"direction_weight": -1.0}, "direction_weight = -1"),
    ],
)
def test_invalid_settings_are_refused(settings, facts):
    with pytest.raises(AirlocError, match=facts):
        RelationConfig(**settings)
