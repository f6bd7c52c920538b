"""Areas cut from one georeferenced image, side by side, with cells of a size on the ground.

`airloc data show geotiff --path ortho.tif --cell-metres 100` shows them; they serve for training and evaluation like
any others. Areas that leave the outline, or of which the image knows less than nine tenths, are left out. The packages
of the extra `geo` are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

if TYPE_CHECKING:
    from airloc.areas.geotiff_layout import Layout
    from airloc.areas.geotiff_plane import Points

MIN_KNOWN = 0.9
NEEDED = ("rasterio", "pyproj", "shapely")


@dataclass(frozen=True)
class GeoTiff:
    """A georeferenced image, cut into areas."""

    path: Path
    """The image."""
    cell_metres: float = 100.0
    """Side of a cell on the ground; in pixels where the image has no georeference."""
    within: str | None = None
    """Only here: a .geojson or .kml file, or corners as 'lat,lon lat,lon ...'."""
    crs: str | None = None
    """The projection of an image that does not name its own, such as EPSG:32633."""

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Cut the areas one by one, fitted to the grid."""
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise AirlocError(f"This needs {', '.join(missing)}", "Run: pip install 'airloc[geo]'")
        from airloc.areas.geotiff import Raster
        from airloc.areas.geotiff_layout import lay_out
        from airloc.areas.geotiff_outline import read_outline

        outline = None if self.within is None else read_outline(self.within)
        given = 0
        with Raster(self.path, crs=self.crs) as raster:
            layout = lay_out(raster, outline, self.cell_metres)
            for row, col in product(range(layout.grid.rows // grid.rows), range(layout.grid.cols // grid.cols)):
                first = row * grid.rows, col * grid.cols
                view = raster.view(layout.plane, _block(layout, first, grid), grid.size)
                searched = layout.searchable[first[0] : first[0] + grid.rows, first[1] : first[1] + grid.cols]
                if view.seen >= MIN_KNOWN and searched.all():
                    given += 1
                    height, width = (side / grid.cell * self.cell_metres for side in grid.size)
                    name = f"{self.path.stem}_{row}_{col}"
                    yield SearchArea(name, view.pixels, ground_m=(height, width), tile=self.path.stem)
        if given == 0:
            problem = f"No area of {grid} cells of {self.cell_metres:g} lies whole in the image {self.path}"
            raise AirlocError(problem, "Ask for smaller cells with --cell-metres")


def _block(layout: "Layout", first: Cell, grid: Grid) -> "Points":
    """The corners of a block of cells in the plane, (4, 2), clockwise from the upper left."""
    rows, cols = (first[0], first[0] + grid.rows - 1), (first[1], first[1] + grid.cols - 1)
    outer = ((rows[0], cols[0]), (rows[0], cols[1]), (rows[1], cols[1]), (rows[1], cols[0]))
    return np.stack([layout.corners(cell)[number] for number, cell in enumerate(outer)])
