import pytest
import torch

from airloc.agents import belief as recognition
from airloc.agents.belief import begin, recognise
from airloc.agents.matching import SamePlaceCalibration
from airloc.vision.relation import RelationNetwork
from untrained import untrained_relation

ALONE = SamePlaceCalibration(scale=1.0, weight=0.0, midpoint=0.0)
"""The network is heard alone."""


@pytest.fixture(scope="module")
def network() -> RelationNetwork:
    return untrained_relation()


@pytest.fixture(scope="module")
def cells() -> torch.Tensor:
    return torch.randint(0, 256, (7, 48, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("chunk", [1, 2, 32])
@torch.inference_mode()
def test_pairs_are_judged_as_the_network_judges_them_whatever_goes_together(network, cells, chunk, monkeypatch):
    monkeypatch.setattr(recognition, "CHUNK", chunk)
    glimpses, goals = cells[[0, 1, 2, 2, 0]], cells[[3, 4, 3, 5, 3]]
    logits, _ = recognise(network, glimpses, begin(goals, ALONE))
    expected = network.relate(network.encode_patches(glimpses), network.encode_patches(goals))
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_episodes_that_share_patches_have_them_encoded_once(network, cells, monkeypatch):
    looked: list[int] = []
    look = network.encode_patches
    monkeypatch.setattr(network, "look", lambda patches: looked.append(len(patches)) or look(patches))
    _, seen = recognise(network, cells[[0, 1, 1]], begin(cells[[2, 2, 0]], ALONE))
    assert sum(looked) == 3
    recognise(network, cells[[2, 0, 4]], seen)
    assert sum(looked) == 4


@torch.inference_mode()
def test_a_single_search_keeps_its_goal_alone_and_still_sees_nothing_twice(network, cells, monkeypatch):
    seen = begin(cells[:1], ALONE)
    for number in (1, 2, 3):
        _, seen = recognise(network, cells[number : number + 1], seen)
        assert list(seen.encodings.rows) == seen.goal_keys.tolist()
    monkeypatch.setattr(network, "look", lambda patches: pytest.fail("it was seen before"))
    recognise(network, cells[2:3], seen)
