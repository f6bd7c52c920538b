"""Plans of searches: one plan gives the command line and the server the same search."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.agents.registry import make_agent
from airloc.areas.layout import read_cell
from airloc.areas.raster import Raster
from airloc.cli.search import SearchOptions, make_plan
from airloc.errors import AirlocError
from airloc.missions.plan import (
    SearchPlan,
    lay_out_search,
    nearest_searchable,
    prepare_goal,
    read_goal,
    searchable_cell,
    start_search,
)
from airloc.missions.settings import NewSearch
from airloc.missions.simulation import SearchRecord, simulate
from airloc.task.rules import MAX_BUDGET
from field_files import ground, write_projected
from field_server import SearchGround

GOAL = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)


def test_the_command_line_and_the_server_make_the_same_plan(tmp_path):
    options = SearchOptions(
        area=tmp_path, goal="", out=tmp_path, cell="0.06km", gap="0m", heading=30, start="59.5,15.25", budget=9,
        agent="spiral", false_alarm_cost=2, detection=0.8, fov=60, aspect=1.5, seed=4,
    )  # fmt: skip
    request = NewSearch(
        goal="x", outline=[{"lat": 1, "lon": 1}, {"lat": 2, "lon": 2}], cell_m=60, gap_m=0, heading=30,
        start={"lat": 59.5, "lon": 15.25}, budget=9, agent="spiral", false_alarm_cost=2, detection=0.8, fov=60,
        aspect=1.5, seed=4,
    )  # fmt: skip
    assert make_plan(options, georeferenced=True) == request.plan("belief")


def test_the_defaults_of_the_command_line_and_of_the_server_agree(tmp_path):
    options = SearchOptions(area=tmp_path, goal="", out=tmp_path)
    request = NewSearch(goal="x", outline=[{"lat": 1, "lon": 1}, {"lat": 2, "lon": 2}])
    assert make_plan(options, georeferenced=True) == request.plan(options.agent) == SearchPlan()


def test_settings_that_an_earlier_server_stored_still_make_a_plan():
    stored = """{"outline": [{"lat": 1.0, "lon": 1.0}, {"lat": 2.0, "lon": 2.0}], "cell_m": 96.0, "gap_m": null,
        "heading": 0.0, "start": null, "budget": 40, "agent": "spiral", "goal_width_m": null, "false_alarm_cost": 4.0,
        "detection": 0.9, "fov": 73.7, "aspect": 1.3333333333333333, "seed": 0}"""
    plan = NewSearch(goal="x", **json.loads(stored)).plan("belief")
    assert (plan.agent, plan.cell_m, plan.budget, plan.start) == ("spiral", 96.0, 40, None)


def test_the_search_starts_at_the_centre_with_twice_the_longer_side_by_default(search_ground: SearchGround):
    plan = SearchPlan(cell_m=96.0)
    search = start_search(plan, search_ground.layout, GOAL, make_agent("spiral"))
    rows, cols = search.layout.grid.shape
    assert search.searcher.budget == 2 * max(rows, cols)
    row, col = search.searcher.advice().next_cell
    assert abs(row - (rows - 1) / 2) <= 0.5
    assert abs(col - (cols - 1) / 2) <= 0.5
    assert search.height_m == pytest.approx(plan.camera.height_for(128.0)), "a third more than a cell"


def test_an_endurance_sets_the_budget_and_a_long_one_is_capped(search_ground: SearchGround):
    def budget(seconds: float) -> int:
        plan = SearchPlan(cell_m=96.0, endurance=seconds)
        return start_search(plan, search_ground.layout, GOAL, make_agent("spiral")).searcher.budget

    assert 1 <= budget(180) < budget(600) < budget(1e7) == MAX_BUDGET


@pytest.mark.parametrize(
    ("settings", "fact"),
    [({"budget": 0}, "0"), ({"budget": 5000}, "5000"), ({"budget": 3, "endurance": 60.0}, ""),
     ({"false_alarm_cost": -1.0}, "-1"), ({"speed": 1e308}, "1e+308"), ({"speed": 1e-300}, "1e-300"),
     ({"hover": 1e300}, "1e+300")],
)  # fmt: skip
def test_invalid_plans_are_errors(settings, fact: str):
    with pytest.raises(AirlocError) as error:
        SearchPlan(**settings)
    assert fact in error.value.problem


def test_a_search_without_image_and_outline_is_an_error():
    with pytest.raises(AirlocError):
        lay_out_search(SearchPlan(), None)


def test_a_position_outside_is_an_error_that_names_the_distance_and_the_nearest_cell(search_ground: SearchGround):
    layout = search_ground.layout
    lat, lon = layout.lat_lon((0, 0)).tolist()
    with pytest.raises(AirlocError) as error:
        searchable_cell(layout, (lat + 0.01, lon), "start")
    assert "{:.6f},{:.6f}".format(*layout.lat_lon((0, 0))) in error.value.cure
    assert any(1000 < int(word) < 1130 for word in error.value.problem.split() if word.isdigit())
    assert searchable_cell(layout, (lat, lon), "start") == (0, 0)


def test_positions_on_an_image_without_georeference_are_pixels(tmp_path):
    Image.fromarray(ground(4)).save(tmp_path / "plain.png")
    with Raster(tmp_path / "plain.png") as raster:
        layout = lay_out_search(SearchPlan(cell_m=48.0), None, raster)
    assert searchable_cell(layout, (180, 24), "goal") == (0, 3)
    assert nearest_searchable(layout, np.array([-50.0, -500.0])) == (3, 0)
    with pytest.raises(AirlocError) as error:
        searchable_cell(layout, (-60, 24), "goal")
    assert "24,24" in error.value.cure


def test_an_image_and_an_outline_give_the_grid_of_their_overlap(tmp_path):
    from airloc.areas.outline import read_outline

    path = write_projected(tmp_path / "ortho.tif", ground(4))
    with Raster(path) as raster:
        whole = lay_out_search(SearchPlan(cell_m=96.0), None, raster)
        (top, left), (bottom, right) = whole.lat_lon([(0, 0), (3, 1)]).tolist()
        part = lay_out_search(SearchPlan(cell_m=96.0), read_outline(f"{top},{left} {bottom},{right}"), raster)
    assert whole.grid.shape == (4, 4)
    assert part.grid.cols < 4


def test_goal_images_that_are_hard_to_recognise_give_warnings(search_ground: SearchGround):
    image, layout = ground(4), search_ground.layout

    def warnings(goal: np.ndarray, *widths: float) -> tuple[str, ...]:
        return prepare_goal(goal, layout, (widths[0], widths[-1]) if widths else None).warnings

    assert warnings(image[:96, :96]) == warnings(image[:96, :96], 90.0, 120.0) == ()
    (small,) = warnings(image[:16, :20])
    assert "20 x 16 px" in small
    assert "50 m" in warnings(image[:96, :96], 50.0)[0]
    assert "400 m" in warnings(image[:64, :64], 400.0)[0]
    assert "only 15 px" in warnings(image[:30, :200], 192.0)[0], "the central square counts"
    haze = np.random.default_rng(0).normal(90, 2, (60, 60, 3)).astype(np.uint8)
    assert [word for word in warnings(haze) if "texture" in word]


def test_a_place_on_the_map_that_reaches_beyond_the_data_gives_a_warning(raster: Raster):
    layout = lay_out_search(SearchPlan(cell_m=96.0), None, raster)
    assert read_goal(raster, layout, GOAL_CELL).warnings == ()
    (cut,) = read_goal(raster, layout, (-0.25, 2.0)).warnings
    assert "27 % of the goal" in cut


@pytest.mark.parametrize("value", [0, 90, 255])
def test_a_goal_of_one_colour_is_refused(search_ground: SearchGround, value: int):
    with pytest.raises(AirlocError, match="single colour"):
        prepare_goal(np.full((60, 60, 3), value, np.uint8), search_ground.layout)


def test_a_goal_larger_than_the_area_of_uncertain_width_or_without_a_direction_is_refused(search_ground: SearchGround):
    image, layout = ground(4), search_ground.layout
    with pytest.raises(AirlocError, match="90000 m"):
        prepare_goal(image, layout, (90_000.0, 90_000.0))
    with pytest.raises(AirlocError, match="from 90 to 900 m"):
        prepare_goal(image, layout, (90.0, 900.0))
    prepare_goal(image, layout, (300.0, 900.0))  # it may be smaller than the area
    for heading in (float("nan"), float("inf")):
        with pytest.raises(AirlocError, match=str(heading)):
            prepare_goal(image, layout, heading=heading)


GOAL_CELL = (1, 3)


@pytest.fixture(scope="module")
def raster(tmp_path_factory: pytest.TempPathFactory) -> Raster:
    path: Path = write_projected(tmp_path_factory.mktemp("simulation") / "ortho.tif", ground(5))
    return Raster(path)


def run(raster: Raster, *, truth=GOAL_CELL, goal=GOAL_CELL, **settings) -> SearchRecord:
    plan = SearchPlan(cell_m=96.0, **{"agent": "spiral", "budget": 40} | settings)
    layout = lay_out_search(plan, None, raster)
    search = start_search(plan, layout, read_cell(raster, layout, goal).pixels, make_agent(plan.agent))
    return simulate(search, raster, truth)


def test_a_simulation_ends_with_the_find(raster: Raster):
    record = run(raster)
    declared = record.searcher.advice().declared
    assert declared is not None
    assert declared.cell == GOAL_CELL
    assert record.correct is True
    assert (record.error_m or 0.0) < 4
    assert [photo.cell for photo in record.photos] == record.searcher.flown
    assert record.photos[-1].match_probability > 0.8
    assert np.all(np.diff([photo.pos for photo in record.photos]) > 0)
    assert record.photos[-1].belief is not None, "the last belief is kept"


def test_a_find_is_neither_right_nor_wrong_without_a_known_goal(raster: Raster):
    assert run(raster, truth=None).correct is None
    assert run(raster, truth=(0, 0)).correct is False


def test_a_search_that_the_budget_ends_declares_nothing(raster: Raster):
    record = run(raster, budget=1)
    assert len(record.photos) == 2
    assert record.searcher.status == "spent"
    assert record.correct is None


def test_progress_counts_every_photo(raster: Raster):
    plan = SearchPlan(cell_m=96.0, agent="spiral", budget=5)
    layout = lay_out_search(plan, None, raster)
    search = start_search(plan, layout, read_cell(raster, layout, (0, 0)).pixels, make_agent("spiral"))
    calls: list[int] = []
    record = simulate(search, raster, None, calls.append)
    assert sum(calls) == len(record.photos)
