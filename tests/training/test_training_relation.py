import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from airloc.grid import Grid
from airloc.training import relation as relation_module
from airloc.training.data import Data, validation_areas
from airloc.training.puzzles import Puzzle
from airloc.training.relation import (
    GRID,
    RelationConfig,
    direction_loss,
    judge,
    pair_loss,
    relate_all,
    train_relation,
    validate,
    walk_loss,
)
from airloc.vision.offsets import NUM_OFFSETS, offset_index, offsets_between_cells
from airloc.vision.relation import RelationNetwork
from untrained import untrained_relation

SMALL = Grid(3, 3)
CPU = torch.device("cpu")


class KilledError(Exception):
    """Stands for a kill between two saves."""


def tiny(world, **settings) -> RelationConfig:
    settings = {"steps": 5, "areas": 2, "goals": 2, "width": 2, "small": 0.5, "validate_every": 2, **settings}
    return RelationConfig(data=Data(root=world, synthetic=0), **settings)


def fresh() -> RelationNetwork:
    torch.manual_seed(5)
    return RelationNetwork(2)


def same(a: RelationNetwork, b: RelationNetwork) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_interrupted_and_resumed_it_ends_with_the_same_weights(world, tmp_path):
    told = []
    whole = train_relation(tmp_path / "whole", tiny(world), fresh(), on_step=lambda *step: told.append(step))
    assert [step for step, _ in told] == [2, 4, 5]
    assert all(math.isfinite(value) for _, figures in told for value in figures.values())

    def killed(step, figures):
        if step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train_relation(tmp_path / "parts", tiny(world), fresh(), on_step=killed)
    resumed = train_relation(tmp_path / "parts", tiny(world), RelationNetwork(2), on_step=lambda *_: None)
    assert same(whole, resumed)
    again = train_relation(tmp_path / "parts", tiny(world), RelationNetwork(2), on_step=lambda *_: pytest.fail("done"))
    assert same(whole, again)
    assert not whole.training


def test_all_pairs_of_a_puzzle_are_judged_as_single_pairs_are():
    network = untrained_relation(2)
    generator = torch.Generator().manual_seed(0)
    glimpses, goals = (torch.randn(2, count, 3, 48, 48, generator=generator) for count in (4, 3))
    with torch.no_grad():
        table = judge(network, Puzzle(glimpses, goals, torch.zeros(2, 3, dtype=torch.long)))
        for area, glimpse, goal in ((0, 3, 1), (1, 0, 2)):
            alone = network(glimpses[area, glimpse][None], goals[area, goal][None])[0]
            torch.testing.assert_close(table[area, glimpse, goal], alone, rtol=1e-3, atol=1e-3)


def perfect(grid: Grid, goal: torch.Tensor, sure: float) -> torch.Tensor:
    """Logits (1, C, G, O) that name every offset with a margin."""
    table = torch.zeros(1, grid.count, goal.shape[1], NUM_OFFSETS)
    for cell in range(grid.count):
        for n, target in enumerate(goal[0].tolist()):
            table[0, cell, n, offsets_between_cells(grid, CPU)[cell, target]] = sure
    return table


def by_cell(logits: torch.Tensor, grid: Grid) -> torch.Tensor:
    return logits.gather(3, offsets_between_cells(grid, CPU)[None, :, None].expand(*logits.shape[:3], -1))


def test_losses_vanish_for_one_who_knows_and_are_those_of_chance_for_one_who_does_not():
    goal = torch.tensor([[4, 0]])
    walks = torch.tensor([[8, 5]])
    torch.manual_seed(0)
    for sure, pair, direction in ((0.0, math.log(9), math.log(8)), (40.0, 0.0, 0.0)):
        logits = perfect(SMALL, goal, sure)
        assert float(pair_loss(by_cell(logits, SMALL), goal)) == pytest.approx(pair, abs=1e-4)
        assert float(direction_loss(logits, goal, SMALL)) == pytest.approx(direction, abs=1e-4)
        loss, right = walk_loss(by_cell(logits, SMALL), goal, walks)
        if sure:
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
    areas = validation_areas(Data(root=world, synthetic=0), GRID)
    table = perfect(GRID, torch.arange(25)[None], 9.0)
    monkeypatch.setattr(relation_module, "relate_all", lambda network, areas, grid: table)
    figures = validate(untrained_relation(2), areas[:1])
    assert figures["val_accuracy"] == 1.0
    assert figures["val_pair_loss"] < 0.01


def test_the_table_of_an_area_holds_every_pair(world):
    network = untrained_relation(2)
    areas = validation_areas(Data(root=world, synthetic=0), SMALL)
    table = relate_all(network, areas, SMALL)
    assert table.shape == (len(areas), 9, 9, NUM_OFFSETS)
    assert table[0, 0, 1].argmax() in range(NUM_OFFSETS)
    assert offset_index(0, 0) == NUM_OFFSETS // 2
