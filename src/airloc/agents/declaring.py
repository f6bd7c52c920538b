"""Saying "here": agents that tell how probable it is that the glimpse below shows the goal.

In the field nobody tells an agent that it has arrived. An agent that can judge this itself has a third verb,
`here(observation, state)`. Any other is given the reference judgement, the likeness of glimpse and goal.

Legend: B episodes.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.similarity import same_place
from airloc.task.batch import Observation
from airloc.task.rules import check_false_alarm_cost


@runtime_checkable
class DeclaringAgent(Protocol):
    """An agent that can also say whether it has arrived."""

    @property
    def name(self) -> str:
        """What the agent is called in tables."""
        ...

    def reset(self, episodes: EpisodeBatch) -> Any:
        """Give the state before the first move."""
        ...

    def match(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """The probability that the glimpse is the goal's, (B,), from what is seen and was remembered before it.

        The state that comes with it is for acting on the same glimpse: what it cost to recognise is not paid twice.
        """
        ...

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Choose moves (B,) from what is seen and remembered; give the state for the next call."""
        ...


def declaring(agent: Agent) -> DeclaringAgent:
    """Give an agent that can say "here": itself, or with the reference judgement where it has none."""
    return cast("DeclaringAgent", agent) if hasattr(agent, "match") else SimilarityDeclarer(agent)


def threshold_for(false_alarm_cost: float) -> float:
    """The probability from which on declaring pays, when a false alarm costs that many finds.

    Declaring gains a find with probability p and loses the cost with 1 - p: it pays from cost / (1 + cost) on.

    >>> threshold_for(1.0), threshold_for(4.0)
    (0.5, 0.8)
    """
    cost = check_false_alarm_cost(false_alarm_cost)
    return cost / (1 + cost)


class State(NamedTuple):
    """The goal's picture, and what the agent itself remembers."""

    goal: torch.Tensor
    inner: Any

    @property
    def belief(self) -> torch.Tensor | None:
        """The agent's belief over the cells, where it has one."""
        return getattr(self.inner, "belief", None)


@dataclass(frozen=True)
class SimilarityDeclarer:
    """Plays as another agent does, and judges by the likeness of glimpse and goal."""

    agent: Agent

    @property
    def name(self) -> str:
        """The name of the agent that plays."""
        return self.agent.name

    def reset(self, episodes: EpisodeBatch) -> State:
        """Keep the goal's picture."""
        return State(episodes.goal, self.agent.reset(episodes))

    def match(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """Compare glimpse and goal."""
        return same_place(observation.patch, state.goal), state

    def act(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """Let the agent act."""
        action, inner = self.agent.act(observation, state.inner)
        return action, state._replace(inner=inner)
