"""A folder of photos is ranked: the one that shows the goal is first, and the goal is located in it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

from airloc.areas.raster import Raster
from airloc.missions.flight import Camera, great_circle_distance
from drone_photos import dji, jpeg
from field_files import ground, write_projected

pytestmark = pytest.mark.long

CAMERA = Camera()
HEIGHT = CAMERA.height_for(128.0)


class Folder:
    """Photos over an area, and the goal: 96 m around a place that lies off the middle of one of them."""

    def __init__(self, root: Path) -> None:
        self.photos, self.goal = root / "photos", root / "goal.jpg"
        self.photos.mkdir()
        with Raster(write_projected(root / "ortho.tif", ground(6))) as raster:
            self.plane = raster.plane()
            poses = [(-180, 180, 0), (170, 170, 90), (-170, -170, 200), (160, -160, 45)]
            for number, (x, y, heading) in enumerate(poses):
                self._take(raster, f"DJI_{number:04}.JPG", (x, y), heading)
            self.truth = tuple(self.plane.to_degrees((150.0, 195.0)).tolist())
            Image.fromarray(self._square(raster, (150, 195), 96, 0, (192, 192))).save(self.goal, quality=92)

    def _square(self, raster: Raster, centre, width: float, heading: float, size) -> np.ndarray:
        turn = np.radians(heading)
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])  # right and up
        half = np.array([width, width * size[0] / size[1]]) / 2
        corners = np.array([(-1, 1), (1, 1), (1, -1), (-1, -1)]) * half @ axes + centre
        return raster.read_quad(self.plane, corners, size).pixels

    def _take(self, raster: Raster, name: str, centre, heading: float) -> None:
        pixels = self._square(raster, centre, CAMERA.footprint(HEIGHT)[0], heading, (240, 320))
        lat, lon = self.plane.to_degrees(np.array(centre, dtype=float)).tolist()
        (self.photos / name).write_bytes(jpeg(pixels, dji(lat, lon, HEIGHT, heading), (lat, lon)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("ranking"))


def test_the_photo_of_the_goal_is_first_and_the_goal_is_located(airloc, tmp_path: Path, folder: Folder):
    options = ("--photos", folder.photos, "--goal", folder.goal, "--goal-heading", 0, "--goal-width", "96m")
    outcome = airloc("search", *options, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    ranked = json.loads((tmp_path / "out" / "candidates.json").read_text())["candidates"]
    assert [entry["rank"] for entry in ranked] == [1, 2, 3, 4]
    assert ranked[0]["file"] == "DJI_0001.JPG"
    assert ranked[0]["match_probability"] > 0.8 > ranked[1]["match_probability"]
    assert great_circle_distance((ranked[0]["lat"], ranked[0]["lon"]), folder.truth) < 8
    assert "DJI_0001.JPG" in outcome.out
    page = (tmp_path / "out" / "candidates.html").read_text()
    assert page.count("data:image/") == 5
    assert page.index("DJI_0001") < page.index("DJI_0000")
    points = json.loads((tmp_path / "out" / "candidates.geojson").read_text())["features"]
    assert [point["properties"]["rank"] for point in points] == [1, 2, 3, 4]


def test_photos_without_metadata_are_ranked_and_unreadable_ones_are_named(airloc, tmp_path: Path, folder: Folder):
    plain = tmp_path / "plain"
    plain.mkdir()
    Image.open(folder.photos / "DJI_0001.JPG").convert("RGB").save(plain / "plain.jpg", quality=92)
    (plain / "broken.jpg").write_bytes(b"\xff\xd8 half")
    (plain / "notes.txt").write_text("not a photo")
    outcome = airloc("search", "--photos", plain, "--goal", folder.goal, "--cell", "96m", "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    assert "broken.jpg is left out" in outcome.err
    (entry,) = json.loads((tmp_path / "out" / "candidates.json").read_text())["candidates"]
    assert (entry["file"], entry["lat"]) == ("plain.jpg", None)


def test_a_photo_without_exposure_is_left_out_with_the_reason_and_a_blurred_one_is_compared(
    airloc, tmp_path: Path, folder: Folder
):
    photos = tmp_path / "photos"
    photos.mkdir()
    sharp = Image.open(folder.photos / "DJI_0001.JPG").convert("RGB")
    made = {"black": Image.new("RGB", sharp.size), "white": Image.new("RGB", sharp.size, "white"), "sharp": sharp}
    for name, image in (made | {"blurred": sharp.filter(ImageFilter.GaussianBlur(12))}).items():
        image.save(photos / f"{name}.jpg", quality=92)
    outcome = airloc("search", "--photos", photos, "--goal", folder.goal, "--cell", "96m", "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    ranked = json.loads((tmp_path / "out" / "candidates.json").read_text())["candidates"]
    assert [entry["file"] for entry in ranked] == ["sharp.jpg", "blurred.jpg"]
    assert "black.jpg is left out: it is black" in outcome.err
    assert "white.jpg is left out: it is overexposed" in outcome.err


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"--photos": "nowhere"}, "nowhere"),
        ({"--photos": "."}, "no photos"),
        ({"--goal": "59,15"}, "image of the goal"),
        ({"--goal": "missing.jpg"}, "missing.jpg"),
        ({"--cell": "9px"}, "9px"),
        ({"--area": "ortho.tif"}, "--area and --photos"),
        ({"--track": "a.gpx"}, "--photos and --track"),
        ({"--fov": 500}, "500"),
        ({"--goal-heading": "nan"}, "nan"),
        ({"--goal-heading": "inf"}, "inf"),
        ({"--goal-width": "80m-50m"}, "80m-50m"),
        ({"--goal-width": "10m-1000m"}, "1000 m"),
        ({"--goal-width": "2m", "--cell": "96m"}, "2 m"),
    ],
)
def test_bad_input_is_one_sentence(airloc, tmp_path: Path, folder: Folder, monkeypatch, change, fact):
    monkeypatch.chdir(tmp_path)
    options = {"--photos": folder.photos, "--goal": folder.goal, "--out": tmp_path / "out"} | change
    assert airloc("search", *(word for pair in options.items() for word in pair)).refused(fact)
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_readable_photo_is_refused(airloc, tmp_path: Path, folder: Folder):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"nothing")
    options = ("--photos", tmp_path / "photos", "--goal", folder.goal, "--out", tmp_path / "out")
    outcome = airloc("search", *options)
    assert outcome.code == 2
    assert "None of the 1 photos" in outcome.err
    assert not (tmp_path / "out").exists()
