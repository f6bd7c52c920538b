"""The belief as a GeoTIFF, one pixel a cell, in the words of search and rescue.

| band | name | meaning                                                                                           |
|------|------|---------------------------------------------------------------------------------------------------|
| 1    | POA  | probability of area: that the goal is in the cell, after all photos                               |
| 2    | POD  | probability of detection: that it would have been recognised there                                |
| 3    | POS  | probability of success: POA before the search times POD; summed over all cells, that of the search |

Cells that are not searched are nodata (NaN). A pixel covers a cell and its share of the gap around it.
"""

import math
from pathlib import Path

import numpy as np
import rasterio
from pyproj import CRS
from rasterio.io import MemoryFile
from rasterio.transform import Affine

from airloc.areas.geotiff_layout import Layout
from airloc.drawing.files import write_atomically
from airloc.missions.searcher import Searcher

BANDS = ("POA", "POD", "POS")


def write_belief(path: Path, layout: Layout, searcher: Searcher) -> None:
    """Write the belief of a search as a GeoTIFF on the local flat map of its grid."""
    plane = layout.flat_map()
    values = np.stack([searcher.belief(), searcher.pod, searcher.prior * searcher.pod]).astype(np.float32)
    values[:, ~layout.searchable] = np.nan
    flat = CRS.from_proj4(f"+proj=aeqd +lat_0={plane.lat!r} +lon_0={plane.lon!r} +datum=WGS84 +units=m")
    rows, cols = layout.grid.shape
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff",
            height=rows,
            width=cols,
            count=len(BANDS),
            dtype="float32",
            nodata=math.nan,
            crs=rasterio.crs.CRS.from_wkt(flat.to_wkt()),
            transform=_placement(layout),
            compress="deflate",
        ) as file:
            file.write(values)
            for number, name in enumerate(BANDS, start=1):
                file.set_band_description(number, name)
        write_atomically(path, bytes(memory.getbuffer()))


def _placement(layout: Layout) -> Affine:
    """From (col, row) of the file to the plane: columns to the right in the grid, rows down."""
    origin, right, down = (layout.place(cell) for cell in ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5)))
    across, along = right - origin, down - origin
    return Affine(across[0], along[0], origin[0], across[1], along[1], origin[1])
