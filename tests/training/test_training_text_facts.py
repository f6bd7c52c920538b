"""Facts as targets: each has a number, zones have the shares of their pixels, and unknown classes do not count."""

import numpy as np
import pytest
import torch

from airloc.areas.captions import Cover, cell_facts, from_building_mask, from_classes
from airloc.areas.synthetic import Synthetic
from airloc.areas.synthetic.source import REGIMES
from airloc.grid import Grid
from airloc.training.text_facts import VALUES, FactHeads, measure_ground, stated_values
from airloc.vision.text import ZONES
from untrained import untrained_text

GRID = Grid()


@pytest.mark.parametrize("regime", REGIMES)
def test_every_fact_of_a_procedural_area_has_a_number(regime: str):
    ((_, land),) = Synthetic(count=1, seed=3, regime=regime).land_covers(GRID)
    for facts in cell_facts(land, GRID):
        assert facts.keys() <= VALUES.keys()
        assert np.count_nonzero(stated_values(facts)) == len(facts)


def test_nothing_stated_is_zero():
    assert not stated_values({}).any()
    assert len(stated_values({})) == len(VALUES)


def test_zones_have_the_shares_of_their_pixels():
    classes = np.full(GRID.size, Cover.GRASS, dtype=np.uint8)
    classes[:16, :16] = Cover.BUILDING
    image = np.zeros((*GRID.size, 3), dtype=np.uint8)
    ground = measure_ground(from_classes(classes, frozenset({Cover.GRASS, Cover.BUILDING}), image, GRID.cell), GRID)
    assert ground.shares[0, 0, Cover.BUILDING] == 1
    assert ground.shares[0, 1:, Cover.GRASS].all()
    assert ground.shares.sum(axis=2) == pytest.approx(1, abs=1e-3)
    assert np.flatnonzero(ground.known).tolist() == [Cover.GRASS, Cover.BUILDING]
    assert ground.buildings[0] == pytest.approx([np.log(2), 1 / 3])
    assert not ground.buildings[1:].any()


def test_classes_that_the_source_does_not_know_do_not_count():
    mask = np.zeros(GRID.size, dtype=bool)
    ground = measure_ground(from_building_mask(mask, np.zeros((*GRID.size, 3), np.uint8), GRID.cell), GRID)
    network = untrained_text()
    heads, maps = FactHeads(network), torch.randn(25, network.channels, ZONES, ZONES)
    shares, built = torch.from_numpy(ground.shares), torch.from_numpy(ground.buildings)
    known = torch.from_numpy(ground.known).expand(25, -1)
    other = shares.clone()
    other[..., Cover.TREES] = 1
    assert torch.equal(heads.ground_loss(maps, shares, known, built), heads.ground_loss(maps, other, known, built))


def test_the_loss_of_statements_is_low_for_what_is_stated():
    network = untrained_text()
    heads = FactHeads(network)
    stated = torch.from_numpy(stated_values({"trees": "all", "road": "NS"}))[None]
    torch.nn.init.zeros_(heads.stated.weight)
    most = heads.stated.bias.numel() // len(VALUES)
    right = 20 * torch.nn.functional.one_hot(stated[0].long(), most).float()
    with torch.no_grad():
        heads.stated.bias.copy_(right.flatten())
    text = torch.zeros(1, network.features)
    with torch.no_grad():
        whole = torch.tensor([True])
        assert float(heads.stated_loss(text, stated, whole)) < 1e-3
        assert float(heads.stated_loss(text, torch.zeros_like(stated), whole)) > 30
        assert float(heads.stated_loss(text, torch.zeros_like(stated), ~whole)) == 0
