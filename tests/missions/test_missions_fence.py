"""No waypoint and no leg leaves the outline by more than the margin, enters a hole or a no-fly zone."""

import json
from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import LineString, MultiPolygon, Point, Polygon

from airloc.agents.registry import make_agent
from airloc.areas.layout import lay_out_outline
from airloc.areas.raster import Plane, Raster
from airloc.errors import AirlocError
from airloc.missions.endurance import FlightSettings
from airloc.missions.fence import fence_in
from airloc.missions.flight import qgc_plan, waypoints
from airloc.missions.plan import FieldSearch, SearchPlan, lay_out_search, start_search
from airloc.missions.routes import make_flight
from airloc.missions.simulation import simulate
from airloc.missions.vehicles import vehicle_states
from field_files import ground, write_projected

PLANE = Plane(59.35, 15.0)
GOAL = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
L_SHAPE = Polygon([(0, 0), (900, 0), (900, 300), (310, 300), (310, 800), (0, 800)])
TOLERANCE = 0.1
"""Metres by which degrees of nine decimals and another plane may move a point."""


def in_degrees(shape: shapely.Geometry) -> shapely.Geometry:
    return shapely.transform(shape, lambda points: PLANE.to_degrees(points)[:, ::-1])


def search_of(outline: Polygon, cell_m: float = 60.0, **settings) -> FieldSearch:
    plan = SearchPlan(cell_m=cell_m, agent="spiral", budget=30, flight=FlightSettings(**settings))
    layout = lay_out_search(plan, MultiPolygon([in_degrees(outline)]))
    return start_search(plan, layout, GOAL, make_agent("spiral"))


def flown_path(search: FieldSearch, cells: list[tuple[int, int]]) -> LineString:
    """The path of the plan file, from take-off to landing, in the plane of the outline."""
    flight = make_flight(search, cells, "a", np.full(search.layout.grid.shape, 0.1))
    items = json.loads(qgc_plan(flight))["mission"]["items"]
    positions = [item["params"][4:6] for item in items if item["command"] in (16, 21, 22)]
    return LineString(PLANE.from_degrees(np.array([*positions, flight.landing or flight.home])))


@st.composite
def stars(draw: st.DrawFn) -> Polygon:
    """A star-shaped polygon of any number of corners, mostly concave, with a hole."""
    count = draw(st.integers(4, 14))
    radii = draw(st.lists(st.floats(180, 600), min_size=count, max_size=count))
    angles = np.arange(count) * 2 * np.pi / count
    star = Polygon(np.array(radii)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1))
    hole = Point(draw(st.floats(-80, 80)), draw(st.floats(-80, 80))).buffer(draw(st.floats(10, 50)), quad_segs=2)
    return star.difference(hole)


@settings(max_examples=25)
@given(
    outline=stars(), margin=st.sampled_from([0.0, 15.0]), seed=st.integers(0, 1000), zone=st.floats(0, 2 * np.pi),
    launched=st.booleans(),
)  # fmt: skip
def test_no_waypoint_and_no_leg_leaves_the_outline_or_enters_a_hole_or_a_no_fly_zone(
    outline: Polygon, margin: float, seed: int, zone: float, launched: bool
):
    closed = Point(150 * np.cos(zone), 150 * np.sin(zone)).buffer(45, quad_segs=2)
    settings = {"margin_m": margin, "no_fly": in_degrees(closed)}
    try:
        search = search_of(outline, **settings)
        if launched:
            cells = np.argwhere(search.layout.searchable)
            lat, lon = search.layout.lat_lon(cells[seed % len(cells)]).tolist()
            inside = outline.buffer(margin).difference(closed).covers(Point(PLANE.from_degrees((lat, lon))))
            search = search_of(outline, **settings, **({"home": (lat, lon)} if inside else {}))
    except AirlocError:  # fewer than two cells, or a launch behind a no-fly zone
        return
    cells = np.argwhere(search.layout.searchable)
    order = np.random.default_rng(seed).permutation(len(cells))[:12]
    path = flown_path(search, [tuple(cell) for cell in cells[order].tolist()])
    allowed = outline.buffer(margin + TOLERANCE, quad_segs=32)
    if not launched:
        assert allowed.covers(path)
    assert not closed.buffer(-TOLERANCE).intersects(path)


