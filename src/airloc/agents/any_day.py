"""A belief agent for goals whose picture may be from another day.

Sharp detail tells neighbours of one day apart and misleads between days, where slightly blurred patches tell more. The
agent keeps two beliefs, one from sharp patches and one from blurred ones, for the hypotheses that the picture is from
the day of the flight and that it is not. The belief is their mean, weighted by the probability of the hypotheses. A
belief that was sure of a cell without the goal has been wrong, so that every visit without a find updates these
probabilities: by what each belief had left for other cells.

Legend: B episodes, C cells, two hypotheses.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from airloc.agents.agent import EpisodeBatch, select_action
from airloc.agents.belief import BeliefAgent, BeliefState, move_values
from airloc.task.batch import Observation
from airloc.task.rules import inside

SURE = 0.999
"""Largest probability of a cell that counts, so that no hypothesis is excluded for good."""


class DayState(NamedTuple):
    """State of an `AnyDayAgent`."""

    sharp: BeliefState
    blurred: BeliefState
    days: torch.Tensor
    """Probability that sharp and that blurred patches tell more, (B, 2)."""
    belief: torch.Tensor
    """Probability of every cell of being the goal, (B, C). Rows sum to one."""


@dataclass(frozen=True, eq=False)
class AnyDayAgent:
    """Searches for goals of the same day or of another one, at twice the cost of `belief`."""

    name: str
    sharp: BeliefAgent
    blurred: BeliefAgent

    def reset(self, episodes: EpisodeBatch) -> DayState:
        """Return the prior over cells; both hypotheses are equally probable."""
        sharp, blurred = self.sharp.reset(episodes), self.blurred.reset(episodes)
        return DayState(sharp, blurred, torch.full((len(sharp.belief), 2), 0.5).to(sharp.belief), sharp.belief)

    @torch.inference_mode()
    def act(self, observation: Observation, state: DayState) -> tuple[torch.Tensor, DayState]:
        """Update the belief and plan a move."""
        state = self.observe(observation, state)
        sharp, moves_left = state.sharp, int(observation.moves_left.min())
        values = move_values(self.sharp.planner, state.belief, observation.position, moves_left, sharp.grid)
        noise = sharp.noise[:, sharp.step - 1] if self.sharp.sample else None
        return (select_action(values) if noise is None else select_action(values.clamp(min=0).log(), noise)), state

    @torch.inference_mode()
    def observe(self, observation: Observation, state: DayState) -> DayState:
        """Return the state after a glimpse, without a move: both beliefs and the probabilities of the hypotheses."""
        days = _after_visit(observation, state)
        sharp = self.sharp.observe(observation, state.sharp)
        blurred = self.blurred.observe(observation, state.blurred)
        return DayState(sharp, blurred, days, days[:, :1] * sharp.belief + days[:, 1:] * blurred.belief)

    def place(self, state: DayState) -> torch.Tensor:
        """Return the probability of every cell, visited or not, (B, C): that the goal image was taken there."""
        places = self.sharp.place(state.sharp), self.blurred.place(state.blurred)
        return state.days[:, :1] * places[0] + state.days[:, 1:] * places[1]

    def match(self, observation: Observation, state: DayState) -> tuple[torch.Tensor, DayState]:
        """Return the probability (B,) that the glimpse shows the goal, and the state with the glimpse cached."""
        one, sharp = self.sharp.match(observation, state.sharp)
        other, blurred = self.blurred.match(observation, state.blurred)
        days = _after_visit(observation, state)
        return days[:, 0] * one + days[:, 1] * other, state._replace(sharp=sharp, blurred=blurred)


def _after_visit(observation: Observation, state: DayState) -> torch.Tensor:
    """Return the probabilities of the hypotheses (B, 2) given that the cell of the observation has no goal."""
    grid, position = state.sharp.grid, observation.position
    if state.sharp.step == 0:  # the start never has the goal
        return state.days
    row, col = position[:, 0].clamp(0, grid.rows - 1), position[:, 1].clamp(0, grid.cols - 1)
    cell = (row * grid.cols + col)[:, None]
    expected = torch.cat([part.belief.gather(1, cell) for part in (state.sharp, state.blurred)], dim=1)
    left = state.days * (1 - expected.clamp(max=SURE) * inside(position, grid)[:, None])
    return left / left.sum(dim=1, keepdim=True)
