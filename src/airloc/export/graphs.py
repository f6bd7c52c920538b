"""Networks as ONNX graphs, checked by onnxruntime's own reader, and their int8 versions."""

import logging
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import nn

from airloc.agents.airloc import AirlocAgent, LocalAgent
from airloc.agents.belief import FLAT_STD, BeliefAgent
from airloc.agents.matching import BLUR, DARK, FAINT, MIDPOINT, SHIFT, SLOPE
from airloc.agents.planner import PLANNERS, TIE, Greedy, Lookahead
from airloc.agents.policy import HIDDEN, LSTMState, Policy
from airloc.errors import AirlocError
from airloc.files import write_atomically
from airloc.vision.embedder import PatchEncoder
from airloc.vision.offsets import RADIUS
from airloc.vision.position import encode_position
from airloc.vision.relation import SIDE, Encoding, RelationNetwork

Feed = Mapping[str, npt.NDArray[Any]]
"""What a graph is fed with, by the names of its inputs."""

OPSET = 20
QUANTISED = ("Conv", "Gemm", "MatMul")
"""Operators that are computed with bytes in an int8 graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A network that becomes one graph."""

    network: nn.Module
    example: Mapping[str, torch.Tensor]
    """Inputs by name, of the shapes and types that it takes."""
    outputs: tuple[str, ...]
    """Names of what it gives."""


def write_graph(graph: Graph, path: Path) -> None:
    """Write a network as an ONNX graph with its weights inside."""
    with torch.inference_mode():
        graph.network(*graph.example.values())  # tables that it keeps must be made now, not of the exporter's dummies
    with tempfile.TemporaryDirectory() as folder, _quiet():
        whole = Path(folder) / "graph.onnx"
        torch.onnx.export(
            graph.network,
            tuple(graph.example.values()),
            whole,
            input_names=list(graph.example),
            output_names=list(graph.outputs),
            opset_version=OPSET,
            external_data=False,
            verbose=False,
        )
        write_atomically(path, whole.read_bytes())


def write_int8(source: Path, path: Path, feeds: Iterable[Feed]) -> None:
    """Write the int8 version of a graph: weights and activations as bytes, by the ranges seen in some feeds."""
    with tempfile.TemporaryDirectory() as folder, _quiet():
        whole = Path(folder) / "graph.onnx"
        quantize_static(
            source,
            whole,
            _Feeds(feeds),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(QUANTISED),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        write_atomically(path, whole.read_bytes())


class _Feeds(CalibrationDataReader):  # type: ignore[misc]
    """Feeds one by one, as the quantiser asks for them."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds: Iterator[Feed] = iter(feeds)

    def get_next(self) -> dict[str, npt.NDArray[Any]] | None:
        feed = next(self._feeds, None)
        return None if feed is None else {name: np.ascontiguousarray(value) for name, value in feed.items()}


class _quiet:  # noqa: N801 - a verb, as context managers are
    """Keeps what the exporters say about themselves from people's terminals."""

    def __enter__(self) -> None:
        self._before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: object) -> None:
        self._warnings.__exit__(*error)  # type: ignore[arg-type]
        logging.disable(self._before)


# ---------- What the export of one kind of agent consists of.
# ~

LIKENESS = {"shift": SHIFT, "blur": BLUR, "dark": DARK, "faint": FAINT}
"""How runners compare a glimpse with the goal."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How an agent is exported."""

    graphs: Mapping[str, Graph]
    """The graphs by name."""
    config: Mapping[str, Any]
    """What the runner needs to know, as plain JSON values."""
    runner: str
    """The file in `airloc.export.runners` that runs them."""


# ---------- AiRLoc and its kin as graphs: `goal` looks at the goal's picture once, `step` at every glimpse.
# ~
# ~ | graph | takes                                                             | gives                                |
# ~ |-------|-------------------------------------------------------------------|--------------------------------------|
# ~ | goal  | patch (1, 48, 48, 3) uint8                                        | maps (1, 96, 12, 12)                 |
# ~ | step  | patch, goal = maps, position (1, 2), hidden and cell (1, 256)     | logits (1, 8), hidden, cell          |
# ~
# ~ `local` agents have no memory: their `step` takes patch and goal and gives logits.


