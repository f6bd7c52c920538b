"""The output folder: flight files that other libraries read, the belief as GeoTIFF, the record and the page."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import fastkml
import gpxpy
import jsonschema
import numpy as np
import pytest
import rasterio
import shapely
from PIL import Image
from pymavlink import mavwp
from pyproj import Geod, Transformer

from airloc.agents.registry import make_agent
from airloc.areas.layout import Layout, read_overview
from airloc.areas.raster import Raster
from airloc.drawing.palette import PATH_A
from airloc.missions.formats import FORMATS
from airloc.missions.outputs import write_search
from airloc.missions.photos import Goal, describe_goal
from airloc.missions.plan import SearchPlan, lay_out_search, prepare_goal, start_search
from airloc.missions.report import SearchPainter, _clues, summary
from airloc.missions.simulation import SearchRecord, simulate
from airloc.missions.units import format_cell
from field_files import ground, write_geographic, write_projected
from untrained import untrained_text

EARTH = Geod(ellps="WGS84")
GOAL = (1, 4)
SCHEMA = json.loads((Path(__file__).parent / "plan_schema.json").read_text())


class Written(NamedTuple):
    """A search and its output folder."""

    area: Path
    out: Path
    record: SearchRecord

    @property
    def layout(self) -> Layout:
        return self.record.layout

    def json(self) -> dict:
        return json.loads((self.out / "path.json").read_text())


@pytest.fixture(scope="module", params=["projected", "geographic"])
def written(request, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A finished search for a goal image of another size, with a sweep and all formats."""
    folder = tmp_path_factory.mktemp("search")
    write = {"projected": write_projected, "geographic": write_geographic}[request.param]
    image = ground(6)
    area = write(folder / "ortho.tif", image)
    left, top = GOAL[1] * 52, GOAL[0] * 52
    goal = Image.fromarray(image[top : top + 48, left : left + 48]).resize((160, 160), Image.Resampling.LANCZOS)
    with pytest.MonkeyPatch.context() as patch, Raster(area) as raster:
        patch.setattr("airloc.missions.outputs.SIDE", 200)
        patch.setattr("airloc.missions.outputs.GIF_SIDE", 100)
        plan = SearchPlan(cell_m=96.0, budget=40)
        layout = lay_out_search(plan, None, raster)
        prepared = prepare_goal(np.asarray(goal), layout, heading=0.0)
        record = simulate(start_search(plan, layout, prepared.goal, make_agent("belief")), raster, GOAL)
        write_search(folder / "out", record, raster, formats=tuple(FORMATS), sweep=True, made_by="airloc search")
    return Written(area, folder / "out", record)


def metres(a, b) -> float:
    return EARTH.inv(a[1], a[0], b[1], b[0])[2]


def test_the_record_holds_the_find_and_every_photo_once(written: Written):
    record = written.json()
    assert (record["status"], record["correct"]) == ("found", True)
    assert (record["declared"]["row"], record["declared"]["col"]) == GOAL
    assert record["moves"] <= record["budget"] == 40
    photos = record["photos"]
    assert photos[-1]["match_probability"] > 0.8
    assert [photo["order"] for photo in photos] == list(range(1, len(photos) + 1))
    assert len({(photo["row"], photo["col"]) for photo in photos}) == len(photos)
    assert np.all(np.diff([photo["pos"] for photo in photos]) > 0)


def test_positions_in_the_record_match_the_image(written: Written):
    with rasterio.open(written.area) as file:
        to_degrees = Transformer.from_crs(file.crs, "EPSG:4326", always_xy=True)
        centre = to_degrees.transform(*(file.transform @ (file.width / 2, file.height / 2)))
    for photo in written.json()["photos"]:
        north, east = (2.5 - photo["row"]) * 104, (photo["col"] - 2.5) * 104
        lon, lat, _ = EARTH.fwd(centre[0], centre[1], np.degrees(np.arctan2(east, north)), np.hypot(east, north))
        assert metres((lat, lon), (photo["lat"], photo["lon"])) < 0.5


