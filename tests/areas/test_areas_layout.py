"""Grids on the ground: sizes in metres, headings, outlines; what cannot be laid out is refused."""

import math

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod
from shapely.geometry import MultiPolygon

from airloc.areas.layout import Layout, lay_out, read_cell
from airloc.areas.raster import Plane, Raster
from airloc.errors import AirlocError
from airloc.grid import Grid
from field_files import ground, write_geographic, write_projected

EARTH = Geod(ellps="WGS84")


@pytest.fixture(scope="module", params=["projected", "geographic"])
def raster(request, tmp_path_factory: pytest.TempPathFactory) -> Raster:
    write = {"projected": write_projected, "geographic": write_geographic}[request.param]
    return Raster(write(tmp_path_factory.mktemp("area") / "area.tif", ground(6)))


def outline_of(raster: Raster, points: list[tuple[float, float]]) -> MultiPolygon:
    """A polygon by metres east and north of the image's middle."""
    plane = raster.plane()
    assert plane is not None
    return MultiPolygon([shapely.Polygon(plane.to_degrees(points)[:, ::-1])])


def test_without_an_outline_the_whole_image_is_searched(raster: Raster):
    layout = lay_out(raster, None, 96.0)
    assert layout.grid == Grid(6, 6)
    assert layout.searchable.all()


@pytest.mark.parametrize("heading", [0.0, 37.0, 250.0])
def test_cells_are_as_far_apart_on_earth_as_asked(raster: Raster, heading: float):
    layout = lay_out(raster, None, 50.0, gap_m=10.0, heading=heading)
    (lat0, lon0), (lat1, lon1), (lat2, lon2) = layout.lat_lon([(2, 2), (1, 2), (2, 5)])
    up, _, metres = EARTH.inv(lon0, lat0, lon1, lat1)
    right, _, three = EARTH.inv(lon0, lat0, lon2, lat2)
    assert metres == pytest.approx(60, abs=0.01)
    assert three == pytest.approx(180, abs=0.01)
    assert (up - heading) % 360 == pytest.approx(0, abs=0.1) or (up - heading) % 360 == pytest.approx(360, abs=0.1)
    assert (right - heading - 90) % 360 % 359.99 == pytest.approx(0, abs=0.1)


def test_cells_outside_the_outline_are_not_searched(raster: Raster):
    triangle = outline_of(raster, [(-250, -250), (250, -250), (-250, 250)])
    layout = lay_out(raster, triangle, 60.0)
    assert layout.searchable[-1, 0]
    assert not layout.searchable[0, -1]
    assert 0.4 < layout.searchable.mean() < 0.75
    inside = shapely.transform(triangle, lambda points: layout.require_plane().from_degrees(points[:, ::-1]))
    for cell in layout.grid.cells():
        if inside.contains(shapely.Point(layout.centres(cell))):
            assert layout.searchable[cell]


def test_a_hole_in_the_outline_is_not_searched(raster: Raster):
    plane = raster.plane()
    assert plane is not None
    ring = [plane.to_degrees(side * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]))[:, ::-1] for side in (280, 100)]
    layout = lay_out(raster, MultiPolygon([shapely.Polygon(ring[0], [ring[1]])]), 40.0)
    middle = tuple(side // 2 for side in layout.grid.shape)
    assert not layout.searchable[middle]
    assert layout.searchable[0].all()


def test_an_outline_beyond_the_image_is_searched_where_there_is_image(raster: Raster, caplog):
    layout = lay_out(raster, outline_of(raster, [(0, 0), (900, 0), (900, 200), (0, 200)]), 60.0)
    assert caplog.records
    assert layout.searchable[:, 0].all()
    assert not layout.searchable[:, -1].any()
    assert read_cell(raster, layout, (0, layout.grid.cols - 1)).coverage == 0.0


def test_an_outline_elsewhere_is_refused_with_the_distance(raster: Raster):
    with pytest.raises(AirlocError, match=r"\d km.*\.tif"):
        lay_out(raster, outline_of(raster, [(9000, 0), (9900, 0), (9900, 200)]), 60.0)


@pytest.mark.parametrize("cell", [0.5, 5000.0, 0.0, -3.0, math.nan])
def test_cells_that_make_no_grid_are_refused(raster: Raster, cell: float):
    with pytest.raises(AirlocError, match=r"cells|Cells"):
        lay_out(raster, None, cell)


LAYOUTS = st.builds(
    lambda rows, cols, cell, gap, heading, x, y: Layout(
        Grid(rows, cols), cell, gap, heading, (x, y), Plane(45.0, 7.0), np.ones((rows, cols), dtype=bool)
    ),
    st.integers(2, 40),
    st.integers(2, 40),
    st.floats(1, 500),
    st.floats(0, 50),
    st.floats(0, 360),
    st.floats(-5000, 5000),
    st.floats(-5000, 5000),
)


@given(LAYOUTS, st.data())
def test_every_cell_is_found_again_where_it_lies(layout: Layout, data):
    cell = data.draw(st.tuples(st.integers(0, layout.grid.rows - 1), st.integers(0, layout.grid.cols - 1)))
    assert layout.cell_at(layout.centres(cell)) == cell
    assert layout.grid_position(layout.centres(cell)) == pytest.approx(cell, abs=1e-6)
    np.testing.assert_allclose(layout.corners(cell).mean(axis=0), layout.centres(cell), atol=1e-6)
    again = layout.require_plane().from_degrees(layout.lat_lon(cell))
    assert math.dist(again, layout.centres(cell)) < 0.01


@given(LAYOUTS)
def test_the_frame_holds_the_outer_cells(layout: Layout):
    rows, cols = layout.grid.shape
    outer = [
        layout.corners(cell)[n] for n, cell in enumerate([(0, 0), (0, cols - 1), (rows - 1, cols - 1), (rows - 1, 0)])
    ]
    np.testing.assert_allclose(layout.frame(), outer, atol=1e-6)
