"""Suites with several drones or a moving goal: launch cells, walks, and what a team finds."""

from dataclasses import replace

import numpy as np
import pytest

from airloc.agents.agent import AgentOptions
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.evaluation.metrics import blind_optimum, blind_optimum_is_exact
from airloc.evaluation.scores import evaluate, trajectory_lines
from airloc.evaluation.variants import play_variant
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task.batch import BatchEnv
from airloc.task.suites import Suite, end_by_declaration, goal_walks, launch_cells, per_distance, with_drones

pytestmark = pytest.mark.long

GRID = Grid(6, 6)
AREAS = tuple(Synthetic(count=3, seed=5).areas(GRID))


def episodes(budget: int, per_area: int = 4) -> Suite:
    return per_distance([area.name for area in AREAS], GRID, per_area=per_area, budget=budget)


def test_drones_that_launch_apart_start_in_different_cells_without_the_goal():
    suite = with_drones(episodes(5), 4)
    cells = launch_cells(suite)
    assert np.array_equal(cells[:, 0], suite.start)
    assert all(len({*map(tuple, row), tuple(goal)}) == 5 for row, goal in zip(cells.tolist(), suite.goal, strict=True))
    together = launch_cells(replace(suite, launch="together"))
    assert (together == suite.start[:, None]).all()


def test_a_variant_has_its_own_digest_and_its_walks_begin_at_the_goal():
    suite = episodes(5)
    variants = [suite, with_drones(suite, 2), with_drones(suite, 2, "together"), with_drones(suite, 1, moving=0.5)]
    assert len({variant.digest for variant in variants}) == 4
    assert with_drones(suite, 1) is suite
    walks = goal_walks(variants[-1])
    assert np.array_equal(walks[:, 0], suite.goal)
    assert (walks[:, -1] != suite.goal).any()
    assert np.abs(np.diff(walks, axis=1)).max() == 1


def test_one_drone_finds_what_it_finds_alone():
    suite = episodes(8)
    env = BatchEnv.from_areas(AREAS, GRID, 8)
    for name in ("lawnmower", "belief"):
        agent = make_agent(name, AgentOptions(full_precision=True))  # does not depend on the size of a batch
        alone, team = rollout(agent, suite, env), play_variant(agent, suite, env, batch=7)
        assert np.array_equal(alone.path, team.path)
        assert np.array_equal(alone.found, team.found)
        assert np.array_equal(alone.steps, team.steps)


def test_random_drones_that_launch_together_fly_apart():
    suite = with_drones(episodes(8), 3, "together")
    paths = play_variant(make_agent("random"), suite, BatchEnv.from_areas(AREAS, GRID, 8), batch=7).team
    assert paths is not None
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert (paths[:, :, one] != paths[:, :, other]).any(axis=(1, 2)).mean() > 0.9


def test_three_drones_find_more_goals_sooner_than_one_with_the_same_total_moves():
    agent, suite = make_agent("belief"), episodes(12, per_area=6)
    one = evaluate(agent, suite, AREAS)
    three = evaluate(agent, with_drones(replace(suite, budget=4), 3), AREAS)
    assert three.value("success") >= one.value("success") - 0.1
    assert three.value("steps") < 0.5 * one.value("steps")
    record = three.record()
    assert (record["drones"], record["moving"], record["step_ratio"] is None) == (3, 0.0, False)
    assert '"team": [[[' in trajectory_lines(three)


def test_a_find_is_in_the_cell_of_the_goal_at_that_time():
    suite = with_drones(episodes(10), 2, moving=0.8)
    log = play_variant(make_agent("lawnmower"), suite, BatchEnv.from_areas(AREAS, GRID, 10))
    walks = goal_walks(suite)
    assert log.team is not None
    assert log.found.any()
    for number in np.flatnonzero(log.found):
        steps = log.steps[number]
        assert (log.team[number, :, steps] == walks[number, steps]).all(axis=-1).any()
        assert (log.path[number, steps] == walks[number, steps]).all()
        assert not (log.team[number, :, 1:steps] == walks[number, 1:steps]).all(axis=-1).any()


def test_the_blind_floor_of_a_team_is_a_fraction_that_grows_with_drones():
    suite = episodes(4)
    floors = [blind_optimum(with_drones(suite, drones)) for drones in (2, 5)]
    assert 0 < floors[0] < floors[1] < 1
    assert not blind_optimum_is_exact(with_drones(suite, 2))


def test_impossible_variants_are_refused():
    suite = episodes(4)
    with pytest.raises(AirlocError, match="99 drones"):
        with_drones(suite, 99)
    with pytest.raises(AirlocError, match="eight moves"):
        with_drones(replace(suite, grid=Grid(6, 6, moves=4)), 2)
    with pytest.raises(AirlocError, match="declare"):
        play_variant(
            make_agent("random"), end_by_declaration(with_drones(suite, 2)), BatchEnv.from_areas(AREAS, GRID, 4)
        )
