from dataclasses import replace

import pytest
import torch

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_relation
from airloc.agents.registry import make_agent
from airloc.errors import AirlocError
from airloc.training.data import Data
from airloc.training.relation import RelationConfig, card, train_searcher


def test_a_searcher_is_trained_saved_and_played(world, tmp_path):
    told = []
    config = RelationConfig(data=Data(root=world, synthetic=0), steps=2, areas=2, goals=2, width=2, validate_every=1)
    train_searcher(
        tmp_path, config, device="cpu", command="airloc train belief", on_step=lambda *step: told.append(step)
    )
    assert [(stage, step) for stage, step, _ in told] == [("relation", 1), ("relation", 2)]
    assert make_agent(str(tmp_path / "agent")).network.width == 2
    written = (tmp_path / "agent" / "card.md").read_text()
    assert "`airloc train belief`" in written
    assert "8-way accuracy" in written


def test_the_card_says_the_terms():
    figures = {"val_accuracy": 0.5, "val_pair_loss": 2.0}
    assert "CC BY-NC-SA 4.0, not the licence" in card(RelationConfig(), figures, "c", "CC BY-NC-SA 4.0")
    assert "those of the data" in card(RelationConfig(), figures, "c")


def test_training_goes_on_from_the_weights_of_another_searcher(world, tmp_path):
    data = Data(root=world, synthetic=0)
    config = RelationConfig(
        data=data, steps=1, areas=2, goals=2, width=2, validate_every=1, learning_rate=1e-9, decay=0.0
    )

    def train(name: str, settings: RelationConfig) -> torch.Tensor:
        train_searcher(tmp_path / name, settings, device="cpu", command="c", on_step=lambda *_: None)
        return load_relation(load_checkpoint(tmp_path / name / "agent")).judge[0].weight

    first, other = train("first", config), train("other", replace(config, seed=5))
    begun = train("second", replace(config, seed=5, start=str(tmp_path / "first" / "agent")))
    torch.testing.assert_close(begun, first, atol=1e-5, rtol=0)
    assert not torch.allclose(other, first, atol=1e-5)
    assert "Begun with the weights of" in (tmp_path / "second" / "agent" / "card.md").read_text()
    with pytest.raises(AirlocError, match="has the width 2, and 3 is asked for"):
        train("third", replace(config, width=3, start=str(tmp_path / "first" / "agent")))
