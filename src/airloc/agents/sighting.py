"""The judge of the field in episodes that end by declaration: does this glimpse show the goal, and where?

Agents compare whole cells, so that they do not recognise a goal that lies between cells. With goals anywhere, every
agent has the judge of the live searcher (`airloc.missions.searcher`): the goal is located in the glimpse, and the
network compares both as they are aligned. A glimpse of the task shows its cell alone, and photos show more of the
ground, so that the searcher recognises more goals.

Legend: B episodes, S = 48 side of a patch.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.belief import BeliefAgent
from airloc.agents.matching import SIGHTING, comparison, same_place
from airloc.agents.pretrained import pretrained_locator
from airloc.agents.registry import make_agent
from airloc.areas.area import Pixels
from airloc.areas.changes import MAX_SCALE
from airloc.task.batch import Observation
from airloc.vision.locator import Compare, GoalViews, judge
from airloc.vision.relation import RelationNetwork

HEADING_ERROR = 6.0
"""Largest turn of a goal of known heading, in degrees."""
MAX_BATCH = 16
"""Episodes to play in parallel if the heading is unknown: the turned goals of each take up to 60 MB."""


class Judgement(NamedTuple):
    """What the judge says of a glimpse."""

    probability: float
    """Probability that the glimpse shows the goal."""
    row: float
    """Position of the goal's centre, in cells."""
    col: float


class SightingState(NamedTuple):
    """State of a `SightingMatcher`."""

    goal: torch.Tensor
    """Goal patches, (B, S, S, 3) uint8."""
    views: list[GoalViews]
    """The goal of every episode at its possible turns and scales."""
    per_cell: float
    """Side of a cell, in distances of two cells."""
    compare: Compare
    judged: dict[tuple[int, ...], Judgement]
    """Judgements by episode, row and column, so that no glimpse is judged twice."""
    reported: torch.Tensor
    """Where the last glimpse shows the goal, in rows and columns of cells, float (B, 2)."""
    inner: Any
    """State of the wrapped agent."""


@dataclass(frozen=True)
class SightingMatcher:
    """Wraps an agent and locates the goal in every glimpse.

    Args:
        agent: The agent.
        heading_known: The heading and the width of the goals are known, so that they are turned and scaled like cells.
    """

    agent: Agent
    heading_known: bool = True

    @property
    def name(self) -> str:
        """Name of the wrapped agent."""
        return self.agent.name

    def reset(self, episodes: EpisodeBatch) -> SightingState:
        """Prepare the goals and reset the wrapped agent."""
        turn, scale = ((-HEADING_ERROR, HEADING_ERROR), (1.0, 1.0))
        if not self.heading_known:
            turn, scale = (-180.0, 180.0), (1 / MAX_SCALE, MAX_SCALE)
        views = [GoalViews(goal, pretrained_locator(), turn, scale) for goal in episodes.goal.cpu().numpy()]
        compare, grid = comparison(matching_network(self.agent)), episodes.grid
        return SightingState(
            goal=episodes.goal,
            views=views,
            per_cell=grid.cell / grid.pitch,
            compare=compare,
            judged={},
            reported=torch.zeros(len(views), 2),
            inner=self.agent.reset(episodes),
        )

    def match(self, observation: Observation, state: SightingState) -> tuple[torch.Tensor, SightingState]:
        """Return the larger one of the agent's own probability and that of the sighting, (B,).

        The state reports where: in the middle of the cell, or where the goal was located.
        """
        if hasattr(self.agent, "match"):
            own, inner = self.agent.match(observation, state.inner)
            state = state._replace(inner=inner)
        else:
            own = same_place(observation.patch, state.goal)
        glimpses = zip(observation.patch.cpu().numpy(), observation.position.tolist(), strict=True)
        judged = torch.tensor([_sight(state, number, *glimpse) for number, glimpse in enumerate(glimpses)]).to(own)
        located, middle = judged[:, 1:], observation.position.to(own)
        reported = torch.where((own > judged[:, 0])[:, None], middle, located)
        return torch.maximum(own, judged[:, 0]), state._replace(reported=reported)

    def act(self, observation: Observation, state: SightingState) -> tuple[torch.Tensor, SightingState]:
        """Let the wrapped agent act."""
        action, inner = self.agent.act(observation, state.inner)
        return action, state._replace(inner=inner)


def match_any_heading(agent: Agent) -> SightingMatcher:
    """Wrap an agent whose goals have an unknown heading and width."""
    return SightingMatcher(agent, heading_known=False)


def _sight(state: SightingState, number: int, patch: Pixels, cell: list[int]) -> Judgement:
    """Locate an episode's goal in the glimpse of a cell; its probability is zero in a black patch."""
    key = (number, *cell)
    if key not in state.judged:
        margin = len(patch) // 2
        seen = np.pad(np.full(patch.shape[:2], patch.any()), margin)
        photo = np.pad(patch, ((margin, margin), (margin, margin), (0, 0)))
        found = judge(state.views[number], SIGHTING, state.compare, photo, seen, 0.0)
        row, col = cell[0] + found.down * state.per_cell, cell[1] + found.right * state.per_cell
        state.judged[key] = Judgement(found.probability, row, col)
    return state.judged[key]


def matching_network(agent: Agent) -> RelationNetwork:
    """Return the network that compares photos with the goal: the agent's, or that of `belief` if it has none."""
    return agent.network if isinstance(agent, BeliefAgent) else _pretrained_network()


@lru_cache(maxsize=1)
def _pretrained_network() -> RelationNetwork:
    """Return the network that compares photos for agents that have none, so that all agents have the same judge."""
    agent = make_agent("belief")
    assert isinstance(agent, BeliefAgent)
    return agent.network