@pytest.mark.parametrize("name", ["flight", "sweep"])
def test_every_flight_file_is_read_by_a_library_of_its_format_and_agrees(written: Written, name: str):
    out = written.out
    plan = json.loads((out / f"{name}.plan").read_text())
    jsonschema.validate(plan, SCHEMA)
    flown = [item["params"][4:6] for item in plan["mission"]["items"] if item["command"] == 16]
    if name == "flight":
        expected = [(photo["lat"], photo["lon"]) for photo in written.json()["photos"]]
        assert all(metres(a, b) < 0.01 for a, b in zip(flown, expected, strict=True))
    for positions in (read_geojson(out, name), read_kml(out, name), read_gpx(out, name), read_waypoints(out, name)):
        assert len(positions) == len(flown)
        assert max(metres(a, b) for a, b in zip(flown, positions, strict=True)) < 0.5


def read_geojson(out: Path, name: str) -> list[tuple[float, float]]:
    shapes = shapely.from_geojson((out / f"{name}.geojson").read_text()).geoms
    points = [(shape.y, shape.x) for shape in shapes if shape.geom_type == "Point"]
    (line,) = [shape for shape in shapes if shape.geom_type == "LineString"]
    assert [(y, x) for x, y in line.coords] == points
    return points


def read_kml(out: Path, name: str) -> list[tuple[float, float]]:
    document = next(iter(fastkml.KML.from_string((out / f"{name}.kml").read_bytes(), strict=True).features))
    marks = [feature for feature in document.features if feature.geometry.geom_type == "Point"]
    assert {feature.geometry.geom_type for feature in document.features} == {"Point", "LineString", "Polygon"}
    return [(mark.geometry.y, mark.geometry.x) for mark in marks]


def read_gpx(out: Path, name: str) -> list[tuple[float, float]]:
    (route,) = gpxpy.parse((out / f"{name}.gpx").read_text()).routes
    return [(point.latitude, point.longitude) for point in route.points]


def read_waypoints(out: Path, name: str) -> list[tuple[float, float]]:
    loader = mavwp.MAVWPLoader()
    assert loader.load(str(out / f"{name}.waypoints")) > 0
    items = [loader.wp(number) for number in range(loader.count())]
    assert [item.seq for item in items] == list(range(len(items)))
    assert items[1].command == 22
    assert items[-1].command == 20
    return [(item.x, item.y) for item in items[1:] if item.command == 16]


def test_the_flight_height_gives_a_footprint_of_a_cell_and_a_third(written: Written):
    plan = json.loads((written.out / "flight.plan").read_text())
    height = plan["mission"]["items"][0]["Altitude"]
    shorter = 2 * height * np.tan(np.radians(73.7) / 2) / (4 / 3)
    assert shorter == pytest.approx(128, abs=0.01)


def test_the_belief_is_georeferenced_and_sums_to_one(written: Written):
    record = written.json()
    with rasterio.open(written.out / "belief.tif") as file:
        assert file.descriptions == ("POA", "POD", "POS")
        poa, pod, pos = file.read()
        to_degrees = Transformer.from_crs(file.crs, "EPSG:4326", always_xy=True)
        for cell in written.layout.grid.cells():
            lon, lat = to_degrees.transform(*file.xy(*cell))
            assert metres((lat, lon), written.layout.lat_lon(cell)) < 0.5
    assert poa.sum() == pytest.approx(1, abs=1e-5)
    assert np.unravel_index(poa.argmax(), poa.shape) == GOAL
    assert pos.sum() == pytest.approx(record["probability_of_success"], abs=1e-5)
    assert (pod > 0).sum() == len(record["photos"])


def test_the_page_shows_the_find_and_loads_nothing_from_elsewhere(written: Written):
    text = (written.out / "index.html").read_text()
    position = "{:.6f},{:.6f}".format(*written.layout.lat_lon(GOAL))
    assert all(word in text for word in (position, "POA", "POD", "POS", "flight.plan", "sweep.waypoints"))
    assert not re.search(r'(src|href)="(?!data:|[a-z.-]+")', text)


def test_the_animation_has_a_frame_per_kept_belief(written: Written):
    kept = sum(photo.belief is not None for photo in written.record.photos)
    with Image.open(written.out / "search.gif") as film:
        assert film.n_frames == kept


