"""An export played against the agent it came from, on the same episodes and on one core."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from airloc.agents.agent import Agent
from airloc.areas.area import SearchArea
from airloc.export.runner_agent import RunnerAgent
from airloc.grid import Grid
from airloc.rollout import Trajectories, play
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.suites import Suite, per_distance


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

    def play(self, agent: Agent) -> Trajectories:
        """Play all episodes one at a time, as a vehicle would."""
        return play(agent, self.suite, self.env, batch=1)

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
    """Play torch, onnx and int8 on the same episodes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        reference = stage.play(agent)
        plain = stage.play(RunnerAgent("onnx", runner.Agent(folder)))
        small = stage.play(RunnerAgent("int8", runner.Agent(folder, int8=True)))
    finally:
        torch.set_num_threads(threads)
    int8 = set(folder.glob("*.int8.onnx"))
    full = set(folder.glob("*.onnx")) - int8
    return (
        _version("torch", reference, reference, 0),
        _version("onnx", plain, reference, sum(path.stat().st_size for path in full)),
        _version("int8", small, reference, sum(path.stat().st_size for path in int8)),
    )


def _version(name: str, played: Trajectories, reference: Trajectories, size: int) -> Version:
    same = (played.path == reference.path).all(axis=(1, 2))
    ms = 1000 * played.seconds / max(1, int(played.steps.sum()))
    return Version(name, size, ms, float(played.found.mean()), float(same.mean()))
