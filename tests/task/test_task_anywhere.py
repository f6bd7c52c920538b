"""Goals that lie anywhere: squares of ground between the cells, in the cell that contains their centre."""

import numpy as np
import pytest

from airloc.areas.area import SearchArea
from airloc.areas.changes import CHANGES, goal_centre
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.anywhere import GoalsAnywhere
from airloc.task.cells import cell_tables, cut_patches
from airloc.task.photos import FlightConditions

GRID = Grid(5, 5)


@pytest.fixture(scope="module")
def areas() -> list[SearchArea]:
    return list(Synthetic(count=2, seed=5).areas(GRID))


def test_glimpses_stay_and_goals_change(areas: list[SearchArea]):
    glimpses, goals = GoalsAnywhere().apply(areas, None, GRID)
    for area, glimpse, goal in zip(areas, glimpses, goals, strict=True):
        assert np.array_equal(glimpse.image, area.image)
        before, after = cut_patches(area.image, GRID), cut_patches(goal.image, GRID)
        assert (before != after).any(axis=(1, 2, 3)).all(), "no goal is a cell"


def test_the_image_of_a_goal_depends_on_seed_area_cell_and_variant_alone(areas: list[SearchArea]):
    conditions = GoalsAnywhere("unknown", seed=2)
    (alone,) = conditions.apply(areas[1:], None, GRID)[1]
    assert np.array_equal(alone.image, conditions.apply(areas, None, GRID)[1][1].image)
    for other in (GoalsAnywhere("unknown", seed=3), GoalsAnywhere("known", seed=2)):
        assert not np.array_equal(alone.image, other.apply(areas[1:], None, GRID)[1][0].image)
    assert not np.array_equal(alone.image, conditions.apply(areas[1:], None, GRID, variant=1)[1][0].image)


def test_without_strength_goals_are_cells(areas: list[SearchArea]):
    _, goals = GoalsAnywhere(strength=0).apply(areas, None, GRID)
    assert all(np.array_equal(goal.image, area.image) for goal, area in zip(goals, areas, strict=True))


def test_the_cell_of_a_goal_is_the_one_that_contains_its_centre():
    rng = np.random.default_rng(0)
    for _ in range(300):
        cell = tuple(rng.integers(0, 5, 2).tolist())
        row, col = goal_centre(GRID, cell, CHANGES["any-heading"](rng, 1.0))
        x, y = GRID.centre(cell)
        assert max(abs(row - y), abs(col - x)) <= GRID.pitch / 2


def test_goals_can_come_from_another_day(areas: list[SearchArea]):
    cells, goal_cells = cell_tables(areas[:1], GRID, goal_areas=areas[1:], goals=GoalsAnywhere(variants=3))
    assert cells.areas == goal_cells.areas == 3
    expected = [GoalsAnywhere().apply(areas[1:], None, GRID, variant)[1][0].image for variant in range(3)]
    assert np.array_equal(goal_cells.array[:-1], np.concatenate([cut_patches(image, GRID) for image in expected]))


@pytest.mark.parametrize("arguments", [{"heading": "north"}, {"strength": 2.0}, {"variants": 0}])
def test_bad_settings_are_refused(arguments: dict):
    with pytest.raises(AirlocError):
        GoalsAnywhere(**arguments)


def test_goals_anywhere_and_flight_conditions_are_refused_together(areas: list[SearchArea]):
    with pytest.raises(AirlocError, match="both alter the goal patch"):
        cell_tables(areas, GRID, flight=FlightConditions(), goals=GoalsAnywhere())
