"""The ONNX graphs of an agent: which networks become graphs, how they are written, and their int8 versions.

| agents | graph  | inputs                                                        | outputs                         |
|--------|--------|---------------------------------------------------------------|---------------------------------|
| AiRLoc | goal   | patch (1, 48, 48, 3) uint8                                    | maps (1, 128, 12, 12)           |
|        | step   | patch, goal = maps, position (1, 2), hidden and cell (1, 256) | logits (1, 8), hidden, cell     |
|        | match  | patch and goal (1, 48, 48, 3) uint8                           | probability (1,)                |
| belief | encode | patch (1, 48, 48, 3) uint8                                    | the fields of an `Encoding`     |
|        | relate | two encodings: `glimpse_edge` ..., `goal_edge` ...            | offset logits (1, 81)           |
|        | update | logits, glimpse, goal, cell; offsets, prior, evidence,        | evidence, visited and belief    |
|        |        | visited (1, C)                                                | (1, C), match (1,)              |

`local` agents have no memory: their `step` takes patch and goal and returns logits. The planner of a belief agent is
not a graph, because its search depends on the grid and the budget; the runner contains `airloc.agents.planner` instead.
`match` and `update` have no int8 version.
"""

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import nn

from airloc.agents.agent import Agent
from airloc.agents.airloc import AirlocAgent, LocalAgent
from airloc.agents.belief import BeliefAgent, add_similarity, is_flat
from airloc.agents.matching import same_place
from airloc.agents.policy import HIDDEN, LSTMState, Policy
from airloc.errors import AirlocError
from airloc.files import write_atomically
from airloc.vision.embedder import PatchEncoder
from airloc.vision.offsets import NUM_OFFSETS
from airloc.vision.position import EncodingForm, encode_position
from airloc.vision.relation import SIDE, Encoding, RelationNetwork

Feed = Mapping[str, npt.NDArray[Any]]
"""Inputs of a graph by name."""

_OPSET = 20
_QUANTISED = ("Conv", "Gemm", "MatMul")
"""Operators that an int8 graph computes with 8-bit integers."""
CELLS = 25
"""Number of cells in the example inputs of a graph that takes any number of cells."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A network that becomes one graph."""

    network: nn.Module
    example: Mapping[str, torch.Tensor]
    """Example inputs by name."""
    outputs: tuple[str, ...]
    """Names of the outputs."""
    per_cell: tuple[str, ...] = ()
    """Inputs (1, C) whose number of cells may differ from the example."""
    quantise: bool = True
    """Write an int8 version too."""


@dataclass(frozen=True, slots=True, eq=False)
class ExportPlan:
    """Everything that the export of an agent consists of."""

    graphs: Mapping[str, Graph]
    """The graphs by name."""
    config: Mapping[str, Any]
    """Settings of the runner, as JSON values."""
    runner: str
    """Module with the source of the runner."""


def plan_export(agent: Agent) -> ExportPlan:
    """Return the export plan of an agent.

    Raises:
        AirlocError: If agents of this class cannot be exported.
    """
    make = _PLANS.get(type(agent))
    if make is None:
        problem = f"The agent {agent.name!r} has no network to export"
        raise AirlocError(problem, "Export an agent with weights, such as belief")
    return make(agent)


def _plan_airloc(agent: AirlocAgent) -> ExportPlan:
    goal, example = _goal_graph(agent.encoder)
    zeros = torch.zeros(1, HIDDEN)
    example |= {"position": torch.zeros(1, 2), "hidden": zeros, "cell": zeros.clone()}
    encoding = agent.position_encoding.encoding
    step = Graph(_Step(agent.encoder, agent.policy, encoding).eval(), example, ("logits", "hidden_out", "cell_out"))
    config = {
        "name": agent.name,
        "kind": "airloc",
        "privileged": agent.policy.variant.priv,
        "memory": {"hidden": [1, HIDDEN], "cell": [1, HIDDEN]},
        "training_grid": agent.training_grid.shape if agent.position_encoding.positions == "border" else None,
    }
    return ExportPlan({"goal": goal, "step": step, "match": _match_graph()}, config, "airloc.export.runners.airloc")


