"""Export an agent to a folder: graphs, their int8 versions, a runner and a check.

The folder holds `NAME.onnx` for every graph and `NAME.int8.onnx` for the quantised ones, `agent.json`, `runner.py` and
`check.npz`. Before the export counts as done, its graphs are compared with PyTorch on random inputs, and its play is
compared with the agent on whole episodes.

`runner.py` is one file without imports from airloc: the source of the runner and of every airloc module that it
imports. These modules need NumPy alone. The planner and the priors of an exported agent are therefore the very code of
the agent in airloc, and its belief is a graph of the agent's own update.
"""

import importlib.util
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from airloc import __version__
from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.matching import LOCATOR_ALONE, SIGHTING
from airloc.agents.pretrained import pretrained_locator
from airloc.areas.area import SearchArea
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.export.graphs import CELLS, ExportPlan, Feed, Graph, plan_export, write_graph, write_int8
from airloc.files import write_atomically
from airloc.grid import Grid
from airloc.rollout import RolloutLog, rollout
from airloc.seeding import stream
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.suites import Suite, per_distance

RUNNER = "runner.py"
_TURN = 5
"""Episodes that one version plays before the next version plays the same episodes."""
CALIBRATION_EPISODES = 40
"""Episodes whose inputs determine the ranges of the int8 graphs."""
CASES = 16
"""Random inputs of every graph that are checked, and as many inputs from episodes."""
KEPT_CASES = (0, 1, 2 * CASES - 2, 2 * CASES - 1)
"""Cases that are written to `check.npz`."""
TOLERANCE = 1e-4
"""Largest allowed difference between ONNX and PyTorch."""

