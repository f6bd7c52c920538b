"""The registry: names, plugins of other packages, and the examples of docs/your-agent.md."""

import json
import re
import sys
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents.agent import AgentOptions
from airloc.agents.checkpoint import save_checkpoint
from airloc.agents.policy import VARIANTS
from airloc.agents.registry import AGENTS, KINDS, Pretrained, available_agents, make_agent, plugin_agents
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.paper import Setup
from airloc.experiments.paper import Selection, other_agents
from small_reproduction import planner
from untrained import Stage

PAGE = Path(__file__).parents[2] / "docs" / "your-agent.md"


def block(title: str) -> str:
    found = re.search(rf'```\w+ title="{re.escape(title)}"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, title
    return found[1]


def test_an_agent_on_a_device_that_is_not_there_is_refused():
    with pytest.raises(AirlocError, match="Cannot use the device 'cuda:99'"):
        make_agent("belief", AgentOptions(device="cuda:99"))


@pytest.fixture
def example(install_package, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example's package, installed as its pyproject.toml says."""
    project = tomllib.loads(block("pyproject.toml"))["project"]
    code = block("airloc_sb3.py")
    folder = install_package(project["name"], project["version"], project["entry-points"], airloc_sb3=code)
    monkeypatch.setenv("AIRLOC_SB3_WEIGHTS", str(folder / "ppo.zip"))
    return folder


def test_the_plugin_of_the_docs_trains_and_is_evaluated(example: Path, airloc, areas_folder: Path, toy_areas):
    import airloc_sb3

    airloc_sb3.train(steps=32, areas=toy_areas, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    record = example / "out.json"
    outcome = airloc("evaluate", "sb3-ppo", "--areas", areas_folder, "--against", "priv-random", "--json", record)
    assert outcome.code == 0, outcome
    assert "sb3-ppo" in outcome.out
    written = json.loads(record.read_text())
    assert (written["package"], written["weights_sha256"]) == ("airloc-sb3 0.1.0", {})
    assert json.loads(record.read_text())["agent"] == "sb3-ppo"
    first, again = (json.loads(_scored(airloc, areas_folder, example, batch)) for batch in (1, 16))
    assert first["success"] == again["success"], "the batch does not matter"


def _scored(airloc, areas_folder: Path, example: Path, batch: int) -> str:
    record = example / f"batch-{batch}.json"
    arguments = ("--areas", areas_folder, "--batch", batch, "--no-timing", "--json", record)
    assert airloc("evaluate", "sb3-ppo", *arguments).code == 0
    return record.read_text()


def test_the_plugin_is_planned_beside_our_agents(example: Path):
    assert plugin_agents() == {"sb3-ppo": "airloc-sb3 0.1.0"}
    assert "sb3-ppo" in available_agents()
    assert "sb3-ppo" in other_agents()
    assert Setup("sb3-ppo", "masa", "test") in planner().plan(Selection(tables=(1,))).evaluations


def test_a_plugin_cannot_take_the_name_of_our_agents(install_package):
    install_package("usurper", "1", {"airloc.agents": {"blind": "nowhere:make"}})
    assert plugin_agents() == {}
    assert make_agent("blind").name == "blind"


@pytest.mark.parametrize(
    ("code", "fact"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError('no luck')"),
        ("", "AttributeError"),
        ("make = 3", "TypeError"),
        ("make = lambda options: object()", "reset"),
    ],
)
def test_errors_of_a_plugin_name_its_package(code: str, fact: str, install_package):
    install_package("broken-package", "1", {"airloc.agents": {"broken": "broken_module:make"}}, broken_module=code)
    with pytest.raises(AirlocError, match="broken-package") as caught:
        make_agent("broken")
    assert fact in str(caught.value)
    sys.modules.pop("broken_module", None)


def test_a_similar_plugin_name_is_suggested(example: Path):
    with pytest.raises(AirlocError, match="'sb3-ppo'"):
        make_agent("sb3-pp")


def test_the_names_are_those_of_the_design():
    assert len(VARIANTS) == 12
    assert set(VARIANTS) < set(AGENTS)
    assert {"local", "priv-local", "local-no-sem-seg", "priv-local-no-sem-seg"} < set(AGENTS)
    assert {"airloc-no-residual-no-sem-seg-priv", "airloc-xbd-research", "priv-local-xbd-research"} < set(AGENTS)


def test_an_unknown_agent_is_refused_with_a_suggestion():
    with pytest.raises(AirlocError, match="'priv-random'"):
        make_agent("priv-randon")


def test_an_empty_name_is_refused_with_the_list_of_agents():
    with pytest.raises(AirlocError) as caught:
        make_agent("")
    assert "''" in caught.value.problem
    assert "belief" in caught.value.cure


def test_an_agent_with_weights_of_its_own_is_one_file_and_one_line(tmp_path: Path, monkeypatch, toy_areas):
    """The example of the docs: the agent's file, the line in the registry, and this test."""
    module = types.ModuleType("airloc_compass")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(block("src/airloc/agents/compass.py"), "compass.py", "exec"), module.__dict__)
    monkeypatch.setitem(AGENTS, "compass", Pretrained("compass", module.load_compass))
    monkeypatch.setitem(KINDS, "compass", module.load_compass)
    monkeypatch.setattr("airloc.agents.pretrained.weights_root", lambda: tmp_path)
    weight = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    save_checkpoint(tmp_path / "compass", {"weight": weight}, {"kind": "compass"}, "# compass")
    stage = Stage(toy_areas)
    registered, from_folder = make_agent("compass"), make_agent(str(tmp_path / "compass"))
    assert registered.name == "compass"
    assert np.array_equal(stage.play(registered).path, stage.play(from_folder, batch=5).path)