def _plan_local(agent: LocalAgent) -> ExportPlan:
    goal, example = _goal_graph(agent.encoder)
    step = Graph(_LocalStep(agent.encoder).eval(), example, ("logits",))
    config = {"name": agent.name, "kind": "airloc", "privileged": agent.privileged, "memory": {}}
    return ExportPlan({"goal": goal, "step": step, "match": _match_graph()}, config, "airloc.export.runners.airloc")


def _plan_belief(agent: BeliefAgent) -> ExportPlan:
    if any(parameter.dtype != torch.float32 for parameter in agent.network.parameters()):
        problem = f"The network of {agent.name!r} computes with bfloat16, which the graphs do not support"
        raise AirlocError(problem, "Create the agent with AgentOptions(full_precision=True)")
    encode = Graph(_Encode(agent.network).eval(), {"patch": _patch()}, Encoding._fields)
    encodings = {
        f"{prefix}_{name}": torch.zeros(1, *shape)
        for prefix in ("glimpse", "goal")
        for name, shape in zip(Encoding._fields, agent.network.shapes, strict=True)
    }
    relate = Graph(_Relate(agent.network).eval(), encodings, ("logits",))
    config = {
        "name": agent.name,
        "kind": "belief",
        "prior": agent.prior,
        "likelihood_power": agent.likelihood_power,
        "planner": asdict(agent.planner),
    }
    graphs = {"encode": encode, "relate": relate, "update": _update_graph(agent)}
    return ExportPlan(graphs, config, "airloc.export.runners.belief")


_PLANS: dict[type, Callable[[Any], ExportPlan]] = {
    AirlocAgent: _plan_airloc,
    LocalAgent: _plan_local,
    BeliefAgent: _plan_belief,
}
"""Export plans by class of agent."""


def _goal_graph(encoder: PatchEncoder) -> tuple[Graph, dict[str, torch.Tensor]]:
    """Return the graph that encodes goals, and the patch and goal inputs of `step`."""
    network = _EncodeGoal(encoder).eval()
    with torch.inference_mode():
        maps = network(_patch()).clone()
    return Graph(network, {"patch": _patch()}, ("maps",)), {"patch": _patch(), "goal": torch.zeros(maps.shape)}


def _match_graph() -> Graph:
    return Graph(_Match().eval(), {"patch": _patch(), "goal": _patch()}, ("probability",), quantise=False)


def _update_graph(agent: BeliefAgent) -> Graph:
    example = {
        "logits": torch.zeros(1, NUM_OFFSETS),
        "glimpse": _patch(),
        "goal": _patch(),
        "offsets": torch.zeros(1, CELLS, dtype=torch.int64),
        "prior": torch.zeros(1, CELLS),
        "evidence": torch.zeros(1, CELLS),
        "visited": torch.zeros(1, CELLS, dtype=torch.bool),
        "cell": torch.zeros(1, 1, dtype=torch.int64),
    }
    outputs = ("evidence_out", "visited_out", "belief", "match")
    per_cell = ("offsets", "prior", "evidence", "visited")
    return Graph(_Update(agent).eval(), example, outputs, per_cell, quantise=False)


def _patch() -> torch.Tensor:
    return torch.zeros(1, SIDE, SIDE, 3, dtype=torch.uint8)


