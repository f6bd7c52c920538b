"""What is known before take-off, as a prior over the cells: rasters, polygons, lines and a last known point.

Every source gives a weight to each cell: the mean of its probability density over the cell and half of the gap around
it. The prior is the product of all weights, normalised over the searchable cells. A cell that one source excludes stays
excluded.

| source                                    | weight of a cell                                                      |
|-------------------------------------------|-----------------------------------------------------------------------|
| raster (GeoTIFF of any projection)        | mean of its first band; zero where it has no data                     |
| polygon with the property `weight`        | that factor inside, 1 outside; overlapping polygons multiply          |
| polygons with the property `poa`          | their probabilities, evenly over each; the rest evenly outside        |
| lines (roads, trails), property `decay`   | exp(-distance / decay), by default 100 m; the nearest line counts     |
| last known point and category of subject  | published distances within which 25, 50, 75 and 95 % were found       |

Polygons and lines come from GeoJSON, KML or KMZ. Their properties are those of the feature or placemark, or words of
its name or description: `weight=3`, `poa=40%`, `decay=200`.

Legend: weights are (rows, cols).
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import LineString, MultiLineString, Polygon

from airloc.areas.features import SUFFIXES, Feature, read_features
from airloc.areas.layout import Layout, fraction_inside, project, spots_in_cell
from airloc.areas.outline import valid_polygon
from airloc.areas.raster import Plane, Raster
from airloc.errors import AirlocError

Weights = npt.NDArray[np.float64]

DECAY = 100.0
"""Distance in metres from a line at which the weight has fallen to 1/e, if the line does not name its own."""
MAX_POINTS = 2_000_000
"""Points at which a raster is sampled, for all cells together."""
SAMPLES = 16
"""Largest number of these points along the side of a cell."""
MILE = 1609.344
CIRCLE_SEGMENTS = 64
"""Segments of a quarter circle."""


class PriorSource(Protocol):
    """Something that is known about the place of the goal."""

    def weights(self, layout: Layout) -> Weights:
        """Return the mean probability density in every cell up to a factor, (rows, cols)."""
        ...


def combine_priors(layout: Layout, sources: Sequence[PriorSource]) -> Weights:
    """Return the product of all sources, zero outside the searchable cells; it sums to one.

    Raises:
        AirlocError: If a source cannot be read, or no cell is possible.
    """
    prior = layout.searchable / layout.searchable.sum()
    for source in sources:
        prior = prior * source.weights(layout)
        total = prior.sum()
        if not total > 0:
            raise AirlocError(
                f"The prior is zero in every cell: {source} excludes the cells that are left",
                "Check that it covers the search area, and that the sources do not contradict each other",
            )
        prior = prior / total
    return np.asarray(prior)


def read_prior(text: str) -> PriorSource:
    """Open a source: a file of features, or a raster.

    Raises:
        AirlocError: If the file is missing, damaged, or has nothing to weigh cells by.
    """
    path = Path(text)
    if path.suffix.lower() in SUFFIXES:
        return feature_prior(read_features(path, "prior"), f"the prior {path}")
    if not path.is_file():
        cure = "Give a GeoTIFF, or a .geojson, .kml or .kmz file with polygons or lines"
        raise AirlocError(f"There is no prior {path}", cure)
    return RasterPrior(path)


@dataclass(frozen=True)
class RasterPrior:
    """The first band of a georeferenced raster; values without data, and all outside, are zero."""

    path: Path

    def __str__(self) -> str:
        return f"the prior {self.path}"

    def weights(self, layout: Layout) -> Weights:
        """Return the mean of the raster over every cell."""
        plane = layout.require_plane()
        side = max(2, min(SAMPLES, math.isqrt(MAX_POINTS // layout.grid.count)))
        cells = np.moveaxis(np.indices(layout.grid.shape), 0, -1)[:, :, None, None]
        with Raster(self.path) as raster:
            if not raster.georeferenced:
                raise AirlocError(f"The prior {self.path} has no georeference", "Georeference it, or give a GeoTIFF")
            values = raster.sample(plane, layout.centres(cells + spots_in_cell(side)))
        if (values < 0).any() or np.isinf(values).any():
            problem = f"The prior {self.path} has negative or infinite values"
            raise AirlocError(problem, "Give probabilities, or any positive weights")
        return np.asarray(np.nan_to_num(values).mean(axis=(2, 3)))


@dataclass(frozen=True)
class FeaturePrior:
    """Polygons and lines, in (lon, lat)."""

    name: str
    factors: Sequence[tuple[Polygon, float]] = ()
    """Polygons with the factor of the density inside."""
    segments: Sequence[tuple[Polygon, float]] = ()
    """Polygons with their probability."""
    lines: Sequence[tuple[LineString, float]] = ()
    """Lines with their decay in metres."""

    def __str__(self) -> str:
        return self.name

    def weights(self, layout: Layout) -> Weights:
        """Return the product of what polygons and lines say."""
        plane, cells = layout.require_plane(), _tiles(layout)
        weight = np.ones(layout.grid.count)
        for polygon, factor in self.factors:
            share = fraction_inside(cells, project(polygon, plane, "prior"), layout.pitch_m**2)
            weight *= 1 + (factor - 1) * share
        if self.segments:
            weight *= self._segment_density(cells, layout, plane)
        if self.lines:
            weight *= self._line_density(layout, plane)
        return weight.reshape(layout.grid.shape)

    def _segment_density(self, cells: npt.NDArray[np.object_], layout: Layout, plane: Plane) -> Weights:
        """Spread the probability of each polygon over its area, and the rest over what lies in none."""
        density, outside = np.zeros(len(cells)), layout.searchable.ravel().astype(np.float64)
        for polygon, probability in self.segments:
            flat = project(polygon, plane, "prior")
            share = fraction_inside(cells, flat, layout.pitch_m**2)
            density += probability * share / (flat.area / layout.pitch_m**2)
            outside *= 1 - share
        rest = 1 - sum(probability for _, probability in self.segments)
        return density + (rest * outside / outside.sum() if outside.sum() > 0 else 0.0)

    def _line_density(self, layout: Layout, plane: Plane) -> Weights:
        points = shapely.points(layout.centres(list(layout.grid.cells())))
        groups: dict[float, list[LineString]] = {}
        for line, decay in self.lines:
            groups.setdefault(decay, []).append(line)
        near = [
            np.exp(-shapely.distance(points, project(MultiLineString(lines), plane, "prior")) / decay)
            for decay, lines in groups.items()
        ]
        return np.asarray(np.max(near, axis=0))


def feature_prior(features: Sequence[Feature], name: str) -> FeaturePrior:
    """Sort features by what they say about the goal; points say nothing.

    Raises:
        AirlocError: If there is neither a polygon nor a line, or a polygon has no valid weight.
    """
    factors, segments, lines = [], [], []
    for feature in features:
        numbers = _numbers(feature.properties, name)
        if feature.kind == "LineString":
            lines.append((valid_line(feature, name), numbers.get("decay", DECAY)))
        elif feature.kind == "Polygon" and "poa" in numbers:
            segments.append((valid_polygon(feature.rings, name), numbers["poa"]))
        elif feature.kind == "Polygon":
            if "weight" not in numbers:
                cure = "Give each polygon the property weight, such as 3, or poa, such as 40%"
                raise AirlocError(f"A polygon of {name} has no weight", cure)
            factors.append((valid_polygon(feature.rings, name), numbers["weight"]))
    if not (factors or segments or lines):
        raise AirlocError(f"In {name} there is neither a polygon nor a line", "Draw polygons with weights, or lines")
    total = sum(probability for _, probability in segments)
    if total > 1 + 1e-6:
        raise AirlocError(f"The probabilities of {name} sum to {total:g}", "Give shares of one, such as 0.4 or 40%")
    return FeaturePrior(name, factors, segments, lines)


def _numbers(properties: Mapping[str, Any], name: str) -> dict[str, float]:
    """Return weight, poa and decay of a feature, from its properties or from words of its name or description."""
    words = " ".join(str(properties.get(key, "")) for key in ("name", "title", "description"))
    found: dict[str, Any] = {key.lower(): value for key, value in re.findall(r"(\w+)\s*[=:]\s*([^\s,;]+)", words)}
    found |= {str(key).lower(): value for key, value in properties.items()}
    return {key: _number(found[key], key, name) for key in ("weight", "poa", "decay") if found.get(key) is not None}


def _number(value: Any, key: str, name: str) -> float:
    text = str(value).strip().removesuffix("m")
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if not (0 <= number < math.inf) or (key == "decay" and number == 0) or isinstance(value, bool):
        example = {"weight": "3", "poa": "0.4 or 40%", "decay": "200"}[key]
        raise AirlocError(f"The {key} {str(value)[:40]!r} of {name} is not valid", f"Give a number, such as {example}")
    return number


def valid_line(feature: Feature, name: str) -> LineString:
    """Return a line as a geometry in (lon, lat).

    Raises:
        AirlocError: If it has fewer than two points, or points that are no positions.
    """
    points = feature.rings[0] if feature.rings else []
    if len(set(points)) < 2 or not all(
        math.isfinite(lon) and abs(lon) <= 360 and math.isfinite(lat) and abs(lat) <= 90 for lon, lat in points
    ):
        problem = f"A line of {name} has fewer than two points, or points that are not a latitude and longitude"
        raise AirlocError(problem, "Export it in WGS 84 (EPSG:4326)")
    return LineString(points)


@dataclass(frozen=True)
class LastKnownPoint:
    """Rings of equal probability around a last known point, and a tail that decays beyond the last one."""

    lat: float
    lon: float
    distances: Sequence[float]
    """Distances in metres within which 25, 50, 75 and 95 % of the lost people were found."""

    def __str__(self) -> str:
        return f"the last known point {self.lat:.5f},{self.lon:.5f}"

    def weights(self, layout: Layout) -> Weights:
        """Return the mean density in every cell: constant in a ring, exponential beyond the last one."""
        centre = shapely.Point(layout.require_plane().from_degrees((self.lat, self.lon)))
        if not np.isfinite(shapely.get_coordinates(centre)).all():
            raise AirlocError(f"{str(self).capitalize()} is far from the search area", "Check the position")
        cells = _tiles(layout)
        discs = [centre.buffer(radius, quad_segs=CIRCLE_SEGMENTS) for radius in self.distances]
        within = [fraction_inside(cells, disc, layout.pitch_m**2) for disc in discs]
        shares, radii = _ring_shares(), [0.0, *self.distances]
        density, inner = np.zeros(len(cells)), np.zeros(len(cells))
        for number, (share, disc) in enumerate(zip(shares, within, strict=True)):
            area = math.pi * (radii[number + 1] ** 2 - radii[number] ** 2)
            density += share / area * (disc - inner)
            inner = disc
        last = radii[-1]
        away = shapely.distance(shapely.points(layout.centres(list(layout.grid.cells()))), centre)
        scale = last / 2
        peak = (1 - sum(shares)) / (2 * math.pi * scale * (last + scale))  # so that the tail has the rest
        tail = peak * np.exp(-np.maximum(away - last, 0) / scale) * (1 - inner)
        return np.asarray(density + tail).reshape(layout.grid.shape)


def last_known_point(position: tuple[float, float] | None, subject: str | None) -> list[PriorSource]:
    """Return the last known point of a subject as the only source, or no source if nothing is known.

    Raises:
        AirlocError: If only one of both is given, or there is no such category of subjects.
    """
    if (position is None) != (subject is None):
        problem = "A last known point and a category of subjects are needed together"
        raise AirlocError(problem, f"Give both lkp and subject; categories are {', '.join(subjects())}")
    return [] if position is None or subject is None else [LastKnownPoint(*position, ring_distances(subject))]


@lru_cache(maxsize=1)
def _statistics() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files("airloc.missions").joinpath("subjects.json").read_text("utf-8"))
    return content


def subjects() -> tuple[str, ...]:
    """Return the categories of lost people."""
    return tuple(_statistics()["miles"])


def ring_distances(subject: str) -> tuple[float, ...]:
    """Return the distances in metres within which 25, 50, 75 and 95 % of a category were found.

    Raises:
        AirlocError: If there is no such category.
    """
    if subject not in subjects():
        raise AirlocError(f"There is no category of subjects {subject!r}", f"Use one of {', '.join(subjects())}")
    return tuple(miles * MILE for miles in _statistics()["miles"][subject])


def _tiles(layout: Layout) -> npt.NDArray[np.object_]:
    """Return all cells with half of the gap around them as polygons in the plane, (rows * cols,)."""
    return replace(layout, cell_m=layout.pitch_m, gap_m=0.0).polygons()


def _ring_shares() -> list[float]:
    """Return the probability of each ring."""
    return [float(share) for share in np.diff([0, *_statistics()["percent"]]) / 100]
