"""An exported agent behind the agents' protocol, so that it can be played and compared: its own file does the work."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from airloc.agents.agent import Briefing
from airloc.errors import AirlocError
from airloc.task.batch import Observation

RUNNER = "runner.py"


class State(NamedTuple):
    """The states of all episodes of a batch, as the runner has them."""

    episodes: list[Any]


@dataclass(frozen=True)
class RunnerAgent:
    """Plays a batch by running its episodes one after another."""

    name: str
    agent: Any
    """The runner's own agent."""

    def reset(self, briefing: Briefing) -> State:
        """Begin every episode."""
        rows, cols = briefing.grid.shape
        goals = briefing.goal.cpu().numpy()
        return State([self.agent.reset(goal, rows, cols, budget=briefing.budget) for goal in goals])

    def act(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """Move in every episode."""
        moves, states = [], []
        positions = [(row, col) for row, col in observation.position.tolist()]
        for patch, position, episode in zip(observation.patch.cpu().numpy(), positions, state.episodes, strict=True):
            move, after = self.agent.act(patch, position, episode)
            moves.append(move)
            states.append(after)
        return torch.tensor(moves, device=observation.position.device), State(states)


def load_runner(folder: Path) -> ModuleType:
    """Import the runner of an export folder from its file.

    Raises:
        AirlocError: When there is none.
    """
    path = folder / RUNNER
    spec = importlib.util.spec_from_file_location("airloc_exported_runner", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise AirlocError(f"There is no runner {str(path)!r}", "Give the folder that 'airloc export' wrote")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
