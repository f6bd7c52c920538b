"""Flights over hills: waypoints keep their height above the ground, and legs clear the ridges between them."""

import json
from pathlib import Path

import numpy as np
import pytest
from pyproj import Transformer
from rasterio.transform import from_origin

from airloc.agents.registry import make_agent
from airloc.areas.raster import Raster
from airloc.errors import AirlocError
from airloc.missions.flight import qgc_plan
from airloc.missions.plan import FieldSearch, SearchPlan, lay_out_search, start_search
from airloc.missions.routes import ElevationModel, make_flight
from field_files import LEFT, METRE, TOP, ground, write_projected, write_tiff

GOAL = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
TO_MAP = Transformer.from_crs("EPSG:4326", METRE, always_xy=True)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> FieldSearch:
    plan = SearchPlan(cell_m=96.0, agent="spiral", budget=10)
    with Raster(write_projected(tmp_path_factory.mktemp("routes") / "ortho.tif", ground(4))) as raster:
        return start_search(plan, lay_out_search(plan, None, raster), GOAL, make_agent("spiral"))


def write_dem(path: Path, heights: np.ndarray, resolution: float = 10.0, **options) -> Path:
    """A model that begins 50 m outside the image."""
    transform = from_origin(LEFT - 50, TOP + 50, resolution, resolution)
    return write_tiff(path, heights[..., None].astype(np.float32), transform, METRE, **options)


def slope(easting: np.ndarray) -> np.ndarray:
    return 200 + 0.3 * (easting - LEFT)


def test_heights_of_a_slope_are_exact_between_the_pixels(tmp_path: Path):
    centres = LEFT - 50 + 10 * (np.arange(60) + 0.5)
    dem = ElevationModel(write_dem(tmp_path / "dem.tif", np.tile(slope(centres), (60, 1))))
    rng = np.random.default_rng(0)
    points = np.stack([LEFT + rng.uniform(0, 400, 50), TOP - rng.uniform(0, 400, 50)], axis=1)
    lon, lat = TO_MAP.transform(points[:, 0], points[:, 1], direction="INVERSE")
    assert dem.heights(np.stack([lat, lon], axis=1)) == pytest.approx(slope(points[:, 0]), abs=0.01)


def test_every_waypoint_has_the_same_height_above_the_ground(tmp_path: Path, search: FieldSearch):
    centres = LEFT - 50 + 10 * (np.arange(60) + 0.5)
    dem = ElevationModel(write_dem(tmp_path / "dem.tif", np.tile(slope(centres), (60, 1))))
    flight = make_flight(search, [(0, 0), (0, 3), (3, 3)], "a", np.full((4, 4), 0.1), dem)
    items = json.loads(qgc_plan(flight))["mission"]["items"]
    for item in items:
        if item["command"] == 16:
            lat, lon = item["params"][4:6]
            east, _ = TO_MAP.transform(lon, lat)
            home, _ = TO_MAP.transform(flight.home[1], flight.home[0])
            assert item["Altitude"] == pytest.approx(slope(east) - slope(home) + flight.height, abs=0.1)
    assert len(flight.waypoints) == 3, "a slope needs no bends"
    assert flight.seconds > make_flight(search, [(0, 0), (0, 3), (3, 3)], "a", np.full((4, 4), 0.1)).seconds


def test_a_leg_clears_a_ridge_between_two_waypoints(tmp_path: Path, search: FieldSearch):
    heights = np.full((60, 60), 100.0)
    heights[:, 24:28] = 180.0  # a ridge of 80 m, 190 to 230 m east
    dem = ElevationModel(write_dem(tmp_path / "dem.tif", heights))
    flight = make_flight(search, [(1, 0), (1, 3)], "a", np.full((4, 4), 0.1), dem)
    assert len(flight.stops) == 2
    bends = [point for point in flight.waypoints if not point.photo]
    assert bends
    assert max(point.height for point in bends) == pytest.approx(80 + flight.height, abs=1)
    track = np.array([(point.lat, point.lon, point.height) for point in flight.waypoints])
    for share in np.linspace(0, 1, 200):
        at = [np.interp(share * (len(track) - 1), range(len(track)), track[:, axis]) for axis in range(3)]
        assert at[2] >= dem.heights([at[:2]])[0] - 100 + 0.6 * flight.height


def test_a_model_that_does_not_cover_the_flight_or_is_none_is_refused(tmp_path: Path, search: FieldSearch):
    heights = np.full((60, 60), 100.0)
    heights[30:] = -9999
    dem = ElevationModel(write_dem(tmp_path / "holes.tif", heights, nodata=-9999))
    with pytest.raises(AirlocError, match=r"holes\.tif has no height at 59\.\d+,15"):
        make_flight(search, [(0, 0), (3, 0)], "a", np.full((4, 4), 0.1), dem)
    small = ElevationModel(write_dem(tmp_path / "small.tif", np.full((10, 10), 100.0)))
    with pytest.raises(AirlocError, match=r"small\.tif has no height"):
        make_flight(search, [(0, 0), (3, 3)], "a", np.full((4, 4), 0.1), small)
    (tmp_path / "text.tif").write_text("no raster")
    write_tiff(tmp_path / "nowhere.tif", np.zeros((5, 5, 1), np.float32), None, None)
    for name in ("text.tif", "nowhere.tif", "missing.tif"):
        with pytest.raises(AirlocError, match=name):
            ElevationModel(tmp_path / name)