class _EncodeGoal(nn.Module):
    """The goal branch of the embedder, up to the sum of both branches."""

    def __init__(self, encoder: PatchEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, patch: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.encoder.embedder.goal_first(self.encoder.preprocess(patch))
        return maps


class _Step(nn.Module):
    """One decision of AiRLoc."""

    def __init__(self, encoder: PatchEncoder, policy: Policy, encoding: EncodingForm) -> None:
        super().__init__()
        self.encoder, self.policy, self.encoding = encoder, policy, encoding

    def forward(
        self, patch: torch.Tensor, goal: torch.Tensor, position: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        current = self.encoder.embedder.current_first(self.encoder.preprocess(patch))
        embedding, prior = self.encoder.embedder.relate(current, goal)
        embedding = embedding + encode_position(position, encoding=self.encoding)
        logits, memory = self.policy(embedding[None], prior[None], LSTMState(hidden[None], cell[None]))
        return logits[0], memory.hidden[0], memory.cell[0]


class _LocalStep(nn.Module):
    """The exploitation prior."""

    def __init__(self, encoder: PatchEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, patch: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        current = self.encoder.embedder.current_first(self.encoder.preprocess(patch))
        return self.encoder.embedder.relate(current, goal)[1]


class _Match(nn.Module):
    """The probability of a match by similarity."""

    def forward(self, patch: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        return same_place(patch, goal)


class _Encode(nn.Module):
    """The encoding of one patch."""

    def __init__(self, network: RelationNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, patch: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.network.encode_patches(patch))


class _Relate(nn.Module):
    """The relation of two encodings."""

    def __init__(self, network: RelationNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, *parts: torch.Tensor) -> torch.Tensor:
        half = len(parts) // 2
        return self.network.relate(Encoding(*parts[:half]), Encoding(*parts[half:]))


class _Update(nn.Module):
    """The belief after a glimpse inside the grid."""

    def __init__(self, agent: BeliefAgent) -> None:
        super().__init__()
        self.agent = agent

    def forward(
        self,
        logits: torch.Tensor,
        glimpse: torch.Tensor,
        goal: torch.Tensor,
        offsets: torch.Tensor,
        prior: torch.Tensor,
        evidence: torch.Tensor,
        visited: torch.Tensor,
        cell: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        logits = add_similarity(logits, glimpse, goal, self.agent.calibration)
        logits = logits.masked_fill((is_flat(glimpse) | is_flat(goal))[:, None], 0.0)
        within = torch.ones_like(cell, dtype=torch.bool)
        return self.agent.update(logits, offsets, prior, evidence, visited, cell, within)


def write_graph(graph: Graph, path: Path) -> None:
    """Write a network as an ONNX graph that contains its weights."""
    with torch.inference_mode():
        graph.network(*graph.example.values())  # fills caches of tables, which must not hold tensors of the exporter
    cells = torch.export.Dim("cells", min=2)
    shapes = tuple({1: cells} if name in graph.per_cell else None for name in graph.example)
    with tempfile.TemporaryDirectory() as folder, _quiet():
        whole = Path(folder) / "graph.onnx"
        torch.onnx.export(
            graph.network,
            tuple(graph.example.values()),
            whole,
            input_names=list(graph.example),
            output_names=list(graph.outputs),
            opset_version=_OPSET,
            external_data=False,
            verbose=False,
            dynamo=True,
            dynamic_shapes=shapes if graph.per_cell else None,
        )
        write_atomically(path, whole.read_bytes())


def write_int8(source: Path, path: Path, feeds: Iterable[Feed]) -> None:
    """Write the int8 version of a graph. The inputs in `feeds` determine the ranges of its activations."""
    with tempfile.TemporaryDirectory() as folder, _quiet():
        whole = Path(folder) / "graph.onnx"
        quantize_static(
            source,
            whole,
            _Feeds(feeds),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(_QUANTISED),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        write_atomically(path, whole.read_bytes())


class _Feeds(CalibrationDataReader):  # type: ignore[misc]
    """Passes inputs to the quantiser one by one."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds: Iterator[Feed] = iter(feeds)

    def get_next(self) -> dict[str, npt.NDArray[Any]] | None:
        feed = next(self._feeds, None)
        return None if feed is None else {name: np.ascontiguousarray(value) for name, value in feed.items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log messages and warnings of the exporters."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
