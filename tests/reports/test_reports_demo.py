"""What the page of the demo shows."""

import numpy as np
import pytest

from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.evaluation.scores import Score, evaluate
from airloc.grid import Grid
from airloc.reports.demo import TRAJECTORIES, _choose_episodes, demo_page, draw_searches
from airloc.task.suites import per_distance


@pytest.fixture(scope="module")
def score(toy_areas: list[SearchArea]) -> Score:
    suite = per_distance([area.name for area in toy_areas], Grid(5, 5))
    return evaluate(make_agent("priv-random"), suite, toy_areas)


def test_the_episodes_shown_have_all_distances_and_both_ends(score: Score):
    chosen = _choose_episodes(score)
    assert len(chosen) == TRAJECTORIES
    assert set(score.suite.distance[chosen]) == {1, 2, 3, 4}
    assert len(np.unique(score.suite.area[chosen])) == len(score.suite.areas), "every area before one comes twice"
    assert len(np.unique(score.log.found[chosen])) == 2


def test_one_area_is_enough(toy_areas: list[SearchArea]):
    suite = per_distance(["toy_0"], Grid(5, 5))
    score = evaluate(make_agent("spiral"), suite, toy_areas[:1])
    assert len(draw_searches(score, toy_areas[:1])) == TRAJECTORIES


def test_captions_say_how_each_search_ended(score: Score, toy_areas: list[SearchArea]):
    for chosen, (picture, caption) in zip(_choose_episodes(score), draw_searches(score, toy_areas), strict=True):
        end = "found after" if score.log.found[chosen] else "not found in"
        steps = int(score.log.steps[chosen])
        moves = "1 move" if steps == 1 else f"{steps} moves"
        assert caption == f"distance {score.suite.distance[chosen]}, {end} {moves}"
        assert picture.shape[:2] == (512, 512)


def test_what_comes_from_outside_is_escaped(score: Score, toy_areas: list[SearchArea]):
    page = demo_page([score], toy_areas, 0.5, "airloc demo --out <script>alert(1)</script>.html")
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_floor_that_is_not_proven_is_not_called_an_optimum(score: Score, toy_areas: list[SearchArea], monkeypatch):
    assert "blind optimum" in demo_page([score], toy_areas, 0.5, "airloc demo")
    monkeypatch.setattr("airloc.reports.demo.blind_optimum_is_exact", lambda suite: False)
    page = demo_page([score], toy_areas, 0.5, "airloc demo")
    assert ("blind optimum" in page, "blind, at least" in page) == (False, True)
