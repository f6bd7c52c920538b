"""Priors over the cells: every source weighs them as it says, sources multiply, and hostile input is refused."""

import functools
import itertools
import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Transformer
from rasterio.transform import from_origin
from shapely.geometry import Polygon

from airloc.agents.registry import make_agent
from airloc.areas.layout import Layout, lay_out_outline
from airloc.areas.outline import read_outline
from airloc.errors import AirlocError
from airloc.missions.priors import (
    FeaturePrior,
    LastKnownPoint,
    RasterPrior,
    combine_priors,
    read_prior,
    ring_distances,
    subjects,
)
from airloc.missions.searcher import Glimpse, Searcher
from airloc.missions.team import TeamSearcher
from airloc.task.motion import STILL, Motion
from field_files import write_tiff

pytestmark = pytest.mark.long

LAT, LON = 59.35, 15.0
cached_agent = functools.cache(make_agent)


def make_layout(heading: float = 0.0) -> Layout:
    """Return 8 x 8 cells of 100 m."""
    down, right = 428 / 111_400, 428 / (111_400 * math.cos(math.radians(LAT)))
    corners = f"{LAT - down!r},{LON - right!r} {LAT + down!r},{LON + right!r}"
    return lay_out_outline(read_outline(corners), 100.0, heading=heading)


LAYOUT = make_layout()


def ring_of(layout: Layout, *cells: tuple[float, float]) -> list[list[float]]:
    """Return the centres of fractional cells as positions of a GeoJSON ring."""
    return [[lon, lat] for lat, lon in layout.lat_lon([*cells, cells[0]]).tolist()]


def square(layout: Layout, top: int, left: int, bottom: int, right: int) -> list[list[float]]:
    """Return the ring around a block of cells, along the middle of the gaps."""
    first, last = (top - 0.5, left - 0.5), (bottom + 0.5, right + 0.5)
    return ring_of(layout, first, (first[0], last[1]), last, (last[0], first[1]))


def write_features(path: Path, *features: tuple[str, list, dict]) -> str:
    content = [
        {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}
        for kind, coordinates, properties in features
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": content}))
    return str(path)


def prior_of(text: str, layout: Layout = LAYOUT) -> np.ndarray:
    return combine_priors(layout, [read_prior(text)])


def test_a_polygon_with_a_weight_makes_the_cells_inside_as_many_times_as_probable(tmp_path: Path):
    file = write_features(tmp_path / "p.geojson", ("Polygon", [square(LAYOUT, 0, 0, 1, 7)], {"weight": 3}))
    prior = prior_of(file)
    assert prior.sum() == pytest.approx(1)
    np.testing.assert_allclose(prior[:2] / prior[2:4], 3, rtol=1e-3)


def test_probabilities_of_polygons_are_kept_and_the_rest_lies_outside(tmp_path: Path):
    polygons = [
        ("Polygon", [square(LAYOUT, 0, 0, 1, 7)], {"poa": "50%"}),
        ("Polygon", [square(LAYOUT, 2, 0, 2, 7)], {"title": "ridge, poa=0.3"}),
    ]
    prior = prior_of(write_features(tmp_path / "p.json", *polygons))
    assert prior[:2].sum() == pytest.approx(0.5, abs=2e-3)
    assert prior[2].sum() == pytest.approx(0.3, abs=2e-3)
    assert prior[3:].sum() == pytest.approx(0.2, abs=2e-3)


@pytest.mark.parametrize("suffix", [".kml", ".kmz"])
def test_kml_and_kmz_weigh_as_geojson_does(tmp_path: Path, suffix: str):
    ring = square(LAYOUT, 0, 0, 1, 7)
    text = " ".join(f"{lon!r},{lat!r},0" for lon, lat in ring)
    shape = f"<outerBoundaryIs><LinearRing><coordinates>{text}</coordinates></LinearRing></outerBoundaryIs>"
    data = '<ExtendedData><Data name="weight"><value>3</value></Data></ExtendedData>'
    document = f"<Document><Placemark>{data}<Polygon>{shape}</Polygon></Placemark></Document>"
    kml = f'<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2">{document}</kml>'
    path = tmp_path / f"hunch{suffix}"
    if suffix == ".kmz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("doc.kml", kml)
    else:
        path.write_text(kml)
    expected = prior_of(write_features(tmp_path / "p.geojson", ("Polygon", [ring], {"weight": 3})))
    np.testing.assert_allclose(prior_of(str(path)), expected)


def test_the_weight_falls_with_the_distance_from_a_trail(tmp_path: Path):
    line = ring_of(LAYOUT, (4, -1), (4, 8))[:2]
    prior = prior_of(write_features(tmp_path / "trail.geojson", ("LineString", line, {"decay": 200})))
    pitch = LAYOUT.pitch_m
    np.testing.assert_allclose(prior[3] / prior[1], math.exp(2 * pitch / 200), rtol=1e-3)


@pytest.mark.parametrize("heading", [0.0, 30.0])
@pytest.mark.parametrize("crs", ["EPSG:32633", "EPSG:4326", "EPSG:3857"])
def test_a_raster_of_any_projection_is_averaged_over_every_cell(tmp_path: Path, crs: str, heading: float):
    layout = make_layout(heading)
    to_map = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    x, y = to_map.transform(LON, LAT)
    pixel = 10.0 if crs != "EPSG:4326" else 10 / 111_400
    rows, cols = np.mgrid[:400, :400]  # the mean of an inclined plane over a cell is its value in the middle
    plane = (2 + rows / 400 + 3 * cols / 400).astype(np.float32)
    path = write_tiff(
        tmp_path / "poa.tif", plane[..., None], from_origin(x - 200 * pixel, y + 200 * pixel, pixel, pixel), crs
    )
    lat, lon = np.moveaxis(layout.lat_lon(list(layout.grid.cells())), -1, 0)
    east, north = to_map.transform(lon, lat)
    right, down = (east - x) / pixel + 200, 200 - (north - y) / pixel
    expected = (2 + (down - 0.5) / 400 + 3 * (right - 0.5) / 400) * layout.searchable.ravel()
    np.testing.assert_allclose(prior_of(str(path), layout).ravel(), expected / expected.sum(), rtol=4e-3, atol=1e-9)


def test_no_data_and_everything_outside_a_raster_is_zero(tmp_path: Path):
    east, north = Transformer.from_crs("EPSG:4326", "EPSG:32633", always_xy=True).transform(LON, LAT)
    values = np.ones((100, 100, 1), dtype=np.float32)
    values[:, 50:] = -9999
    transform = from_origin(east - 500, north + 500, 10, 10)
    path = write_tiff(tmp_path / "half.tif", values, transform, "EPSG:32633", nodata=-9999)
    prior = prior_of(str(path))
    assert (prior[:, :3] > 0).all()
    assert (prior[:, 5:] == 0).all()


def test_the_rings_around_a_last_known_point_have_their_published_shares():
    wide = lay_out_outline(read_outline(f"{LAT - 0.16},{LON - 0.3} {LAT + 0.16},{LON + 0.3}"), 250.0)
    distances = ring_distances("hiker")
    np.testing.assert_allclose(distances, [644, 1770, 3219, 9817], atol=1)
    prior = combine_priors(wide, [LastKnownPoint(LAT, LON, distances)])
    centre = wide.require_plane().from_degrees((LAT, LON))
    away = np.linalg.norm(wide.centres(np.moveaxis(np.indices(wide.grid.shape), 0, -1)) - centre, axis=-1)
    shares = [prior[away <= radius].sum() for radius in distances]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.75, 0.95], atol=0.03)  # cells on the edge of a ring count as one
    assert (prior[wide.searchable] > 0).all()


