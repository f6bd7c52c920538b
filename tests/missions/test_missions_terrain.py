"""A target that walks prefers roads and avoids slopes, and its belief is conserved."""

import math

import numpy as np
import pytest
from rasterio.transform import from_origin
from shapely.geometry import MultiPolygon, Polygon

from airloc.areas.features import parse_geojson
from airloc.areas.layout import lay_out_outline
from airloc.areas.raster import Plane
from airloc.errors import AirlocError
from airloc.missions.routes import ElevationModel
from airloc.missions.terrain import ROAD, walking_ease
from airloc.task.motion import Motion, diffuse
from field_files import write_tiff

PLANE = Plane(59.35, 15.0)
BOX = Polygon(PLANE.to_degrees([(-245, -245), (245, -245), (245, 245), (-245, 245)])[:, ::-1])
LAYOUT = lay_out_outline(MultiPolygon([BOX]), 92.0, gap_m=8.0)


def road(*points: tuple[float, float]):
    line = PLANE.to_degrees(points)[:, ::-1].tolist()
    return parse_geojson({"type": "LineString", "coordinates": line}, "roads")


def test_belief_flows_along_a_road_and_none_is_lost():
    ease = walking_ease(LAYOUT, road((-250, 0), (250, 0)))
    assert ease is not None
    assert np.array_equal(ease[2], np.full(5, ROAD))
    assert (np.delete(ease, 2, axis=0) == 1).all()
    belief = np.zeros((5, 5))
    belief[2, 2] = 1.0
    for _ in range(4):
        belief = diffuse(belief, Motion(0.5).transition((5, 5), ease))
    assert belief.sum() == pytest.approx(1)
    assert belief[2, 4] > 2 * belief[4, 2]


def test_slopes_are_walked_less(tmp_path):
    heights = np.zeros((60, 60, 1), dtype=np.float32)
    heights[:, 30:, 0] = np.arange(30) * 10  # one metre of height for each metre to the east
    (lat, lon), step = PLANE.to_degrees((-300, 300)).tolist(), PLANE.to_degrees((-290, 290)).tolist()
    path = write_tiff(tmp_path / "dem.tif", heights, from_origin(lon, lat, step[1] - lon, lat - step[0]), "EPSG:4326")
    ease = walking_ease(LAYOUT, [], ElevationModel(path))
    assert ease is not None
    assert ease[:, 0] == pytest.approx(np.ones(5))
    assert ease[:, 4] == pytest.approx(np.full(5, np.exp(-3.5)), rel=0.1)


def test_nothing_known_gives_no_ease():
    assert walking_ease(LAYOUT, []) is None


@pytest.mark.parametrize(
    ("shape", "fact"),
    [
        ({"type": "Point", "coordinates": [15, 59]}, "no line"),
        ({"type": "LineString", "coordinates": [[math.nan, 1], [2, 3]]}, "latitude"),
        ({"type": "LineString", "coordinates": [[15, 59]]}, "fewer than two"),
        ({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}, "do not cross"),
    ],
)
def test_roads_that_are_none_are_an_error(shape, fact: str):
    with pytest.raises(AirlocError, match=fact):
        walking_ease(LAYOUT, parse_geojson(shape, "roads"))
