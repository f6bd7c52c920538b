"""Areas cut from one georeferenced image, side by side, with cells of a fixed size on the ground.

`airloc data show geotiff --path ortho.tif --cell-metres 100` shows them. Areas that are not inside the outline, or of
which the image covers less than 90 %, are left out. The dataset needs the packages of the extra `field`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from airloc.areas.area import SearchArea
from airloc.areas.dataset import Dataset
from airloc.areas.records import ImageRecord
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

if TYPE_CHECKING:
    from airloc.areas.layout import Layout
    from airloc.areas.raster import Points, Raster, RasterView

MIN_COVERAGE = 0.9
"""Smallest share of an area that the image must cover."""

IMAGE_GRIDS = (Grid(7, 7), Grid(5, 5), Grid(2, 2))
"""Grids of the images for training, the largest first; the first one that fits into the image is used."""

_PACKAGES = ("rasterio", "pyproj", "shapely")


@dataclass(frozen=True, slots=True)
class _Block(ImageRecord):
    """A block of cells of the image."""

    first: Cell = (0, 0)
    """The upper left cell."""
    grid: Grid = IMAGE_GRIDS[0]
    """The cells of the block."""


@dataclass(frozen=True)
class GeoTiff(Dataset):
    """A georeferenced image, cut into areas."""

    name = "geotiff"
    title = "A georeferenced image"
    terms = "yours"
    location_option = "path"

    path: Path
    """The image: a GeoTIFF, or any other format that GDAL reads."""
    within: str | None = None
    """Only inside this outline: a .geojson or .kml file, or corners as 'lat,lon lat,lon ...'."""
    crs: str | None = None
    """Coordinate reference system of an image that does not name its own, such as EPSG:32633."""
    cell_metres: float | None = field(default=100.0, kw_only=True)
    """Side of a cell on the ground; in pixels where the image has no georeference."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cell_metres is None:
            object.__setattr__(self, "cell_metres", 100.0)

    def scan(self) -> list[ImageRecord]:
        """List the blocks of the largest of `IMAGE_GRIDS` that the image covers."""
        for grid in IMAGE_GRIDS:
            if blocks := self._covered(self.scan_for(grid)):
                return blocks
        raise self._too_small(IMAGE_GRIDS[-1])

    def scan_for(self, grid: Grid) -> list[ImageRecord]:
        """List the blocks of the cells of a grid that lie in the outline."""
        with self._open() as raster:
            layout = self._lay_out(raster)
        found: list[ImageRecord] = []
        for row, col in product(range(layout.grid.rows // grid.rows), range(layout.grid.cols // grid.cols)):
            first = row * grid.rows, col * grid.cols
            if layout.searchable[first[0] : first[0] + grid.rows, first[1] : first[1] + grid.cols].all():
                name, tile = f"{self.path.stem}_{row}_{col}", self.path.stem
                found.append(_Block(name, self.path, tile=tile, first=first, grid=grid))
        return found

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Cut the areas one by one, fitted to the grid; those that the image does not cover are left out."""
        kept = 0
        for view, area in self._read_blocks(self.select(self.scan_for(grid))):
            if view.coverage >= MIN_COVERAGE:
                kept += 1
                yield area
        if kept == 0:
            raise self._too_small(grid)

    def count_areas(self) -> dict[str, int]:
        """Return the number of 5 x 5 areas; each of them is read for it."""
        return {"areas": sum(1 for _ in self.areas(Grid()))}

    def state(self) -> str:
        """Return `images`."""
        return "images"

    def _read_all(self, records: Sequence[ImageRecord]) -> Iterator[SearchArea]:
        return (area for _, area in self._read_blocks(records))

    def _read_blocks(self, records: Sequence[ImageRecord]) -> Iterator[tuple["RasterView", SearchArea]]:
        """Read blocks, each with its view of the image."""
        with self._open() as raster:
            layout = self._lay_out(raster)
            for record in records:
                assert isinstance(record, _Block)
                grid = record.grid
                view = raster.read_quad(layout.plane, _corners(layout, record.first, grid), grid.size)
                height, width = (side / grid.cell * layout.cell_m for side in grid.size)
                yield view, SearchArea(record.name, view.pixels, ground_m=(height, width), tile=record.tile)

    def _covered(self, records: Sequence[ImageRecord]) -> list[ImageRecord]:
        """Return the blocks that the image covers."""
        views = (view for view, _ in self._read_blocks(records))
        return [record for record, view in zip(records, views, strict=True) if view.coverage >= MIN_COVERAGE]

    def _open(self) -> "Raster":
        missing = [name for name in _PACKAGES if find_spec(name) is None]
        if missing:
            raise AirlocError(f"GeoTIFF files need {', '.join(missing)}", "Run: pip install 'airloc[field]'")
        from airloc.areas.raster import Raster

        return Raster(self.path, crs=self.crs)

    def _lay_out(self, raster: "Raster") -> "Layout":
        from airloc.areas.layout import lay_out
        from airloc.areas.outline import read_outline

        assert self.cell_metres is not None
        return lay_out(raster, None if self.within is None else read_outline(self.within), self.cell_metres)

    def _too_small(self, grid: Grid) -> AirlocError:
        return AirlocError(
            f"No area of {grid} cells of {self.cell_metres:g} m lies in the image {self.path}",
            "Give smaller cells with --cell-metres",
        )


def _corners(layout: "Layout", first: Cell, grid: Grid) -> "Points":
    """Return the corners of a block of cells in the plane, (4, 2), clockwise from the upper left."""
    (top, left), bottom, right = first, first[0] + grid.rows - 1, first[1] + grid.cols - 1
    outer = layout.corners([(top, left), (top, right), (bottom, right), (bottom, left)])
    return outer[range(4), range(4)]