def test_no_waypoint_of_an_l_shaped_outline_lies_outside():
    search = search_of(L_SHAPE, cell_m=70.0)
    cells = [tuple(cell) for cell in np.argwhere(search.layout.searchable).tolist()]
    outside = [cell for cell in cells if not L_SHAPE.covers(Point(PLANE.from_degrees(search.layout.lat_lon(cell))))]
    assert outside, "some centres of cells lie outside"
    assert L_SHAPE.buffer(TOLERANCE).covers(flown_path(search, cells))
    for cell in outside:
        row, col = search.place(cell)
        assert max(abs(row - cell[0]), abs(col - cell[1])) < 0.5, "the photo is taken from the cell itself"


def test_a_leg_flies_around_a_concave_corner_on_the_shortest_path():
    layout = lay_out_outline(MultiPolygon([in_degrees(L_SHAPE)]), 60.0)
    _, fence = fence_in(layout, None)
    assert fence is not None
    origin = layout.plane.from_degrees(PLANE.to_degrees((0.0, 0.0)))
    start, end = origin + np.array([150, 700]), origin + np.array([800, 150])
    path = fence.route(start, end)
    assert len(path) == 3
    corner = np.array([310, 300]) + origin
    assert np.linalg.norm(path[1] - corner) < 6
    straight = np.linalg.norm(start - corner) + np.linalg.norm(end - corner)
    assert LineString(path).length == pytest.approx(straight, rel=0.01)
    assert len(fence.route(start, start + np.array([10, -10]))) == 2


def test_the_server_routes_vehicles_around_a_concave_corner():
    search = search_of(L_SHAPE)
    cells = [tuple(cell) for cell in np.argwhere(search.layout.searchable).tolist()]
    vehicle = search.searcher.vehicles["1"]
    vehicle.flown.append(cells[0])
    vehicle.next = cells[-1]
    (state,) = vehicle_states(search, ended=False)
    way = [state.position, *state.route, state.next]
    path = LineString(PLANE.from_degrees([(at.lat, at.lon) for at in way]))
    assert state.route
    assert L_SHAPE.buffer(search.layout.cell_m / 2).covers(path), "the position is the centre of a cell"
    assert L_SHAPE.buffer(TOLERANCE).covers(LineString(path.coords[1:]))
    assert vehicle_states(search, ended=True)[0].route == []


def test_an_outline_of_a_thousand_corners_is_routed_around_too():
    angles = np.linspace(0, 2 * np.pi, 1200, endpoint=False)
    radius = 400 + 80 * np.sin(40 * angles)
    search = search_of(Polygon(radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)))
    cells = [tuple(cell) for cell in np.argwhere(search.layout.searchable).tolist()]
    outline = Polygon(radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1))
    order = np.random.default_rng(1).permutation(len(cells))[:30]
    assert outline.buffer(TOLERANCE).covers(flown_path(search, [cells[number] for number in order]))


def test_the_plan_file_has_the_outline_and_its_holes_as_geofence():
    holed = L_SHAPE.difference(Point(150, 150).buffer(40, quad_segs=2))
    search = search_of(holed)
    start = search.searcher.advice().next_cell
    flight = make_flight(search, [start], "a", np.full(search.layout.grid.shape, 0.1))
    fence = json.loads(qgc_plan(flight))["geoFence"]["polygons"]
    assert [polygon["inclusion"] for polygon in fence] == [True, False]
    rings = [Polygon(PLANE.from_degrees(np.array(polygon["polygon"]))) for polygon in fence]
    assert rings[0].symmetric_difference(L_SHAPE).area < 10
    assert rings[0].difference(rings[1]).symmetric_difference(holed).area < 10


def test_a_launch_outside_the_outline_has_a_corridor_and_a_landing_elsewhere_is_landed_at():
    launch, landing = ((PLANE.to_degrees(point)).tolist() for point in ((-200.0, 400.0), (600.0, -150.0)))
    search = search_of(L_SHAPE, home=tuple(launch), landing=tuple(landing))
    cells = [tuple(cell) for cell in np.argwhere(search.layout.searchable).tolist()][:3]
    flight = make_flight(search, cells, "a", np.full(search.layout.grid.shape, 0.1))
    lines = waypoints(flight).splitlines()
    assert lines[1].split("\t")[8:10] == lines[2].split("\t")[8:10] == [f"{number:.9f}" for number in launch]
    last = lines[-1].split("\t")
    assert (last[3], last[8:10]) == ("21", [f"{number:.9f}" for number in landing])
    outer = Polygon(PLANE.from_degrees(np.array(flight.fence[0])))
    path = flown_path(search, cells)
    assert outer.buffer(TOLERANCE).covers(path), "the geofence has the corridors"
    outside = path.difference(L_SHAPE)
    assert outside.length < 200 + 150 + 60, "only the ways of launch and landing are outside"


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"home": (59.3527, 14.99)}, "no-fly zone lies between"),
        ({"home": tuple(PLANE.to_degrees((-60.0, 400.0)).tolist())}, "in a no-fly zone"),
    ],
)
def test_a_launch_behind_or_in_a_no_fly_zone_is_refused(settings, fact: str):
    wall = Polygon([(-100, -500), (-20, -500), (-20, 1500), (-100, 1500)])
    with pytest.raises(AirlocError, match=fact):
        search_of(L_SHAPE, no_fly=in_degrees(wall), **settings)


