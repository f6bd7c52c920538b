"""Several vehicles share one belief and never one cell; a search repeats from its events; targets may move."""

import functools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.planner import PLANNERS
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid, distance
from airloc.missions.searcher import Glimpse, Searcher
from airloc.missions.sweep import next_cell
from airloc.missions.team import FIRST, TeamSearcher
from airloc.task.cells import cut_patches
from airloc.task.motion import STILL, Motion

pytestmark = pytest.mark.long

GRID = Grid(7, 8)
PATCHES = cut_patches(next(iter(Synthetic(count=1, seed=8).areas(GRID))).image, GRID)
agent = functools.cache(make_agent)
Event = Callable[[TeamSearcher], object]


def photo(cell: Cell) -> Glimpse:
    return Glimpse(PATCHES[GRID.index(cell)])


def team(
    goal: Cell = (6, 7), *, drones: int = 1, motion: Motion = STILL, budget: int = 12, name: str = "belief"
) -> TeamSearcher:
    search = TeamSearcher(agent(name), PATCHES[GRID.index(goal)], GRID, start=(3, 3), budget=budget, motion=motion)
    for number in range(2, drones + 1):
        search.join(str(number), (3, 3), budget)
    return search


def next_cells(search: TeamSearcher) -> dict[str, Cell | None]:
    return {name: vehicle.next for name, vehicle in search.vehicles.items()}


def check(search: TeamSearcher) -> None:
    """The belief is one, and all next cells differ, are in reach and searchable."""
    belief = search.belief()
    assert belief.sum() == pytest.approx(1)
    assert belief.min() >= 0
    assert 0 <= search.pos <= 1 + 1e-9
    heading = [cell for cell in next_cells(search).values() if cell is not None]
    assert len(set(heading)) == len(heading)
    for vehicle in search.vehicles.values():
        if vehicle.next is not None:
            assert vehicle.active
            assert search.searchable[vehicle.next]
            assert distance(vehicle.position, vehicle.next) <= vehicle.moves_left


def fly(search: TeamSearcher) -> int:
    """Fly all vehicles in the order of their arrival; return the largest number of moves of one of them."""
    while search.status == "searching":
        vehicle = search.next_to_arrive()
        assert vehicle is not None
        assert vehicle.next is not None
        search.observe(vehicle.next, photo(vehicle.next), check=False, vehicle=vehicle.name)
        check(search)
    return max(vehicle.moves_flown for vehicle in search.vehicles.values())


def test_one_vehicle_flies_as_the_searcher_does():
    options = {"start": (3, 3), "budget": 20}
    alone, one = (each(agent("belief"), PATCHES[50], GRID, **options) for each in (Searcher, TeamSearcher))
    while alone.advice().next_cell is not None:
        cell = alone.advice().next_cell
        assert alone.observe(cell, photo(cell), check=False) == one.observe(cell, photo(cell), check=False)
        assert one.vehicles[FIRST].next == one._next
    assert one.flown == alone.flown
    assert np.array_equal(one.belief(), alone.belief())


def test_three_vehicles_find_the_goal_in_fewer_moves_each_than_one():
    goals = [(0, 7), (6, 0), (1, 2), (5, 6), (3, 7), (6, 4)]
    one = [fly(team(goal, budget=48)) for goal in goals]
    three = [fly(team(goal, drones=3, budget=16)) for goal in goals]
    assert sum(three) < 0.75 * sum(one)


