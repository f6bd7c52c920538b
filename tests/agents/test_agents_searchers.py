import json

import pytest
import torch

from airloc.agents.agent import AgentOptions
from airloc.agents.belief import BeliefAgent
from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import SEARCHERS, Searcher, load_relation, make_searcher, save_belief, weights_root
from airloc.agents.registry import available_agents, make_agent
from airloc.errors import AirlocError
from untrained import untrained_airloc, untrained_encoder, untrained_relation


@pytest.fixture
def folder(tmp_path):
    save_belief(tmp_path / "agent", untrained_relation(), {}, "# card\n")
    return tmp_path / "agent"


def test_a_saved_searcher_judges_as_before(folder):
    network = load_relation(load_checkpoint(folder))
    glimpse, goal = torch.randn(2, 3, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(network(glimpse, goal), untrained_relation()(glimpse, goal))


def test_folding_for_play_changes_nothing_but_rounding(folder):
    frozen = make_searcher(load_checkpoint(folder), Searcher(""), AgentOptions(full_precision=True), "mine").network
    glimpse, goal = torch.randn(2, 3, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(frozen(glimpse, goal), untrained_relation()(glimpse, goal), rtol=1e-3, atol=1e-3)
    kinds = {type(part).__name__ for part in frozen.modules()}
    assert not {kind for kind in kinds if kind.startswith("BatchNorm")}


def test_a_checkpoint_folder_is_played_whatever_its_kind(folder):
    agent = make_agent(str(folder))
    assert isinstance(agent, BeliefAgent)
    assert agent.name == str(folder)


def test_half_the_numbers_half_the_file(tmp_path):
    for name, dtype in (("whole", torch.float32), ("half", torch.float16)):
        save_belief(tmp_path / name, untrained_relation(), {}, "", dtype=dtype)
    sizes = [(tmp_path / name / "weights.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.7 * sizes[0]


@pytest.mark.parametrize("width", [None, 0, "32", 4.0, True, 10_000])
def test_a_config_without_a_sensible_width_is_refused(folder, width):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "width": width}))
    with pytest.raises(AirlocError, match="width"):
        load_relation(load_checkpoint(folder))


def test_weights_of_another_width_are_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "width": 8}))
    with pytest.raises(AirlocError, match="has the tensor"):
        make_agent(str(folder))


def test_a_checkpoint_of_another_kind_is_refused(tmp_path):
    from airloc.agents.pretrained import save_airloc

    save_airloc(tmp_path / "agent", untrained_encoder(), untrained_airloc().policy, {"grid": "5x5"}, "")
    with pytest.raises(AirlocError, match="'airloc', not 'belief'"):
        load_relation(load_checkpoint(tmp_path / "agent"))


def test_terms_are_said_when_the_weights_are_used(tmp_path, capsys):
    save_belief(tmp_path / "agent", untrained_relation(), {"terms": "CC BY-NC-SA 4.0"}, "")
    make_agent(str(tmp_path / "agent"))
    assert "CC BY-NC-SA 4.0" in capsys.readouterr().err


def test_missing_weights_name_the_folder_and_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr("airloc.agents.pretrained.weights_root", lambda: tmp_path)
    assert not set(SEARCHERS) & set(available_agents())
    with pytest.raises(AirlocError, match="airloc train belief"):
        make_agent("belief")


def test_the_shipped_searcher_is_small_and_public():
    folder = weights_root() / "belief"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8_000_000
    config = json.loads((folder / "config.json").read_text())
    assert "terms" not in config
    assert set(SEARCHERS) <= set(available_agents())
