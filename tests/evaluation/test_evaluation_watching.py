"""What is noted while agents play: their beliefs, move by move, without changing the play."""

import numpy as np
import pytest

from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.recording import RolloutLog, Search, watch
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from untrained import GRID, Stage, untrained_relation


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas)


@pytest.fixture(scope="module")
def watched(stage: Stage) -> RolloutLog:
    return watch(BeliefAgent("belief", untrained_relation()), stage.areas, stage.suite, seed=3)


def test_watching_changes_no_play_whatever_the_batch(stage: Stage, watched: RolloutLog):
    agent = BeliefAgent("belief", untrained_relation())
    assert np.array_equal(watched.played.path, stage.play(agent).path)
    parts = watch(agent, stage.areas, stage.suite, seed=3, batch=5)
    assert np.array_equal(parts.played.path, watched.played.path)
    np.testing.assert_allclose(parts.beliefs, watched.beliefs, atol=1e-5)


def test_there_is_a_belief_for_every_move_made_and_none_for_the_others(watched: RolloutLog):
    total = watched.beliefs.sum(axis=2)
    np.testing.assert_allclose(total, watched.made, atol=1e-5)
    assert watched.made.sum() == watched.played.steps.sum()


def test_a_search_is_cut_at_its_end_and_carries_its_own_goal(stage: Stage, watched: RolloutLog):
    suite = stage.suite
    for number in range(len(suite)):
        search, goal = watched.search(number), tuple(suite.goal[number].tolist())
        assert search.path[0] == tuple(suite.start[number].tolist())
        assert (search.path[-1] == goal) == search.found == watched.played.found[number]
        assert search.beliefs.shape == (search.moves, 5, 5)
        area = stage.areas[suite.area[number]]
        assert np.array_equal(search.goal_picture, cut_patches(area.image, GRID)[GRID.index(goal)])


def test_goals_may_be_pictured_from_elsewhere(stage: Stage):
    others = [SearchArea(area.name, 255 - area.image) for area in stage.areas]
    agent = make_agent("blind")
    plain, other = (watch(agent, stage.areas, stage.suite, goal_areas=goals).search(4) for goals in (None, others))
    assert np.array_equal(other.goal_picture, 255 - plain.goal_picture)
    assert np.array_equal(other.area.image, plain.area.image)


def test_an_agent_without_belief_is_watched_all_the_same_unless_it_must_have_one(stage: Stage):
    agent = make_agent("blind")
    search = watch(agent, stage.areas, stage.suite).search(0)
    assert (search.beliefs, search.last_belief, search.chance, search.rank) == (None, None, None, None)
    with pytest.raises(AirlocError, match="'blind' keeps no belief"):
        watch(agent, stage.areas, stage.suite, must_believe=True)


def made(path: list[tuple[int, int]], found: bool) -> Search:
    """A search on 2 x 2 cells for the goal 0,0, which the belief before the last move holds 20 % probable."""
    grid = Grid(2, 2)
    area = SearchArea("made", np.zeros((*grid.size, 3), np.uint8))
    beliefs = np.array([[[0.25, 0.25], [0.25, 0.25]], [[0.2, 0.5], [0.3, 0.0]]], np.float32)
    return Search("made", area, path, (0, 0), area.image[:48, :48], found, beliefs)


@pytest.mark.parametrize(
    ("last", "found", "chance", "rank"),
    [((0, 1), False, 0.4, 2), ((1, 0), False, 2 / 7, 2), ((2, 1), False, 0.2, 3), ((0, 0), True, 0.2, 3)],
)
def test_the_last_belief_leaves_out_what_the_last_move_showed(last, found, chance, rank):
    search = made([(1, 0), (1, 1), last], found)
    assert (search.chance, search.rank) == (pytest.approx(chance), rank)
    assert search.last_belief.sum() == pytest.approx(1)
    assert search.beliefs[-1].max() == 0.5, "what was believed is left as it was"
