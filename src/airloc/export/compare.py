"""An exported agent behind the agents' protocol, so that it can be played and compared: its own file does the work."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.rollout import RolloutLog, rollout
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.suites import Suite, per_distance

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

    def reset(self, briefing: EpisodeBatch) -> State:
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


# ---------- An export played against the agent it came from, on the same episodes and on one core.
# ~

TURN = 5
"""Episodes that a version plays before the next one does."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Episodes to compare on."""

    GRID: ClassVar[Grid] = Grid(5, 5)
    suite: Suite
    env: BatchEnv

    @classmethod
    def on(cls, areas: Sequence[SearchArea], seed: int) -> "Stage":
        """One episode per distance on every area."""
        suite = per_distance([area.name for area in areas], cls.GRID, seed=seed)
        return cls(suite, BatchEnv(CellTable.of(areas, cls.GRID), suite.budget))

    def play(self, agent: Agent) -> RolloutLog:
        """Play all episodes one at a time, as a vehicle would."""
        return rollout(agent, self.suite, self.env, batch=1)

    def some(self, these: slice) -> "Stage":
        """These episodes alone."""
        suite = self.suite
        parts = {name: getattr(suite, name)[these] for name in ("area", "start", "goal", "weight")}
        return replace(self, suite=replace(suite, **parts))


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an agent, as it was measured."""

    name: str
    bytes: int
    """Size of its weights or graphs."""
    ms_a_move: float
    """On one core, one episode at a time."""
    success: float
    same_paths: float
    """Share of the episodes in which it flies as the agent in torch does."""


def compare(agent: Agent, runner: Any, folder: Path, stage: Stage) -> tuple[Version, ...]:
    """Play torch, onnx and int8 on the same episodes, in turns: other work on the machine slows no version alone."""
    exported = (RunnerAgent(kind, runner.Agent(folder, int8=kind == "int8")) for kind in ("onnx", "int8"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        reference, plain, small = _in_turns(stage, [agent, *exported])
    finally:
        torch.set_num_threads(threads)
    int8 = set(folder.glob("*.int8.onnx"))
    full = set(folder.glob("*.onnx")) - int8
    return (
        _version("torch", reference, reference, 0),
        _version("onnx", plain, reference, sum(path.stat().st_size for path in full)),
        _version("int8", small, reference, sum(path.stat().st_size for path in int8)),
    )


def _in_turns(stage: Stage, agents: Sequence[Agent]) -> list[RolloutLog]:
    """Let agents play all episodes, some at a time each."""
    parts: list[list[RolloutLog]] = [[] for _ in agents]
    for first in range(0, len(stage.suite), TURN):
        some = stage.some(slice(first, first + TURN))
        for mine, agent in zip(parts, agents, strict=True):
            mine.append(some.play(agent))
    return [
        RolloutLog(
            agent.name,
            stage.suite,
            np.concatenate([part.path for part in mine]),
            np.concatenate([part.found for part in mine]),
            np.concatenate([part.steps for part in mine]),
            sum(part.seconds for part in mine),
        )
        for agent, mine in zip(agents, parts, strict=True)
    ]


def _version(name: str, played: RolloutLog, reference: RolloutLog, size: int) -> Version:
    same = (played.path == reference.path).all(axis=(1, 2))
    ms = 1000 * played.seconds / max(1, int(played.steps.sum()))
    return Version(name, size, ms, float(played.found.mean()), float(same.mean()))
