"""AiRLoc and its kin as graphs: `goal` looks at the goal's picture once, `step` at every glimpse.

| graph | takes                                                             | gives                                |
|-------|-------------------------------------------------------------------|--------------------------------------|
| goal  | patch (1, 48, 48, 3) uint8                                        | maps (1, 96, 12, 12)                 |
| step  | patch, goal = maps, position (1, 2), hidden and cell (1, 256)     | logits (1, 8), hidden, cell          |

`local` agents have no memory: their `step` takes patch and goal and gives logits.
"""

from typing import Any

import torch
from torch import nn

from airloc.agents.airloc import AirlocAgent
from airloc.agents.likeness import MIDDLE, SLOPE
from airloc.agents.local import LocalAgent
from airloc.agents.policy import HIDDEN, Memory, Policy
from airloc.export.graphs import Graph
from airloc.export.plan import LIKENESS, Plan
from airloc.vision.eyes import Eyes
from airloc.vision.position import encode_position

SIDE = 48


class _LookAtGoal(nn.Module):
    """The goal's branch of the embedder, up to where the branches meet."""

    def __init__(self, eyes: Eyes) -> None:
        super().__init__()
        self.eyes = eyes

    def forward(self, patch: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.eyes.embedder.goal_first(self.eyes.look(patch))
        return maps


class _Step(nn.Module):
    """Look, remember and decide."""

    def __init__(self, eyes: Eyes, policy: Policy) -> None:
        super().__init__()
        self.eyes, self.policy = eyes, policy

    def forward(
        self, patch: torch.Tensor, goal: torch.Tensor, position: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        current = self.eyes.embedder.current_first(self.eyes.look(patch))
        embedding, prior = self.eyes.embedder.relate(current, goal)
        here = embedding + encode_position(position)
        logits, memory = self.policy(here[None], prior[None], Memory(hidden[None], cell[None]))
        return logits[0], memory.hidden[0], memory.cell[0]


class _LocalStep(nn.Module):
    """Look, and follow the exploitation prior."""

    def __init__(self, eyes: Eyes) -> None:
        super().__init__()
        self.eyes = eyes

    def forward(self, patch: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        _, prior = self.eyes.embedder.relate(self.eyes.embedder.current_first(self.eyes.look(patch)), goal)
        return prior


def plan_airloc(agent: AirlocAgent) -> Plan:
    """How an agent with a policy is exported."""
    goal, example = _goal(agent.eyes)
    blank = torch.zeros(1, HIDDEN)
    example |= {"position": torch.zeros(1, 2), "hidden": blank, "cell": blank.clone()}
    step = Graph(_Step(agent.eyes, agent.policy).eval(), example, ("logits", "hidden_out", "cell_out"))
    config = _config(agent.name, agent.policy.variant.priv, ("hidden", "cell")) | {"trained": agent.trained.shape}
    return Plan({"goal": goal, "step": step}, config, "airloc.py")


def plan_local(agent: LocalAgent) -> Plan:
    """How an agent that follows the exploitation prior is exported."""
    goal, example = _goal(agent.eyes)
    step = Graph(_LocalStep(agent.eyes).eval(), example, ("logits",))
    return Plan({"goal": goal, "step": step}, _config(agent.name, agent.privileged, ()), "airloc.py")


def _goal(eyes: Eyes) -> tuple[Graph, dict[str, torch.Tensor]]:
    """The graph that looks at goals, and what a step is fed with of patch and goal."""
    patch = torch.zeros(1, SIDE, SIDE, 3, dtype=torch.uint8)
    look = _LookAtGoal(eyes).eval()
    with torch.inference_mode():
        maps = look(patch).clone()
    return Graph(look, {"patch": patch}, ("maps",)), {"patch": patch, "goal": torch.zeros(maps.shape)}


def _config(name: str, privileged: bool, memories: tuple[str, ...]) -> dict[str, Any]:
    likeness = {**LIKENESS, "slope": SLOPE, "middle": MIDDLE}
    memory = {memory: [1, HIDDEN] for memory in memories}
    return {"name": name, "kind": "airloc", "privileged": privileged, "memory": memory, "likeness": likeness}
