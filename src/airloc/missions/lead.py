"""The agent that leads a search, one glimpse at a time: a batch of one, with its state.

Legend: glimpses are uint8 RGB (48, 48, 3).
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, Briefing
from airloc.agents.belief import BeliefAgent
from airloc.agents.declaring import declaring
from airloc.areas.area import Pixels
from airloc.grid import MOVES, Cell, Grid
from airloc.seeding import stream
from airloc.task.batch import Observation


class Lead:
    """An agent in its episode.

    Args:
        agent: Who leads.
        goal: The picture of the goal.
        grid: The cells.
        start: Where the agent begins.
        budget: Moves it may make.
        seed: Decides the choices of agents that draw.
    """

    def __init__(self, agent: Agent, goal: Pixels, grid: Grid, start: Cell, budget: int, seed: int) -> None:
        self.at = start
        """Where the agent is: the cell that it is to be shown next, perhaps outside the grid."""
        self.moves = 0
        self.shown: set[Cell] = set()
        """The cells that it was shown."""
        self._agent, self._grid, self._budget = declaring(_in_the_field(agent)), grid, budget
        noise = torch.from_numpy(stream(seed, "searcher").random((1, budget, len(MOVES)), dtype=np.float32))
        with torch.inference_mode():
            self._state = self._agent.reset(Briefing(torch.from_numpy(goal.copy())[None], grid, budget, noise))

    @property
    def spent(self) -> bool:
        """Whether all its moves are made."""
        return self.moves >= self._budget

    def here(self, cell: Cell, glimpse: Pixels) -> float:
        """The probability that a glimpse is the goal's."""
        with torch.inference_mode():
            here, self._state = self._agent.here(self._observation(cell, glimpse), self._state)
        return float(here)

    def show(self, glimpse: Pixels | None) -> None:
        """Show the agent where it is, black where there is nothing to see, and let it move."""
        side = self._grid.cell
        seen = np.zeros((side, side, 3), dtype=np.uint8) if glimpse is None else glimpse
        with torch.inference_mode():
            action, self._state = self._agent.act(self._observation(self.at, seen), self._state)
        self.shown.add(self.at)
        row, col = (np.array(self.at) + MOVES[int(action)]).tolist()
        self.at, self.moves = (row, col), self.moves + 1

    def belief(self) -> npt.NDArray[np.float64] | None:
        """The agent's own belief over the cells, (rows, cols); None where it has none."""
        own: torch.Tensor | None = getattr(self._state, "belief", None)
        return None if own is None else own[0].double().cpu().numpy().reshape(self._grid.shape)

    def _observation(self, cell: Cell, glimpse: Pixels) -> Observation:
        patch = torch.from_numpy(glimpse.copy())[None]
        return Observation(patch, torch.tensor([cell]), torch.tensor([self._budget - self.moves]))


def _in_the_field(agent: Agent) -> Agent:
    """The agent as it plays where goals lie anywhere, the start included, near ones no likelier than far ones."""
    return replace(agent, prior="anywhere") if isinstance(agent, BeliefAgent) else agent
