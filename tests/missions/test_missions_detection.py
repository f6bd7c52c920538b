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
from airloc.missions.searcher import Find, Glimpse, Searcher

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


def test_poa_pod_and_pos_add_up_over_a_simulated_set_of_searches(patches, monkeypatch: pytest.MonkeyPatch):
    """Goals are drawn from the prior, and a photo of the goal's cell is declared with the probability of detection."""
    rng, grid, searches, pod = np.random.default_rng(0), Grid(3, 3), 400, 0.6
    prior = np.array([[4, 1, 1], [2, 3, 0], [1, 2, 6]]) / 20
    agent, goal = make_agent("spiral"), Goal(patches[0], patches[0])
    views = goal.views()
    monkeypatch.setattr(Goal, "views", lambda self: views)
    found, missed, ended = 0, [], None
    for cell in map(grid.cell_of, rng.choice(grid.count, searches, p=prior.ravel())):
        seen = rng.random() < pod
        monkeypatch.setattr(
            Searcher, "_recognise", lambda self, at, photo, hit=cell if seen else None: Find(at, at, float(at == hit))
        )
        search = Searcher(agent, goal, grid, start=(1, 1), budget=4, detection=pod, prior=prior)
        assert (search.pos, search.belief().sum()) == (0, pytest.approx(1))
        while (at := search.advice().next_cell) is not None:
            search.observe(at, Glimpse(patches[0]), check=False)
        assert search.pos == pytest.approx(pod * sum(prior[at] for at in search.flown))
        if search.status == "found":
            assert search.flown[-1] == cell
            found += 1
        else:
            missed.append(cell)
            ended = search
    assert ended is not None
    assert found / searches == pytest.approx(ended.pos, abs=0.06), "POS is the share of searches that find the goal"
    left = ended.belief()
    assert left == pytest.approx(prior * (1 - ended.pod) / (1 - ended.pos), abs=1e-6), "POA after POD, by Bayes"
    share = np.bincount([grid.index(cell) for cell in missed], minlength=grid.count).reshape(grid.shape) / len(missed)
    assert share == pytest.approx(left, abs=0.07), "POA is where the goals are that were not found"


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
