"""Exported agents do what they do in torch, in a process that has neither torch nor airloc."""

import copy
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.matching import same_place
from airloc.agents.registry import AgentOptions, make_agent
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.export.compare import load_runner
from airloc.export.export import Report, export_agent
from airloc.grid import MOVES, Grid
from airloc.task.batch import Observation
from airloc.task.cells import CellTable
from airloc.vision.position import to_training_grid

EXACT = AgentOptions(full_precision=True)


@pytest.fixture(scope="module")
def airloc_export(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return export_agent(make_agent("airloc"), tmp_path_factory.mktemp("export") / "airloc", episodes=200)


@pytest.fixture(scope="module")
def belief_export(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return export_agent(make_agent("belief", EXACT), tmp_path_factory.mktemp("export") / "belief", episodes=200)


@pytest.fixture(params=["airloc", "belief"])
def exported(request: pytest.FixtureRequest) -> Report:
    report: Report = request.getfixturevalue(f"{request.param}_export")
    return report


def test_onnx_and_torch_agree_on_random_inputs_and_on_two_hundred_episodes(exported: Report):
    torch_version, onnx, _ = exported.versions
    assert exported.episodes == 200
    assert exported.difference <= 1e-4
    assert onnx.same_paths == 1.0
    assert onnx.success == torch_version.success


def test_the_runner_tells_positions_on_larger_and_smaller_grids_as_torch_does(airloc_export: Report):
    told = importlib.import_module("airloc.export.runners.airloc")._as_trained
    assert json.loads((airloc_export.folder / "agent.json").read_text())["trained"] == [5, 5]
    for grid in (Grid(7, 7), Grid(3, 4), Grid(12, 5)):
        for cell in [*grid.cells(), (-2, 0), (grid.rows, grid.cols + 1)]:
            wanted = to_training_grid(torch.tensor([cell]), grid, Grid())
            assert told(cell, grid.shape, (5, 5)).tolist() == wanted.tolist()


def test_the_int8_version_is_smaller_and_loses_little(exported: Report):
    torch_version, onnx, int8 = exported.versions
    assert int8.bytes < 0.4 * onnx.bytes
    assert int8.success > torch_version.success - 0.05
    stated = json.loads((exported.folder / "agent.json").read_text())["check"]
    assert stated["int8"]["success"] == int8.success


def test_the_runner_is_no_slower_than_torch(exported: Report):
    torch_version, onnx, _ = exported.versions
    assert onnx.ms_a_move < torch_version.ms_a_move


def test_the_runner_needs_numpy_and_onnxruntime_alone(exported: Report, tmp_path: Path):
    """An environment of these two packages and what they need themselves, by links; the standard library besides."""
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs", "onnxruntime", "flatbuffers", "packaging", "google"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    code = (
        f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{str(tmp_path)!r}]\n"
        "import importlib.util as u\n"
        "assert not any(u.find_spec(name) for name in ('torch', 'airloc', 'PIL', 'onnx')), 'more is there'\n"
        f"import runpy; runpy.run_path({str(exported.folder / 'runner.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert float(words[3].rstrip(",")) <= 1e-4
    assert float(words[6]) < 1.0, "it starts in under a second"


def test_the_runner_imports_nothing_of_airloc(exported: Report):
    text = (exported.folder / "runner.py").read_text()
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [line for line in imports if "airloc" in line or "torch" in line]


def test_the_runner_says_here_as_the_reference_does(airloc_export: Report):
    runner = load_runner(airloc_export.folder)
    agent = runner.Agent(airloc_export.folder)
    grid = Grid(5, 5)
    patches = CellTable.of(list(Synthetic(count=1, seed=8).areas(grid)), grid).array
    pairs = [(0, 0), (0, 1), (3, 3), (7, 12), (25, 25), (4, 25)]
    for first, second in pairs:
        state = agent.reset(patches[first], 5, 5)
        wanted = float(same_place(torch.from_numpy(patches[second])[None], torch.from_numpy(patches[first])[None]))
        assert agent.match(patches[second], state) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("prior", ["per-distance", "uniform", "anywhere"])
@pytest.mark.parametrize("shape", [(5, 5), (3, 12), (30, 30)])
def test_the_runner_believes_and_flies_as_the_belief_searcher_does(belief_export: Report, prior: str, shape):
    runner = load_runner(belief_export.folder).Agent(belief_export.folder)
    agent = replace(make_agent("belief", EXACT), prior=prior)  # type: ignore[type-var]
    grid, budget, at = Grid(*shape), 9, (1, 2)
    patches = CellTable.of(list(Synthetic(count=1, seed=4).areas(Grid(5, 5))), Grid(5, 5)).array
    state = agent.reset(EpisodeBatch(torch.from_numpy(patches[3][None]), grid, budget, torch.zeros(1, budget, 8)))
    own = runner.reset(patches[3], *shape, budget=budget, prior=prior)
    for step in range(budget):
        seen = patches[25 if step == 4 else 5 + step]  # one is black
        move, own = runner.act(seen, at, own)
        observation = Observation(torch.from_numpy(seen[None]), torch.tensor([at]), torch.tensor([budget - step]))
        action, state = agent.act(observation, state)
        assert move == int(action)
        assert own.here == pytest.approx(float(state.match), abs=1e-4)
        assert own.belief == pytest.approx(state.belief[0].numpy(), abs=1e-4)
        at = tuple((np.array(at) + MOVES[move]).tolist())


def test_a_greedy_and_a_forgetful_searcher_are_exported_too(tmp_path: Path):
    for name in ("belief-greedy", "belief-no-memory"):
        assert export_agent(make_agent(name, EXACT), tmp_path / name, episodes=8).versions[1].same_paths == 1.0


def test_agents_without_memory_and_with_privileges_are_exported_too(tmp_path: Path):
    report = export_agent(make_agent("priv-local"), tmp_path, episodes=16)
    assert report.versions[1].same_paths == 1.0
    state = load_runner(tmp_path).Agent(tmp_path).reset(np.zeros((48, 48, 3), np.uint8), 5, 5)
    assert state.memory == {}


def test_an_agent_without_a_network_cannot_be_exported(tmp_path: Path):
    with pytest.raises(AirlocError, match="no network"):
        export_agent(make_agent("spiral"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_searcher_that_computes_with_less_than_full_precision_is_refused_with_the_cure(tmp_path: Path):
    agent = make_agent("belief", EXACT)
    lesser = replace(agent, network=copy.deepcopy(agent.network).bfloat16())  # type: ignore[type-var, attr-defined]
    with pytest.raises(AirlocError, match=r"exact=True"):
        export_agent(lesser, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_graphs_that_differ_from_torch_are_refused(tmp_path: Path, monkeypatch):
    module = importlib.import_module("airloc.export.export")
    monkeypatch.setattr(module, "AGREEMENT", 0.0)
    with pytest.raises(AirlocError, match="differ from torch"):
        export_agent(make_agent("local-no-sem-seg"), tmp_path, episodes=4)


def test_the_command_refuses_what_makes_no_sense(airloc, tmp_path: Path):
    assert airloc("export", "airloc", "--onnx", tmp_path / "a", "--episodes", 0).refused("Nothing can be compared")
    assert airloc("export", "random", "--onnx", tmp_path / "a").refused("no network")
    assert airloc("export", "nobody", "--onnx", tmp_path / "a").refused("There is no agent")
    assert not (tmp_path / "a").exists()
