"""Play an exported agent and compare it with the agent it was made from, on the same episodes and on one core."""

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

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
_TURN = 5
"""Episodes that one version plays before the next version plays the same episodes."""


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
