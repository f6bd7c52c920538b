"""Flight planning: worked numbers for heights, footprints, budgets and missions."""

import math

import numpy as np
import pytest

from airloc.areas.layout import Layout
from airloc.areas.raster import Plane
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.missions.flight import (
    Camera,
    Flight,
    Waypoint,
    budget_from_endurance,
    great_circle_distance,
    mission_items,
)

LAYOUT = Layout(Grid(5, 5), 100.0, 0.0, 0.0, (0.0, 0.0), Plane(45.0, 7.0), np.ones((5, 5), dtype=bool))


def test_the_height_follows_from_the_cell_and_the_field_of_view():
    assert Camera(90, 1).height_for(100) == pytest.approx(50)
    assert Camera(90, 4 / 3).footprint(50) == pytest.approx((100, 75))
    assert Camera(60, 1.5).footprint(Camera(60, 1.5).height_for(80))[1] == pytest.approx(80)


@pytest.mark.parametrize(("fov", "aspect"), [(0, 1), (170, 1), (60, 0.5), (math.nan, 1)])
def test_a_camera_out_of_range_is_an_error(fov: float, aspect: float):
    with pytest.raises(AirlocError, match=f"{fov:g}.*{aspect:g}"):
        Camera(fov, aspect)


def test_the_budget_from_an_endurance_keeps_the_flight_home_in_reserve():
    # Out and back at 10 m/s over diagonals of 141.42 m: one move takes 28.3 s and two photos of 1 s each.
    assert budget_from_endurance(LAYOUT, (2, 2), 31, 10, 1) == 1
    with pytest.raises(AirlocError, match="30 s"):
        budget_from_endurance(LAYOUT, (2, 2), 30, 10, 1)
    farthest = math.hypot(250, 250)
    assert budget_from_endurance(LAYOUT, (2, 2), 600, 10, 0) == int((6000 - farthest) / (100 * math.sqrt(2)))


def test_a_mission_takes_off_photographs_every_waypoint_and_returns():
    points = [Waypoint(45.0, 7.0, (2, 2), 0.04), Waypoint(45.001, 7.0, (1, 2), 0.04)]
    flight = Flight("a", points, 60.0, 8.0, 2.0, (45.0, 7.0))
    assert [item.command for item in mission_items(flight)] == [22, 16, 2000, 16, 2000, 20]
    assert flight.metres == pytest.approx(2 * 111.2, abs=0.5)
    assert flight.seconds == pytest.approx(flight.metres / 8 + 4)


def test_great_circle_distances_are_accurate_to_half_a_percent():
    assert great_circle_distance((45.0, 7.0), (45.0, 7.01)) == pytest.approx(788.5, rel=0.005)
    assert great_circle_distance((0.0, 179.99), (0.0, -179.99)) == pytest.approx(2226, rel=0.005)
