"""`airloc search` from end to end: a GeoTIFF in, a path, flight files that others read, a belief on the map, a page."""

import json
import re
from pathlib import Path

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

from airloc.areas.geotiff import Raster
from airloc.areas.layout import lay_out
from airloc.cli.main import main
from airloc.cli.search import ALL_FORMATS
from airloc.missions.flight_files import FORMATS
from field_files import ground, write_geographic, write_projected, write_tiff

EARTH = Geod(ellps="WGS84")
CELL = (1, 4)
SCHEMA = json.loads((Path(__file__).parents[1] / "missions" / "plan_schema.json").read_text())


def place_of(area: Path, cell=CELL) -> str:
    with Raster(area) as raster:
        return "{:.7f},{:.7f}".format(*lay_out(raster, None, 96.0).degrees(cell))


@pytest.fixture(scope="module", params=["projected", "geographic"])
def searched(request, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The image and the folder of a whole search on it, for a goal that is given as a picture of another size."""
    folder = tmp_path_factory.mktemp("search")
    write = {"projected": write_projected, "geographic": write_geographic}[request.param]
    image = ground(6)
    area = write(folder / "ortho.tif", image)
    left, top = CELL[1] * 52, CELL[0] * 52
    goal = folder / "goal.png"
    Image.fromarray(image[top : top + 48, left : left + 48]).resize((160, 160), Image.Resampling.LANCZOS).save(goal)
    arguments = ["--cell", "96m", "--budget", "40", "--sweep", "--out", folder / "out", "--truth", place_of(area)]
    main(["search", *map(str, ["--area", area, "--goal", goal, *arguments])])
    return area, folder / "out"


def metres(a, b) -> float:
    return EARTH.inv(a[1], a[0], b[1], b[0])[2]


def expected_places(out: Path) -> list[tuple[float, float]]:
    return [(photo["lat"], photo["lon"]) for photo in json.loads((out / "path.json").read_text())["photos"]]


def test_the_goal_is_found_and_declared(searched):
    record = json.loads((searched[1] / "path.json").read_text())
    assert record["status"] == "found"
    assert record["correct"] is True
    assert (record["declared"]["row"], record["declared"]["col"]) == CELL
    assert record["moves"] <= 40
    assert record["photos"][-1]["here"] > 0.8


def test_the_order_of_cells_is_a_path_of_cells_each_flown_once(searched):
    photos = json.loads((searched[1] / "path.json").read_text())["photos"]
    cells = [(photo["row"], photo["col"]) for photo in photos]
    assert len(set(cells)) == len(cells)
    assert [photo["order"] for photo in photos] == list(range(1, len(photos) + 1))
    assert np.all(np.diff([photo["pos"] for photo in photos]) > 0)


def test_places_in_the_path_are_where_the_image_has_them(searched):
    area, out = searched
    photos = json.loads((out / "path.json").read_text())["photos"]
    with rasterio.open(area) as file:
        to_degrees = Transformer.from_crs(file.crs, "EPSG:4326", always_xy=True)
        middle = to_degrees.transform(*(file.transform @ (file.width / 2, file.height / 2)))
    for photo in photos:
        north, east = (2.5 - photo["row"]) * 104, (photo["col"] - 2.5) * 104
        lon, lat, _ = EARTH.fwd(middle[0], middle[1], np.degrees(np.arctan2(east, north)), np.hypot(east, north))
        assert metres((lat, lon), (photo["lat"], photo["lon"])) < 0.5


@pytest.mark.parametrize("name", ["flight", "sweep"])
def test_every_flight_file_is_read_by_its_own_library_and_agrees(searched, name: str):
    out = searched[1]
    plan = json.loads((out / f"{name}.plan").read_text())
    jsonschema.validate(plan, SCHEMA)
    flown = [item["params"][4:6] for item in plan["mission"]["items"] if item["command"] == 16]
    if name == "flight":
        assert all(metres(a, b) < 0.01 for a, b in zip(flown, expected_places(out), strict=True))
    for places in (read_geojson(out, name), read_kml(out, name), read_gpx(out, name), read_waypoints(out, name)):
        assert len(places) == len(flown)
        assert max(metres(a, b) for a, b in zip(flown, places, strict=True)) < 0.5


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


def test_the_belief_lies_on_the_area(searched):
    area, out = searched
    record = json.loads((out / "path.json").read_text())
    with rasterio.open(out / "belief.tif") as file, Raster(area) as raster:
        assert file.descriptions == ("POA", "POD", "POS")
        poa, pod, pos = file.read()
        layout = lay_out(raster, None, 96.0)
        to_degrees = Transformer.from_crs(file.crs, "EPSG:4326", always_xy=True)
        for cell in layout.grid.cells():
            lon, lat = to_degrees.transform(*file.xy(*cell))
            assert metres((lat, lon), layout.degrees(cell)) < 0.5
    assert poa.sum() == pytest.approx(1, abs=1e-5)
    assert np.unravel_index(poa.argmax(), poa.shape) == CELL
    assert pos.sum() == pytest.approx(record["probability_of_success"], abs=1e-5)
    assert (pod > 0).sum() == len(record["photos"])


def test_the_page_tells_the_find_and_needs_nothing_else(searched):
    text = (searched[1] / "index.html").read_text()
    assert "that is where it is" in text
    assert all(word in text for word in ("POA", "POD", "POS", "Height", "flight.plan", "sweep.waypoints"))
    assert not re.search(r'(src|href)="(?!data:|[a-z.]+")', text)
    with Image.open(searched[1] / "search.gif") as film:
        assert film.n_frames >= 2


def test_the_command_offers_every_format():
    assert tuple(FORMATS) == ALL_FORMATS


def test_the_footprint_shows_a_whole_cell_from_the_height_given(searched):
    plan = json.loads((searched[1] / "flight.plan").read_text())
    height = plan["mission"]["items"][0]["Altitude"]
    shorter = 2 * height * np.tan(np.radians(73.7) / 2) / (4 / 3)
    assert shorter == pytest.approx(96, abs=0.01)


@pytest.fixture
def area(tmp_path: Path) -> Path:
    return write_projected(tmp_path / "ortho.tif", ground(4))


def test_only_the_outline_is_flown_over(airloc, tmp_path: Path, area: Path):
    with Raster(area) as raster:
        corners = lay_out(raster, None, 96.0).degrees([(0, 0), (3, 0), (3, 3)])
    within = " ".join(f"{lat},{lon}" for lat, lon in corners)
    goal = "{},{}".format(*corners.mean(axis=0))
    outcome = airloc(
        "search", "--area", area, "--goal", goal, "--cell", "60m", "--within", within, "--agent", "spiral",
        "--budget", 60, "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 0, outcome
    outline = shapely.Polygon(corners).buffer(1e-3)
    places = [shapely.Point(*place) for place in expected_places(tmp_path / "out")]
    assert all(outline.contains(place) for place in places)
    with rasterio.open(tmp_path / "out" / "belief.tif") as file:
        assert np.isnan(file.read(1)).any()


def test_endurance_and_speed_make_the_budget(airloc, tmp_path: Path, area: Path):
    def budget(time: str) -> int:
        options = ("--endurance", time, "--speed", "10m/s", "--cell", "60m", "--agent", "spiral")
        outcome = airloc("search", "--area", area, "--goal", place_of(area, (0, 0)), *options, "--out", tmp_path / time)
        assert outcome.code == 0, outcome
        return int(json.loads((tmp_path / time / "path.json").read_text())["budget"])

    assert 1 <= budget("1min") < budget("5min")


def test_without_a_georeference_pixels_serve_and_flight_files_are_asked_for(airloc, tmp_path: Path):
    plain = tmp_path / "plain.png"
    Image.fromarray(ground(4)).save(plain)
    options = ("--goal", "180,24", "--agent", "spiral", "--budget", 30)
    outcome = airloc("search", "--area", plain, *options, "--out", tmp_path / "out")
    assert outcome.code == 0
    assert "no georeference" in outcome.err
    assert not list((tmp_path / "out").glob("flight.*"))
    assert json.loads((tmp_path / "out" / "path.json").read_text())["declared"]["col"] == 3
    refused = airloc("search", "--area", plain, *options, "--out", tmp_path / "no", "--formats", "plan")
    assert refused.refused("no georeference", "Georeference it")
    metres = airloc("search", "--area", plain, *options, "--out", tmp_path / "no", "--cell", "100m")
    assert metres.refused("on the ground, and the image has no georeference", "48px")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--budget", 0], "allows no move"),
        (["--start", "10,10"], "outside what is searched"),
        (["--start", "here"], "is no place"),
        (["--endurance", "1s"], "cannot fly one cell"),
        (["--endurance", "1s", "--budget", 3], "Give one of them"),
        (["--cell", "big"], "is no length"),
        (["--cell", "9km"], "Not two cells"),
        (["--cell", "0.1m"], "more than"),
        (["--within", "0,0 1,1"], "outside the image"),
        (["--within", "nothing.geojson"], "There is no outline"),
        (["--goal", "missing.jpg"], "There is no picture"),
        (["--goal", "0,0"], "outside what is searched"),
        (["--area", "missing.tif"], "There is no image"),
        (["--agent", "nobody"], "There is no agent"),
        (["--fov", 300], "field of view"),
        (["--false-alarm-cost", -1], "false alarm"),
        (["--detection", 2], "no probability"),
        (["--speed", "fast"], "is no speed"),
        (["--cell", "48px"], "in pixels, and the image has a georeference"),
        (["--gap", "4px"], "in pixels, and the image has a georeference"),
        (["--goal-width", "60px", "--goal", "missing.jpg"], "in pixels, and the image has a georeference"),
        (["--heading", "nan"], "A heading of nan"),
        (["--within", "10,10 11,11"], "km outside the image"),
        (["--area", "https://example.org/ortho.tif"], "no file on this machine"),
    ],
)
def test_bad_input_is_one_clear_sentence(airloc, tmp_path: Path, area: Path, options, said: str):
    usual = {"--area": area, "--goal": place_of(area, (0, 0)), "--cell": "96m", "--out": tmp_path / "out"}
    usual |= dict(zip(options[::2], options[1::2], strict=True))
    outcome = airloc("search", *(word for option in usual.items() for word in option))
    assert outcome.refused(said)
    assert not (tmp_path / "out").exists()


def test_a_goal_picture_may_be_turned_by_exif_and_larger_or_smaller_than_a_cell(airloc, tmp_path: Path):
    image = ground(4)
    area = write_projected(tmp_path / "ortho.tif", image)
    around = Image.fromarray(image[52 - 24 : 100 + 24, 104 - 24 : 152 + 24])  # 192 m around the cell (1, 2)
    exif = around.getexif()
    exif[0x0112] = 6  # to be seen, turn it to the right
    around.rotate(90).save(tmp_path / "wide.jpg", exif=exif, quality=95)
    options = ("--cell", "96m", "--agent", "spiral", "--budget", 40, "--area", area)
    assert (
        airloc(
            "search", *options, "--goal", tmp_path / "wide.jpg", "--goal-width", "192m", "--out", tmp_path / "a"
        ).code
        == 0
    )
    record = json.loads((tmp_path / "a" / "path.json").read_text())
    assert (record["declared"]["row"], record["declared"]["col"]) == (1, 2)
    Image.fromarray(image[60:76, 110:126]).save(tmp_path / "tiny.png")
    small = airloc("search", *options, "--goal", tmp_path / "tiny.png", "--goal-width", "32m", "--out", tmp_path / "b")
    assert small.code == 0
    assert "less than a cell" in small.err
    assert "only 16 x 16 px" in small.err


def test_cells_may_touch_and_photos_need_no_time(airloc, tmp_path: Path, area: Path):
    options = ("--area", area, "--goal", place_of(area, (0, 0)), "--cell", "96m", "--agent", "spiral")
    done = airloc("search", *options, "--gap", "0m", "--hover", "0s", "--endurance", "9min", "--out", tmp_path / "out")
    assert done.code == 0
    assert '"gap": 0' in (tmp_path / "out" / "path.json").read_text()


def test_a_goal_that_shows_nothing_and_an_image_without_data_are_told_of(airloc, tmp_path: Path, area: Path):
    Image.new("RGB", (96, 96), (90, 90, 90)).save(tmp_path / "card.png")
    options = ("--cell", "96m", "--agent", "spiral", "--budget", 3)
    card = airloc("search", "--area", area, "--goal", tmp_path / "card.png", *options, "--out", tmp_path / "a")
    assert card.code == 0
    assert "shows nothing" in card.err
    Image.fromarray(ground(2)).save(tmp_path / "goal.png")
    wide = ("--goal", tmp_path / "goal.png", "--goal-width", "90km")
    far = airloc("search", "--area", area, *wide, *options, "--out", tmp_path / "b")
    assert "a cell is only 0 px of the goal's picture" in far.err
    write_tiff(tmp_path / "none.tif", np.zeros((192, 192, 3), np.uint8), *_placed(), nodata=0)
    none = airloc("search", "--area", tmp_path / "none.tif", *wide[:2], *options, "--out", tmp_path / "c")
    assert "no data" in none.err


def test_holes_and_deep_bands_are_searched_all_the_same(airloc, tmp_path: Path):
    image = ground(4).astype(np.uint16) * 100
    image[:60, :60] = 0
    write_tiff(tmp_path / "deep.tif", np.concatenate([image, image[..., :2]], axis=-1), *_placed(), nodata=0)
    outcome = airloc(
        "search", "--area", tmp_path / "deep.tif", "--goal", place_of(tmp_path / "deep.tif", (3, 2)), "--cell", "96m",
        "--agent", "lawnmower", "--budget", 60, "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 0
    photos = json.loads((tmp_path / "out" / "path.json").read_text())["photos"]
    assert {photo["seen"] < 0.1 for photo in photos if (photo["row"], photo["col"]) == (0, 0)} <= {True}
    assert json.loads((tmp_path / "out" / "path.json").read_text())["correct"] is True


def _placed():
    from rasterio.transform import from_origin

    from field_files import LEFT, METRE, TOP

    return from_origin(LEFT, TOP, 2, 2), METRE