def test_vehicles_of_an_agent_without_a_belief_share_out_the_cells():
    search = team(drones=3, budget=5, name="lawnmower")
    fly(search)
    flown = [cell for vehicle in search.vehicles.values() for cell in vehicle.flown]
    assert len(set(flown)) == len(flown) >= 15


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_any_order_of_photos_verdicts_arrivals_and_departures_keeps_the_belief_and_repeats_exactly(data: st.DataObject):
    motion = data.draw(st.sampled_from([STILL, Motion(0.4), Motion(0.2, (0.3, -0.6))]))
    search, events = team(motion=motion), list[Event]()

    def do(event: Event) -> None:
        event(search)
        events.append(event)
        check(search)

    for _ in range(data.draw(st.integers(3, 9))):
        flying = [name for name, vehicle in search.vehicles.items() if vehicle.active]
        kind = data.draw(st.sampled_from(["next", "next", "next", "other", "verdict", "join", "leave"]))
        name = data.draw(st.sampled_from(flying))
        cell = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 7)))
        if kind == "next":
            cell = search.vehicles[name].next or cell
        if kind in ("next", "other") and search.status == "searching":
            do(lambda each, cell=cell, name=name: each.observe(cell, photo(cell), check=False, vehicle=name))
        elif kind == "verdict" and search.photos:
            number, goal = data.draw(st.integers(1, len(search.photos))), data.draw(st.booleans())
            do(lambda each, number=number, goal=goal: each.judge(number, goal))
        elif kind == "join" and len(search.vehicles) < 5:
            new = str(len(search.vehicles) + 1)
            do(lambda each, new=new, cell=cell: each.join(new, cell, 9))
        elif kind == "leave" and len(flying) > 1:
            do(lambda each, name=name: each.leave(name))
    again = team(motion=motion)
    for event in events:
        event(again)
    assert next_cells(again) == next_cells(search)
    assert np.array_equal(again.belief(), search.belief())


def test_a_vehicle_that_leaves_frees_its_cell_and_may_return_with_a_new_budget():
    search = team(drones=2)
    freed = search.vehicles["2"].next
    assert freed is not None
    search.leave("2")
    assert next_cells(search) == {"1": (3, 3), "2": None}
    with pytest.raises(AirlocError, match="Vehicle 2 has left"):
        search.observe(freed, photo(freed), vehicle="2")
    with pytest.raises(AirlocError, match="only one"):
        search.leave("1")
    returned = search.join("2", (0, 0), 5)
    assert (returned.next, returned.moves_left) == ((0, 0), 5)


def test_a_vehicle_whose_cell_another_one_photographs_gets_another_cell():
    search = team(drones=2)
    cell = search.vehicles["2"].next
    assert cell is not None
    search.observe(cell, photo(cell), check=False, vehicle="1")
    assert search.vehicles["2"].next not in (None, cell, search.vehicles["1"].next)
    check(search)


def test_invalid_vehicles_are_refused():
    search = team(drones=2)
    for name, start, budget, match in [
        ("2", (0, 0), 5, "takes part already"),
        ("3", (9, 9), 5, "not a searchable cell"),
        ("3", (0, 0), 0, "too small"),
    ]:
        with pytest.raises(AirlocError, match=match):
            search.join(name, start, budget)
    with pytest.raises(AirlocError, match="no vehicle 'x'"):
        search.observe((0, 0), photo((0, 0)), vehicle="x")


def test_a_moving_target_is_found_by_a_person_and_cells_are_photographed_again():
    search = team(motion=Motion(1.0), budget=60)
    cells = []
    while len(cells) < 20:
        cell = search.vehicles[FIRST].next
        assert cell is not None
        search.observe(cell, photo(cell), check=False)
        cells.append(cell)
        check(search)
    assert len(set(cells)) < len(cells)
    assert search.status == "searching"
    assert search.belief()[cells[-1]] < search.belief()[cells[0]]
    assert search.judge(20, goal=True).status == "found"
    check(search)


def test_the_goal_image_of_a_moving_target_draws_the_belief_to_its_place():
    search = team((5, 5), motion=Motion(0.2))
    search.observe((5, 5), photo((5, 5)), check=False)
    away = np.abs(np.indices(GRID.shape) - 5).max(axis=0)
    search.observe((3, 3), photo((3, 3)), check=False)
    belief = search.belief()
    assert belief[away <= 2].sum() > 0.6


def test_the_next_cell_is_free_and_in_reach_even_if_the_belief_is_elsewhere():
    belief = np.zeros((6, 6))
    belief[5, 5] = 1
    free = np.zeros((6, 6), dtype=bool)
    free[0, 3] = True
    assert next_cell(PLANNERS["lookahead"], belief, free, (0, 0), 3, [(2, 2)]) == (0, 3)
    assert next_cell(PLANNERS["lookahead"], belief, free, (0, 0), 2, [(2, 2)]) is None
