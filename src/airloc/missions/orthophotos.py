"""Orthophotos that clients send: checked, shown below the grid of a search, matched with the goal before take-off."""

import base64
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from shapely.geometry import Polygon

from airloc.agents.agent import Agent
from airloc.agents.sighting import matching_network
from airloc.areas.layout import Layout
from airloc.areas.raster import Points, Raster
from airloc.errors import AirlocError
from airloc.missions.map_prior import MapPrior
from airloc.missions.messages import RequestError
from airloc.missions.photos import Goal
from airloc.missions.session import Belief

MARGIN = 1
"""Cells around the grid that the background of the map shows."""
MAX_PIXELS = 400_000_000
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""First bytes of TIFF and BigTIFF files."""


@contextmanager
def open_tiff(content: bytes, name: str, max_pixels: int = MAX_PIXELS) -> Iterator[Raster]:
    """Open a GeoTIFF that a client has sent.

    Args:
        content: The file.
        name: Its name in the request, for errors.
        max_pixels: Largest number of pixels; a small file may claim any size.
    """
    if not content.startswith(TIFF):  # other formats may name files of the server
        raise RequestError(422, f"The {name} is not a GeoTIFF", "Send a GeoTIFF")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sent.tif"
        try:
            path.write_bytes(content)
        except OSError as error:
            problem = f"The server cannot write the {name} to a temporary file: {error.strerror}"
            raise RequestError(503, problem, "Check the disk of the server, and send the request again") from error
        try:
            with Raster(path) as raster:
                if raster.width * raster.height > max_pixels:
                    problem = f"The {name} has {raster.width} x {raster.height} pixels"
                    raise AirlocError(problem, f"Send at most {max_pixels / 1e6:.0f} megapixels")
                yield raster
        except AirlocError as error:  # without the name of the temporary file
            raise RequestError(422, error.problem.replace(str(path), name), error.cure) from error


def background_corners(layout: Layout) -> Points:
    """Return the corners of the background image in the plane, (4, 2), clockwise from the upper left."""
    rows, cols = layout.grid.shape
    low, high = -0.5 - MARGIN, np.array([rows, cols]) - 0.5 + MARGIN
    return layout.centres([(low, low), (low, high[1]), (high[0], high[1]), (high[0], low)])


def shows(raster: Raster, layout: Layout) -> bool:
    """Return True if an orthophoto shows some of a grid."""
    if not raster.georeferenced or layout.plane is None:
        return False
    return bool(Polygon(raster.border(layout.plane)).intersects(Polygon(background_corners(layout))))


def check_orthophoto(content: bytes, layout: Layout, name: str) -> bytes:
    """Return an orthophoto if it can be shown below a grid."""
    with open_tiff(content, name) as raster:
        if not raster.georeferenced:
            raise AirlocError(f"The {name} has no georeference", "Georeference it first")
        if not shows(raster, layout):
            raise AirlocError(f"The {name} does not show the search area", "Send an orthophoto of the area")
        raster.read_quad(layout.plane, background_corners(layout), (32, 32))  # raises an error if it is damaged
    return content


def match_map(raster: Raster, goal: Goal, agent: Agent, layout: Layout) -> str:
    """Match a goal against an orthophoto; return the weights of all cells as `StoredWeights` keeps them."""
    weights = MapPrior(raster.path, goal, matching_network(agent)).weights(layout)
    return base64.b64encode(np.asarray(weights, dtype="<f8").tobytes()).decode()


@dataclass(frozen=True)
class StoredWeights:
    """The weights of all cells by the match of goal and orthophoto, as the store keeps them."""

    text: str

    def __str__(self) -> str:
        return "the orthophoto"

    def weights(self, layout: Layout) -> Belief:
        """Return the weight of every cell."""
        return np.frombuffer(base64.b64decode(self.text), dtype="<f8").reshape(layout.grid.shape).copy()
