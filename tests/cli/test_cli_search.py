"""`airloc search` from options to the output folder; bad input is one sentence and creates nothing."""

import errno
import itertools
import json
import os
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import rasterio
import shapely
from PIL import Image
from rasterio.transform import from_origin

from airloc.areas.layout import lay_out
from airloc.areas.raster import Raster
from airloc.cli.search import USUAL_FORMATS, Format, PatternName, _announce_duration
from airloc.missions.flight import great_circle_distance
from airloc.missions.formats import FORMATS
from airloc.missions.patterns import PATTERNS
from airloc.missions.plan import read_goal
from field_files import LEFT, METRE, TOP, ground, write_projected, write_tiff

pytestmark = pytest.mark.long

GEOREFERENCE = from_origin(LEFT, TOP, 2, 2), METRE


@pytest.fixture(autouse=True)
def small_drawings(monkeypatch: pytest.MonkeyPatch):
    """Draw small images: these tests do not look at them."""
    monkeypatch.setattr("airloc.missions.outputs.SIDE", 60)
    monkeypatch.setattr("airloc.missions.outputs.GIF_SIDE", 40)


@pytest.fixture(scope="module")
def area(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image of 4 x 4 cells of 96 m."""
    return write_projected(tmp_path_factory.mktemp("area") / "ortho.tif", ground(4))


def position_of(area: Path, cell=(1, 2)) -> str:
    with Raster(area) as raster:
        return "{:.7f},{:.7f}".format(*lay_out(raster, None, 96.0).lat_lon(cell))


def record_of(out: Path) -> dict:
    return json.loads((out / "path.json").read_text())


def test_the_formats_of_the_option_are_those_of_the_writers():
    assert tuple(FORMATS) == get_args(Format)
    assert set(USUAL_FORMATS) < set(FORMATS)
    assert tuple(PATTERNS) == get_args(PatternName)


def test_the_outcome_is_printed_and_all_files_are_written(airloc, tmp_path: Path, area: Path):
    goal = position_of(area, (0, 3))
    options = ("--area", area, "--goal", goal, "--cell", "96m", "--budget", 40, "--agent", "spiral", "--sweep")
    outcome = airloc("search", *options, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    record = record_of(tmp_path / "out")
    assert (record["declared"]["row"], record["declared"]["col"], record["correct"]) == (0, 3, True)
    found = f"{record['declared']['lat']:.6f},{record['declared']['lon']:.6f}"
    assert found in outcome.out
    flights = {f"{name}.{ending}" for name in ("flight", "sweep") for ending in USUAL_FORMATS}
    others = {"index.html", "candidates.html", "path.json", "belief.tif", "belief.jpg", "path.jpg", "search.gif"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == flights | others
    assert f"{len(flights | others)} files" in outcome.out


def test_what_is_known_is_combined_and_written_as_prior_tif(airloc, tmp_path: Path, area: Path):
    with Raster(area) as raster:
        layout = lay_out(raster, None, 96.0)
    corners = layout.lat_lon([(-1, 1.5), (-1, 4), (4, 4), (4, 1.5)])[:, ::-1].tolist()
    shape = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
    east = tmp_path / "east.geojson"
    east.write_text(json.dumps({"type": "Feature", "properties": {"weight": 0}, "geometry": shape}))
    goal = position_of(area, (3, 0))
    options = ("--area", area, "--goal", goal, "--cell", "96m", "--agent", "lawnmower", "--formats", "plan")
    known = ("--prior", east, "--lkp", goal, "--subject", "child-1-3")
    outcome = airloc("search", *options, *known, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    with rasterio.open(tmp_path / "out" / "prior.tif") as file:
        prior = file.read(1)
    assert prior.sum() == pytest.approx(1)
    assert (prior[:, 2:] == 0).all()
    assert prior[3, 0] == prior.max()
    record = record_of(tmp_path / "out")
    assert all(photo["col"] < 2 for photo in record["photos"][1:])
    assert record["photos"][0]["poa"] == pytest.approx(prior[record["photos"][0]["row"], record["photos"][0]["col"]])
    assert "prior.tif" in (tmp_path / "out" / "index.html").read_text()
    again = airloc("search", *options, "--prior", tmp_path / "out" / "prior.tif", "--out", tmp_path / "again")
    assert again.code == 0, again
    with rasterio.open(tmp_path / "again" / "prior.tif") as file:
        np.testing.assert_allclose(file.read(1), prior, atol=1e-6)
    everywhere = airloc("search", *options, *known, "--prior", east, "--lkp", "0,0", "--out", tmp_path / "no")
    assert everywhere.refused("zero in every cell")
    assert not (tmp_path / "no").exists()


def test_patterns_are_written_as_flights_and_compared_with_the_search(airloc, tmp_path: Path, area: Path):
    options = ("--area", area, "--goal", position_of(area, (0, 3)), "--cell", "96m", "--budget", 6, "--agent", "spiral")
    more = ("--patterns", "sector", "best-blind", "--formats", "dji", "litchi", "kmz", "gpkg", "caltopo")
    outcome = airloc("search", *options, *more, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    record = record_of(tmp_path / "out")
    assert [pattern["name"] for pattern in record["patterns"]] == ["sector", "best-blind"]
    assert all(0 < pattern["pos"] <= pattern["pod"] + 1e-9 for pattern in record["patterns"])
    assert f"best blind {100 * record['patterns'][1]['pos']:.1f} %" in outcome.out
    flights = {"flight", "pattern-sector", "pattern-best-blind"}
    endings = ("-dji.kmz", "-litchi.csv", ".kmz", ".gpkg", "-caltopo.geojson")
    assert {name + ending for name in flights for ending in endings} <= set(record["files"])


def test_only_the_outline_is_flown_over(airloc, tmp_path: Path, area: Path):
    with Raster(area) as raster:
        corners = lay_out(raster, None, 96.0).lat_lon([(0, 0), (3, 0), (3, 3)])
    within = " ".join(f"{lat},{lon}" for lat, lon in corners)
    goal = "{},{}".format(*corners.mean(axis=0))
    outcome = airloc(
        "search", "--area", area, "--goal", goal, "--cell", "60m", "--within", within, "--agent", "spiral",
        "--budget", 60, "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 0, outcome
    outline = shapely.Polygon(corners).buffer(1e-3)
    photos = record_of(tmp_path / "out")["photos"]
    assert all(outline.contains(shapely.Point(photo["lat"], photo["lon"])) for photo in photos)
    with rasterio.open(tmp_path / "out" / "belief.tif") as file:
        assert np.isnan(file.read(1)).any()


def test_endurance_and_speed_set_the_budget(airloc, tmp_path: Path, area: Path):
    def budget(time: str) -> int:
        options = ("--endurance", time, "--speed", "10m/s", "--cell", "60m", "--agent", "spiral", "--formats", "plan")
        outcome = airloc("search", "--area", area, "--goal", position_of(area), *options, "--out", tmp_path / time)
        assert outcome.code == 0, outcome
        return int(record_of(tmp_path / time)["budget"])

    assert 1 <= budget("2min") < budget("5min")


def test_an_image_without_georeference_is_searched_in_pixels(airloc, tmp_path: Path):
    plain = tmp_path / "plain.png"
    Image.fromarray(ground(4)).save(plain)
    options = ("--area", plain, "--goal", "180,24", "--agent", "spiral", "--budget", 30)
    outcome = airloc("search", *options, "--out", tmp_path / "out")
    assert outcome.code == 0
    assert "plain.png" in outcome.err
    assert not list((tmp_path / "out").glob("flight.*"))
    assert record_of(tmp_path / "out")["declared"]["col"] == 3
    refused = airloc("search", *options, "--out", tmp_path / "no", "--formats", "plan")
    assert refused.refused("plain.png", "gdal_translate")
    assert airloc("search", *options, "--out", tmp_path / "no", "--cell", "100m").refused("100m", "48px")
    assert airloc("search", *options, "--out", tmp_path / "no", "--start", "nan,1").refused("nan,1")
    for option, value in {"--speed": "8m/s", "--home": "59,15", "--fov": 60, "--endurance": "9min"}.items():
        assert airloc("search", *options, option, value, "--out", tmp_path / "no").refused(option, "no georeference")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("option", "value", "fact"),
    [
        ("--budget", 0, "0"),
        ("--start", "10,10", "nearest"),
        ("--start", "centre", "centre"),
        ("--endurance", "1s", "1 s"),
        ("--cell", "big", "big"),
        ("--cell", "9km", "9000 m"),
        ("--cell", "0.1m", "0.1 m"),
        ("--within", "0,0 1,1", "ortho.tif"),
        ("--within", "nothing.geojson", "nothing.geojson"),
        ("--goal", "missing.jpg", "missing.jpg"),
        ("--goal", "0,0", "goal"),
        ("--truth", "0,0", "nearest"),
        ("--area", "missing.tif", "missing.tif"),
        ("--agent", "nobody", "nobody"),
        ("--fov", 300, "300"),
        ("--false-alarm-cost", -1, "-1"),
        ("--detection", 2, "2"),
        ("--speed", "fast", "fast"),
        ("--drones", 0, "0 drones"),
        ("--drones", 99, "99 drones"),
        ("--launch", "10,10", "1 launch positions for 0"),
        ("--moving", "fast", "fast"),
        ("--moving", "900m/s", "cannot walk"),
        ("--drift", "0.5m/s", "no direction"),
        ("--drift", "-1m/s,90", "-1m/s"),
        ("--cell", "48px", "48px"),
        ("--gap", "4px", "4px"),
        ("--heading", "nan", "nan"),
        ("--footprint", 0.5, "0.5"),
        ("--area", "https://example.org/ortho.tif", "example.org"),
        ("--prior", "nothing.tif", "nothing.tif"),
        ("--prior", "nothing.kmz", "nothing.kmz"),
        ("--prior", __file__, "test_cli_search.py"),
        ("--map", "missing.tif", "missing.tif"),
        ("--lkp", "59,15", "needed together"),
        ("--subject", "hiker", "needed together"),
        ("--home", "here", "here"),
        ("--landing", "1", "1"),
        ("--speed", "1e308m/s", "1e+308"),
        ("--hover", "2h", "7200 s"),
        ("--no-fly", "zone.kml", "no no-fly zone zone.kml"),
        ("--no-fly", "59,15 59,15", "no-fly zone '59,15 59,15' crosses itself"),
        ("--no-fly", "59.3,15 59.4,15.1", "no-fly"),
        ("--climb", "0m/s", "0m/s"),
        ("--wind", "strong", "strong"),
        ("--wind", "5m/s,west", "west"),
        ("--dem", "missing.tif", "missing.tif"),
        ("--sorties", 0, "0 sorties"),
        ("--sorties", 99, "99 sorties"),
    ],
)
def test_bad_input_is_one_sentence_and_creates_nothing(airloc, tmp_path: Path, area: Path, option, value, fact: str):
    options = {"--area": area, "--goal": position_of(area), "--cell": "96m", "--out": tmp_path / "out"}
    options |= {"--agent": "spiral", option: value}
    outcome = airloc("search", *(word for pair in options.items() for word in pair))
    assert outcome.refused(fact)
    assert not (tmp_path / "out").exists()


def test_three_drones_have_flights_of_their_own_and_a_record_that_names_them(airloc, tmp_path: Path, area: Path):
    options = ("--cell", "96m", "--budget", 6, "--drones", 3, "--sweep", "--formats", "gpx", "--agent", "lawnmower")
    ran = airloc("search", "--area", area, "--goal", position_of(area), *options, "--out", tmp_path / "out")
    assert ran.code == 0
    record = record_of(tmp_path / "out")
    photographed = [(photo["row"], photo["col"]) for photo in record["photos"]]
    assert len(set(photographed)) == len(photographed)
    flown = {photo["drone"] for photo in record["photos"]}
    assert flown <= {"1", "2", "3"}
    assert {"sweep.gpx", "sweep-2.gpx", "sweep-3.gpx"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert all((tmp_path / "out" / f"flight-{name}.gpx").exists() for name in flown - {"1"})


@pytest.mark.parametrize(
    ("more", "fact"),
    [
        (("--endurance", "1min", "--budget", 3), ""),
        (("--endurance", "9min", "--reserve", "95%"), "95"),
        (("--endurance", "9min", "--reserve", "half"), "half"),
        (("--no-fly", "59.3,15 59.31,15.1", "--margin", "-3m"), "-3m"),
        (("--no-fly", "59.3,15 59.31,15.1", "--margin", "9px"), "9px"),
        (("--no-fly", "59.3,15 59.31,15.1", "--margin", "1e300m"), "1e+300"),
        (("--goal-width", "60px", "--goal", "missing.jpg"), "60px"),
        (("--truth", "59.3560,15.0020"), "--truth"),
    ],
)
def test_options_that_contradict_or_are_bad_together_are_one_sentence(
    airloc, tmp_path: Path, area: Path, more, fact: str
):
    goal = () if "--goal" in more else ("--goal", position_of(area))
    assert airloc("search", "--area", area, *goal, *more, "--out", tmp_path / "out").refused(fact)
    assert not (tmp_path / "out").exists()


def test_a_goal_image_may_have_an_exif_orientation_and_show_more_or_less_than_a_cell(airloc, tmp_path, area: Path):
    image = ground(4)
    around = Image.fromarray(image[52 - 24 : 100 + 24, 104 - 24 : 152 + 24])  # 192 m around the cell (1, 2)
    exif = around.getexif()
    exif[0x0112] = 6  # rotate 90 degrees clockwise to display
    around.rotate(90).save(tmp_path / "wide.jpg", exif=exif, quality=95)
    options = ("--cell", "96m", "--agent", "spiral", "--budget", 40, "--area", area)
    wide = ("--goal", tmp_path / "wide.jpg", "--goal-width", "192m", "--goal-heading", 0)
    assert airloc("search", *options, *wide, "--out", tmp_path / "a").code == 0
    declared = record_of(tmp_path / "a")["declared"]
    assert (declared["row"], declared["col"]) == (1, 2)
    Image.fromarray(image[60:76, 110:126]).save(tmp_path / "tiny.png")
    tiny = ("--goal", tmp_path / "tiny.png", "--goal-width", "32m")
    small = airloc("search", *options, *tiny, "--out", tmp_path / "b")
    assert small.code == 0
    assert "32 m" in small.err
    assert "16 x 16 px" in small.err


@pytest.mark.parametrize(
    ("option", "value", "fact"),
    [
        ("--goal-width", "80m-50m", "80m-50m"),
        ("--goal-width", "50m-", "50m-"),
        ("--goal-width", "50px-80px", "50px"),
        ("--goal-width", "2km", "2000 m"),
        ("--goal-width", "50m-400m", "400 m"),
        ("--goal-width", "2m", "2 m"),
        ("--goal-width", "1e-300m", "1e-300 m"),
        ("--goal-heading", "nan", "nan"),
    ],
)
def test_a_goal_image_that_cannot_be_used_is_one_sentence(airloc, tmp_path: Path, area: Path, option, value, fact: str):
    Image.fromarray(ground(4)[:48, :48]).save(tmp_path / "goal.png")
    options = ("--area", area, "--goal", tmp_path / "goal.png", "--cell", "96m", "--agent", "spiral")
    assert airloc("search", *options, option, value, "--out", tmp_path / "out").refused(fact)
    assert not (tmp_path / "out").exists()


def test_a_goal_between_cells_with_a_range_of_widths_is_found_with_known_and_unknown_heading(
    airloc, tmp_path: Path, area: Path
):
    """The goal lies 78 px down and 104 px right: between the cells of two rows and two columns."""
    goal = np.rot90(ground(4)[78 - 28 : 78 + 28, 104 - 28 : 104 + 28])  # 112 m wide, the camera points east
    Image.fromarray(np.ascontiguousarray(goal)).save(tmp_path / "goal.png")
    with Raster(area) as raster:
        truth = "{:.7f},{:.7f}".format(*lay_out(raster, None, 96.0).lat_lon(((78 - 24) / 52, (104 - 24) / 52)))
    options = ("--area", area, "--goal", tmp_path / "goal.png", "--cell", "96m", "--budget", 40, "--agent", "spiral",
               "--formats", "plan", "--truth", truth, "--goal-width", "95m-130m")  # fmt: skip
    for number, heading in enumerate((("--goal-heading", 90), ())):
        out = tmp_path / str(number)
        outcome = airloc("search", *options, *heading, "--out", out)
        assert outcome.code == 0, outcome
        assert [line for line in outcome.err.splitlines() if "min left at most" not in line] == []
        record = record_of(out)
        assert record["correct"] is True
        declared = record["declared"]["lat"], record["declared"]["lon"]
        assert great_circle_distance(declared, tuple(float(part) for part in truth.split(","))) < 8


def test_a_place_on_the_map_has_the_width_and_the_heading_that_were_given(airloc, tmp_path: Path, area: Path):
    """The goal lies 78 px down and 104 px right: between the cells of two rows and two columns."""
    with Raster(area) as raster:
        layout = lay_out(raster, None, 96.0)
        place = ((78 - 24) / 52, (104 - 24) / 52)
        goal = read_goal(raster, layout, place, (112.0, 112.0), 90.0).goal
        position = "{:.7f},{:.7f}".format(*layout.lat_lon(place))
    seen = np.rot90(ground(4)[78 - 28 : 78 + 28, 104 - 28 : 104 + 28]).astype(int)  # the camera points east
    assert goal.picture.shape == seen.shape == (56, 56, 3)
    assert np.abs(goal.picture - seen).mean() < 3
    assert (goal.turn, goal.same_day) == (90.0, True)
    options = ("--area", area, "--goal", position, "--cell", "96m", "--budget", 40, "--agent", "spiral",
               "--formats", "plan", "--goal-heading", 90)  # fmt: skip
    assert airloc("search", *options, "--goal-width", "112m", "--out", tmp_path / "out").code == 0
    assert record_of(tmp_path / "out")["correct"] is True
    assert airloc("search", *options, "--goal-width", "95m-130m", "--out", tmp_path / "no").refused("95 to 130 m")


def test_a_goal_with_hardly_any_texture_gives_a_warning(airloc, tmp_path: Path, area: Path):
    haze = np.random.default_rng(0).normal(120, 2, (48, 48, 3)).astype(np.uint8)
    Image.fromarray(haze).save(tmp_path / "haze.png")
    options = ("--area", area, "--goal", tmp_path / "haze.png", "--cell", "96m", "--agent", "spiral")
    outcome = airloc("search", *options, "--budget", 2, "--formats", "plan", "--out", tmp_path / "out")
    assert outcome.code == 0
    assert "texture" in outcome.err
    assert record_of(tmp_path / "out")["status"] == "spent"


@pytest.mark.parametrize("more", [(), ("--goal-text", "a red roof beside a pond")])
def test_a_goal_of_one_colour_is_refused_before_the_search(airloc, tmp_path: Path, area: Path, more):
    Image.new("RGB", (48, 48), (90, 120, 60)).save(tmp_path / "card.png")
    options = ("--area", area, "--goal", tmp_path / "card.png", *more, "--cell", "96m", "--out", tmp_path / "out")
    assert airloc("search", *options).refused("single colour", "photo of the place")
    assert not (tmp_path / "out").exists()


def test_cells_may_touch_and_photos_may_take_no_time(airloc, tmp_path: Path, area: Path):
    options = ("--area", area, "--goal", position_of(area), "--cell", "96m", "--agent", "spiral")
    done = airloc("search", *options, "--gap", "0m", "--hover", "0s", "--endurance", "9min", "--out", tmp_path / "out")
    assert done.code == 0
    assert record_of(tmp_path / "out")["grid"]["gap"] == 0


def test_an_image_without_data_is_refused(airloc, tmp_path: Path):
    write_tiff(tmp_path / "empty.tif", np.zeros((192, 192, 3), np.uint8), *GEOREFERENCE, nodata=0)
    Image.fromarray(ground(2)).save(tmp_path / "goal.png")
    options = ("--goal", tmp_path / "goal.png", "--cell", "96m", "--agent", "spiral", "--budget", 3)
    outcome = airloc("search", "--area", tmp_path / "empty.tif", *options, "--out", tmp_path / "out")
    assert outcome.refused("empty.tif has no data")
    assert not (tmp_path / "out").exists()


def test_launch_landing_wind_reserve_and_ground_heights_are_in_the_plan(airloc, tmp_path: Path, area: Path):
    heights = np.full((60, 60, 1), 300.0, np.float32)
    heights[:, 30:] = 320.0
    dem = write_tiff(tmp_path / "dem.tif", heights, from_origin(LEFT - 100, TOP + 100, 10, 10), METRE)
    with Raster(area) as raster:
        first, second = (
            "{:.7f},{:.7f}".format(*lay_out(raster, None, 96.0).lat_lon(cell)) for cell in ((0, 0), (0, 3))
        )
    outcome = airloc(
        "search", "--area", area, "--goal", position_of(area, (3, 3)), "--cell", "96m", "--agent", "spiral",
        "--endurance", "8min", "--wind", "3m/s,90", "--reserve", "20%", "--home", first, "--landing", second, "--dem",
        dem, "--sweep", "--formats", "plan", "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 0, outcome
    for name in ("flight", "sweep"):
        items = json.loads((tmp_path / "out" / f"{name}.plan").read_text())["mission"]["items"]
        assert "{:.7f},{:.7f}".format(*items[0]["params"][4:6]) == first
        assert (items[-1]["command"], "{:.7f},{:.7f}".format(*items[-1]["params"][4:6])) == (21, second)
        climbs = {round(item["Altitude"] - items[0]["Altitude"]) for item in items if item["command"] == 16}
        assert climbs <= {0, 20}
    short = ("--endurance", "4min", "--reserve", "60%", "--out", tmp_path / "no")
    common = ("--area", area, "--goal", position_of(area, (3, 3)), "--cell", "96m", "--agent", "spiral")
    assert airloc("search", *common, *short).refused("240 s")
    uncovered = write_tiff(tmp_path / "far.tif", heights, from_origin(LEFT - 9000, TOP, 10, 10), METRE)
    assert airloc("search", *common, "--dem", uncovered, "--out", tmp_path / "no").refused("far.tif")
    assert not (tmp_path / "no").exists()


def test_a_home_or_landing_far_from_the_search_area_gives_a_warning(airloc, tmp_path: Path, area: Path):
    options = ("--area", area, "--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--budget", 2)
    swapped = ",".join(reversed(position_of(area).split(",")))
    far = airloc("search", *options, "--home", position_of(area), "--landing", swapped, "--out", tmp_path / "out")
    assert far.code == 0
    assert "the landing is 6104 km from the search area" in far.err
    assert "the home" not in far.err


def test_a_search_goes_on_in_further_sorties_with_new_batteries(airloc, tmp_path: Path, area: Path):
    options = ("--area", area, "--goal", position_of(area, (3, 3)), "--cell", "96m", "--agent", "spiral", "--budget", 3)
    quiet = ("--false-alarm-cost", 1e6, "--formats", "plan")
    one = airloc("search", *options, *quiet, "--out", tmp_path / "one")
    three = airloc("search", *options, *quiet, "--sorties", 3, "--out", tmp_path / "three")
    assert (one.code, three.code) == (0, 0), three
    first, all_photos = record_of(tmp_path / "one")["photos"], record_of(tmp_path / "three")["photos"]
    assert all_photos[: len(first)] == first, "the first sortie is the same"
    cells = [(photo["row"], photo["col"]) for photo in all_photos]
    assert len(set(cells)) == len(cells) > len(first) + 3
    assert {path.name for path in (tmp_path / "three").glob("flight*")} == {
        "flight.plan", "flight-1-2.plan", "flight-1-3.plan"
    }  # fmt: skip


def test_a_flight_longer_than_the_endurance_gives_a_warning(airloc, tmp_path: Path, area: Path, monkeypatch):
    monkeypatch.setattr("airloc.missions.plan.budget_from_endurance", lambda *arguments: 12)
    with Raster(area) as raster:
        corners = lay_out(raster, None, 96.0).lat_lon([(0, 0), (3, 0), (3, 3), (0, 3)])
    within = " ".join(f"{lat},{lon}" for lat, lon in corners)
    options = (
        "--area",
        area,
        "--within",
        within,
        "--goal",
        position_of(area, (1, 1)),
        "--cell",
        "96m",
        "--agent",
        "spiral",
    )
    outcome = airloc("search", *options, "--endurance", "2min", "--false-alarm-cost", 1e6, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    assert "longer than the endurance" in outcome.err


def test_a_no_fly_zone_is_not_flown_over(airloc, tmp_path: Path, area: Path):
    with Raster(area) as raster:
        layout = lay_out(raster, None, 96.0)
        zone = layout.lat_lon([(0.6, 0.6), (0.6, 1.4), (1.4, 1.4), (1.4, 0.6)])
    text = " ".join(f"{lat:.8f},{lon:.8f}" for lat, lon in zone)
    outcome = airloc(
        "search", "--area", area, "--goal", position_of(area, (3, 3)), "--cell", "96m", "--agent", "lawnmower",
        "--no-fly", text, "--budget", 60, "--false-alarm-cost", 1e6, "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 0, outcome
    shapes = shapely.from_geojson((tmp_path / "out" / "flight.geojson").read_text()).geoms
    (path,) = [shape for shape in shapes if shape.geom_type == "LineString"]
    assert not path.intersects(shapely.Polygon(zone[:, ::-1]))
    fence = json.loads((tmp_path / "out" / "flight.plan").read_text())["geoFence"]["polygons"]
    assert [polygon["inclusion"] for polygon in fence] == [True, False]


@pytest.mark.parametrize("nodata", [0, None])
def test_a_black_collar_is_not_searched(airloc, tmp_path: Path, nodata: int | None):
    image = ground(4)
    image[np.add.outer(np.arange(204), np.arange(204)) < 130] = 0  # the corner of a rotated image
    image[:, 160:] = 0
    write_tiff(tmp_path / "collar.tif", image, *GEOREFERENCE, nodata=nodata)
    options = ("--goal", position_of(tmp_path / "collar.tif", (3, 1)), "--cell", "96m", "--agent", "lawnmower")
    outcome = airloc(
        "search", "--area", tmp_path / "collar.tif", *options, "--budget", 60, "--false-alarm-cost", 1e6,
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 0, outcome
    photos = record_of(tmp_path / "out")["photos"]
    assert len(photos) == record_of(tmp_path / "out")["grid"]["searchable"] == 9
    assert min(photo["coverage"] for photo in photos) >= 0.5


@pytest.mark.parametrize("option", ["--prior", "--map"])
def test_a_file_beside_the_area_without_a_reference_system_works_with_the_cure_of_the_error(
    airloc, tmp_path: Path, area: Path, option: str
):
    Image.fromarray(ground(4)[:48, :48]).save(tmp_path / "goal.png")
    bare = write_tiff(tmp_path / "bare.tif", ground(4), GEOREFERENCE[0], None)
    options = ("--area", area, "--goal", tmp_path / "goal.png", "--cell", "96m", "--agent", "spiral", "--budget", 2)
    outcome = airloc("search", *options, option, bare, "--out", tmp_path / "out")
    assert outcome.refused("bare.tif does not name its coordinate reference system", "gdal_translate -a_srs EPSG:32633")
    assert not (tmp_path / "out").exists()
    with rasterio.open(bare, "r+") as file:  # as gdal_translate does
        file.crs = METRE
    assert airloc("search", *options, option, bare, "--out", tmp_path / "out").code == 0


def test_every_warning_begins_with_the_name_of_the_program(airloc, tmp_path: Path, area: Path):
    with Raster(area) as raster:
        layout = lay_out(raster, None, 96.0)
        outline, zone = layout.lat_lon([(-1, 0), (4, 3)]), layout.lat_lon([(0.9, 0), (3.1, 1.6)])
    within, no_fly = (" ".join(f"{lat:.8f},{lon:.8f}" for lat, lon in corners) for corners in (outline, zone))
    options = ("--area", area, "--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--budget", 2)
    outcome = airloc("search", *options, "--within", within, "--no-fly", no_fly, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    assert "of the outline is outside the image" in outcome.err
    assert "in no-fly zones or out of reach" in outcome.err
    assert all(line.startswith("airloc: ") for line in outcome.err.splitlines())


def test_a_second_search_into_the_same_folder_leaves_no_stale_files(airloc, tmp_path: Path, area: Path):
    out = tmp_path / "out"
    options = ("--area", area, "--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--budget", 2)
    assert airloc("search", *options, "--sweep", "--out", out).code == 0
    (out / "notes.txt").write_text("mine")
    assert airloc("search", *options, "--budget", 0, "--out", out).refused("0")
    assert (out / "sweep.plan").exists(), "a refused search removes nothing"
    assert airloc("search", *options, "--formats", "plan", "--out", out).code == 0
    names = {path.name for path in out.iterdir()}
    assert names - {"notes.txt"} == set(record_of(out)["files"])
    assert {name for name in names if name.startswith(("flight", "sweep"))} == {"flight.plan"}
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_search_that_ends_while_it_writes_leaves_the_earlier_output_or_nothing(
    airloc, tmp_path: Path, area: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    options = ("--area", area, "--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--formats", "plan")
    assert airloc("search", *options, "--budget", 2, "--sweep", "--out", tmp_path / "old").code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()}
    for name in ("old", "new"):
        calls = itertools.count()

        def fail_in_the_middle(file: int, calls=calls) -> None:
            if next(calls) == 5:
                raise error

        monkeypatch.setattr(os, "fsync", fail_in_the_middle)
        assert airloc("search", *options, "--budget", 3, "--out", tmp_path / name).code == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_the_files_of_a_foreign_record_stay(airloc, tmp_path: Path, area: Path):
    (tmp_path / "path.json").write_text('{"files": ["notes.txt"]}')
    (tmp_path / "notes.txt").write_text("mine")
    options = ("--area", area, "--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--formats", "plan")
    assert airloc("search", *options, "--budget", 2, "--out", tmp_path).code == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_list_of_files_in_the_output_folder_never_removes_files_elsewhere(airloc, tmp_path: Path, area: Path):
    out, precious = tmp_path / "out", tmp_path / "precious"
    options = ("--area", area, "--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--budget", 1)
    for files in (["../precious", str(precious), 3, None, "\0"], "precious", {"a": 1}):
        out.mkdir(exist_ok=True)
        precious.write_text("kept")
        (out / "path.json").write_text(json.dumps({"photos": [], "files": files}))
        assert airloc("search", *options, "--formats", "plan", "--out", out).code == 0
        assert precious.read_text() == "kept"


def test_photos_rows_and_columns_are_counted_from_1_for_people(airloc, tmp_path: Path, area: Path):
    options = (
        "--area",
        area,
        "--goal",
        position_of(area, (0, 3)),
        "--cell",
        "96m",
        "--budget",
        40,
        "--agent",
        "spiral",
    )
    outcome = airloc("search", *options, "--out", tmp_path / "out")
    count = len(record_of(tmp_path / "out")["photos"])
    assert "(row 1, column 4)" in outcome.out
    candidates = (tmp_path / "out" / "candidates.html").read_text()
    assert all(f"Photo {number}: " in candidates for number in range(1, count + 1))
    assert "Photo 0" not in candidates
    assert "row 1, column 4" in (tmp_path / "out" / "flight.kml").read_text()


def test_an_image_without_colour_tags_says_which_bands_are_taken(airloc, tmp_path: Path, area: Path):
    image = np.concatenate([ground(4), ground(4)[..., :1]], axis=-1)
    path = write_tiff(tmp_path / "bands.tif", image, *GEOREFERENCE, photometric="MINISBLACK")
    options = ("--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--budget", 1, "--formats", "plan")
    outcome = airloc("search", "--area", path, *options, "--out", tmp_path / "a")
    assert "band 1, 2, 3 as red, green, blue" in outcome.err
    chosen = airloc("search", "--area", path, *options, "--bands", 2, 3, 4, "--out", tmp_path / "b")
    assert (chosen.code, chosen.err) == (0, "")


def test_a_flight_above_120_m_gives_a_warning(airloc, tmp_path: Path, area: Path):
    options = ("--goal", position_of(area), "--cell", "96m", "--agent", "spiral", "--budget", 1, "--formats", "plan")
    outcome = airloc("search", "--area", area, *options, "--fov", 40, "--out", tmp_path / "out")
    assert outcome.code == 0
    assert "120 m" in outcome.err


def test_a_search_that_takes_minutes_says_so(capsys, monkeypatch):
    now = iter([0, 10, 20, 30, *[31] * 45, 300])
    monkeypatch.setattr("airloc.cli.search.time.monotonic", lambda: float(next(now)))
    done: list[int] = []
    step = _announce_duration(done.append, 50)
    for _ in range(3):
        step(1)
    assert done == [1, 1, 1]
    assert "1 of at most 50 photos, about 8 min left" in capsys.readouterr().err
    for _ in range(46):
        step(1)
    assert "about 0 min" not in capsys.readouterr().err


def test_images_with_nodata_and_16_bit_bands_are_searched(airloc, tmp_path: Path):
    image = ground(4).astype(np.uint16) * 100
    image[:60, :60] = 0
    write_tiff(tmp_path / "deep.tif", np.concatenate([image, image[..., :2]], axis=-1), *GEOREFERENCE, nodata=0)
    outcome = airloc(
        "search", "--area", tmp_path / "deep.tif", "--goal", position_of(tmp_path / "deep.tif", (3, 2)), "--cell",
        "96m", "--agent", "lawnmower", "--budget", 60, "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 0
    record = record_of(tmp_path / "out")
    assert (0, 0) not in {(photo["row"], photo["col"]) for photo in record["photos"]}
    assert record["correct"] is True
