"""Searches as strips, animations and sheets."""

import dataclasses
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import make_agent
from airloc.areas.area import read_image
from airloc.areas.changes import CHANGES
from airloc.areas.registry import load_dataset
from airloc.files import save_picture
from airloc.reports.searches import (
    CHANGE_CELLS,
    changes_sheet,
    choose_failures,
    failure_caption,
    failure_sheet,
    photos_sheet,
    search_animation,
    search_strip,
)
from airloc.rollout import BELIEF, RolloutLog, rollout
from untrained import GRID, Stage, untrained_relation

DOCUMENTED = Path(__file__).parents[2] / "docs" / "img" / "changes.jpg"
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
    shown = choose_failures(watched, areas)
    assert set(shown) <= set(failed.tolist())
    assert len(set(watched.suite.area[shown].tolist())) == areas
    assert sorted(choose_failures(watched, 10**6)) == failed.tolist()
    assert choose_failures(watched, 3, seed=5) == choose_failures(watched, 3, seed=5)


def test_the_caption_has_distance_and_rank_of_the_goal(watched: RolloutLog, unseeing: RolloutLog, toy_areas):
    number = choose_failures(watched, 1)[0]
    search = watched.episode(number, toy_areas)
    caption = failure_caption(search, GRID)
    facts = (search.area.name, f"distance {watched.suite.distance[number]}", f"rank {search.goal_rank} of")
    assert [fact for fact in facts if fact not in caption] == []
    blind = unseeing.episode(choose_failures(unseeing, 1)[0], toy_areas)
    assert "rank" not in failure_caption(blind, GRID)


def test_a_sheet_has_a_row_for_every_two_failures_with_or_without_a_belief(
    watched: RolloutLog, unseeing: RolloutLog, toy_areas
):
    for played in (watched, unseeing):
        numbers = choose_failures(played, 3)
        one, two = (failure_sheet(played, numbers[:count], toy_areas) for count in (1, 3))
        assert two.shape[1] > 1.8 * one.shape[1]
        assert two.shape[0] > 1.5 * one.shape[0]


def test_the_documented_picture_is_the_sheet_of_all_changes(tmp_path: Path):
    sheet = changes_sheet()
    assert sheet.shape[0] > 112 * len(CHANGES)
    assert sheet.shape[1] > 112 * 2 * len(CHANGE_CELLS)
    again = read_image(save_picture(sheet, tmp_path / "again.jpg")).astype(int)
    assert np.abs(again - read_image(DOCUMENTED)).mean() < 1


def test_the_documented_sheet_of_photos_is_that_of_the_validation_windows(data_root: Path, tmp_path: Path):
    areas = list(islice(load_dataset("masa", root=data_root / "masa", split="val").areas(GRID), 6))
    sheet = photos_sheet(areas, GRID, (0.5, 1.0, 2.0))
    again = read_image(save_picture(sheet, tmp_path / "again.jpg")).astype(int)
    assert np.abs(again - read_image(DOCUMENTED.with_name("flight-conditions.jpg"))).mean() < 1