def test_every_category_has_growing_distances():
    assert "hiker" in subjects()
    for subject in subjects():
        assert list(ring_distances(subject)) == sorted(set(ring_distances(subject)))


SOURCES = (
    FeaturePrior("hunch", factors=((Polygon(square(LAYOUT, 0, 0, 3, 3)), 4.0),)),
    FeaturePrior("searched", factors=((Polygon(square(LAYOUT, 2, 2, 4, 4)), 0.0),)),
    FeaturePrior("segment", segments=((Polygon(square(LAYOUT, 1, 1, 5, 6)), 0.7),)),
    LastKnownPoint(LAT, LON, ring_distances("child-1-3")),
    LastKnownPoint(LAT, LON + 0.01, ring_distances("hiker")),
)


@settings(max_examples=12, deadline=None)
@given(
    chosen=st.lists(st.sampled_from(SOURCES), max_size=4),
    start=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    agent=st.sampled_from(["belief", "lawnmower", "blind"]),
    drones=st.integers(1, 3),
    motion=st.sampled_from([STILL, Motion(0.4)]),
    roads=st.booleans(),
    cut=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_belief_sums_to_one_under_every_mixture_of_priors_drones_motions_and_rejections(
    chosen, start, agent, drones, motion, roads, cut, seed
):
    prior = combine_priors(LAYOUT, chosen)
    assert prior.sum() == pytest.approx(1)
    photos = np.random.default_rng(seed).integers(0, 255, (4, 48, 48, 3), dtype=np.uint8)
    grid = LAYOUT.grid
    ease = np.where(np.arange(grid.cols) % 3 == 0, 4.0, 0.5) * np.ones(grid.shape) if roads else None
    parts = (np.arange(grid.cols) >= 4).astype(int) * np.ones(grid.shape, dtype=int) if cut else None
    options = {"start": start, "budget": 6, "prior": prior, "threshold": 1.0, "motion": motion, "ease": ease}
    options["parts"] = parts
    search = TeamSearcher(cached_agent(agent), photos[0], grid, **options)
    for number in range(2, drones + 1):
        search.join(str(number), start, 6)
    np.testing.assert_allclose(search.prior, prior, rtol=1e-5, atol=1e-9)
    for photo in photos[1:]:
        vehicle = search.next_to_arrive()
        if vehicle is None or vehicle.next is None:
            break
        assert parts is None or parts[vehicle.next] == parts[start], "no vehicle flies to another part"
        search.observe(vehicle.next, Glimpse(photo), check=False, vehicle=vehicle.name)
        search.judge(len(search.photos), goal=False)
        belief = search.belief()
        assert belief.sum() == pytest.approx(1)
        assert (belief >= 0).all()
        assert 0 <= search.pos <= 1 + 1e-9
        if motion is STILL:
            assert (belief[prior == 0] == 0).all()


def test_the_order_of_the_sources_does_not_matter():
    for order in itertools.permutations(SOURCES[:3]):
        np.testing.assert_allclose(combine_priors(LAYOUT, order), combine_priors(LAYOUT, SOURCES[:3]))


@pytest.mark.parametrize("agent", ["belief", "blind", "lawnmower", "airloc"])
def test_a_search_spends_its_moves_where_the_prior_is(patches, agent: str):
    prior = np.zeros((5, 5))
    prior[0] = 1
    search = Searcher(
        make_agent(agent), patches[7], LAYOUT_5, start=(1, 2), budget=14, prior=prior, threshold=1.0
    )  # the threshold is never reached
    while (cell := search.advice().next_cell) is not None:
        search.observe(cell, Glimpse(patches[LAYOUT_5.index(cell)]), check=False)
    assert {(0, col) for col in range(5)} <= set(search.flown)
    assert search.pos == pytest.approx(search.detection)
    assert search.status == "spent"


LAYOUT_5 = replace(LAYOUT.grid, rows=5, cols=5)


def test_contradicting_sources_name_the_last_one():
    left = FeaturePrior("west", factors=((Polygon(square(LAYOUT, -1, -1, 8, 3)), 0.0),))
    right = FeaturePrior("east", factors=((Polygon(square(LAYOUT, -1, 3, 8, 8)), 0.0),))
    with pytest.raises(AirlocError, match="zero in every cell: east excludes"):
        combine_priors(LAYOUT, [left, right])


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.geojson", "{", "not GeoJSON"),
        ("a.geojson", '{"type": "Polygon", "coordinates": [[[15, 59], [15.1, 59], [15, 59.1]]]}', "no weight"),
        ("a.geojson", '{"type": "Point", "coordinates": [15, 59]}', "neither a polygon nor a line"),
        ("a.kml", "<kml/>", "neither a polygon nor a line"),
        ("a.kmz", "PK", "not KMZ"),
        ("a.tif", "text", "Cannot read"),
        ("a.txt", "text", "Cannot read"),
    ],
)
def test_hostile_files_are_refused_with_one_sentence(tmp_path: Path, name: str, content: str, problem: str):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(AirlocError, match=problem) as error:
        prior_of(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "properties",
    [{"weight": -1}, {"weight": "nan"}, {"weight": True}, {"weight": "many"}, {"poa": 1.5}, {"weight": 1e999}],
)
def test_weights_that_are_no_weights_are_refused(tmp_path: Path, properties: dict):
    file = write_features(tmp_path / "p.geojson", ("Polygon", [square(LAYOUT, 0, 0, 1, 1)], properties))
    with pytest.raises(AirlocError):
        read_prior(file)


