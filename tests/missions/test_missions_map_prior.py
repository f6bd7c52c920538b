"""A map of another day tells where the goal is before take-off."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rasterio.transform import from_origin

from airloc.agents.registry import make_agent
from airloc.agents.sighting import matching_network
from airloc.areas.changes import adjust_colours, photometric
from airloc.areas.layout import lay_out, read_square
from airloc.areas.raster import Raster
from airloc.errors import AirlocError
from airloc.missions.map_prior import MapPrior
from airloc.missions.photos import make_goal
from airloc.missions.priors import combine_priors
from field_files import LEFT, METRE, TOP, ground, write_projected, write_tiff

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def network():
    return matching_network(make_agent("belief"))


def other_day(image: np.ndarray) -> np.ndarray:
    """Return an image in another light."""
    return adjust_colours(image, photometric(np.random.default_rng(4), 0.4))


def goal_at(path: Path, place: tuple[float, float], turn: float | None):
    with Raster(path) as raster:
        layout = lay_out(raster, None, 96.0)
        picture = read_square(raster, layout, place, 1.0, 96).pixels
    if turn is None:
        picture = np.asarray(Image.fromarray(picture).rotate(90))
    return layout, make_goal(picture, 96.0, (96.0, 96.0), turn)


@pytest.mark.parametrize("turn", [0.0, None])
def test_the_cell_of_the_goal_is_the_most_probable_one_on_a_map_in_another_light(tmp_path: Path, network, turn):
    image = ground(5)
    area, earlier = write_projected(tmp_path / "a.tif", image), write_projected(tmp_path / "b.tif", other_day(image))
    layout, goal = goal_at(area, (3.2, 0.9), turn)
    prior = combine_priors(layout, [MapPrior(earlier, goal, network)])
    assert prior[3, 1] > 0.5
    assert (prior > 0).all()


def test_cells_that_the_map_does_not_show_keep_their_probability(tmp_path: Path, network):
    image = ground(5)
    half = image.copy()
    half[:, :130] = 0
    area = write_projected(tmp_path / "a.tif", image)
    earlier = write_projected(tmp_path / "b.tif", half, nodata=0)
    layout, goal = goal_at(area, (2, 0), 0.0)
    weights = MapPrior(earlier, goal, network).weights(layout)
    np.testing.assert_allclose(weights[:, 0], 1.0)


def test_a_map_of_another_place_or_without_georeference_is_refused(tmp_path: Path, network):
    image = ground(4)
    layout, goal = goal_at(write_projected(tmp_path / "a.tif", image), (1, 1), 0.0)
    plain = write_tiff(tmp_path / "plain.tif", image, None, None)
    with pytest.raises(AirlocError, match="no georeference"):
        MapPrior(plain, goal, network).weights(layout)
    away = write_tiff(tmp_path / "away.tif", image, from_origin(LEFT + 9999, TOP, 2, 2), METRE)
    with pytest.raises(AirlocError, match="does not show"):
        MapPrior(away, goal, network).weights(layout)