_DOCSTRING = re.compile(r'\A""".*?"""\n', re.DOTALL)
_IMPORT = re.compile(r"^from (airloc[\w.]*) import (?:\([^)]*\)|[^\n(]*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """Results of an export."""

    folder: Path
    difference: float
    """Largest difference between ONNX and PyTorch on random inputs and on inputs from episodes."""
    episodes: int
    """Number of compared episodes."""
    versions: "tuple[Version, ...]"
    """torch, onnx and int8, compared on the same episodes."""


def export_agent(
    agent: Agent,
    folder: Path,
    *,
    episodes: int = 200,
    seed: int = 0,
    on_step: Callable[[str], None] = lambda step: None,
) -> ExportReport:
    """Export an agent and compare the export with it on procedural areas.

    Args:
        agent: The agent, on the CPU.
        folder: Output folder.
        episodes: Number of episodes to compare, four for each area.
        seed: Random seed for areas and random inputs.
        on_step: Called with a description of each step before it begins.

    Raises:
        AirlocError: If the agent cannot be exported, or its graphs differ from PyTorch.
    """
    plan = plan_export(agent)
    for name, graph in plan.graphs.items():
        on_step(f"Writing {name}.onnx")
        write_graph(graph, folder / f"{name}.onnx")
    write_atomically(folder / RUNNER, runner_source(plan.runner))
    write_atomically(folder / "locator.npz", _packed(pretrained_locator().weights))
    _write_config(plan, folder, {})
    on_step("Drawing procedural areas")
    areas = list(Synthetic(count=-(-max(4, episodes) // 4), seed=seed).areas(Comparison.GRID))
    comparison = Comparison.on(areas, seed)
    runner = load_runner(folder)
    on_step("Recording inputs of the graphs")
    feeds = _record_inputs(runner.Agent(folder), comparison.some(slice(CALIBRATION_EPISODES)))
    for name, graph in plan.graphs.items():
        if graph.quantise:
            on_step(f"Writing {name}.int8.onnx")
            write_int8(folder / f"{name}.onnx", folder / f"{name}.int8.onnx", feeds[name])
    on_step("Comparing the graphs with PyTorch")
    difference = _check_graphs(plan, folder, feeds, runner, seed)
    on_step(f"Playing {len(comparison.suite)} episodes with torch, onnx and int8")
    versions = comparison.versions(agent, runner, folder)
    measured = {version.name: {"success": version.success, "bytes": version.bytes} for version in versions}
    _write_config(plan, folder, {"check": {"episodes": len(comparison.suite), "difference": difference, **measured}})
    return ExportReport(folder, difference, len(comparison.suite), versions)


def runner_source(module: str) -> str:
    """Return the source of a runner in which every import from airloc is replaced by the imported module's source."""
    path = _source_path(module)
    docstring = _DOCSTRING.match(path.read_text("utf-8"))
    return (docstring.group() if docstring else "") + _inlined(module, set())


def _inlined(module: str, done: set[str]) -> str:
    """Return the source of a module without its docstring, with the modules of airloc that it imports in it."""
    done.add(module)

    def source(found: re.Match[str]) -> str:
        return "" if found[1] in done else _inlined(found[1], done)

    return _IMPORT.sub(source, _DOCSTRING.sub("", _source_path(module).read_text("utf-8")))


def _source_path(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def _write_config(plan: ExportPlan, folder: Path, extra: dict[str, Any]) -> None:
    quantised = [name for name, graph in plan.graphs.items() if graph.quantise]
    config = {
        **plan.config,
        "sighting": (SIGHTING if "relate" in plan.graphs else LOCATOR_ALONE)._asdict(),
        "graphs": list(plan.graphs),
        "quantised": quantised,
        "airloc": __version__,
        **extra,
    }
    write_atomically(folder / "agent.json", json.dumps(config, indent=2) + "\n")


def _record_inputs(exported: Any, comparison: "Comparison") -> dict[str, list[Feed]]:
    """Return the inputs of every graph while the exported agent plays."""
    feeds: defaultdict[str, list[Feed]] = defaultdict(list)
    exported.on_run = lambda graph, inputs: feeds[graph].append(dict(inputs))
    comparison.play(RunnerAgent("recorded", exported))
    return feeds


def _check_graphs(plan: ExportPlan, folder: Path, feeds: dict[str, list[Feed]], runner: Any, seed: int) -> float:
    """Compare every graph with PyTorch on random inputs and on inputs from episodes; return the largest difference.

    A few cases are written to `check.npz`, so that a runner can check its graphs anywhere.
    """
    rng = stream(seed, "export")
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, graph in plan.graphs.items():
        cases = [_random_feed(graph, rng) for _ in range(CASES)] + feeds[name][:CASES]
        for number, feed in enumerate(cases):
            arrays |= _case(f"{name}/{number}", graph, feed)
    kept = {key: value for key, value in arrays.items() if int(key.split("/")[1]) in KEPT_CASES}
    write_atomically(folder / "check.npz", _packed(kept))
    difference = float(runner.largest_difference(runner.Agent(folder), arrays))
    if not difference <= TOLERANCE:
        problem = f"The exported graphs differ from PyTorch by {difference:.1e}, more than {TOLERANCE:.0e}"
        raise AirlocError(problem, "Do not use them; try another version of onnxruntime")
    return difference


def _packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the contents of an npz file."""
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _case(key: str, graph: Graph, feed: Feed) -> dict[str, npt.NDArray[Any]]:
    """Return inputs of a graph and the outputs of PyTorch for them."""
    inputs = {name: np.asarray(feed[name]) for name in graph.example}
    with torch.inference_mode():
        outputs = graph.network(*(torch.from_numpy(value.copy()) for value in inputs.values()))
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    named = dict(zip(graph.outputs, (part.numpy() for part in parts), strict=True))
    return {f"{key}/in/{name}": value for name, value in inputs.items()} | {
        f"{key}/out/{name}": value for name, value in named.items()
    }


def _random_feed(graph: Graph, rng: np.random.Generator) -> Feed:
    """Return random inputs of a graph."""
    draw: dict[torch.dtype, Callable[[tuple[int, ...]], npt.NDArray[Any]]] = {
        torch.uint8: lambda shape: rng.integers(0, 256, shape, dtype=np.uint8),
        torch.int64: lambda shape: rng.integers(0, CELLS, shape),
        torch.bool: lambda shape: rng.random(shape) < 0.5,
        torch.float32: lambda shape: rng.standard_normal(shape).astype(np.float32),
    }
    return {name: draw[example.dtype](tuple(example.shape)) for name, example in graph.example.items()}


@dataclass(frozen=True)
class RunnerAgent:
    """The agent of a runner as an agent of airloc.

    It plays the episodes of a batch one after another. Its state is the list of their states.
    """

    name: str
    agent: Any
    """The agent of the runner."""

    def reset(self, episodes: EpisodeBatch) -> list[Any]:
        """Reset the runner for every episode."""
        rows, cols = episodes.grid.shape
        goals = episodes.goal.cpu().numpy()
        return [self.agent.reset(goal, rows, cols, budget=episodes.budget) for goal in goals]

    def act(self, observation: Observation, state: list[Any]) -> tuple[torch.Tensor, list[Any]]:
        """Let the runner act in every episode."""
        moves, states = [], []
        positions = [(row, col) for row, col in observation.position.tolist()]
        for patch, position, episode in zip(observation.patch.cpu().numpy(), positions, state, strict=True):
            move, after = self.agent.act(patch, position, episode)
            moves.append(move)
            states.append(after)
        return torch.tensor(moves, device=observation.position.device), states


def load_runner(folder: Path) -> ModuleType:
    """Import the runner of an export folder from its file.

    Raises:
        AirlocError: If the folder has no runner.
    """
    path = folder / RUNNER
    spec = importlib.util.spec_from_file_location("airloc_exported_runner", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise AirlocError(f"There is no runner {str(path)!r}", "Use the output folder of 'airloc export'")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module by name
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class Version:
    """Measurements of one version of an agent: torch, onnx or int8."""

    name: str
    bytes: int
    """Size of its graphs; zero for torch."""
    ms_a_move: float
    """Milliseconds for each move on one core, one episode at a time."""
    success: float
    same_paths: float
    """Fraction of the episodes in which it takes the same path as torch."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Episodes on which versions of an agent are compared."""

    GRID: ClassVar[Grid] = Grid(5, 5)
    suite: Suite
    env: BatchEnv

    @classmethod
    def on(cls, areas: Sequence[SearchArea], seed: int) -> "Comparison":
        """Draw one episode per distance on every area."""
        suite = per_distance([area.name for area in areas], cls.GRID, seed=seed)
        return cls(suite, BatchEnv(CellTable.from_areas(areas, cls.GRID), suite.budget))

    def play(self, agent: Agent) -> RolloutLog:
        """Play all episodes one at a time, as a vehicle does."""
        return rollout(agent, self.suite, self.env, batch=1)

    def some(self, these: slice) -> "Comparison":
        """Return the comparison on some of the episodes."""
        parts = {name: getattr(self.suite, name)[these] for name in ("area", "start", "goal", "weight")}
        return replace(self, suite=replace(self.suite, **parts))

    def versions(self, agent: Agent, runner: Any, folder: Path) -> tuple[Version, ...]:
        """Play torch, onnx and int8. They take turns, so that other load slows down all of them alike."""
        exported = (RunnerAgent(kind, runner.Agent(folder, int8=kind == "int8")) for kind in ("onnx", "int8"))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            reference, plain, small = self._in_turns([agent, *exported])
        finally:
            torch.set_num_threads(threads)
        sizes = {path.name.removesuffix(".onnx"): path.stat().st_size for path in folder.glob("*.onnx")}
        full = {name: size for name, size in sizes.items() if not name.endswith(".int8")}
        int8 = {name: sizes.get(f"{name}.int8", size) for name, size in full.items()}
        return (
            _version("torch", reference, reference, 0),
            _version("onnx", plain, reference, sum(full.values())),
            _version("int8", small, reference, sum(int8.values())),
        )

    def _in_turns(self, agents: Sequence[Agent]) -> list[RolloutLog]:
        parts: list[list[RolloutLog]] = [[] for _ in agents]
        for first in range(0, len(self.suite), _TURN):
            some = self.some(slice(first, first + _TURN))
            for played, agent in zip(parts, agents, strict=True):
                played.append(some.play(agent))
        return [
            RolloutLog(
                agent.name,
                self.suite,
                np.concatenate([part.path for part in played]),
                np.concatenate([part.found for part in played]),
                np.concatenate([part.steps for part in played]),
                sum(part.seconds for part in played),
            )
            for agent, played in zip(agents, parts, strict=True)
        ]


def _version(name: str, played: RolloutLog, reference: RolloutLog, size: int) -> Version:
    same = (played.path == reference.path).all(axis=(1, 2))
    ms = 1000 * played.seconds / max(1, int(played.steps.sum()))
    return Version(name, size, ms, float(played.found.mean()), float(same.mean()))
