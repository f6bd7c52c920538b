"""Saying "here": the reference judgement knows a place again and keeps silent elsewhere; thresholds follow the cost."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.agent import EpisodeBatch
from airloc.agents.matching import SimilarityMatcher, declaration_threshold, same_place, with_match
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.cells import CellTable

GRID = Grid(5, 5)


@pytest.fixture(scope="module")
def patches() -> torch.Tensor:
    """All cells of eight synthetic areas, (200, 48, 48, 3)."""
    return torch.from_numpy(CellTable.of(list(Synthetic(count=8, seed=3).areas(GRID)), GRID).array[:-1])


def test_a_place_is_known_again_in_another_light_and_a_little_aside(patches: torch.Tensor):
    other_light = (patches.float() * 0.7 + 40).to(torch.uint8)
    aside = torch.roll(other_light, (2, -3), (1, 2))
    assert float((same_place(patches, other_light) > 0.5).float().mean()) > 0.97
    assert float((same_place(patches, aside) > 0.5).float().mean()) > 0.95


def test_other_cells_of_the_same_area_are_not_taken_for_the_goal(patches: torch.Tensor):
    elsewhere = patches.view(8, 25, 48, 48, 3).roll(7, dims=1).flatten(0, 1)
    assert float((same_place(patches, elsewhere) > 0.5).float().mean()) < 0.01


def test_a_black_or_flat_picture_is_no_place(patches: torch.Tensor):
    black = torch.zeros_like(patches)
    assert float(same_place(patches, black).max()) < 0.01
    assert float(same_place(black, black).max()) < 0.01


def test_where_there_is_no_data_nothing_is_alike(patches: torch.Tensor):
    torn, elsewhere = patches.clone(), patches.view(8, 25, 48, 48, 3).roll(7, dims=1).flatten(0, 1).clone()
    torn[:, :, :20] = elsewhere[:, :, :20] = 0  # both end at the same line
    assert float((same_place(torn, elsewhere) > 0.5).float().mean()) < 0.01
    assert float((same_place(torn, torn) > 0.5).float().mean()) > 0.8, "half a picture still shows the place"


def test_one_thing_that_is_alike_does_not_make_two_places_the_same(patches: torch.Tensor):
    crossed, elsewhere = patches.clone(), patches.view(8, 25, 48, 48, 3).roll(7, dims=1).flatten(0, 1).clone()
    for pictures in (crossed, elsewhere):
        pictures[:, 8:16, 8:16] = 250  # a bright roof in one quarter
    assert float((same_place(crossed, elsewhere) > 0.5).float().mean()) < 0.02


@given(st.floats(0, 1e6))
def test_a_dearer_false_alarm_asks_for_more_certainty(cost: float):
    threshold = declaration_threshold(cost)
    assert 0 <= threshold <= 1
    assert threshold * 1 >= (1 - threshold) * cost - 1e-6
    assert declaration_threshold(cost + 1) > threshold - 1e-12


@pytest.mark.parametrize("cost", [-1.0, math.inf, math.nan])
def test_a_cost_that_is_none_is_refused(cost: float):
    with pytest.raises(AirlocError, match="false alarm"):
        declaration_threshold(cost)


def test_an_agent_that_judges_itself_is_left_as_it_is():
    class Sure:
        name = "sure"

        def match(self, observation, state):
            return torch.ones(1), state

    sure = Sure()
    assert with_match(sure) is sure  # type: ignore[arg-type]


def test_an_agent_without_a_judgement_plays_as_before(patches: torch.Tensor):
    agent = make_agent("spiral")
    judged = with_match(agent)
    assert isinstance(judged, SimilarityMatcher)
    episodes = EpisodeBatch(patches[:2], GRID, 10, torch.zeros(2, 10, 8))
    seen = Observation(patches[:2], torch.tensor([[2, 2], [0, 0]]), torch.tensor([10, 10]))
    state = judged.reset(episodes)
    assert judged.match(seen, state)[0].tolist() == pytest.approx([1.0, 1.0], abs=0.01)
    assert torch.equal(judged.act(seen, state)[0], agent.act(seen, agent.reset(episodes))[0])
    assert state.belief is None
