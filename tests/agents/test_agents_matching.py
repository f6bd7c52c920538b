"""The similarity of patches recognises a place and rejects others; declaration thresholds follow the cost."""

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
    return torch.from_numpy(CellTable.from_areas(list(Synthetic(count=8, seed=3).areas(GRID)), GRID).array[:-1])


def test_a_place_matches_itself_under_other_light_and_a_small_shift(patches: torch.Tensor):
    other_light = (patches.float() * 0.7 + 40).to(torch.uint8)
    aside = torch.roll(other_light, (2, -3), (1, 2))
    assert float((same_place(patches, other_light) > 0.5).float().mean()) > 0.97
    assert float((same_place(patches, aside) > 0.5).float().mean()) > 0.95


def test_other_cells_of_the_same_area_do_not_match(patches: torch.Tensor):
    elsewhere = patches.view(8, 25, 48, 48, 3).roll(7, dims=1).flatten(0, 1)
    assert float((same_place(patches, elsewhere) > 0.5).float().mean()) < 0.01


def test_a_black_patch_matches_nothing(patches: torch.Tensor):
    black = torch.zeros_like(patches)
    assert float(same_place(patches, black).max()) < 0.01
    assert float(same_place(black, black).max()) < 0.01


def test_pixels_without_data_are_ignored(patches: torch.Tensor):
    torn, elsewhere = patches.clone(), patches.view(8, 25, 48, 48, 3).roll(7, dims=1).flatten(0, 1).clone()
    torn[:, :, :20] = elsewhere[:, :, :20] = 0  # both end at the same line
    assert float((same_place(torn, elsewhere) > 0.5).float().mean()) < 0.01
    assert float((same_place(torn, torn) > 0.5).float().mean()) > 0.8, "half a patch is enough"


def test_one_shared_object_is_not_a_match(patches: torch.Tensor):
    crossed, elsewhere = patches.clone(), patches.view(8, 25, 48, 48, 3).roll(7, dims=1).flatten(0, 1).clone()
    for patch in (crossed, elsewhere):
        patch[:, 8:16, 8:16] = 250  # a bright roof in one quarter
    assert float((same_place(crossed, elsewhere) > 0.5).float().mean()) < 0.02


@given(st.floats(0, 1e6))
def test_a_higher_cost_raises_the_threshold(cost: float):
    threshold = declaration_threshold(cost)
    assert 0 <= threshold <= 1
    assert threshold * 1 >= (1 - threshold) * cost - 1e-6
    assert declaration_threshold(cost + 1) > threshold - 1e-12


@pytest.mark.parametrize("cost", [-1.0, math.inf, math.nan])
def test_an_invalid_cost_is_refused(cost: float):
    with pytest.raises(AirlocError, match=str(cost)):
        declaration_threshold(cost)


def test_an_agent_with_match_is_returned_unchanged():
    class Sure:
        name = "sure"

        def match(self, observation, state):
            return torch.ones(1), state

    sure = Sure()
    assert with_match(sure) is sure  # type: ignore[arg-type]


def test_an_agent_without_match_gets_one_and_plays_the_same(patches: torch.Tensor):
    agent = make_agent("spiral")
    judged = with_match(agent)
    assert isinstance(judged, SimilarityMatcher)
    episodes = EpisodeBatch(patches[:2], GRID, 10, torch.zeros(2, 10, 8))
    seen = Observation(patches[:2], torch.tensor([[2, 2], [0, 0]]), torch.tensor([10, 10]))
    state = judged.reset(episodes)
    assert judged.match(seen, state)[0].tolist() == pytest.approx([1.0, 1.0], abs=0.01)
    assert torch.equal(judged.act(seen, state)[0], agent.act(seen, agent.reset(episodes))[0])
    assert state.belief is None
