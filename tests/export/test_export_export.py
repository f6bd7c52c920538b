"""Exported agents do the same as in PyTorch, in a process that has neither PyTorch nor airloc.

Small untrained networks are exported once for all tests; the pretrained ones are exported in a slow test.
"""

import copy
import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from airloc.agents.agent import Agent, AgentOptions, EpisodeBatch
from airloc.agents.airloc import AirlocAgent, LocalAgent
from airloc.agents.any_heading import AnyHeadingAgent
from airloc.agents.belief import BeliefAgent
from airloc.agents.inference import optimize_for_inference
from airloc.agents.matching import LOCATOR_ALONE, same_place
from airloc.agents.planner import PLANNERS
from airloc.agents.registry import make_agent
from airloc.areas.changes import _cut
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.export import export as export_module
from airloc.export.export import Comparison, ExportReport, RunnerAgent, export_agent, load_runner, runner_source
from airloc.export.graphs import plan_export, write_graph
from airloc.export.runners import airloc as airloc_runner
from airloc.grid import MOVES, Grid
from airloc.missions import service
from airloc.missions.photos import make_goal
from airloc.missions.searcher import Searcher
from airloc.missions.server import make_app
from airloc.missions.service import SearchService
from airloc.missions.store import SearchStore
from airloc.task.batch import Observation
from airloc.task.cells import CellTable
from airloc.vision.position import PositionEncoding, to_training_grid
from field_files import ground, photo_of, write_projected
from field_server import HEADERS, TOKEN, SearchGround, create, fly
from untrained import untrained_airloc, untrained_relation

pytestmark = pytest.mark.export

GRID = Grid(5, 5)


@pytest.fixture(scope="session", autouse=True)
def operators_once() -> Iterator[None]:
    """Translate PyTorch's table of ONNX operators once; every export would do it again, for a third of its time."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    table = ONNXRegistry.from_torchlib.__func__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", classmethod(functools.cache(table)))
        yield


@pytest.fixture(scope="session")
def patches() -> np.ndarray:
    """All cells of a procedural area, and a black patch at the end, (26, 48, 48, 3)."""
    return CellTable.from_areas(list(Synthetic(count=1, seed=8).areas(GRID)), GRID).array


@pytest.fixture(scope="session")
def belief_agent() -> BeliefAgent:
    return BeliefAgent("belief", optimize_for_inference(untrained_relation(blocks=1)))


@pytest.fixture(scope="session")
def airloc_agent() -> AirlocAgent:
    return untrained_airloc()


def exported(agent: Agent, folder: Path) -> ExportReport:
    """Export with few episodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_module, "CALIBRATION_EPISODES", 1)
        patch.setattr(export_module, "CASES", 2)
        patch.setattr(export_module, "KEPT_CASES", (0, 2))
        return export_agent(agent, folder, episodes=8)


@pytest.fixture(scope="session")
def airloc_export(airloc_agent: AirlocAgent, tmp_path_factory: pytest.TempPathFactory) -> ExportReport:
    return exported(airloc_agent, tmp_path_factory.mktemp("export") / "airloc")


@pytest.fixture(scope="session")
def belief_export(belief_agent: BeliefAgent, tmp_path_factory: pytest.TempPathFactory) -> ExportReport:
    return exported(belief_agent, tmp_path_factory.mktemp("export") / "belief")


@pytest.fixture(params=["airloc", "belief"])
def export(request: pytest.FixtureRequest) -> ExportReport:
    report: ExportReport = request.getfixturevalue(f"{request.param}_export")
    return report


def test_onnx_and_torch_agree_on_random_inputs_and_on_whole_episodes(export: ExportReport):
    torch_version, onnx, _ = export.versions
    assert export.episodes == 8
    assert export.difference <= 1e-4
    assert onnx.same_paths == 1.0
    assert onnx.success == torch_version.success


def test_the_int8_graphs_are_smaller_and_the_folder_states_its_check(export: ExportReport):
    _, onnx, int8 = export.versions
    assert 0 < int8.bytes < onnx.bytes
    check = json.loads((export.folder / "agent.json").read_text())["check"]
    assert check["int8"] == {"success": int8.success, "bytes": int8.bytes}