class _LookAtGoal(nn.Module):
    """The goal's branch of the embedder, up to where the branches meet."""

    def __init__(self, encoder: PatchEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, patch: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.encoder.embedder.goal_first(self.encoder.preprocess(patch))
        return maps


class _Step(nn.Module):
    """Look, remember and decide."""

    def __init__(self, encoder: PatchEncoder, policy: Policy) -> None:
        super().__init__()
        self.encoder, self.policy = encoder, policy

    def forward(
        self, patch: torch.Tensor, goal: torch.Tensor, position: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        current = self.encoder.embedder.current_first(self.encoder.preprocess(patch))
        embedding, prior = self.encoder.embedder.relate(current, goal)
        here = embedding + encode_position(position)
        logits, memory = self.policy(here[None], prior[None], LSTMState(hidden[None], cell[None]))
        return logits[0], memory.hidden[0], memory.cell[0]


class _LocalStep(nn.Module):
    """Look, and follow the exploitation prior."""

    def __init__(self, encoder: PatchEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, patch: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        _, prior = self.encoder.embedder.relate(
            self.encoder.embedder.current_first(self.encoder.preprocess(patch)), goal
        )
        return prior


def plan_airloc(agent: AirlocAgent) -> Plan:
    """How an agent with a policy is exported."""
    goal, example = _goal(agent.encoder)
    blank = torch.zeros(1, HIDDEN)
    example |= {"position": torch.zeros(1, 2), "hidden": blank, "cell": blank.clone()}
    step = Graph(_Step(agent.encoder, agent.policy).eval(), example, ("logits", "hidden_out", "cell_out"))
    config = _config(agent.name, agent.policy.variant.priv, ("hidden", "cell")) | {"trained": agent.trained.shape}
    return Plan({"goal": goal, "step": step}, config, "airloc.py")


def plan_local(agent: LocalAgent) -> Plan:
    """How an agent that follows the exploitation prior is exported."""
    goal, example = _goal(agent.encoder)
    step = Graph(_LocalStep(agent.encoder).eval(), example, ("logits",))
    return Plan({"goal": goal, "step": step}, _config(agent.name, agent.privileged, ()), "airloc.py")


def _goal(encoder: PatchEncoder) -> tuple[Graph, dict[str, torch.Tensor]]:
    """The graph that looks at goals, and what a step is fed with of patch and goal."""
    patch = torch.zeros(1, SIDE, SIDE, 3, dtype=torch.uint8)
    look = _LookAtGoal(encoder).eval()
    with torch.inference_mode():
        maps = look(patch).clone()
    return Graph(look, {"patch": patch}, ("maps",)), {"patch": patch, "goal": torch.zeros(maps.shape)}


def _config(name: str, privileged: bool, memories: tuple[str, ...]) -> dict[str, Any]:
    similarity = {**LIKENESS, "slope": SLOPE, "middle": MIDPOINT}
    memory = {memory: [1, HIDDEN] for memory in memories}
    return {"name": name, "kind": "airloc", "privileged": privileged, "memory": memory, "likeness": similarity}


# ---------- Belief searchers as graphs: `encode` looks at every picture once, `relate` at a pair of encoded pictures.
# ~
# ~ | graph  | takes                                                       | gives                           |
# ~ |--------|-------------------------------------------------------------|---------------------------------|
# ~ | encode | patch (1, 48, 48, 3) uint8                                  | the parts of an `Encoding`      |
# ~ | relate | the parts of two encodings: `glimpse_edge` ..., `goal_edge` ... | logits (1, 81), one an offset |
# ~
# ~ Belief and planner are not graphs: the runner computes them with NumPy.


class _Encode(nn.Module):
    """What is seen of one patch."""

    def __init__(self, network: RelationNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, patch: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.network.encode_patches(patch))


class _Relate(nn.Module):
    """How the goal may lie to the glimpse."""

    def __init__(self, network: RelationNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, *parts: torch.Tensor) -> torch.Tensor:
        half = len(parts) // 2
        return self.network.relate(Encoding(*parts[:half]), Encoding(*parts[half:]))


def plan_belief(agent: BeliefAgent) -> Plan:
    """How a belief searcher is exported.

    Raises:
        AirlocError: When its planner is none that the runner knows, or its network computes with less than float32.
    """
    if not isinstance(agent.planner, Greedy | Lookahead):
        problem = f"The planner of {agent.name!r} cannot be exported"
        raise AirlocError(problem, f"Export an agent with one of: {', '.join(PLANNERS)}")
    if any(parameter.dtype != torch.float32 for parameter in agent.network.parameters()):
        problem = f"The network of {agent.name!r} computes with bfloat16, which graphs do not"
        raise AirlocError(problem, "Make the agent with AgentOptions(exact=True)")
    patch = torch.zeros(1, SIDE, SIDE, 3, dtype=torch.uint8)
    encode = Graph(_Encode(agent.network).eval(), {"patch": patch}, Encoding._fields)
    example = {
        f"{whose}_{name}": torch.zeros(1, *shape)
        for whose in ("glimpse", "goal")
        for name, shape in zip(Encoding._fields, agent.network.shapes, strict=True)
    }
    relate = Graph(_Relate(agent.network).eval(), example, ("logits",))
    config = {
        "name": agent.name,
        "kind": "belief",
        "prior": agent.prior,
        "memory": agent.memory,
        "trust": agent.trust,
        "radius": RADIUS,
        "flat": FLAT_STD,
        "witness": {**LIKENESS, **agent.calibration._asdict()},
        "planner": {"horizon": 1, **asdict(agent.planner), "tie": TIE},
    }
    return Plan({"encode": encode, "relate": relate}, config, "belief.py")
