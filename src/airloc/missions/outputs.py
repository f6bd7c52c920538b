"""The belief as a GeoTIFF, one pixel a cell, in the words of search and rescue.

| band | name | meaning                                                                                           |
|------|------|---------------------------------------------------------------------------------------------------|
| 1    | POA  | probability of area: that the goal is in the cell, after all photos                               |
| 2    | POD  | probability of detection: that it would have been recognised there                                |
| 3    | POS  | probability of success: POA before the search times POD; summed over all cells, that of the search |

Cells that are not searched are nodata (NaN). A pixel covers a cell and its share of the gap around it.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from pyproj import CRS
from rasterio.io import MemoryFile
from rasterio.transform import Affine

from airloc.areas.geotiff import Raster
from airloc.areas.layout import Layout, overview
from airloc.drawing.sheet import save_gif
from airloc.files import save_picture, write_atomically
from airloc.grid import Cell
from airloc.missions.flight import Camera, Flight, Waypoint
from airloc.missions.flight_files import FORMATS
from airloc.missions.page import search_page
from airloc.missions.pictures import GIF_SIDE, SIDE, Painter
from airloc.missions.search import Search
from airloc.missions.searcher import Searcher
from airloc.missions.sweep import plan_sweep

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


# ---------- Everything that a search leaves in its folder.
# ~

PAGE, PATH, BELIEF, BELIEF_PICTURE, PATH_PICTURE, ANIMATION = (
    "index.html",
    "path.json",
    "belief.tif",
    "belief.jpg",
    "path.jpg",
    "search.gif",
)


def make_flight(search: Search, cells: Sequence[Cell], name: str, camera: Camera, speed: float, hover: float) -> Flight:
    """Make the flight over cells in their order; home is the first of them."""
    degrees = search.layout.degrees(list(cells)).tolist()
    belief = search.searcher.prior
    points = [Waypoint(lat, lon, cell, float(belief[cell])) for (lat, lon), cell in zip(degrees, cells, strict=True)]
    height = camera.height_for(search.layout.cell_m)
    return Flight(name, points, height, speed, hover, (points[0].lat, points[0].lon))


def write_search(
    folder: Path,
    search: Search,
    raster: Raster,
    *,
    camera: Camera,
    speed: float,
    hover: float,
    formats: Sequence[str],
    sweep: bool,
    made_by: str,
) -> list[Path]:
    """Write all files of a search; flight files and the belief as GeoTIFF only where there is a georeference.

    Args:
        folder: Where to.
        search: The search.
        raster: The image under it.
        camera: What photos are taken with.
        speed: Metres a second.
        hover: Seconds at each photo.
        formats: Which flight files: names in `FORMATS`.
        sweep: Also write the planned sweep of the most probable cells.
        made_by: The command that makes all this again.
    """
    written: dict[str, Path] = {}
    flight: Flight | None = None
    if search.layout.plane is not None:
        flight = make_flight(search, search.searcher.flown, "airloc search", camera, speed, hover)
        written |= _write_flight(folder, "flight", flight, search.layout, formats)
        if sweep:
            start, budget = search.searcher.flown[0], search.searcher.budget
            cells = plan_sweep(search.searcher.prior, search.layout.searchable, start, budget)
            planned = make_flight(search, cells, "airloc sweep", camera, speed, hover)
            written |= _write_flight(folder, "sweep", planned, search.layout, formats)
        write_belief(folder / BELIEF, search.layout, search.searcher)
        written[BELIEF] = folder / BELIEF
    ground = overview(raster, search.layout, SIDE)  # once: without overviews in the file this reads all of it
    painter = Painter(search, ground)
    top = min(1.0, max(float(search.searcher.belief().max()), 4 / search.layout.grid.count))
    seen, found = list(search.searcher.glimpses), search.searcher.advice().declared
    belief = painter.belief(search.searcher.belief(), seen, top, found)
    path = painter.path()
    written[PATH] = write_atomically(folder / PATH, json.dumps(record(search, flight), indent=1) + "\n")
    written[BELIEF_PICTURE] = save_picture(belief, folder / BELIEF_PICTURE)
    written[PATH_PICTURE] = save_picture(path, folder / PATH_PICTURE)
    written[ANIMATION] = save_gif(Painter(search, ground, GIF_SIDE).frames(), folder / ANIMATION, ms=400)
    page = search_page(search, belief, path, flight, camera, list(written), made_by)
    return [write_atomically(folder / PAGE, page), *written.values()]


def record(search: Search, flight: Flight | None) -> dict[str, Any]:
    """The search as plain JSON values."""
    advice, layout = search.searcher.advice(), search.layout
    return {
        "status": advice.status,
        "declared": _place(layout, advice.declared),
        "correct": search.correct,
        "best": _place(layout, advice.best),
        "best_probability": advice.best_probability,
        "probability_of_success": search.searcher.pos,
        "moves": search.searcher.moves_flown,
        "budget": search.searcher.budget,
        "grid": {
            "rows": layout.grid.rows,
            "cols": layout.grid.cols,
            "cell": layout.cell_m,
            "gap": layout.gap_m,
            "unit": layout.unit,
            "heading": layout.heading,
            "searched": int(layout.searchable.sum()),
        },
        "flight": None if flight is None else {"height_m": flight.height, "metres": flight.metres},
        "photos": [
            {
                **(_place(layout, photo.cell) or {}),
                "order": number,
                "here": photo.here,
                "poa": photo.probability,
                "seen": photo.seen,
                "pos": photo.pos,
            }
            for number, photo in enumerate(search.photos, start=1)
        ],
    }


def _place(layout: Layout, cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    row, col = cell
    if layout.plane is None:
        x, y = (layout.place(cell) * (1, -1)).tolist()
        return {"row": row, "col": col, "x": x, "y": y}
    lat, lon = layout.degrees(cell).tolist()
    return {"row": row, "col": col, "lat": lat, "lon": lon}


def _write_flight(folder: Path, name: str, flight: Flight, layout: Layout, formats: Sequence[str]) -> dict[str, Path]:
    corners = [(lat, lon) for lat, lon in layout.flat_map().to_degrees(layout.frame()).tolist()]
    files = {}
    for wanted in formats:
        ending, write = FORMATS[wanted]
        files[name + ending] = write_atomically(folder / (name + ending), write(flight, corners))
    return files
