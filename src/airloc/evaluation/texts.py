"""Goals in words: the descriptions of a suite as embeddings, their controls, and whether a path found one that fits.

| control      | what the agent reads                                                                  |
|--------------|---------------------------------------------------------------------------------------|
| `wrong-text` | the description of a goal in another area                                             |
| `no-text`    | nothing: the score of the prior and the planner alone                                 |
| `true-text`  | which cells the description fits, before the first glimpse: the ceiling of any reader |

Legend: E episodes, C cells, T budget.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent
from airloc.agents.airloc import AirlocAgent, LocalAgent
from airloc.errors import AirlocError
from airloc.evaluation.metrics import Metric
from airloc.rollout import GoalPatches, RolloutLog
from airloc.seeding import stream
from airloc.task.goal_prior import goal_prior
from airloc.task.goal_texts import SuiteTexts
from airloc.task.rules import inside
from airloc.task.suites import Suite
from airloc.vision.sentences import check_description, clauses, embed_descriptions

TEXT_CONTROLS = ("wrong-text", "no-text", "true-text")
_UNFIT = 0.01
"""Likelihood of a cell that a description does not fit relative to one that it fits, with `true-text`."""


@dataclass(frozen=True)
class DescribedGoals:
    """How the goals of an evaluation are described."""

    texts: SuiteTexts
    pictures: bool = False
    """Give the agent the goal patches too."""
    control: str | None = None
    """One of `TEXT_CONTROLS`."""

    def inputs(self, suite: Suite, seed: int) -> dict[str, Any]:
        """Return the arguments of `rollout`: embedded descriptions, or evidence, and black goal patches if needed."""
        inputs: dict[str, Any] = {} if self.pictures else {"goal_patches": black_goals(suite)}
        if self.control == "true-text":
            if self.texts.fits is None:
                raise AirlocError("--control true-text needs the cells that fit", "Add a column fits to --goal-texts")
            return {**inputs, "goal_prior": _true_prior(suite, self.texts.fits)}
        texts = [""] * len(suite) if self.control == "no-text" else self.texts.texts
        if self.control == "wrong-text":
            texts = [texts[number] for number in _other_areas(suite, seed)]
        unique = tuple(sorted(set(texts)))
        rows = _embed(unique)
        place = {text: number for number, text in enumerate(unique)}
        return {**inputs, "goal_texts": rows[[place[text] for text in texts]]}


@lru_cache(maxsize=1)
def _embed(texts: tuple[str, ...]) -> torch.Tensor:
    """Embed descriptions, once for all agents that are evaluated on them."""
    return torch.from_numpy(embed_descriptions(texts))


def check_reader(agent: Agent) -> None:
    """Raise an error for an agent that needs a goal picture."""
    if isinstance(agent, AirlocAgent | LocalAgent):
        raise AirlocError(f"The agent {agent.name!r} reads no descriptions", "Use belief, or goals with pictures")


def check_texts(suite: Suite, texts: SuiteTexts) -> list[str]:
    """Check the descriptions of the goals of a suite, and return warnings about them.

    Raises:
        AirlocError: If a description is too long; the message names the cell.
    """
    warnings: Counter[str] = Counter()
    for text, area, goal in zip(texts.texts, suite.area.tolist(), suite.goal.tolist(), strict=True):
        if not clauses(text):
            warnings["The description of the goal is empty: the goal is searched without words"] += 1
            continue
        try:
            warnings.update(check_description(text))
        except AirlocError as error:
            problem = f"{error.problem} (cell {tuple(goal)} of {suite.areas[area]!r})"
            raise AirlocError(problem, error.cure) from None
    return [f"{warning} ({count} of {len(suite)} goals)" for warning, count in warnings.items()]


def black_goals(suite: Suite) -> GoalPatches:
    """Return black goal patches, which show nothing."""
    side = suite.grid.cell
    black = torch.zeros(1, side, side, 3, dtype=torch.uint8)
    return lambda numbers: black.to(numbers.device).expand(len(numbers), -1, -1, -1)


def _true_prior(suite: Suite, fits: npt.NDArray[np.bool_]) -> torch.Tensor:
    """Return the per-distance prior of every episode, times how well the cells fit, (E, C)."""
    shape, moves = suite.grid.shape, suite.grid.moves
    prior = np.stack([goal_prior("per-distance", (row, col), *shape, moves) for row, col in suite.start.tolist()])
    prior = prior * np.where(fits, 1.0, _UNFIT)
    return torch.from_numpy(prior / prior.sum(axis=1, keepdims=True)).float()


def _other_areas(suite: Suite, seed: int) -> list[int]:
    """Return an episode in another area for every episode."""
    if len(np.unique(suite.area)) < 2:
        raise AirlocError("A wrong text comes from another area, but there is only one", "Use at least two areas")
    rng = stream(seed, "control", "wrong-text")
    chosen = rng.integers(len(suite), size=len(suite))
    while (same := suite.area[chosen] == suite.area).any():
        chosen[same] = rng.integers(len(suite), size=int(same.sum()))
    numbers: list[int] = chosen.tolist()
    return numbers


def fitting_metric(log: RolloutLog, texts: SuiteTexts) -> dict[str, Metric]:
    """Return the share of episodes that visited a cell that fits, other than the start; empty if fits are unknown."""
    if texts.fits is None:
        return {}
    suite = log.suite
    path = log.path[:, 1:]  # (E, T, 2); after the end the last cell repeats
    within = inside(path, suite.grid)
    index = np.where(within, path[..., 0] * suite.grid.cols + path[..., 1], 0)
    start = suite.start[:, 0] * suite.grid.cols + suite.start[:, 1]
    fits = texts.fits.copy()
    fits[np.arange(len(suite)), start] = False
    found = (np.take_along_axis(fits, index, axis=1) & within).any(axis=1)
    weight = suite.weight / suite.weight.sum() * len(suite)
    return {"found_fitting": Metric(weight * found, weight)}
