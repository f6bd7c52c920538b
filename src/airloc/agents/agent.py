"""What every agent is: two verbs over batches, and a state that is an explicit value.

Legend: B episodes in step, T budget, S side of a cell.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from airloc.grid import Grid
from airloc.task.batch import Observation


@dataclass(frozen=True)
class AgentOptions:
    """What an agent may be made with."""

    seed: int = 0
    """Decides choices that are made once per agent."""
    device: str = "cpu"
    """Where a learned agent computes."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""
    exact: bool = False
    """Compute in full precision even where the CPU is faster with less, so that all machines give the same answers."""


class Briefing(NamedTuple):
    """What agents are told before their episodes begin. The goal's cell is not part of it."""

    goal: torch.Tensor
    """The pictures of the goals, (B, S, S, 3) uint8."""
    grid: Grid
    budget: int
    noise: torch.Tensor
    """Uniform numbers in [0, 1), (B, T, 8): the one source of chance, so that neither batch nor device changes play."""


class Agent(Protocol):
    """Searches for goals, a batch of episodes at a time; a single drone is a batch of one.

    The state is whatever the agent remembers: recurrent state, visited cells, belief. It is handed over, never kept
    in the agent.
    """

    @property
    def name(self) -> str:
        """What the agent is called in tables."""
        ...

    def reset(self, briefing: Briefing) -> Any:
        """Give the state before the first move."""
        ...

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Choose moves (B,) from what is seen and remembered; give the state for the next call."""
        ...
