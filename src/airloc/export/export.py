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
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from airloc import __version__
from airloc.agents.agent import Agent
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.export.compare import RUNNER, Comparison, RunnerAgent, Version, load_runner
from airloc.export.graphs import CELLS, ExportPlan, Feed, Graph, plan_export, write_graph, write_int8
from airloc.files import write_atomically
from airloc.seeding import stream

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
    versions: tuple[Version, ...]
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
    config = {**plan.config, "graphs": list(plan.graphs), "quantised": quantised, "airloc": __version__, **extra}
    write_atomically(folder / "agent.json", json.dumps(config, indent=2) + "\n")


def _record_inputs(exported: Any, comparison: Comparison) -> dict[str, list[Feed]]:
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
    buffer = BytesIO()
    kept = {key: value for key, value in arrays.items() if int(key.split("/")[1]) in KEPT_CASES}
    np.savez_compressed(buffer, **kept)  # type: ignore[arg-type]
    write_atomically(folder / "check.npz", buffer.getvalue())
    difference = float(runner.largest_difference(runner.Agent(folder), arrays))
    if not difference <= TOLERANCE:
        problem = f"The exported graphs differ from PyTorch by {difference:.1e}, more than {TOLERANCE:.0e}"
        raise AirlocError(problem, "Do not use them; try another version of onnxruntime")
    return difference


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
