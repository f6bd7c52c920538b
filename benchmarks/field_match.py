"""Fit the match probability of `belief`: `python -m benchmarks.field_match [AGENT]`.

Plays searches without declarations and fits the three numbers of `airloc.agents.matching.SAME_PLACE`, which weigh the
network against the similarity. The fit minimises the logarithmic loss of the match probabilities of all glimpses,
averaged over these sets:

| set                  | goal from           | areas                                                  |
|----------------------|---------------------|--------------------------------------------------------|
| michael              | before the disaster | hurricane Michael in xBD, in $AIRLOC_DATA              |
| masa                 | the same day        | Massachusetts validation windows, in $AIRLOC_DATA      |
| procedural           | before the disaster | 75 worlds after a fire, a flood or a storm             |
| procedural, same day | the same day        | the same                                               |

Prints the fit, the numbers in use and the network alone, each with its reliability and with the finds and false alarms
of declarations. Takes a few minutes. For other images see `airloc analyse calibration --match` and
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
"""Worlds per disaster."""
SEED = 40
NETWORK_ALONE = SamePlaceCalibration(1.0, 0.0, 0.0)
COSTS = (1, 4, 20)
BINS = (0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0001)

Episodes = tuple[Suite, Sequence[SearchArea], Sequence[SearchArea] | None]


class Glimpses(NamedTuple):
    """The data from which any calibration computes match probabilities."""

    evidence: np.ndarray
    """Log evidence of the network alone after each glimpse, (E, T, C)."""
    cell: np.ndarray
    """Index of the observed cell, (E, T)."""
    similarity: np.ndarray
    """Similarity of glimpse and goal, (E, T)."""
    visible: np.ndarray
    """False if glimpse or goal has one colour, (E, T)."""
    first: np.ndarray
    """True for the first glimpse of a cell, (E, T)."""
    is_goal: np.ndarray
    """True if the cell is the goal, (E, T)."""

    def match(self, calibration: SamePlaceCalibration) -> np.ndarray:
        """Return the match probability of each glimpse, (E, T)."""
        weighed = calibration.weight * (self.similarity - calibration.midpoint) * (self.visible & self.first)
        one_hot = np.eye(self.evidence.shape[2])[self.cell]  # (E, T, C)
        logits = calibration.scale * (self.evidence + (weighed[..., None] * one_hot).cumsum(axis=1))
        probability: np.ndarray = np.take_along_axis(softmax(logits, axis=2), self.cell[..., None], axis=2)[..., 0]
        return probability


class SilentBelief:
    """Plays as `belief` with the network alone, records what it observes and never declares."""

    def __init__(self, agent: Any) -> None:
        self._agent = replace(agent, calibration=NETWORK_ALONE)
        self.name = agent.name
        self.records: list[tuple[torch.Tensor, ...]] = []

    def reset(self, episodes: EpisodeBatch) -> Any:
        """Keep the goal."""
        self._goal = episodes.goal
        return self._agent.reset(episodes)

    def match(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Record the glimpse; return a match probability of zero."""
        after = self._agent.observe(observation, state)
        visible = ~(is_flat(observation.patch) | is_flat(self._goal))
        self.records.append((after.evidence, similarity(observation.patch, self._goal), visible))
        return torch.zeros(len(visible)), state._replace(cache=after.cache)

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Let the agent act."""
        return self._agent.act(observation, state)


def main() -> None:
    torch.set_num_threads(1)
    agent = make_agent(sys.argv[1] if len(sys.argv) > 1 else "belief")
    sets = {name: play(agent, *episodes) for name, episodes in load_sets().items()}
    calibrations = {"network alone": NETWORK_ALONE, "in use": SAME_PLACE, "fitted": fit(list(sets.values()))}
    for name, (scale, weight, midpoint) in calibrations.items():
        print(f"\n{name}: scale {scale:.2f}, weight {weight:.1f}, midpoint {midpoint:.3f}")
        for title, glimpses in sets.items():
            reached, value = glimpses.is_goal.any(axis=1).mean(), loss(glimpses, calibrations[name])
            print(f"  {title}: {len(glimpses.cell):,} episodes, goal reached in {reached:.1%}, loss {value:.4f}")
            show(glimpses, glimpses.match(calibrations[name]))


def load_sets() -> dict[str, Episodes]:
    """Return all sets whose data is present."""
    before, after = [], []
    for number, disaster in enumerate(DISASTERS):
        areas = list(Synthetic(count=WORLDS, seed=SEED + number, disaster=disaster).areas(GRID))
        before, after = before + areas[::2], after + areas[1::2]
    suite = per_distance([area.name for area in after], GRID)
    sets: dict[str, Episodes] = {
        "procedural": (suite, after, before),
        "procedural, same day": (suite, after, None),
    }
    if "AIRLOC_DATA" in os.environ:
        root = Path(os.environ["AIRLOC_DATA"])
        xbd, masa = root / "xbd" / "images", root / "masa" / "images"
        sets["michael"] = load_episodes(PlayOptions(areas=xbd, goals=xbd, only=("hurricane-michael_*",)))
        sets["masa"] = load_episodes(PlayOptions(areas=masa, split="val", cell_metres=100.0))
    return sets


def play(agent: Any, suite: Suite, areas: Sequence[SearchArea], goal_areas: Sequence[SearchArea] | None) -> Glimpses:
    """Play a suite without declarations."""
    goals = None if goal_areas is None else CellTable.from_areas(goal_areas, GRID)
    env = BatchEnv(CellTable.from_areas(areas, GRID), suite.budget, goals, by_declaration=True)
    silent = SilentBelief(agent)
    path = rollout(silent, end_by_declaration(suite), env, batch=len(suite), threshold=0.5).path
    evidence, alike, visible = (torch.stack(part, dim=1).numpy() for part in zip(*silent.records, strict=True))
    is_goal = (path == suite.goal[:, None]).all(axis=2)
    return Glimpses(evidence, path @ np.array([GRID.cols, 1]), alike, visible, first_glimpses(path, GRID), is_goal)


def fit(sets: Sequence[Glimpses]) -> SamePlaceCalibration:
    """Return the calibration with the smallest logarithmic loss."""
    best = minimize(
        lambda values: np.mean([loss(glimpses, SamePlaceCalibration(*values)) for glimpses in sets]),
        [0.5, 25.0, 0.15],
        method="Nelder-Mead",
        options={"xatol": 1e-2, "fatol": 1e-6, "maxiter": 300},
    )
    return SamePlaceCalibration(*(float(value) for value in best.x))


def loss(glimpses: Glimpses, calibration: SamePlaceCalibration) -> float:
    predicted = glimpses.match(calibration)[glimpses.first].clip(1e-6, 1 - 1e-6)
    return float(-np.log(np.where(glimpses.is_goal[glimpses.first], predicted, 1 - predicted)).mean())


def show(glimpses: Glimpses, probability: np.ndarray) -> None:
    """Print the reliability of the match probabilities, and the finds and false alarms per cost."""
    predicted, is_goal = probability[glimpses.first], glimpses.is_goal[glimpses.first]
    for low, high in pairwise(BINS):
        chosen = (predicted >= low) & (predicted < high)
        if chosen.any():
            mean, observed = predicted[chosen].mean(), is_goal[chosen].mean()
            bounds = f"{low:4.2f} to {min(high, 1):4.2f}"
            print(f"    predicted {bounds}: {mean:6.3f}, observed {observed:6.3f} ({chosen.sum():,})")
    for cost in COSTS:
        declares = (probability >= declaration_threshold(cost)) & glimpses.first
        found = declares.any(axis=1) & glimpses.is_goal[np.arange(len(declares)), declares.argmax(axis=1)]
        false_alarms = declares.any(axis=1) & ~found
        print(f"    cost {cost:2d}: found {found.mean():.1%}, false alarms {false_alarms.mean():.1%}")


if __name__ == "__main__":
    main()
