"""Goals of any day: two beliefs, and a wrong one loses weight."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.any_day import AnyDayAgent, DayState
from airloc.agents.belief import BeliefAgent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task.batch import Observation
from airloc.task.suites import per_distance
from untrained import untrained_relation

GRID = Grid(5, 5)
BUDGET = 6


@pytest.fixture(scope="module")
def agent() -> AnyDayAgent:
    sharp = BeliefAgent("belief", untrained_relation())
    blurred = replace(sharp, network=untrained_relation())
    blurred.network.blurred = True
    return AnyDayAgent("belief-any-day", sharp, blurred)


def fly(agent: AnyDayAgent, steps: int) -> list[tuple[DayState, Observation]]:
    """Return the states before each observation of an episode, and the observations."""
    torch.manual_seed(0)
    patches = torch.randint(256, (steps + 1, 48, 48, 3), dtype=torch.uint8)
    state = agent.reset(EpisodeBatch(patches[:1], GRID, BUDGET, torch.zeros(1, BUDGET, 8)))
    flown = []
    for step in range(steps):
        cell = torch.tensor([[step % GRID.rows, 2]])
        observation = Observation(patches[step + 1 : step + 2], cell, torch.tensor([BUDGET - step]))
        flown.append((state, observation))
        _, state = agent.act(observation, state)
    return [*flown, (state, observation)]


def test_the_belief_is_the_mean_of_both_weighted_by_their_probability(agent: AnyDayAgent):
    state, _ = fly(agent, 4)[-1]
    mean = state.days[:, :1] * state.sharp.belief + state.days[:, 1:] * state.blurred.belief
    torch.testing.assert_close(state.belief, mean)
    assert float(state.belief.sum()) == pytest.approx(1, abs=1e-5)
    assert not torch.allclose(state.sharp.belief, state.blurred.belief)


def test_a_belief_that_was_sure_of_a_cell_without_the_goal_loses_weight(agent: AnyDayAgent):
    state, observation = fly(agent, 2)[1]
    cell = int(observation.position[0, 0]) * GRID.cols + int(observation.position[0, 1])
    sure, open_minded = torch.full((1, 25), 0.2 / 24), torch.full((1, 25), 0.6 / 24)
    sure[0, cell], open_minded[0, cell] = 0.8, 0.4
    state = state._replace(sharp=state.sharp._replace(belief=sure), blurred=state.blurred._replace(belief=open_minded))
    _, after = agent.act(observation, state)
    assert after.days[0].tolist() == pytest.approx([0.2 / 0.8, 0.6 / 0.8])


def test_no_hypothesis_is_excluded_for_good(agent: AnyDayAgent):
    state, observation = fly(agent, 2)[1]
    certain = torch.zeros(1, 25)
    certain[0, int(observation.position[0, 0]) * GRID.cols + int(observation.position[0, 1])] = 1
    both = (part._replace(belief=certain) for part in (state.sharp, state.blurred))
    _, after = agent.act(observation, DayState(*both, state.days, state.belief))
    assert after.days[0].tolist() == pytest.approx([0.5, 0.5])


def test_the_start_tells_nothing_about_the_day(agent: AnyDayAgent):
    states = fly(agent, 1)
    assert states[-1][0].days[0].tolist() == [0.5, 0.5]


def test_the_probability_of_a_match_lies_between_those_of_both_beliefs(agent: AnyDayAgent):
    state, observation = fly(agent, 3)[2]
    both, _ = agent.match(observation, state)
    alone = [
        float(part.match(observation, own)[0])
        for part, own in zip((agent.sharp, agent.blurred), (state.sharp, state.blurred), strict=True)
    ]
    assert min(alone) - 1e-6 <= float(both) <= max(alone) + 1e-6


def test_two_equal_beliefs_fly_as_one(agent: AnyDayAgent):
    areas = list(Synthetic(count=2, seed=21).areas(GRID))
    suite = per_distance([area.name for area in areas], GRID)
    one, two = (rollout(flyer, suite, areas) for flyer in (agent.sharp, AnyDayAgent("two", agent.sharp, agent.sharp)))
    assert np.array_equal(one.path, two.path)


def test_the_place_of_the_goal_image_may_be_a_visited_cell_and_lies_between_those_of_both_beliefs(agent: AnyDayAgent):
    state, _ = fly(agent, 3)[-1]
    place = agent.place(state)
    parts = torch.stack([agent.sharp.place(state.sharp), agent.blurred.place(state.blurred)])
    assert float(place.sum()) == pytest.approx(1, abs=1e-5)
    assert bool((place[state.sharp.visited] > 0).all())
    assert bool((place <= parts.amax(dim=0) + 1e-6).all() and (place >= parts.amin(dim=0) - 1e-6).all())


def test_observing_updates_the_belief_as_acting_does(agent: AnyDayAgent):
    state, observation = fly(agent, 3)[2]
    torch.testing.assert_close(agent.observe(observation, state).belief, agent.act(observation, state)[1].belief)