def test_an_outline_that_is_a_no_fly_zone_is_refused():
    with pytest.raises(AirlocError, match="Fewer than two cells"):
        search_of(L_SHAPE, no_fly=in_degrees(L_SHAPE.buffer(10)))


def test_a_no_fly_zone_may_cut_the_outline_into_parts_of_which_that_with_the_start_is_flown_first():
    wall = Polygon([(280, -50), (420, -50), (420, 900), (280, 900)])
    left = search_of(L_SHAPE, no_fly=in_degrees(wall))
    place = PLANE.from_degrees(left.layout.lat_lon(left.searcher.vehicles["1"].start))
    assert place[0] < 300  # the largest part
    start = tuple(PLANE.to_degrees((700.0, 150.0)).tolist())
    plan = SearchPlan(cell_m=60.0, agent="spiral", start=start, flight=left.plan.flight)
    right = start_search(plan, lay_out_search(plan, MultiPolygon([in_degrees(L_SHAPE)])), GOAL, make_agent("spiral"))
    reach = right.reach(right.searcher.vehicles["1"].start)
    assert all(PLANE.from_degrees(right.layout.lat_lon(cell))[0] > 400 for cell in np.argwhere(reach))
    assert reach.sum() < right.layout.searchable.sum() == left.layout.searchable.sum()


def test_a_whole_image_has_no_fence_and_a_negative_margin_is_refused():
    layout = lay_out_outline(MultiPolygon([in_degrees(L_SHAPE)]), 60.0)
    whole = replace(layout, region=None)
    assert fence_in(whole, None) == (whole, None)
    with pytest.raises(AirlocError, match="margin"):
        fence_in(layout, None, margin_m=-1.0)


TWO_PARTS = [Polygon([(0, 0), (300, 0), (300, 300), (0, 300)]), Polygon([(600, 0), (780, 0), (780, 240), (600, 240)])]


@pytest.mark.parametrize(("drones", "names"), [(1, {"1", "1-2"}), (2, {"1", "2", "1-2"})])
def test_unconnected_parts_are_all_searched_each_on_a_sortie_of_its_own_and_no_leg_leaves_them(tmp_path, drones, names):
    plan = SearchPlan(cell_m=60.0, agent="spiral", budget=40, false_alarm_cost=1e9, drones=drones)
    layout = lay_out_search(plan, MultiPolygon([in_degrees(part) for part in TWO_PARTS]))
    search = start_search(plan, layout, GOAL, make_agent("spiral"))
    with Raster(write_projected(tmp_path / "far.tif", ground(2))) as raster:  # shows nothing of the area
        record = simulate(search, raster)
    vehicles = search.searcher.vehicles
    assert set(vehicles) == names
    assert {photo.cell for photo in record.photos} == {tuple(cell) for cell in np.argwhere(layout.searchable)}
    allowed = shapely.union_all(TWO_PARTS).buffer(TOLERANCE)
    for vehicle in vehicles.values():
        assert vehicle.flown
        assert allowed.covers(flown_path(search, vehicle.flown))
    assert json.loads(qgc_plan(make_flight(search, vehicles["1-2"].flown, "b", search.searcher.prior)))


def test_a_drone_launched_in_another_part_searches_there_and_home_has_a_corridor_to_each_part():
    home = tuple(PLANE.to_degrees((450, -100)).tolist())
    plan = SearchPlan(cell_m=60.0, agent="spiral", budget=40, drones=2, flight=FlightSettings(home=home))
    plan = replace(plan, launches=(tuple(PLANE.to_degrees((690, 120)).tolist()),))
    layout = lay_out_search(plan, MultiPolygon([in_degrees(part) for part in TWO_PARTS]))
    search = start_search(plan, layout, GOAL, make_agent("spiral"))
    assert search.searcher.part_count == 2
    for vehicle in search.searcher.vehicles.values():
        path = flown_path(search, [vehicle.start])
        assert search.fence is not None
        assert Point(path.coords[0]).distance(Point(450, -100)) < TOLERANCE
    parts = {int(search.fence.parts[vehicle.start]) for vehicle in search.searcher.vehicles.values()}
    assert parts == {0, 1}
