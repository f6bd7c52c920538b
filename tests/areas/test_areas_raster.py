"""Windows of georeferenced images are located exactly, in any band layout, and black where the image has no data."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.enums import ColorInterp
from rasterio.transform import from_origin

from airloc.areas.layout import lay_out, read_cell
from airloc.areas.raster import Plane, Raster
from airloc.errors import AirlocError
from airloc.grid import Grid
from field_files import LEFT, METRE, TOP, ground, write_geographic, write_projected, write_tiff


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return ground(4)


def glimpse(path: Path, cell=(1, 2), cell_m: float = 96.0, **options) -> np.ndarray:
    with Raster(path, **options) as raster:
        return read_cell(raster, lay_out(raster, None, cell_m), cell).pixels


def closeness(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.ravel().astype(float), b.ravel().astype(float))[0, 1])


def expected(image: np.ndarray, cell=(1, 2)) -> np.ndarray:
    left, top, right, bottom = Grid(4, 4).box(cell)
    return image[top:bottom, left:right]


@pytest.mark.parametrize("write", [write_projected, write_geographic])
def test_a_glimpse_shows_the_ground_under_its_cell(tmp_path: Path, image, write):
    got = glimpse(write(tmp_path / "a.tif", image))
    neighbour = expected(image, (1, 1))
    assert closeness(got, expected(image)) > 0.9
    assert closeness(got, neighbour) < 0.5


def test_an_image_without_a_georeference_is_cut_in_pixels_exactly(tmp_path: Path, image):
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        path = write_tiff(tmp_path / "plain.tif", image, None, None)
    with Raster(path) as raster:
        layout = lay_out(raster, None, 48.0)
        assert (raster.georeferenced, layout.unit, layout.grid.shape) == (False, "px", (4, 4))
        assert np.abs(read_cell(raster, layout, (1, 2)).pixels.astype(int) - expected(image)).max() == 0
        with pytest.raises(AirlocError, match="Georeference it"):
            layout.lat_lon((0, 0))


def test_a_turned_file_and_an_upright_one_show_the_same(tmp_path: Path, image):
    upright = write_projected(tmp_path / "a.tif", image)
    # Columns of the file go north and its rows east: a quarter turn of the same ground.
    south = TOP - 2.0 * image.shape[0]
    turned = np.ascontiguousarray(np.rot90(image, -1))
    write_tiff(tmp_path / "c.tif", turned, rasterio.transform.Affine(0.0, 2.0, LEFT, 2.0, 0.0, south), METRE)
    assert closeness(glimpse(tmp_path / "c.tif"), glimpse(upright)) > 0.95


def test_coarse_cells_are_read_through_overviews_and_antialiased(tmp_path: Path, image):
    path = write_projected(tmp_path / "a.tif", np.tile(image, (4, 4, 1)), 0.5, tiled=True, blockxsize=64, blockysize=64)
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4], rasterio.enums.Resampling.average)
    got = glimpse(path, (0, 0), cell_m=103.0)
    whole = image.mean(axis=(0, 1))
    assert np.abs(got.mean(axis=(0, 1)) - whole).max() < 3


def test_sixteen_bits_one_scale_for_all_cells(tmp_path: Path, image):
    deep = image.astype(np.uint16) * 40 + 300
    assert closeness(glimpse(write_projected(tmp_path / "deep.tif", deep)), expected(image)) > 0.9
    with Raster(tmp_path / "deep.tif") as raster:
        layout = lay_out(raster, None, 96.0)
        means = [read_cell(raster, layout, cell).pixels.mean() for cell in layout.grid.cells()]
    plain = [expected(image, cell).mean() for cell in Grid(4, 4).cells()]
    assert np.corrcoef(means, plain)[0, 1] > 0.98, "a dark cell stays darker than a bright one"


def test_floats_with_nan_holes_are_black_there(tmp_path: Path, image):
    values = image.astype(np.float32) / 255
    values[: image.shape[0] // 2] = np.nan
    write_projected(tmp_path / "float.tif", values)
    with Raster(tmp_path / "float.tif") as raster:
        layout = lay_out(raster, None, 96.0)
        hole, ground_ = read_cell(raster, layout, (0, 0)), read_cell(raster, layout, (3, 3))
    assert (hole.pixels.max(), hole.coverage) == (0, 0.0)
    assert ground_.coverage == pytest.approx(1.0)
    assert ground_.pixels.max() > 50


def test_a_black_collar_that_nothing_marks_has_no_data_but_black_ground_inside_has(tmp_path: Path, image):
    bright = np.maximum(image, 1)
    bright[:, :20] = 0
    bright[100:110, 100:110] = 0
    with Raster(write_projected(tmp_path / "collar.tif", bright)) as raster:
        plane = raster.plane()
        assert raster.collared
        assert plane is not None
        height, width = bright.shape[:2]
        points = [((x - width / 2) * 2, (height / 2 - y) * 2) for x, y in ((10, 50), (30, 50), (105, 105))]
        assert raster.has_data(plane, np.array(points), 2.0).tolist() == [False, True, True]
        left = np.array([(-width, 100), (-width + 80, 100), (-width + 80, 20), (-width, 20)], dtype=float)
        assert raster.read_quad(plane, left, (20, 20)).coverage == pytest.approx(0.5, abs=0.05)
    with Raster(write_projected(tmp_path / "whole.tif", np.maximum(image, 1))) as raster:
        assert not raster.collared


def test_nodata_is_black_and_counts_as_not_seen(tmp_path: Path, image):
    bright = np.maximum(image, 1)
    bright[:104] = 0
    write_projected(tmp_path / "holes.tif", bright, nodata=0)
    with Raster(tmp_path / "holes.tif") as raster:
        layout = lay_out(raster, None, 96.0)
        assert read_cell(raster, layout, (0, 1)).coverage == 0.0
        assert read_cell(raster, layout, (3, 1)).coverage == pytest.approx(1.0)


def test_bands_are_found_by_their_meaning(tmp_path: Path, image):
    infrared = np.full((*image.shape[:2], 1), 7, dtype=np.uint8)
    many = np.concatenate([infrared, image[..., ::-1]], axis=-1)
    path = write_projected(tmp_path / "many.tif", many)
    with rasterio.open(path, "r+") as file:
        file.colorinterp = [ColorInterp.undefined, ColorInterp.blue, ColorInterp.green, ColorInterp.red]
    assert closeness(glimpse(path), expected(image)) > 0.9
    assert (glimpse(path, bands=(1, 1, 1)) == 7).all()
    with pytest.raises(AirlocError, match="4 bands"):
        Raster(path, bands=(1, 2, 9))


def test_a_single_band_is_grey(tmp_path: Path, image):
    got = glimpse(write_projected(tmp_path / "grey.tif", image[..., :1]))
    assert (got[..., 0] == got[..., 2]).all()


def test_a_missing_reference_system_can_be_given(tmp_path: Path, image):
    path = write_tiff(tmp_path / "a.tif", image, from_origin(LEFT, TOP, 2, 2), None)
    with pytest.raises(AirlocError, match="--crs"):
        Raster(path)
    assert closeness(glimpse(path, crs=METRE), expected(image)) > 0.9


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:999999", "nonsense"])
def test_a_wrong_reference_system_is_named(tmp_path: Path, image, crs):
    path = write_tiff(tmp_path / "a.tif", image, from_origin(LEFT, TOP, 2, 2), None)
    with pytest.raises(AirlocError, match="--crs"):
        Raster(path, crs=crs)


def test_a_reference_system_without_a_position_is_refused(tmp_path: Path, image):
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        path = write_tiff(tmp_path / "a.tif", image, None, METRE)
    with pytest.raises(AirlocError, match="gdal_translate"):
        Raster(path)


def test_a_file_that_is_not_an_image_and_a_missing_file_are_named(tmp_path: Path):
    (tmp_path / "words.tif").write_text("not an image")
    with pytest.raises(AirlocError, match=r"words\.tif"):
        Raster(tmp_path / "words.tif")
    with pytest.raises(AirlocError, match=r"missing\.tif"):
        Raster(tmp_path / "missing.tif")


def test_a_truncated_file_is_named(tmp_path: Path, image):
    path = write_projected(tmp_path / "a.tif", image)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AirlocError, match=r"a\.tif") as error:
        glimpse(path, (3, 3))
    assert "previous exception" not in str(error.value)


@pytest.mark.parametrize("change", ["grow", "vanish"])
def test_a_file_that_grows_or_vanishes_while_read_is_refused(tmp_path: Path, image, change):
    path = write_projected(tmp_path / "a.tif", image)
    with Raster(path) as raster:
        layout = lay_out(raster, None, 96.0)
        read_cell(raster, layout, (0, 0))
        if change == "grow":
            path.write_bytes(path.read_bytes() + b"more")
        else:
            path.unlink()
        with pytest.raises(AirlocError, match=r"a\.tif"):
            read_cell(raster, layout, (1, 1))


def test_an_image_across_the_antimeridian_is_searched_like_any_other(tmp_path: Path, image):
    path = write_geographic(tmp_path / "date.tif", image, lon=179.998)
    with Raster(path) as raster:
        layout = lay_out(raster, None, 96.0)
        lon = layout.lat_lon([(0, 0), (0, 3)])[:, 1]
        assert lon[0] > 179
        assert lon[1] < -179
        assert layout.searchable.all()
        assert closeness(read_cell(raster, layout, (1, 2)).pixels, expected(image)) > 0.9


def test_metres_around_a_point_are_metres_on_earth():
    from pyproj import Geod

    plane = Plane(59.3, 15.0)
    points = np.random.default_rng(0).uniform(-5000, 5000, (50, 2, 2))
    degrees = plane.to_degrees(points)
    _, _, metres = Geod(ellps="WGS84").inv(degrees[:, 0, 1], degrees[:, 0, 0], degrees[:, 1, 1], degrees[:, 1, 0])
    flat = np.linalg.norm(points[:, 0] - points[:, 1], axis=-1)
    np.testing.assert_allclose(metres, flat, atol=0.01)
    np.testing.assert_allclose(plane.from_degrees(degrees), points, atol=1e-5)