def test_the_runner_needs_numpy_and_onnxruntime_alone(export: ExportReport, tmp_path: Path):
    """The environment has these two packages and their requirements, by links, and the standard library."""
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs", "onnxruntime", "flatbuffers", "packaging", "google"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    code = (
        f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{str(tmp_path)!r}]\n"
        "import importlib.util as u\n"
        "assert not any(u.find_spec(name) for name in ('torch', 'airloc', 'PIL', 'onnx')), 'more is there'\n"
        f"import runpy; runpy.run_path({str(export.folder / 'runner.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[3].rstrip(",")) <= 1e-4


def test_a_runner_without_its_files_names_the_missing_one_and_the_cure(export: ExportReport, tmp_path: Path):
    runner = load_runner(export.folder)
    with pytest.raises(FileNotFoundError, match=r"nowhere has no agent\.json.*output folder of 'airloc export'"):
        runner.Agent(tmp_path / "nowhere")
    copied = shutil.copytree(export.folder, tmp_path / "copied", ignore=shutil.ignore_patterns("*.onnx"))
    with pytest.raises(FileNotFoundError, match=r"copied has no \w+\.onnx"):
        runner.Agent(copied)
    done = subprocess.run([sys.executable, copied / "runner.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"The folder .*copied has no \w+\.onnx\. Give .*\n", done.stderr)


@pytest.mark.parametrize("cell", [(5, 0), (0, -1)])
def test_the_belief_runner_refuses_a_cell_outside_the_grid(belief_export: ExportReport, patches: np.ndarray, cell):
    runner = load_runner(belief_export.folder)
    agent = runner.Agent(belief_export.folder)
    for each in (agent, runner.AnyHeading(agent)):
        state = each.reset(patches[0], 5, 4)
        for method in (each.act, each.observe):
            with pytest.raises(ValueError, match=rf"cell {re.escape(str(cell))} is outside the grid of 5 x 4 cells"):
                method(patches[0], cell, state)


@pytest.mark.parametrize("module", ["airloc", "belief"])
def test_the_runner_is_one_file_without_imports_of_airloc_or_torch(module: str):
    text = runner_source(f"airloc.export.runners.{module}")
    assert text.startswith('"""Runs an exported')
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [line for line in imports if "airloc" in line or "torch" in line]
    compile(text, "runner.py", "exec")


def test_the_runner_maps_positions_to_the_training_grid_as_torch_does():
    for grid in (Grid(7, 7), Grid(3, 4), Grid(12, 5)):
        for cell in [*grid.cells(), (-2, 0), (grid.rows, grid.cols + 1)]:
            wanted = to_training_grid(torch.tensor([cell]), grid, Grid())
            assert airloc_runner._to_training_grid(cell, grid.shape, (5, 5)).tolist() == wanted.tolist()
    assert np.array(airloc_runner.MOVES).tolist() == MOVES.tolist()


def test_the_match_of_the_airloc_runner_is_the_similarity(airloc_export: ExportReport, patches: np.ndarray):
    agent = load_runner(airloc_export.folder).Agent(airloc_export.folder)
    for first, second in [(0, 0), (0, 1), (3, 3), (7, 12), (25, 25), (4, 25)]:
        state = agent.reset(patches[first], 5, 5)
        wanted = float(same_place(torch.from_numpy(patches[second])[None], torch.from_numpy(patches[first])[None]))
        assert agent.match(patches[second], state) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(
    ("prior", "between"), [("per-distance", False), ("uniform", False), ("anywhere", False), ("anywhere", True)]
)
@pytest.mark.parametrize("shape", [(5, 5), (3, 12), (30, 30)])
def test_the_belief_runner_believes_and_flies_as_the_agent(
    belief_export: ExportReport, belief_agent: BeliefAgent, patches: np.ndarray, prior: str, between: bool, shape
):
    runner = load_runner(belief_export.folder).Agent(belief_export.folder)
    agent = replace(belief_agent, prior=prior, between=between)
    grid, budget, position = Grid(*shape), 6, (1, 2)
    state = agent.reset(EpisodeBatch(torch.from_numpy(patches[3][None]), grid, budget, torch.zeros(1, budget, 8)))
    own = runner.reset(patches[3], *shape, budget=budget, prior=prior, between=between)
    for step in range(budget):
        patch = patches[25 if step == 4 else 5 + step]  # one glimpse is black
        move, own = runner.act(patch, position, own)
        left = torch.tensor([budget - step])
        action, state = agent.act(Observation(torch.from_numpy(patch[None]), torch.tensor([position]), left), state)
        assert move == int(action)
        assert own.match == pytest.approx(float(state.match), abs=1e-4)
        assert own.belief == pytest.approx(state.belief[0].numpy(), abs=1e-4)
        position = tuple((np.array(position) + MOVES[move]).tolist())


def test_the_belief_runner_searches_for_a_goal_of_unknown_heading_as_the_agent(
    belief_export: ExportReport, belief_agent: BeliefAgent, patches: np.ndarray
):
    runner = load_runner(belief_export.folder)
    exported = runner.AnyHeading(runner.Agent(belief_export.folder))
    agent = AnyHeadingAgent(replace(belief_agent, prior="anywhere", between=True))
    state = agent.reset(EpisodeBatch(torch.from_numpy(patches[3][None]), GRID, 6, torch.zeros(1, 6, 8)))
    own = exported.reset(patches[3], 5, 5, budget=6, prior="anywhere", between=True)
    for step, position in enumerate([(2, 2), (2, 3), (2, 2), (3, 3)]):  # one cell is visited again
        move, own = exported.act(patches[5 + position[0] + position[1]], position, own)
        seen = torch.from_numpy(patches[5 + position[0] + position[1]][None])
        action, state = agent.act(Observation(seen, torch.tensor([position]), torch.tensor([6 - step])), state)
        assert move == int(action)
        assert own.match == pytest.approx(float(state.match), abs=1e-4)
        assert own.belief == pytest.approx(state.belief[0].numpy(), abs=1e-4)


def test_the_belief_runner_declares_the_same_photos_at_the_same_places_as_the_searcher(belief_export, belief_agent):
    """The goal lies half a cell off the grid, and its picture is turned and larger than a cell."""
    image = next(iter(Synthetic(count=1, seed=8).areas(GRID))).image
    goal = make_goal(_cut(image, (105.0, 150.0), 60, 30.0), 48.0, (60.0, 60.0), 30.0)
    searcher = Searcher(belief_agent, goal, GRID, start=(4, 4), budget=30, threshold=0.5)
    runner = load_runner(belief_export.folder)
    exported = runner.Agent(belief_export.folder)
    state = exported.reset(goal.patch, 5, 5, budget=30, prior="anywhere")
    views = exported.views(goal.picture, (24.0, 36.0))
    while (cell := searcher.advice().next_cell) is not None:
        photo = photo_of(image, GRID, cell)
        advice = searcher.observe(cell, photo)
        state = exported.observe(photo.pixels, cell, state)
        verdict = exported.judge(views, *photo.whole_view(), state.match)
        assert verdict.probability == pytest.approx(advice.match_probability, abs=1e-3)
        assert (verdict.probability >= searcher.threshold) == (advice.declared is not None)
    find = advice.declared
    assert find is not None
    assert find.position == pytest.approx(((105 - 24) / 52, (150 - 24) / 52), abs=3 / 52)
    cells = 48 / 52  # offsets are in cells, without the gap
    assert find.position == pytest.approx(
        (find.cell[0] + cells * verdict.down, find.cell[1] + cells * verdict.right), abs=1e-6
    )


@pytest.mark.parametrize("heading", [0.0, None])
def test_the_server_and_the_belief_runner_declare_the_same_photos(
    belief_export, belief_agent, tmp_path: Path, monkeypatch, heading: float | None
):
    """The goal lies between cells; the heading of its picture is known or not."""
    monkeypatch.setattr(service, "make_agent", lambda name: belief_agent)
    ground_file = SearchGround(write_projected(tmp_path / "ground.tif", ground(9)))
    searches = SearchService(SearchStore(tmp_path / "searches.sqlite"), "belief")
    client = TestClient(make_app(searches, TOKEN), headers=HEADERS)
    created = create(client, ground_file, (1.4, 2.5), agent="belief", goal_heading=heading, budget=6)
    fly(client, ground_file, created)
    searcher = searches.inspect(created["id"], lambda active, _: active.field.searcher)

    runner = load_runner(belief_export.folder)
    exported = runner.Agent(belief_export.folder)
    flying = runner.AnyHeading(exported) if heading is None else exported
    state = flying.reset(searcher.goal.patch, *searcher.grid.shape, searcher.budget, prior="anywhere", between=True)
    views = exported.views(searcher.goal.picture, (-180.0, 180.0) if heading is None else (-6.0, 6.0))
    for photo in searcher.photos:
        state = flying.observe(photo.glimpse.pixels, photo.find.cell, state)
        verdict = flying.judge(views, *photo.glimpse.whole_view(), state.match)
        assert verdict.probability == pytest.approx(photo.find.probability, abs=1e-3)
    assert (verdict.probability >= searcher.threshold) == (searcher.advice().declared is not None)


def test_the_airloc_runner_has_no_network_to_compare_photos_and_judges_by_the_locator_alone(airloc_export):
    image = next(iter(Synthetic(count=1, seed=8).areas(GRID))).image
    runner = load_runner(airloc_export.folder)
    exported = runner.Agent(airloc_export.folder)
    views = exported.views(_cut(image, (105.0, 150.0), 60, 30.0), (24.0, 36.0))
    near, far = (photo_of(image, GRID, cell).whole_view() for cell in ((2, 2), (4, 0)))
    verdict = exported.judge(views, *near, 0.0)
    assert verdict.probability == LOCATOR_ALONE.probability(views.locate(*near), 0.0) > 0.9
    assert exported.judge(views, *far, 0.0).probability < 0.2
    assert exported.judge(views, *far, 0.7).probability == 0.7, "the larger one of the agent's and the locator's"


def same_paths(agent: Agent, export: ExportReport, graph: str, folder: Path) -> bool:
    """Replace one graph of an export by that of another agent; return whether both agents fly the same paths."""
    shutil.copytree(export.folder, folder, dirs_exist_ok=True)
    plan = plan_export(agent)
    write_graph(plan.graphs[graph], folder / f"{graph}.onnx")
    export_module._write_config(plan, folder, {})
    comparison = Comparison.on(list(Synthetic(count=1, seed=1).areas(GRID)), 0)
    runner = RunnerAgent("runner", load_runner(folder).Agent(folder))
    return np.array_equal(comparison.play(runner).path, comparison.play(agent).path)


def test_a_greedy_belief_agent_without_memory_is_exported_too(belief_export, belief_agent, tmp_path: Path):
    agent = replace(belief_agent, planner=PLANNERS["greedy"], memory=False)
    assert same_paths(agent, belief_export, "update", tmp_path)


def test_an_agent_without_recurrent_state_and_with_privileges_is_exported_too(airloc_export, airloc_agent, tmp_path):
    agent = LocalAgent("priv-local", airloc_agent.encoder, privileged=True)
    assert same_paths(agent, airloc_export, "step", tmp_path)
    state = load_runner(tmp_path).Agent(tmp_path).reset(np.zeros((48, 48, 3), np.uint8), 5, 5)
    assert state.memory == {}


def test_an_agent_that_encodes_positions_as_the_paper_prints_is_exported_too(airloc_export, airloc_agent, tmp_path):
    agent = replace(airloc_agent, position_encoding=PositionEncoding("printed", "raw"))
    assert same_paths(agent, airloc_export, "step", tmp_path)
    assert json.loads((tmp_path / "agent.json").read_text())["training_grid"] is None
    assert airloc_runner._to_training_grid((6, 2), (7, 7), None).tolist() == [[6.0, 2.0]]


def test_an_agent_without_a_network_cannot_be_exported(tmp_path: Path):
    with pytest.raises(AirlocError, match="'spiral'"):
        export_agent(make_agent("spiral"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_network_with_bfloat16_is_refused_with_the_cure(belief_agent: BeliefAgent, tmp_path: Path):
    agent = replace(belief_agent, network=copy.deepcopy(belief_agent.network).bfloat16())
    with pytest.raises(AirlocError, match="full_precision=True"):
        export_agent(agent, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_graphs_that_differ_from_torch_are_refused(airloc_export, airloc_agent, tmp_path: Path, monkeypatch):
    shutil.copytree(airloc_export.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(export_module, "TOLERANCE", -1.0)
    feeds = {"goal": [], "step": [], "match": []}
    with pytest.raises(AirlocError, match="PyTorch"):
        export_module._check_graphs(plan_export(airloc_agent), tmp_path, feeds, load_runner(tmp_path), seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["airloc", "belief"])
def test_the_pretrained_agents_fly_the_same_200_episodes_and_lose_little_with_int8(name: str, tmp_path: Path):
    report = export_agent(make_agent(name, AgentOptions(full_precision=True)), tmp_path, episodes=200)
    torch_version, onnx, int8 = report.versions
    assert onnx.same_paths == 1.0
    assert int8.bytes < 0.4 * onnx.bytes
    assert int8.success > torch_version.success - 0.05
