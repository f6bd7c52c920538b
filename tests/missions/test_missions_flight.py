"""Flight planning: worked numbers for heights, footprints, budgets and missions."""

import math

import numpy as np
import pytest

from airloc.areas.layout import Layout
from airloc.areas.raster import Plane
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.missions.endurance import FlightSettings, budget_from_endurance, ground_speed
from airloc.missions.flight import (
    Camera,
    Flight,
    Waypoint,
    geojson,
    gpx,
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
    assert budget_from_endurance(LAYOUT, (2, 2), 31, 10, 1, FlightSettings(), 0.0) == 1
    with pytest.raises(AirlocError, match="30 s"):
        budget_from_endurance(LAYOUT, (2, 2), 30, 10, 1, FlightSettings(), 0.0)
    farthest = math.hypot(250, 250)
    assert budget_from_endurance(LAYOUT, (2, 2), 600, 10, 0, FlightSettings(), 0.0) == int(
        (6000 - farthest) / (100 * math.sqrt(2))
    )


def test_a_mission_takes_off_photographs_every_waypoint_and_returns():
    points = [Waypoint(45.0, 7.0, (2, 2), 0.04), Waypoint(45.001, 7.0, (1, 2), 0.04)]
    flight = Flight("a", points, 60.0, 8.0, 2.0, (45.0, 7.0))
    items = mission_items(flight)
    assert [item.command for item in items] == [22, 178, 205, 530, 16, 2000, 16, 2000, 20]
    assert items[1].params[:2] == (1, 8.0), "the speed over ground"
    assert (items[2].params[0], items[2].height) == (-90, 2), "the gimbal points down"
    assert flight.metres == pytest.approx(2 * 111.2, abs=0.5)
    assert flight.seconds == pytest.approx(flight.metres / 8 + 4 + 60 / 3 + 60 / 2), "with climb and descent"


def test_a_waypoint_without_a_photo_is_flown_through():
    bend = Waypoint(45.0005, 7.001, (1, 2), 0.04, photo=False)
    points = [Waypoint(45.0, 7.0, (2, 2), 0.04), bend, Waypoint(45.001, 7.0, (1, 2), 0.04)]
    corners = [(45.0, 7.0), (45.1, 7.0), (45.1, 7.1)]
    flight = Flight("a", points, 60.0, 8.0, 2.0, (45.0, 7.0), outline=corners)
    assert [item.command for item in mission_items(flight)][4:] == [16, 2000, 16, 16, 2000, 20]
    assert flight.seconds == pytest.approx(flight.metres / 8 + 4 + 50)
    assert [item.params[3] for item in mission_items(flight) if item.command == 2000] == [1, 2]
    assert geojson(flight).count('"Point"') == 2
    assert gpx(flight).count("<rtept") == gpx(flight).count("<name>") == 3, "the flight has a name"


def test_wind_changes_the_speed_over_ground():
    west = FlightSettings(wind=6.0, wind_from=270.0)
    assert ground_speed(10, west, 1, 0) == pytest.approx(16)
    assert ground_speed(10, west, -1, 0) == pytest.approx(4)
    assert ground_speed(10, west, 0, 1) == pytest.approx(8)
    with pytest.raises(AirlocError, match="wind of 10 m/s"):
        ground_speed(10, FlightSettings(wind=10), 0, 1)
    there = Flight("a", [Waypoint(0.0, 0.01, (0, 0), 0.1)], 0.0, 10, 0, (0.0, 0.0), (0.0, 0.01), west)
    assert there.seconds == pytest.approx(1112 / 16, rel=0.01)


def test_the_budget_keeps_wind_reserve_climb_and_the_way_to_the_launch_in_mind():
    def budget(height: float = 0.0, **settings) -> int:
        return budget_from_endurance(LAYOUT, (2, 2), 900, 10, 1, FlightSettings(**settings), height)

    launch = tuple(LAYOUT.lat_lon((2, 12)).tolist())
    assert budget() > budget(wind=3) > budget(wind=3, reserve=0.2) > budget(120.0, wind=3, reserve=0.2)
    assert budget() > budget(home=launch) > budget(home=launch, landing=tuple(LAYOUT.lat_lon((2, 32)).tolist()))
    with pytest.raises(AirlocError, match="wind of 12 m/s"):
        budget(wind=12)


@pytest.mark.parametrize(
    "settings", [{"climb": 0}, {"climb": 1e-300}, {"descent": math.nan}, {"wind": -1}, {"reserve": 1.0}]
)
def test_flight_settings_out_of_range_are_errors(settings):
    with pytest.raises(AirlocError, match="not valid"):
        FlightSettings(**settings)


def test_great_circle_distances_are_accurate_to_half_a_percent():
    assert great_circle_distance((45.0, 7.0), (45.0, 7.01)) == pytest.approx(788.5, rel=0.005)
    assert great_circle_distance((0.0, 179.99), (0.0, -179.99)) == pytest.approx(2226, rel=0.005)
