"""An agent in one episode of a field search: a batch of one, with its state.

Legend: glimpses are uint8 RGB (48, 48, 3); a belief is (rows, cols).
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, EpisodeBatch, belief_of
from airloc.agents.any_day import AnyDayAgent
from airloc.agents.any_heading import AnyHeadingAgent
from airloc.agents.belief import BeliefAgent
from airloc.agents.matching import with_match
from airloc.areas.area import Pixels
from airloc.errors import AirlocError
from airloc.grid import MOVES, Cell, Grid
from airloc.missions.photos import Goal
from airloc.seeding import stream
from airloc.task.batch import Observation
from airloc.vision.sentences import embed_descriptions

Belief = npt.NDArray[np.float64]
_Believer = BeliefAgent | AnyHeadingAgent | AnyDayAgent
"""Agents with a belief, which observe without a move."""


class AgentSession:
    """An agent in one episode: a batch of one, with its state.

    Args:
        agent: The agent.
        goal: The goal.
        grid: The grid of cells.
        start: Cell in which the agent starts.
        budget: Moves of the episode.
        seed: Random seed for agents that sample.
        prior: Probability of the goal in every cell, (rows, cols); None if nothing is known.
    """

    def __init__(
        self,
        agent: Agent,
        goal: Goal,
        grid: Grid,
        start: Cell,
        budget: int,
        seed: int,
        prior: Belief | None = None,
    ) -> None:
        if goal.text and not isinstance(agent, BeliefAgent):
            raise AirlocError(f"The agent {agent.name!r} reads no descriptions", "Use belief, or give a picture alone")
        self.position = start
        """Current cell of the agent; it may be outside the grid."""
        self.moves = 0
        self.observed: set[Cell] = set()
        """Cells that the agent has acted on."""
        self._agent, self._grid, self._budget = with_match(_in_the_field(agent, goal)), grid, budget
        noise = torch.from_numpy(stream(seed, "searcher").random((1, budget, len(MOVES)), dtype=np.float32))
        known = None if prior is None else torch.from_numpy(prior.reshape(1, -1)).float()
        text = torch.from_numpy(embed_descriptions([goal.text])) if goal.text else None
        with torch.inference_mode():
            self._state = self._agent.reset(
                EpisodeBatch(torch.from_numpy(goal.patch.copy())[None], grid, budget, noise, known, text)
            )

    @property
    def finished(self) -> bool:
        """True when the agent has made all its moves."""
        return self.moves >= self._budget

    def match(self, cell: Cell, glimpse: Pixels) -> float:
        """Return the probability that a glimpse of a cell shows the goal."""
        with torch.inference_mode():
            probability, self._state = self._agent.match(self._observation(cell, glimpse), self._state)
        return float(probability)

    def step(self, glimpse: Pixels | None) -> None:
        """Let the agent observe its current cell, black if None, and move."""
        side = self._grid.cell
        pixels = np.zeros((side, side, 3), dtype=np.uint8) if glimpse is None else glimpse
        with torch.inference_mode():
            action, self._state = self._agent.act(self._observation(self.position, pixels), self._state)
        self.observed.add(self.position)
        row, col = (np.array(self.position) + MOVES[int(action)]).tolist()
        self.position, self.moves = (row, col), self.moves + 1

    def watch(self, cell: Cell, glimpse: Pixels) -> None:
        """Let the agent observe a photo of any cell without a move, if it keeps a belief."""
        if isinstance(self._agent, _Believer):
            with torch.inference_mode():
                self._state = self._agent.observe(self._observation(cell, glimpse), self._state)
            self.observed.add(cell)

    def place(self) -> Belief | None:
        """Return the belief of the agent without the exclusion of visited cells, (rows, cols), or None."""
        if not isinstance(self._agent, _Believer):
            return None
        return self._agent.place(self._state)[0].double().cpu().numpy().reshape(self._grid.shape)

    def belief(self) -> Belief | None:
        """Return the belief of the agent, (rows, cols), or None if it has none."""
        own = belief_of(self._state)
        return None if own is None else own[0].double().cpu().numpy().reshape(self._grid.shape)

    def _observation(self, cell: Cell, glimpse: Pixels) -> Observation:
        patch = torch.from_numpy(glimpse.copy())[None]
        return Observation(patch, torch.tensor([cell]), torch.tensor([self._budget - self.moves]))


def _in_the_field(agent: Agent, goal: Goal) -> Agent:
    """Let `belief` search for goals anywhere: in any cell, the start included, between cells, and of any heading.

    `belief-any-day` takes headings to be known.
    """
    if isinstance(agent, AnyDayAgent):
        sharp, blurred = (replace(part, prior="anywhere", between=True) for part in (agent.sharp, agent.blurred))
        return replace(agent, sharp=sharp, blurred=blurred)
    if not isinstance(agent, BeliefAgent):
        return agent
    agent = replace(agent, prior="anywhere", between=True)
    return AnyHeadingAgent(agent) if goal.turn is None else agent