def test_the_summary_of_a_search_without_a_find_names_the_best_cell(written: Written, tmp_path: Path):
    with Raster(written.area) as raster:
        plan = SearchPlan(cell_m=96.0, budget=1, agent="spiral")
        layout = lay_out_search(plan, None, raster)
        goal = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
        record = simulate(start_search(plan, layout, Goal(goal, goal), make_agent("spiral")), raster)
    best = record.searcher.advice().best
    assert "{:.6f},{:.6f}".format(*layout.lat_lon(best)) in summary(record)
    assert "2 photos" in summary(record)


def test_the_summary_of_a_search_without_a_find_names_its_clues(monkeypatch: pytest.MonkeyPatch, written: Written):
    monkeypatch.setattr("airloc.missions.report.CLUE", 0.0)
    monkeypatch.setattr("airloc.missions.report.MAX_CLUES", 2)
    record = written.record
    text = _clues(record)
    assert text.count("confidence") == min(2, len(record.searcher.photos))
    assert text.startswith("Clues: photo ")
    monkeypatch.setattr("airloc.missions.report.CLUE", 1.1)
    assert _clues(record) == "No photo is a clue."


def test_the_summary_of_a_search_by_words_names_the_photos_to_look_at_first(written: Written):
    agent = replace(make_agent("belief"), text_network=untrained_text)
    with Raster(written.area) as raster:
        plan = SearchPlan(cell_m=96.0, budget=3, agent="belief")
        layout = lay_out_search(plan, None, raster)
        goal = describe_goal("houses beside a pond")
        record = simulate(start_search(plan, layout, goal, agent), raster)
    first = record.searcher.candidates()[0]
    assert "does not prove a find" in summary(record)
    assert f"first at photo {first.number} at" in summary(record)
    assert "4 photos" in summary(record)


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 60])
def test_the_cell_to_photograph_next_has_no_photo(written: Written, budget: int):
    agent = replace(make_agent("belief"), text_network=untrained_text)
    with Raster(written.area) as raster:
        plan = SearchPlan(cell_m=96.0, budget=budget, agent="belief")
        layout = lay_out_search(plan, None, raster)
        record = simulate(start_search(plan, layout, describe_goal("houses beside a pond"), agent), raster)
    _, _, named = summary(record).partition("without a photo: ")
    names = [f"({format_cell(photo.find.cell)})" for photo in record.searcher.photos]
    assert not any(name in named for name in names)
    assert ("none" in named) == (len(set(names)) == layout.searchable.sum())


def test_the_path_is_drawn_around_the_corners_of_the_outline_over_cells_that_are_not_searched(tmp_path: Path):
    with Raster(write_projected(tmp_path / "ortho.tif", ground(6))) as raster:
        whole = lay_out_search(SearchPlan(cell_m=96.0), None, raster)
        corners = whole.lat_lon([(0, 0), (0, 1.6), (3.3, 1.8), (3.3, 3.2), (0, 3.4), (0, 5), (5, 5), (5, 0)])
        outline = shapely.MultiPolygon([shapely.Polygon(corners[:, ::-1])])
        plan = SearchPlan(cell_m=96.0, budget=60, agent="spiral", detection=0.5)
        layout, patch = lay_out_search(plan, outline, raster), np.random.default_rng(0).integers(0, 256, (48, 48, 3))
        record = simulate(start_search(plan, layout, patch.astype(np.uint8), make_agent("spiral")), raster)
        drawn = SearchPainter(record, read_overview(raster, layout, 600), 600).draw_path().astype(int)
    search, pitch, hidden = record.search, 600 // max(layout.grid.shape), 0
    for start, end in pairwise(record.searcher.flown):
        ends = [layout.centres(search.place(cell)) for cell in (start, end)]
        leg = shapely.LineString([ends[0], *search.bends(start, end), ends[1]])
        for share in np.linspace(0.1, 0.9, 33):
            point = shapely.get_coordinates(leg.interpolate(share, normalized=True))[0]
            if not layout.searchable[layout.cell_at(point)]:
                y, x = (round(pitch * (side + 0.5)) for side in layout.grid_position(point))
                around = drawn[max(0, y - 9) : y + 10, max(0, x - 9) : x + 10]
                assert (abs(around - PATH_A).max(axis=-1) < 60).any(), "the path is not drawn here"
                hidden += 1
    assert hidden, "the flight passes over no cell that is not searched"
