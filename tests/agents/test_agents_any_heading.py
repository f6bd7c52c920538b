"""Goals of unknown heading: the belief covers cells and headings, and a turned goal is found like an upright one."""

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.any_heading import AnyHeadingAgent, HeadingState, turn_patches
from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.areas.changes import GoalTransform, cut_goal
from airloc.areas.synthetic import Synthetic
from airloc.grid import MOVES, Grid
from airloc.rollout import rollout
from airloc.task.batch import Observation
from airloc.task.cells import cut_patches
from airloc.task.suites import per_distance
from untrained import untrained_relation

GRID = Grid(5, 5)
BUDGET = 8


@pytest.fixture(scope="module")
def areas() -> list[SearchArea]:
    return list(Synthetic(count=4, seed=21).areas(GRID))


@pytest.fixture(scope="module")
def cells(areas: list[SearchArea]) -> torch.Tensor:
    """The patches of the first area, (25, 48, 48, 3)."""
    return torch.from_numpy(cut_patches(areas[0].image, GRID))


@pytest.fixture(scope="module")
def agent() -> AnyHeadingAgent:
    return AnyHeadingAgent(BeliefAgent("belief", untrained_relation(), prior="anywhere"), turns=8)


def flown(agent: AnyHeadingAgent, cells: torch.Tensor, goal: torch.Tensor) -> list[HeadingState]:
    """Return the states of an episode that starts in the middle."""
    state = agent.reset(EpisodeBatch(goal[None], GRID, BUDGET, torch.zeros(1, BUDGET, 8)))
    position, states = torch.tensor([[2, 2]]), []
    for step in range(BUDGET):
        patch = cells[position[:, 0] * GRID.cols + position[:, 1]]
        action, state = agent.act(Observation(patch, position, torch.tensor([BUDGET - step])), state)
        position = position + torch.from_numpy(MOVES)[action]
        states.append(state)
    return states


def quarter(patch: torch.Tensor, times: int) -> torch.Tensor:
    return torch.from_numpy(np.rot90(patch.numpy(), times).copy())


def test_turning_patches_clockwise_by_quarters_equals_rot90(cells: torch.Tensor):
    turned = turn_patches(cells[:3], 4).view(3, 4, 48, 48, 3)
    for patch, views in zip(cells[:3], turned, strict=True):
        for number, view in enumerate(views):
            assert torch.equal(view, quarter(patch, -number))


def test_the_beliefs_over_cells_and_turns_sum_to_one(agent: AnyHeadingAgent, cells: torch.Tensor):
    for state in flown(agent, cells, cells[3]):
        assert state.belief.shape == (1, GRID.count)
        assert state.belief.min() >= 0
        assert float(state.belief.sum()) == pytest.approx(1, abs=1e-5)
        assert float(state.turns.sum()) == pytest.approx(1, abs=1e-5)
        assert 0 <= float(state.match) <= 1


def test_a_goal_turned_by_quarters_gives_the_same_belief(agent: AnyHeadingAgent, cells: torch.Tensor):
    upright = flown(agent, cells, cells[7])[-1]
    for times in (1, 2, 3):
        turned = flown(agent, cells, quarter(cells[7], times))[-1]
        assert turned.belief[0] == pytest.approx(upright.belief[0].numpy(), abs=1e-3)
        assert float(turned.match) == pytest.approx(float(upright.match), abs=1e-3)


def test_match_reads_the_glimpse_and_leaves_the_belief(agent: AnyHeadingAgent, cells: torch.Tensor):
    state = agent.reset(EpisodeBatch(cells[:1], GRID, BUDGET, torch.zeros(1, BUDGET, 8)))
    seen = Observation(cells[12:13], torch.tensor([[2, 2]]), torch.tensor([BUDGET]))
    probability, after = agent.match(seen, state)
    assert torch.equal(after.belief, state.belief)
    assert torch.equal(probability, agent.observe(seen, state).match)


@pytest.mark.long
def test_a_goal_at_an_oblique_angle_is_found_more_often_than_without_headings(areas: list[SearchArea]):
    suite = per_distance([area.name for area in areas], GRID)

    goals = [
        cut_goal(areas[area].image, GRID, (row, col), GoalTransform(rotation=137.0))
        for area, (row, col) in zip(suite.area.tolist(), suite.goal.tolist(), strict=True)
    ]
    patches = torch.from_numpy(np.stack(goals))

    def found(agent: BeliefAgent | AnyHeadingAgent) -> int:
        return int(rollout(agent, suite, areas, goal_patches=lambda episodes: patches[episodes]).found.sum())

    belief = make_agent("belief")
    assert isinstance(belief, BeliefAgent)
    assert found(AnyHeadingAgent(belief, turns=8)) > found(belief) + 2
