"""Photos and GeoTIFFs for tests: synthetic areas in a projected and in a geographic coordinate reference system."""

from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from pyproj import Transformer
from rasterio.transform import Affine, from_origin

from airloc.areas.synthetic import Synthetic
from airloc.grid import Cell, Grid
from airloc.missions.photos import View
from airloc.missions.searcher import Glimpse

LEFT, TOP, METRE = 500_000.0, 6_580_000.0, "EPSG:32633"


def ground(cells: int = 6, seed: int = 0) -> np.ndarray:
    """Return a synthetic area with 52 pixels per cell."""
    return next(iter(Synthetic(count=1, seed=seed).areas(Grid(cells, cells)))).image


def photo_of(image: np.ndarray, grid: Grid, cell: Cell) -> Glimpse:
    """Return a photo of a cell of an area, a third higher than the cell."""
    x, y = (round(at) for at in grid.centre(cell))
    around = np.pad(image, ((48, 48), (48, 48), (0, 0)))[y : y + 96, x : x + 96]
    seen = np.pad(np.ones((64, 86), dtype=np.bool_), ((16, 16), (5, 5))) & around.any(axis=2)
    return Glimpse(around[24:72, 24:72], 1.0, View(around, seen))


def write_tiff(path: Path, image: np.ndarray, transform: Affine | None, crs: str | None, **options: Any) -> Path:
    """Write an image (H, W, bands) of any type."""
    height, width, count = image.shape
    with rasterio.open(
        path, "w", driver="GTiff", height=height, width=width, count=count, dtype=image.dtype,
        **({} if transform is None else {"transform": transform}), **({} if crs is None else {"crs": crs}), **options,
    ) as file:  # fmt: skip
        file.write(np.moveaxis(image, -1, 0))
    return path


def write_projected(path: Path, image: np.ndarray, resolution: float = 2.0, **options: Any) -> Path:
    """Write an image in UTM zone 33, near Orebro."""
    return write_tiff(path, image, from_origin(LEFT, TOP, resolution, resolution), METRE, **options)


def write_geographic(path: Path, image: np.ndarray, resolution: float = 2.0, lon: float | None = None) -> Path:
    """Write an image in degrees of WGS 84 with approximately square pixels."""
    left, lat = Transformer.from_crs(METRE, "EPSG:4326", always_xy=True).transform(LEFT, TOP)
    down = resolution / 111_400
    transform = from_origin(left if lon is None else lon, lat, down / np.cos(np.radians(lat)), down)
    return write_tiff(path, image, transform, "EPSG:4326")
