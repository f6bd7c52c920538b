"""What a report is made from: who played where, and how it went."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloc.evaluation.benchmarks.paper import Row, Table


@dataclass(frozen=True)
class Setup:
    """One agent on one suite: what identifies a result in a report."""

    agent: str
    data: str
    """masa, dubai or xbd-disaster."""
    split: str
    grid: str = "5x5"
    trained_on: str = "masa"
    seed: str = "median"
    """`median`, or the number of another seed."""
    suite: str = "per-distance"
    moves: int = 8

    @classmethod
    def of(cls, table: Table, row: Row) -> "Setup":
        """The setup of a row of the paper."""
        return cls(row.agent, table.data, table.split, row.grid, row.trained_on, row.seed)


@dataclass(frozen=True, eq=False)
class Outcome:
    """How an agent did in a setup."""

    setup: Setup
    score: Mapping[str, Any]
    """The record of the `evaluate` contract."""
    agreement: Mapping[str, Any] | None
    """How often the exploitation prior was followed, by distance, where the agent has one."""
    calibration: Mapping[str, Any] | None
    tiles: Mapping[str, str]
    """What each area was cut from, which a bootstrap resamples."""
    episodes: Path
    """One JSON line an episode."""
    areas: Path
    """The prepared areas that were flown over."""

    def success_at(self, distances: list[int]) -> list[float]:
        """Success at each of some distances; over all of them where none is named."""
        if not distances:
            return [float(self.score["success"])]
        return [float(self.score["success_by_distance"][str(distance)]) for distance in distances]

    def searches(self) -> list[dict[str, Any]]:
        """All episodes with their paths."""
        return [json.loads(line) for line in self.episodes.read_text(encoding="utf-8").splitlines()]


Outcomes = Mapping[Setup, Outcome]


@dataclass(frozen=True, eq=False)
class Curve:
    """How a training went."""

    agent: str
    trained_on: str
    steps: tuple[int, ...]
    """Episodes, of each seed."""
    success: tuple[float, ...]
    """Mean validation success of the seeds."""