def test_a_polygon_without_area_is_named_with_its_prior(tmp_path: Path):
    shape = {"type": "Polygon", "coordinates": [[[15.0, 59.0], [15.1, 59.1], [15.2, 59.2], [15.0, 59.0]]]}
    file = tmp_path / "p.geojson"
    file.write_text(json.dumps({"type": "Feature", "properties": {"weight": 2}, "geometry": shape}))
    with pytest.raises(AirlocError, match=r"A polygon of the prior \S+p\.geojson crosses itself"):
        read_prior(str(file))


def test_a_missing_file_an_unknown_category_and_negative_values_are_refused(tmp_path: Path):
    with pytest.raises(AirlocError, match="There is no prior"):
        read_prior(str(tmp_path / "none.tif"))
    with pytest.raises(AirlocError, match="Use one of angler"):
        ring_distances("pirate")
    path = write_tiff(
        tmp_path / "n.tif", np.full((9, 9, 1), -1.0), from_origin(LON - 1, LAT + 1, 0.2, 0.2), "EPSG:4326"
    )
    with pytest.raises(AirlocError, match="negative"):
        combine_priors(LAYOUT, [RasterPrior(path)])
    with rasterio.open(path) as file, pytest.raises(AirlocError, match="no georeference"):
        combine_priors(LAYOUT, [RasterPrior(write_tiff(tmp_path / "g.tif", file.read()[0][..., None], None, None))])
