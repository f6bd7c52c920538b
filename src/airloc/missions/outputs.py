"""The output folder of a search: pages, JSON record, flight files, belief as GeoTIFF, images.

`belief.tif` has one pixel per cell and three bands, in the terms of search and rescue:

| band | name | meaning                                                                                     |
|------|------|---------------------------------------------------------------------------------------------|
| 1    | POA  | probability of area after all photos                                                        |
| 2    | POD  | probability of detection                                                                    |
| 3    | POS  | probability of success: POA before the search times POD; its sum is the POS of the search   |

`prior.tif` has the probability of area before the search, if anything was known. Cells outside the search area are
nodata (NaN). A pixel covers a cell and half of the gap around it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.io import MemoryFile
from rasterio.transform import Affine

from airloc.areas.layout import Layout, read_overview
from airloc.areas.raster import Raster
from airloc.drawing.sheet import save_gif
from airloc.files import replacing_together, save_picture, write_atomically, write_json
from airloc.grid import Cell
from airloc.missions.endurance import usable_seconds
from airloc.missions.flight import Flight
from airloc.missions.formats import FORMATS
from airloc.missions.plan import FieldSearch
from airloc.missions.report import GIF_SIDE, SIDE, SearchPainter, candidates_page, search_page
from airloc.missions.routes import ElevationModel, make_flight
from airloc.missions.searcher import Searcher
from airloc.missions.session import Belief
from airloc.missions.simulation import SearchRecord
from airloc.missions.sweep import extend_sweep, plan_sweep
from airloc.missions.tours import plan_tours

PAGE, CANDIDATES, PATH, BELIEF = "index.html", "candidates.html", "path.json", "belief.tif"
PRIOR, PRIOR_IMAGE = "prior.tif", "prior.jpg"
BELIEF_IMAGE, PATH_IMAGE, ANIMATION = "belief.jpg", "path.jpg", "search.gif"
BANDS = ("POA", "POD", "POS")
EARLIER_FILES = (BELIEF, *(f"{name}{suffix}" for name in ("flight", "sweep") for suffix, _ in FORMATS.values()))
"""Files that a search may have written whose `path.json` does not list them."""


def write_search(
    folder: Path,
    record: SearchRecord,
    raster: Raster,
    *,
    formats: Sequence[str],
    sweep: bool,
    made_by: str,
    dem: ElevationModel | None = None,
) -> list[Path]:
    """Write all files of a search; flight files and `belief.tif` only if the image has a georeference.

    Args:
        folder: Output folder.
        record: The search.
        raster: The image under it.
        formats: Formats of the flight files, keys of `FORMATS`.
        sweep: Also write a sweep of the most probable cells after the search, for another flight.
        made_by: Command that reproduces the output.
        dem: Heights of the ground; flat ground if None.

    Returns:
        The paths of all files, the page first.
    """
    earlier = _earlier_files(folder)
    with replacing_together(folder) as stage:
        written = _write_files(stage, record, raster, formats, _make_flights(record, sweep, dem), made_by)
    for name in earlier - set(written):
        with suppress(OSError, ValueError):
            (folder / name).unlink()
    return [folder / name for name in written]


def _write_files(
    folder: Path,
    record: SearchRecord,
    raster: Raster,
    formats: Sequence[str],
    flights: Mapping[str, Flight],
    made_by: str,
) -> list[str]:
    """Write all files of a search; return their names, the page first."""
    flight = flights.get("flight")
    written: dict[str, Path] = {}
    for name, planned in flights.items():
        written |= _write_flight(folder, name, planned, formats)
    if flight is not None:
        written[BELIEF] = _write_belief(folder / BELIEF, record.layout, record.searcher)
        if record.search.sources:
            written[PRIOR] = write_cells(folder / PRIOR, record.layout, {"POA": record.searcher.prior})
    ground = read_overview(raster, record.layout, SIDE)  # read once: without overviews this reads the whole file
    painter = SearchPainter(record, ground, SIDE)
    belief, path = painter.draw_final_belief(), painter.draw_path()
    written[CANDIDATES] = write_atomically(folder / CANDIDATES, candidates_page(record))
    written[BELIEF_IMAGE] = save_picture(belief, folder / BELIEF_IMAGE)
    if record.search.sources:
        written[PRIOR_IMAGE] = save_picture(painter.draw_prior(), folder / PRIOR_IMAGE)
    written[PATH_IMAGE] = save_picture(path, folder / PATH_IMAGE)
    frames = SearchPainter(record, ground, GIF_SIDE).draw_frames()
    written[ANIMATION] = save_gif(frames, folder / ANIMATION, ms=400)
    listed = to_json(record, flight) | {"files": sorted([PAGE, PATH, *written])}
    written[PATH] = write_json(folder / PATH, listed)
    write_atomically(folder / PAGE, search_page(record, belief, path, flight, list(written), made_by))
    return [PAGE, *written]


def _make_flights(record: SearchRecord, sweep: bool, dem: ElevationModel | None) -> dict[str, Flight]:
    """Return the flights of a search by name; none if the image has no georeference."""
    if record.layout.plane is None:
        return {}
    searcher = record.searcher
    flights = {"flight": make_flight(record.search, searcher.flown, "airloc search", searcher.prior, dem)}
    for name, vehicle in list(searcher.vehicles.items())[1:]:
        if vehicle.flown:
            own = make_flight(record.search, vehicle.flown, f"airloc search, drone {name}", searcher.prior, dem)
            flights[f"flight-{name}"] = own
    for pattern in record.patterns:
        name = f"airloc {pattern.name}, POD {100 * pattern.pod:.0f} %, POS {100 * pattern.pos:.0f} %"
        flights[f"pattern-{pattern.name}"] = make_flight(record.search, pattern.cells, name, searcher.prior, dem)
    return flights | (_plan_sweeps(record.search, dem) if sweep else {})


def _earlier_files(folder: Path) -> set[str]:
    """Return the names of the files of an earlier search in the folder; `path.json` lists them."""
    try:
        listed = json.loads((folder / PATH).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    files = listed.get("files", EARLIER_FILES) if isinstance(listed, dict) and "photos" in listed else []
    named = files if isinstance(files, list | tuple) else []
    return {name for name in named if isinstance(name, str) and Path(name).name == name}  # files of this folder


def _plan_sweeps(search: FieldSearch, dem: ElevationModel | None) -> dict[str, Flight]:
    """Plan another flight of every drone that has not left, on the belief after the search."""
    active = [vehicle for vehicle in search.searcher.vehicles.values() if vehicle.active]
    if len(active) == 1:
        return {"sweep": _plan_sweep(search, dem)}
    belief, flights = search.searcher.belief(), {}
    for reach in {search.reach(vehicle.start).tobytes(): search.reach(vehicle.start) for vehicle in active}.values():
        team = [vehicle for vehicle in active if reach[vehicle.start]]  # drones in the same part of the search area
        budgets = [float(vehicle.budget) for vehicle in team]  # in moves, of which none is longer than a diagonal
        paths = plan_tours(belief * reach, [vehicle.start for vehicle in team], budgets)
        for vehicle, cells in zip(team, paths, strict=True):
            name = "sweep" if vehicle is active[0] else f"sweep-{vehicle.name}"
            flights[name] = make_flight(search, cells, f"airloc sweep, drone {vehicle.name}", belief, dem)
    return flights


def _plan_sweep(search: FieldSearch, dem: ElevationModel | None) -> Flight:
    """Plan another flight from the same start, with the whole budget or endurance, on the belief after the search."""
    plan, searcher, belief = search.plan, search.searcher, search.searcher.belief()
    reach = search.reach(searcher.flown[0])
    cells = plan_sweep(belief, reach, searcher.flown[0], searcher.budget)
    if plan.endurance is not None:
        usable = usable_seconds(plan.endurance, plan.flight, search.height_m)
        part = replace(search.layout, searchable=reach)
        cells = extend_sweep(cells, belief, part, endurance=usable, speed=plan.speed, hover=plan.hover)
    flight = make_flight(search, cells, "airloc sweep", belief, dem)
    while plan.endurance is not None and len(cells) > 1 and flight.seconds > plan.endurance * (1 - plan.flight.reserve):
        cells = cells[:-1]  # wind, detours and the way to the launch take time, too
        flight = make_flight(search, cells, "airloc sweep", belief, dem)
    return flight


def _write_belief(path: Path, layout: Layout, searcher: Searcher) -> Path:
    """Write POA, POD and POS."""
    bands = (searcher.belief(), searcher.pod, searcher.prior * searcher.pod)
    return write_cells(path, layout, dict(zip(BANDS, bands, strict=True)))


def write_cells(path: Path, layout: Layout, bands: Mapping[str, Belief]) -> Path:
    """Write values of the cells as a GeoTIFF in the projection of the grid's plane, nodata outside the search area."""
    plane = layout.require_plane()
    values = np.stack(list(bands.values())).astype(np.float32)
    values[:, ~layout.searchable] = np.nan
    rows, cols = layout.grid.shape
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff",
            height=rows,
            width=cols,
            count=len(bands),
            dtype="float32",
            nodata=math.nan,
            crs=rasterio.crs.CRS.from_wkt(plane.crs.to_wkt()),
            transform=_geotransform(layout),
            compress="deflate",
        ) as file:
            file.write(values)
            for number, name in enumerate(bands, start=1):
                file.set_band_description(number, name)
        return write_atomically(path, bytes(memory.getbuffer()))


