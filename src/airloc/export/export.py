"""Which agents can be exported. A new kind is a file beside this with its plan, its runner, and a line here."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from airloc import __version__
from airloc.agents.agent import Agent
from airloc.agents.airloc import AirlocAgent, LocalAgent
from airloc.agents.belief import BeliefAgent
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.export.compare import RUNNER, RunnerAgent, Stage, Version, compare, load_runner
from airloc.export.graphs import Feed, Graph, Plan, plan_airloc, plan_belief, plan_local, write_graph, write_int8
from airloc.files import write_atomically
from airloc.seeding import stream

PLANS: dict[type, Callable[[Any], Plan]] = {
    AirlocAgent: plan_airloc,
    LocalAgent: plan_local,
    BeliefAgent: plan_belief,
}
"""How agents are exported, by their class."""


def plan_export(agent: Agent) -> Plan:
    """Give the plan for an agent.

    Raises:
        AirlocError: When its kind cannot be exported.
    """
    make = PLANS.get(type(agent))
    if make is None:
        raise AirlocError(f"The agent {agent.name!r} has no network to export", "Export one that looks, such as belief")
    return make(agent)


# ---------- Export an agent: graphs, their int8 versions, a runner and a check; played against torch before it is called done.
# ~
# ~ The folder holds a `NAME.onnx` and a `NAME.int8.onnx` for every graph, `agent.json`, `runner.py` and `check.npz`.

CALIBRATION = 40
"""Episodes whose inputs decide the ranges of the int8 graphs."""
RANDOM = 16
"""Random inputs of every graph that are checked, and as many from episodes."""
KEPT = (0, 1, 2 * RANDOM - 2, 2 * RANDOM - 1)
"""Those that go into `check.npz`."""
AGREEMENT = 1e-4
"""How far ONNX and torch may differ."""

BASE, BASE_IMPORT = "base.py", "from airloc.export.runners.base import "


@dataclass(frozen=True, slots=True)
class Report:
    """What an export came to."""

    folder: Path
    difference: float
    """Largest difference between ONNX and torch on random inputs and on inputs from episodes."""
    episodes: int
    versions: tuple[Version, ...]
    """torch, onnx and int8, compared on the same episodes."""


def export_agent(
    agent: Agent,
    folder: Path,
    *,
    episodes: int = 200,
    seed: int = 0,
    on_step: Callable[[str], None] = lambda what: None,
) -> Report:
    """Export an agent and compare the export with it on procedural areas.

    Args:
        agent: On the CPU.
        folder: Where to.
        episodes: Episodes to compare on, four an area.
        seed: Decides areas and random inputs.
        on_step: Called with what is done next.

    Raises:
        AirlocError: When the agent cannot be exported, or the export does not do what the agent does.
    """
    plan = plan_export(agent)
    on_step("writing the graphs")
    _write(plan, folder)
    stage = Stage.on(list(Synthetic(count=-(-max(4, episodes) // 4), seed=seed).areas(Stage.GRID)), seed)
    runner = load_runner(folder)
    on_step("writing the int8 graphs")
    feeds = _watch(runner.Agent(folder), stage.some(slice(CALIBRATION)))
    for name in plan.graphs:
        write_int8(folder / f"{name}.onnx", folder / f"{name}.int8.onnx", feeds[name])
    on_step("checking random inputs")
    difference = _check_inputs(plan, folder, feeds, runner, seed)
    on_step("comparing whole episodes")
    versions = compare(agent, runner, folder, stage)
    measured = {version.name: {"success": version.success, "bytes": version.bytes} for version in versions}
    _write_config(plan, folder, {"check": {"episodes": len(stage.suite), "difference": difference, **measured}})
    return Report(folder, difference, len(stage.suite), versions)


def _write(plan: Plan, folder: Path) -> None:
    for name, graph in plan.graphs.items():
        write_graph(graph, folder / f"{name}.onnx")
    write_atomically(folder / RUNNER, _in_one_file(plan.runner))
    _write_config(plan, folder, {})


def _in_one_file(runner: str) -> str:
    """The text of a runner with what runners share in the place where it is imported."""
    kind, base = (resources.files("airloc.export.runners").joinpath(name).read_text("utf-8") for name in (runner, BASE))
    before, _, rest = kind.partition(BASE_IMPORT)
    return before + base.partition('"""\n\n')[2] + rest.partition("\n")[2]


def _write_config(plan: Plan, folder: Path, extra: dict[str, Any]) -> None:
    config = {**plan.config, "graphs": list(plan.graphs), "airloc": __version__, **extra}
    write_atomically(folder / "agent.json", json.dumps(config, indent=2) + "\n")


def _watch(exported: Any, stage: Stage) -> dict[str, list[Feed]]:
    """What the graphs are fed with in the first episodes that the export plays, by graph."""
    feeds: defaultdict[str, list[Feed]] = defaultdict(list)

    def note(graph: str, feed: Feed) -> None:
        feeds[graph].append(dict(feed))

    exported.watch = note
    stage.play(RunnerAgent("watched", exported))
    return dict(feeds)


def _check_inputs(plan: Plan, folder: Path, feeds: dict[str, list[Feed]], runner: Any, seed: int) -> float:
    """Compare every graph with torch on random inputs and on those of episodes; give the largest difference.

    A few are written to `check.npz`, so that a runner can check its graphs wherever it is.
    """
    rng = stream(seed, "export")
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, graph in plan.graphs.items():
        cases = [_random_feed(graph, rng) for _ in range(RANDOM)] + feeds[name][:RANDOM]
        for number, feed in enumerate(cases):
            arrays |= _case(f"{name}/{number}", graph, feed)
    buffer = BytesIO()
    few = {key: value for key, value in arrays.items() if int(key.split("/")[1]) in KEPT}
    np.savez_compressed(buffer, **few)  # type: ignore[arg-type]
    write_atomically(folder / "check.npz", buffer.getvalue())
    difference = float(runner.largest_difference(runner.Agent(folder), arrays))
    if not difference <= AGREEMENT:
        problem = f"The exported graphs differ from torch by {difference:.1e}, more than {AGREEMENT:.0e}"
        raise AirlocError(problem, "Do not use them; try another version of onnxruntime")
    return difference


def _case(key: str, graph: Graph, feed: Feed) -> dict[str, npt.NDArray[Any]]:
    """Inputs of a graph and what torch gives for them."""
    inputs = {name: np.asarray(feed[name]) for name in graph.example}
    with torch.inference_mode():
        outputs = graph.network(*(torch.from_numpy(value.copy()) for value in inputs.values()))
    given = outputs if isinstance(outputs, tuple) else (outputs,)
    named = dict(zip(graph.outputs, (part.numpy() for part in given), strict=True))
    return {f"{key}/in/{name}": value for name, value in inputs.items()} | {
        f"{key}/out/{name}": value for name, value in named.items()
    }


def _random_feed(graph: Graph, rng: np.random.Generator) -> Feed:
    """Random inputs of a graph: bytes for pictures, normal numbers for the rest."""
    feed = {}
    for name, example in graph.example.items():
        shape = tuple(example.shape)
        pictures = example.dtype == torch.uint8
        drawn = rng.integers(0, 256, shape) if pictures else rng.standard_normal(shape)
        feed[name] = drawn.astype(np.uint8 if pictures else np.float32)
    return feed
