"""Searches as strips, animations and sheets."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import make_agent
from airloc.reports.searches import (
    failure_caption,
    failure_sheet,
    search_animation,
    search_strip,
    spread_failures,
)
from airloc.rollout import BELIEF, RolloutLog, rollout
from untrained import GRID, Stage, untrained_relation

SIDE, GOAL, GAP, BORDER = 256, 100, 16, 16
"""Pixels at scale 1: of a frame, of the goal's picture, between frames, and around all."""


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas)


@pytest.fixture(scope="module")
def watched(stage: Stage) -> RolloutLog:
    return rollout(BeliefAgent("belief", untrained_relation()), stage.suite, stage.areas, record=[BELIEF])


@pytest.fixture(scope="module")
def unseeing(stage: Stage) -> RolloutLog:
    return rollout(make_agent("random"), stage.suite, stage.areas)


def longest(watched: RolloutLog) -> int:
    return int(watched.steps.argmax())


def test_a_strip_has_the_goal_and_then_all_steps_in_rows(watched: RolloutLog, toy_areas):
    search = watched.episode(longest(watched), toy_areas)
    assert search.moves == 10
    strip = search_strip([search], GRID, scale=1)
    assert strip.shape[1] == 2 * BORDER + GOAL + 6 * (SIDE + GAP)
    rows = 2
    frame = SIDE + 29 + 24  # with the legend below and the caption above
    assert strip.shape[0] == 2 * BORDER + rows * frame + (rows - 1) * GAP
    goal = strip[BORDER + 24 : BORDER + 24 + GOAL, BORDER : BORDER + GOAL]
    assert np.abs(goal[2::100].mean() - search.goal_patch.mean()) < 40
    later = strip[-frame // 2 :, BORDER : BORDER + GOAL]
    assert (later == 255).all(), "the rows below leave the goal's column free"


def test_a_search_of_one_move_makes_a_strip_too(watched: RolloutLog, toy_areas):
    search = watched.episode(longest(watched), toy_areas)
    short = dataclasses.replace(search, path=search.path[:2], beliefs=search.beliefs[:1])
    assert search_strip([short], GRID, scale=1).shape[1] == 2 * BORDER + GOAL + 2 * (SIDE + GAP)


def test_all_frames_of_an_animation_have_one_size_and_the_shorter_search_waits(
    watched: RolloutLog, unseeing: RolloutLog, toy_areas
):
    number = longest(unseeing)
    searches = [watched.episode(number, toy_areas), unseeing.episode(number, toy_areas)]
    frames = search_animation(searches, GRID, scale=1)
    assert len(frames) == max(search.moves for search in searches) + 1
    assert len({frame.shape for frame in frames}) == 1
    assert frames[0].shape[1] == pytest.approx(2 * BORDER + GOAL + 2 * (SIDE + GAP), abs=2 * 2 * 5 * 52)
    middle = BORDER + GOAL + GAP + (frames[0].shape[1] - 2 * BORDER - GOAL - 2 * GAP) // 2
    first = [frame[:, :middle] for frame in frames]
    ends = searches[0].moves
    assert all(np.array_equal(first[ends], later) for later in first[ends:])
    assert all(not np.array_equal(one, other) for one, other in pairwise(first[: ends + 1]))


def test_the_failures_shown_failed_and_come_from_as_many_areas_as_there_are(watched: RolloutLog):
    failed = np.flatnonzero(~watched.found)
    areas = len(set(watched.suite.area[failed].tolist()))
    assert len(failed) > areas > 1
    shown = spread_failures(watched, areas)
    assert set(shown) <= set(failed.tolist())
    assert len(set(watched.suite.area[shown].tolist())) == areas
    assert sorted(spread_failures(watched, 10**6)) == failed.tolist()
    assert spread_failures(watched, 3, seed=5) == spread_failures(watched, 3, seed=5)


def test_the_caption_says_how_near_the_belief_came(watched: RolloutLog, unseeing: RolloutLog, toy_areas):
    number = spread_failures(watched, 1)[0]
    search = watched.episode(number, toy_areas)
    caption = failure_caption(search, GRID)
    assert caption.startswith(f"{search.area.name}, goal {watched.suite.distance[number]} away, held ")
    assert caption.endswith(f"place {search.goal_rank} of {25 - len(set(search.path))} open cells")
    blind = unseeing.episode(spread_failures(unseeing, 1)[0], toy_areas)
    assert failure_caption(blind, GRID).endswith(" away")


def test_a_sheet_has_a_row_for_every_two_failures_with_or_without_a_belief(
    watched: RolloutLog, unseeing: RolloutLog, toy_areas
):
    for played in (watched, unseeing):
        numbers = spread_failures(played, 3)
        one, two = (failure_sheet(played, numbers[:count], toy_areas) for count in (1, 3))
        assert two.shape[1] > 1.8 * one.shape[1]
        assert two.shape[0] > 1.5 * one.shape[0]
