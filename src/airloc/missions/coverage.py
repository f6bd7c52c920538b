"""Coverage of a search area by an actual flight: what was seen, how well, and what is left to fly.

`coverage.tif` has one pixel per cell: the fraction of the cell that was seen, and the probability of detection (POD),
that fraction times the POD of a photo of a whole cell. `left.geojson` has the polygons that were not seen.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import MultiPolygon, Polygon

from airloc.areas.layout import Layout, fraction_inside
from airloc.files import write_atomically
from airloc.missions.outputs import write_cells

__all__ = ["Coverage", "cover", "write_coverage"]

MIN_PART = 0.02
"""Area of the smallest polygon that is worth flying again, in cells."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """What a flight has seen of a search area."""

    layout: Layout
    seen: MultiPolygon | Polygon
    """Ground inside the outline that was seen, in the plane."""
    left: Sequence[Polygon]
    """Ground inside the outline that was not seen, the largest part first."""
    fraction: npt.NDArray[np.float64]
    """Fraction of each cell inside the outline that was seen, (rows, cols)."""
    detection: float
    """POD of a photo that shows a whole cell."""

    @property
    def pod(self) -> npt.NDArray[np.float64]:
        """Probability of detection of each cell, (rows, cols)."""
        return self.fraction * self.detection

    @property
    def share(self) -> float:
        """Fraction of the search area that was seen."""
        assert self.layout.region is not None
        return float(self.seen.area / self.layout.region.area)


def cover(layout: Layout, seen: MultiPolygon | Polygon, detection: float) -> Coverage:
    """Return the coverage of a search area by the ground that a flight has seen.

    Args:
        layout: The grid on the outline.
        seen: The ground, in the plane of the layout.
        detection: POD of a photo that shows a whole cell.
    """
    assert layout.region is not None
    inside, cells = seen.intersection(layout.region), layout.polygons()
    wanted = fraction_inside(cells, layout.region, layout.cell_m**2)
    found = fraction_inside(cells, inside, layout.cell_m**2) if inside.area else np.zeros(len(cells))
    fraction = np.divide(found, wanted, out=np.zeros(len(cells)), where=wanted > 0).clip(0, 1)
    smallest = MIN_PART * layout.cell_m**2
    parts = [
        part
        for part in shapely.get_parts(layout.region.difference(inside.buffer(1e-6)))
        if part.geom_type == "Polygon" and part.area >= smallest
    ]
    left = sorted(parts, key=lambda part: -part.area)
    return Coverage(layout, inside, left, fraction.reshape(layout.grid.shape), detection)


def write_coverage(folder: Path, coverage: Coverage) -> list[Path]:
    """Write the coverage as GeoTIFF, the seen and the unseen ground as GeoJSON, and a summary; return the paths."""
    bands = {"coverage": coverage.fraction, "POD": coverage.pod}
    return [
        write_cells(folder / "coverage.tif", coverage.layout, bands),
        write_atomically(folder / "left.geojson", _geojson(coverage.layout, coverage.left)),
        write_atomically(folder / "seen.geojson", _geojson(coverage.layout, shapely.get_parts(coverage.seen))),
        write_atomically(folder / "coverage.json", json.dumps(_summary(coverage), indent=1) + "\n"),
    ]


def _summary(coverage: Coverage) -> dict[str, Any]:
    assert coverage.layout.region is not None
    return {
        "area_m2": coverage.layout.region.area,
        "seen_m2": coverage.seen.area,
        "coverage": coverage.share,
        "detection": coverage.detection,
        "pod": coverage.share * coverage.detection,
        "left_m2": sum(part.area for part in coverage.left),
        "left_parts": len(coverage.left),
    }


def _geojson(layout: Layout, parts: Sequence[Polygon]) -> str:
    """Return polygons of the plane as GeoJSON."""
    plane = layout.require_plane()
    features = [
        {
            "type": "Feature",
            "properties": {"area_m2": part.area},
            "geometry": json.loads(
                shapely.to_geojson(shapely.transform(part, lambda points: plane.to_degrees(points)[:, ::-1].round(9)))
            ),
        }
        for part in parts
        if part.geom_type == "Polygon"
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, indent=1) + "\n"
