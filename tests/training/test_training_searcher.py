from airloc.agents.registry import make_agent
from airloc.training.data import Data
from airloc.training.relation import RelationConfig
from airloc.training.searcher import card, train_searcher


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
