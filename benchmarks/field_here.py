"""How `belief` should hear the likeness when it says "here": `python -m benchmarks.field_here [AGENT]`.

Plays searches in silence and fits the three numbers of `airloc.agents.matching.SAME_PLACE` so that the probabilities said
at all glimpses have the smallest logarithmic loss, the mean over these sets:

| set           | goal from          | areas                                                            |
|---------------|--------------------|------------------------------------------------------------------|
| michael       | before the disaster | xBD's hurricane Michael, in $AIRLOC_DATA                        |
| masa          | the same day       | Massachusetts, the validation windows, in $AIRLOC_DATA           |
| procedural    | before the disaster | 75 worlds after a fire, a flood or a storm                      |
| procedural, same day | the same day | the same                                                       |

Prints the fit beside what is in use and beside the network heard alone, and for each how reliable the probabilities are
and what declaring by them would give. Takes some minutes. For other pictures: `airloc calibration --here` and
`airloc evaluate --false-alarm-cost`.

Legend: E episodes, T glimpses of each, C cells.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import softmax

from airloc.agents.agent import EpisodeBatch
from airloc.agents.belief import is_flat
from airloc.agents.matching import SAME_PLACE, SamePlaceCalibration, declaration_threshold, similarity
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.areas.synthetic import DISASTERS, Synthetic
from airloc.cli.options import PlayOptions, load_episodes
from airloc.evaluation.analysis import first_glimpses
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.suites import Suite, end_by_declaration, per_distance

GRID = Grid(5, 5)
WORLDS = 25
"""Worlds a disaster."""
SEED = 40
ALONE = SamePlaceCalibration(1.0, 0.0, 0.0)
"""The network heard alone."""
COSTS = (1, 4, 20)
BINS = (0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0001)


class Glimpses(NamedTuple):
    """All that is needed to judge what was seen, for any witness."""

    evidence: np.ndarray
    """Of the network alone, after each glimpse, (E, T, C)."""
    cell: np.ndarray
    """The cell seen, (E, T)."""
    alike: np.ndarray
    """Correlation with the goal, (E, T)."""
    shown: np.ndarray
    """Whether there was something to see, (E, T)."""
    first: np.ndarray
    """Whether it was seen for the first time, (E, T)."""
    is_goal: np.ndarray
    """Whether it was the goal, (E, T)."""

    def match(self, calibration: SamePlaceCalibration) -> np.ndarray:
        """The probability said at each glimpse, (E, T)."""
        heard = calibration.weight * (self.alike - calibration.midpoint) * (self.shown & self.first)
        places = np.eye(self.evidence.shape[2])[self.cell]  # (E, T, C)
        odds = calibration.scale * (self.evidence + (heard[..., None] * places).cumsum(axis=1))
        said: np.ndarray = np.take_along_axis(softmax(odds, axis=2), self.cell[..., None], axis=2)[..., 0]
        return said


class Notes:
    """Plays as `belief` does with the network heard alone, and notes what it sees; never says "here"."""

    def __init__(self, agent: Any) -> None:
        self._agent = replace(agent, calibration=ALONE)
        self.name = agent.name
        self.notes: list[tuple[torch.Tensor, ...]] = []

    def reset(self, episodes: EpisodeBatch) -> Any:
        """Keep the goal."""
        self._goal = episodes.goal
        return self._agent.reset(episodes)

    def match(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Note what is seen, and keep silent."""
        after = self._agent.observe(observation, state)
        shown = ~(is_flat(observation.patch) | is_flat(self._goal))
        self.notes.append((after.evidence, similarity(observation.patch, self._goal), shown))
        return torch.zeros(len(shown)), state._replace(cache=after.cache)

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Let the agent act."""
        return self._agent.act(observation, state)


def main() -> None:
    torch.set_num_threads(1)
    agent = make_agent(sys.argv[1] if len(sys.argv) > 1 else "belief")
    sets = {name: glimpses(agent, *areas) for name, areas in areas_of().items()}
    for name, calibration in (("network alone", ALONE), ("in use", SAME_PLACE), ("fitted", fit(list(sets.values())))):
        print(
            f"\n{name}: temper {calibration.scale:.2f}, weight {calibration.weight:.1f}, neutral {calibration.midpoint:.3f}"
        )
        for kind, seen in sets.items():
            reached = seen.is_goal.any(axis=1).mean()
            print(
                f"  {kind}: {len(seen.cell):,} episodes, goal reached in {reached:.1%}, loss {loss(seen, calibration):.4f}"
            )
            show(seen, seen.match(calibration))


def areas_of() -> dict[str, tuple[Suite, Sequence[SearchArea], Sequence[SearchArea] | None]]:
    """Suites, areas and areas of the goals of all sets that can be had here."""
    before, after = [], []
    for number, disaster in enumerate(DISASTERS):
        areas = list(Synthetic(count=WORLDS, seed=SEED + number, disaster=disaster).areas(GRID))
        before, after = before + areas[::2], after + areas[1::2]
    suite = per_distance([area.name for area in after], GRID)
    sets: dict[str, tuple[Suite, Sequence[SearchArea], Sequence[SearchArea] | None]] = {
        "procedural": (suite, after, before),
        "procedural, same day": (suite, after, None),
    }
    if "AIRLOC_DATA" in os.environ:
        root = Path(os.environ["AIRLOC_DATA"])
        xbd, masa = root / "xbd" / "images", root / "masa" / "images"
        sets["michael"] = load_episodes(PlayOptions(areas=xbd, goals=xbd, only=("hurricane-michael_*",)))
        sets["masa"] = load_episodes(PlayOptions(areas=masa, split="val", cell_metres=100.0))
    return sets


def glimpses(
    agent: Any, suite: Suite, areas: Sequence[SearchArea], goal_areas: Sequence[SearchArea] | None
) -> Glimpses:
    """Play a suite in silence."""
    goals = None if goal_areas is None else CellTable.of(goal_areas, GRID)
    env = BatchEnv(CellTable.of(areas, GRID), suite.budget, goals, by_declaration=True)
    notes = Notes(agent)
    path = rollout(notes, end_by_declaration(suite), env, batch=len(suite), threshold=0.5).path
    evidence, alike, shown = (torch.stack(part, dim=1).numpy() for part in zip(*notes.notes, strict=True))
    is_goal = (path == suite.goal[:, None]).all(axis=2)
    return Glimpses(evidence, path @ np.array([GRID.cols, 1]), alike, shown, first_glimpses(path, GRID), is_goal)


def fit(sets: Sequence[Glimpses]) -> SamePlaceCalibration:
    """The witness with the smallest logarithmic loss."""
    best = minimize(
        lambda values: np.mean([loss(seen, SamePlaceCalibration(*values)) for seen in sets]),
        [0.5, 25.0, 0.15],
        method="Nelder-Mead",
        options={"xatol": 1e-2, "fatol": 1e-6, "maxiter": 300},
    )
    return SamePlaceCalibration(*(float(value) for value in best.x))


def loss(seen: Glimpses, calibration: SamePlaceCalibration) -> float:
    said = seen.match(calibration)[seen.first].clip(1e-6, 1 - 1e-6)
    return float(-np.log(np.where(seen.is_goal[seen.first], said, 1 - said)).mean())


def show(seen: Glimpses, here: np.ndarray) -> None:
    said, is_goal = here[seen.first], seen.is_goal[seen.first]
    for low, high in pairwise(BINS):
        these = (said >= low) & (said < high)
        if these.any():
            mean, share = said[these].mean(), is_goal[these].mean()
            print(f"    said {low:4.2f} to {min(high, 1):4.2f}: {mean:6.3f}, is {share:6.3f} ({these.sum():,})")
    for cost in COSTS:
        told = (here >= declaration_threshold(cost)) & seen.first
        when = told.argmax(axis=1)
        found = told.any(axis=1) & seen.is_goal[np.arange(len(told)), when]
        print(f"    cost {cost:2d}: found {found.mean():.1%}, false alarms {(told.any(axis=1) & ~found).mean():.1%}")


if __name__ == "__main__":
    main()
