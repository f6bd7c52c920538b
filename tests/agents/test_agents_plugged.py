"""Agents of other packages: found by entry point, told apart from ours, and the example of the docs at work."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from airloc.agents.registry import available_agents, make_agent, plugin_agents
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.paper import Setup
from airloc.experiments.paper import Selection, other_agents
from small_reproduction import planner

PAGE = Path(__file__).parents[2] / "docs" / "your-agent.md"


def block(title: str) -> str:
    found = re.search(rf'```\w+ title="{re.escape(title)}"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, title
    return found[1]


def install(folder: Path, name: str, version: str, entries: dict[str, str]) -> None:
    """Lay out a package's metadata as an installer does."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{entry} = {value}\n" for entry, value in entries.items())
    (info / "entry_points.txt").write_text(f"[airloc.agents]\n{lines}")


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example's package, installed as its pyproject.toml says."""
    project = tomllib.loads(block("pyproject.toml"))["project"]
    install(tmp_path, project["name"], project["version"], project["entry-points"]["airloc.agents"])
    (tmp_path / "airloc_sb3.py").write_text(block("airloc_sb3.py"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("AIRLOC_SB3_WEIGHTS", str(tmp_path / "ppo.zip"))
    yield tmp_path
    sys.modules.pop("airloc_sb3", None)


def test_the_example_of_the_docs_trains_and_stands_in_the_table(example: Path, airloc, areas_folder: Path, toy_areas):
    import airloc_sb3

    airloc_sb3.train(steps=32, areas=toy_areas, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    record = example / "out.json"
    outcome = airloc("evaluate", "sb3-ppo", "--areas", areas_folder, "--against", "priv-random", "--json", record)
    assert outcome.code == 0, outcome
    assert "sb3-ppo" in outcome.out
    assert json.loads(record.read_text())["agent"] == "sb3-ppo"
    first, again = (json.loads(_scored(airloc, areas_folder, example, batch)) for batch in (1, 16))
    assert first["success"] == again["success"], "the batch does not matter"


def _scored(airloc, areas_folder: Path, example: Path, batch: int) -> str:
    record = example / f"batch-{batch}.json"
    arguments = ("--areas", areas_folder, "--batch", batch, "--no-timing", "--json", record)
    assert airloc("evaluate", "sb3-ppo", *arguments).code == 0
    return record.read_text()


def test_it_is_planned_beside_ours_without_touching_our_code(example: Path):
    assert plugin_agents() == {"sb3-ppo": "airloc-sb3 0.1.0"}
    assert "sb3-ppo" in available_agents()
    assert "sb3-ppo" in other_agents()
    assert Setup("sb3-ppo", "masa", "test") in planner().plan(Selection(tables=(1,))).evaluations


def test_our_own_names_cannot_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install(tmp_path, "usurper", "1", {"blind": "nowhere:make"})
    monkeypatch.syspath_prepend(tmp_path)
    assert plugin_agents() == {}
    assert make_agent("blind").name == "blind"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('no luck')", "cannot be made: RuntimeError('no luck')"),
        ("", "cannot be made: AttributeError"),
        ("make = 3", "cannot be made: TypeError"),
        ("make = lambda options: object()", "has no name and no reset and no act"),
    ],
)
def test_a_broken_package_is_told_by_its_name(code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install(tmp_path, "broken-package", "1", {"broken": "broken_module:make"})
    (tmp_path / "broken_module.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AirlocError, match="broken-package") as caught:
        make_agent("broken")
    assert said in str(caught.value)
    sys.modules.pop("broken_module", None)


def test_a_near_miss_of_a_plugged_name_is_suggested(example: Path):
    with pytest.raises(AirlocError, match="Did you mean 'sb3-ppo'"):
        make_agent("sb3-pp")
