"""Heights, footprints, budgets and sweeps: worked numbers, and promises that hold for any belief."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.geotiff import Plane
from airloc.areas.layout import Layout
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.missions.flight import Camera, Flight, Waypoint, budget_for, metres_between, mission_items
from airloc.missions.sweep import length, plan_sweep
from airloc.missions.units import metres_a_second, place, read_length, seconds

LAYOUT = Layout(Grid(5, 5), 100.0, 0.0, 0.0, (0.0, 0.0), Plane(45.0, 7.0), np.ones((5, 5), dtype=bool))

ground = partial(read_length, georeferenced=True)


def test_the_height_follows_from_cell_and_field_of_view():
    assert Camera(90, 1).height_for(100) == pytest.approx(50)
    assert Camera(90, 4 / 3).footprint(50) == pytest.approx((100, 75))
    assert Camera(60, 1.5).footprint(Camera(60, 1.5).height_for(80))[1] == pytest.approx(80)


@pytest.mark.parametrize(("fov", "aspect"), [(0, 1), (170, 1), (60, 0.5), (math.nan, 1)])
def test_a_camera_that_cannot_be_is_refused(fov: float, aspect: float):
    with pytest.raises(AirlocError, match="field of view"):
        Camera(fov, aspect)


def test_flight_time_gives_moves_with_the_way_home_in_reserve():
    # Out and back at 10 m/s over diagonals of 141.42 m: one move takes 28.3 s and two photos of 1 s each.
    assert budget_for(LAYOUT, (2, 2), 31, 10, 1) == 1
    with pytest.raises(AirlocError, match="come back"):
        budget_for(LAYOUT, (2, 2), 30, 10, 1)
    far = math.hypot(250, 250)
    assert budget_for(LAYOUT, (2, 2), 600, 10, 0) == int((6000 - far) / (100 * math.sqrt(2)))


def test_a_mission_takes_off_photographs_every_waypoint_and_returns():
    points = [Waypoint(45.0, 7.0, (2, 2), 0.04), Waypoint(45.001, 7.0, (1, 2), 0.04)]
    flight = Flight("a", points, 60.0, 8.0, 2.0, (45.0, 7.0))
    assert [item.command for item in mission_items(flight)] == [22, 16, 2000, 16, 2000, 20]
    assert flight.metres == pytest.approx(2 * 111.2, abs=0.5)
    assert flight.seconds == pytest.approx(flight.metres / 8 + 4)


def test_metres_between_places_are_right_to_half_a_percent():
    assert metres_between((45.0, 7.0), (45.0, 7.01)) == pytest.approx(788.5, rel=0.005)
    assert metres_between((0.0, 179.99), (0.0, -179.99)) == pytest.approx(2226, rel=0.005)


BELIEFS = st.integers(1, 8).flatmap(
    lambda rows: st.integers(2, 8).flatmap(
        lambda cols: st.lists(st.floats(0.001, 1), min_size=rows * cols, max_size=rows * cols).map(
            lambda flat: np.array(flat).reshape(rows, cols) / sum(flat)
        )
    )
)


@settings(max_examples=50, deadline=None)
@given(BELIEFS, st.integers(1, 30), st.data())
def test_a_sweep_keeps_its_budget_its_outline_and_never_repeats_a_cell(belief, budget: int, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=belief.size, max_size=belief.size))).reshape(
        belief.shape
    )
    mask[0, 0] = True
    plan = plan_sweep(belief, mask, (0, 0), budget)
    assert plan[0] == (0, 0)
    assert length(plan) <= budget
    assert len(set(plan)) == len(plan)
    assert all(mask[cell] for cell in plan)


def test_a_sweep_goes_where_the_probability_is():
    belief = np.full((9, 9), 1e-4)
    belief[6:9, 6:9] = 1.0
    belief /= belief.sum()
    plan = plan_sweep(belief, np.ones((9, 9), dtype=bool), (0, 0), 14)
    assert sum(belief[cell] for cell in plan) > 0.99
    assert length(plan) <= 14


def test_a_flat_belief_is_swept_without_a_wasted_move():
    plan = plan_sweep(np.full((6, 6), 1 / 36), np.ones((6, 6), dtype=bool), (0, 0), 35)
    assert len(plan) == 36


@pytest.mark.parametrize(
    ("read", "text"),
    [(ground, "0m"), (ground, "-3m"), (ground, "5 miles"), (ground, ""), (ground, "1.2.3m"), (seconds, "5m"),
     (metres_a_second, "fast"), (ground, "1e999m"), (place, "91,0"), (place, "5"), (place, "a,b"), (place, "nan,0")],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_an_example(read, text: str):
    with pytest.raises(AirlocError, match=r"such as|as in"):
        read(text)
