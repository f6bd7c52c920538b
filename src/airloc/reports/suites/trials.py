"""How agents did on suites: what the tables are made from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from airloc.evaluation.intervals import Bootstrap, Interval
from airloc.evaluation.metrics import Metric
from airloc.reports.suites.recipes import Recipe


@dataclass(frozen=True, eq=False)
class Trial:
    """How one agent did on one suite."""

    agent: str
    recipe: Recipe
    record: dict[str, Any]
    """The record of the `evaluate` contract."""
    episodes: Path
    """Which episodes were found, how much each counts and what its area was cut from; see `pack_episodes`."""
    made_from: dict[str, str] = field(default_factory=dict)
    """Digests of the data, the weights and the code, and the address of the result."""

    @property
    def success(self) -> float:
        """Share of goals found."""
        return float(self.record["success"])

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the success."""
        low, high = self.record["ci95"]["success"]
        return low, high

    @property
    def seed(self) -> int:
        """What the episodes were drawn by."""
        return int(self._packed["seed"])

    @cached_property
    def _packed(self) -> dict[str, Any]:
        packed: dict[str, Any] = json.loads(self.episodes.read_bytes())
        return packed

    def minus(self, other: "Trial") -> tuple[float, Interval]:
        """By how much this agent found more than another on the same episodes, and the paired interval."""
        mine, theirs = self._packed, other._packed
        weight = np.array(mine["weight"])
        found = [weight * [letter == "1" for letter in packed["found"]] for packed in (mine, theirs)]
        metrics = [Metric(each, weight) for each in found]
        bootstrap = Bootstrap([mine["tiles"][area] for area in mine["area"]], self.seed)
        return self.success - other.success, bootstrap.difference(*metrics)


@dataclass(frozen=True)
class Skipped:
    """A suite that could not be played here."""

    recipe: Recipe
    why: str


def pack_episodes(
    found: Sequence[bool], area: Sequence[int], tiles: Sequence[str], weight: Sequence[float], seed: int
) -> str:
    """The text of a trial's `episodes` file.

    Args:
        found: Whether each goal was found, (E,).
        area: Number of each episode's area, (E,).
        tiles: What each area was cut from.
        weight: How much each episode counts, (E,).
        seed: Decides the bootstrap.
    """
    letters = "".join("1" if one else "0" for one in found)
    packed = {"found": letters, "area": list(area), "tiles": list(tiles), "weight": list(weight), "seed": seed}
    return json.dumps(packed) + "\n"
