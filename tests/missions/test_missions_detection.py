"""The measured probability of detection: what it depends on, and that POA, POD and POS add up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.registry import make_agent
from airloc.areas.changes import adjust_colours, photometric
from airloc.grid import Grid
from airloc.missions.detection import measured_pod
from airloc.missions.photos import Goal
from airloc.missions.searcher import Glimpse, Searcher

GRID = Grid(5, 5)


@given(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.booleans())
def test_the_measured_pod_is_a_probability_that_falls_with_the_threshold(a: float, b: float, day: bool, known: bool):
    low, high = (measured_pod(value, same_day=day, heading_known=known) for value in sorted((a, b)))
    assert 0 <= high <= low <= 1


@pytest.mark.parametrize("known", [True, False])
def test_a_picture_of_another_day_lowers_the_measured_pod(known: bool):
    pods = [measured_pod(0.8, same_day=day, heading_known=known) for day in (False, True)]
    assert 0 < pods[0] < pods[1] < 1


@pytest.mark.parametrize(("same_day", "turn"), [(True, 0.0), (False, 30.0), (False, None)])
def test_a_searcher_takes_the_measured_pod_unless_it_is_told_another(patches, same_day: bool, turn: float | None):
    goal = Goal(patches[0], patches[0], turn, same_day=same_day)
    options = {"start": (2, 2), "budget": 5, "threshold": 0.8}
    measured = measured_pod(0.8, same_day=same_day, heading_known=turn is not None)
    assert Searcher(make_agent("spiral"), goal, GRID, **options).detection == measured
    assert Searcher(make_agent("spiral"), goal, GRID, detection=0.3, **options).detection == 0.3


@pytest.mark.long
def test_the_pos_of_a_fixed_path_is_the_share_of_goals_that_it_finds(areas):
    """One goal in every cell; the path does not depend on the photos, so that POS is the expected share of finds."""
    rng, agent, grid = np.random.default_rng(0), make_agent("spiral"), Grid(3, 3)
    image = areas[0].image[:152, :152]
    found, pos = [], 0.0
    for cell in grid.cells():
        top, left = (np.clip(52 * np.array(cell) + rng.integers(-20, 21, 2), 0, 152 - 48)).tolist()
        picture = adjust_colours(image[top : top + 48, left : left + 48], photometric(rng, 0.4))
        search = Searcher(agent, Goal(picture, picture, same_day=True), grid, start=(1, 1), budget=5, threshold=0.8)
        while (at := search.advice().next_cell) is not None:
            search.observe(at, Glimpse(image[52 * at[0] :, 52 * at[1] :][:48, :48]))
        found.append(search.status == "found" and search.flown[-1] == cell)
        pos = max(pos, search.pos)  # of the whole path, which a search without a find flies
    assert len(search.flown) <= 6
    assert np.mean(found) == pytest.approx(pos, abs=0.2)
