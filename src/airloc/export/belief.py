"""Belief searchers as graphs: `encode` looks at every picture once, `relate` at a pair of encoded pictures.

| graph  | takes                                                       | gives                           |
|--------|-------------------------------------------------------------|---------------------------------|
| encode | patch (1, 48, 48, 3) uint8                                  | the parts of an `Encoding`      |
| relate | the parts of two encodings: `glimpse_edge` ..., `goal_edge` ... | logits (1, 81), one an offset |

Belief and planner are not graphs: the runner computes them with NumPy.
"""

from dataclasses import asdict

import torch
from torch import nn

from airloc.agents.belief import BeliefAgent
from airloc.agents.planner import PLANNERS, TIE, Greedy, Lookahead
from airloc.agents.recognition import FLAT
from airloc.errors import AirlocError
from airloc.export.graphs import Graph
from airloc.export.plan import LIKENESS, Plan
from airloc.vision.offsets import RADIUS
from airloc.vision.relation import SIDE, Encoding, RelationNetwork


class _Encode(nn.Module):
    """What is seen of one patch."""

    def __init__(self, network: RelationNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, patch: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.network.look(patch))


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
        "flat": FLAT,
        "witness": {**LIKENESS, **agent.witness._asdict()},
        "planner": {"horizon": 1, **asdict(agent.planner), "tie": TIE},
    }
    return Plan({"encode": encode, "relate": relate}, config, "belief.py")