def _geotransform(layout: Layout) -> Affine:
    """Return the transform from (col, row) of the file to the plane."""
    origin, right, down = (layout.centres(cell) for cell in ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5)))
    across, along = right - origin, down - origin
    return Affine(across[0], along[0], origin[0], across[1], along[1], origin[1])


def to_json(record: SearchRecord, flight: Flight | None) -> dict[str, Any]:
    """Return a search as JSON values, the content of `path.json`."""
    advice, layout = record.searcher.advice(), record.layout
    return {
        "status": advice.status,
        "declared": None if advice.declared is None else _location(layout, *advice.declared[:2]),
        "correct": record.correct,
        "error": record.error_m,
        "best": _location(layout, advice.best),
        "best_probability": advice.best_probability,
        "probability_of_success": record.searcher.pos,
        "prior": list(record.search.sources),
        "moves": sum(vehicle.moves_flown for vehicle in record.searcher.vehicles.values()),
        "drones": record.searcher.team_size,
        "budget": record.searcher.budget,
        "grid": {
            "rows": layout.grid.rows,
            "cols": layout.grid.cols,
            "cell": layout.cell_m,
            "gap": layout.gap_m,
            "unit": layout.unit,
            "heading": layout.heading,
            "searchable": int(layout.searchable.sum()),
        },
        "flight": None if flight is None else {"height_m": flight.height, "metres": flight.metres},
        "patterns": [
            {**pattern._asdict(), "photos": len(pattern.cells), "moves": pattern.moves} for pattern in record.patterns
        ],
        "photos": [
            {
                **_location(layout, photo.cell),
                "order": number,
                "drone": photo.vehicle,
                "match_probability": photo.match_probability,
                "poa": photo.poa,
                "coverage": photo.coverage,
                "pos": photo.pos,
            }
            for number, photo in enumerate(record.photos, start=1)
        ],
    }


def _location(layout: Layout, cell: Cell, place: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return a cell with the position of a fractional row and column, by default its own centre."""
    located: dict[str, Any] = {"row": cell[0], "col": cell[1]}
    if layout.plane is None:
        x, y = (layout.centres(place or cell) * (1, -1)).tolist()
        return located | {"x": x, "y": y}
    lat, lon = layout.lat_lon(place or cell).tolist()
    return located | {"lat": lat, "lon": lon}


def _write_flight(folder: Path, name: str, flight: Flight, formats: Sequence[str]) -> dict[str, Path]:
    files = {}
    for key in formats:
        suffix, write = FORMATS[key]
        files[name + suffix] = write_atomically(folder / (name + suffix), write(flight))
    return files
