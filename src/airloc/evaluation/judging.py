"""What agents say of being there: the probability at every glimpse that it shows the goal, while nobody acts on it.

Episodes are flown to the end of their budget: nobody is told of an arrival, and nothing is declared. So a goal that was
flown over and not recognised stays among what was seen, as in the field.

Legend: E episodes, B of a batch, T budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, Briefing
from airloc.agents.declaring import declaring
from airloc.areas.area import SearchArea
from airloc.evaluation.intervals import Bootstrap
from airloc.evaluation.reliability import Bools, Reliability, first_sights, reliability
from airloc.rollout import play
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.suites import Suite

NEVER = 2.0
"""A probability that nobody reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What an agent said at every glimpse of a suite."""

    agent: str
    areas: Sequence[SearchArea]
    suite: Suite
    path: npt.NDArray[np.int64]
    """Cells from the start on, (E, T + 1, 2)."""
    here: npt.NDArray[np.float32]
    """The probability said at each of them that it is the goal's, (E, T + 1)."""

    @property
    def asked(self) -> Bools:
        """Which glimpses count, (E, T + 1): every cell when it is first seen."""
        return first_sights(self.path, self.suite.grid)


class _Silent:
    """Plays as an agent does, and notes what it would say."""

    def __init__(self, agent: Agent) -> None:
        self._agent = declaring(agent)
        self.name = agent.name
        self.said: list[list[torch.Tensor]] = []

    def reset(self, briefing: Briefing) -> Any:
        self.said.append([])
        return self._agent.reset(briefing)

    def here(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        here, state = self._agent.here(observation, state)
        self.said[-1].append(here.float().cpu())
        return here, state

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        return self._agent.act(observation, state)


def judge(
    agent: Agent,
    areas: Sequence[SearchArea],
    suite: Suite,
    *,
    goal_areas: Sequence[SearchArea] | None = None,
    seed: int = 0,
    batch: int = 1024,
    device: str = "cpu",
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> Judged:
    """Play a suite in silence and keep what the agent would have said.

    Args:
        agent: Who searches; without a judgement of its own it has that of the likeness.
        areas: The areas, numbered as in the suite.
        suite: The episodes.
        goal_areas: Other pictures of the same ground to take the goals from, one for each area.
        seed: Decides every random choice.
        batch: Episodes in step.
        device: Where the areas are kept.
        on_batch: Called with the number of episodes just played.
    """
    suite = replace(suite, by_declaration=True)
    cells = CellTable.of(areas, suite.grid, device)
    goal_cells = None if goal_areas is None else CellTable.of(goal_areas, suite.grid, device)
    env = BatchEnv(cells, suite.budget, goal_cells, by_declaration=True)
    silent = _Silent(agent)
    played = play(silent, suite, env, seed=seed, batch=batch, threshold=NEVER, on_batch=on_batch)
    here = np.concatenate([torch.stack(said, dim=1).numpy() for said in silent.said])
    return Judged(agent.name, areas, suite, played.path, here)


def here_reliability(judged: Judged, *, seed: int = 0) -> Reliability:
    """How often a glimpse was the goal's, over how probable that was said to be."""
    suite = judged.suite
    bootstrap = Bootstrap([judged.areas[area].source for area in suite.area.tolist()], seed)
    is_goal = (judged.path == suite.goal[:, None]).all(axis=2)
    return reliability(judged.here, is_goal, judged.asked, suite.weight, bootstrap)
