"""Time and memory of a search by grid size, over a GeoTIFF of 10 GB: `python -m benchmarks.field_scale`.

The file is written once: 58,000 x 58,000 RGB pixels without overviews, with synthetic areas in the centre and along the
diagonal; the rest is a sparse hole. Each grid is searched in its own process, on one core. Cells are always 100 m (500
pixels), so a larger grid covers a larger area. A move consists of the photo, the agent and the belief. The benchmark
prints the median move over synthetic areas, and the longest move except the first.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIDE, RESOLUTION, CELL_M = 58_000, 0.2, 100.0
GRIDS = (5, 10, 20, 50, 100)
MOVES = 60
"""Maximum number of timed moves; a larger grid has a larger budget."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=Path(tempfile.gettempdir()) / "airloc-field-scale.tif")
    parser.add_argument("--agent", default="belief")
    parser.add_argument("--grid", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--whole", action="store_true", help="also run airloc search on the largest grid")
    options = parser.parse_args()
    if options.grid:
        print(json.dumps(measure(options.file, options.grid, options.agent)))
        return
    if not options.file.exists():
        write_large(options.file)
    size = options.file.stat()
    print(f"{options.file}: {size.st_size / 1e9:.1f} GB, {size.st_blocks * 512 / 1e6:.0f} MB of it on the disk")
    print(f"{'grid':>8}  {'cells':>6}  {'ms/move':>9}  {'photo only':>11}  {'longest':>7}  {'peak MB':>7}")
    for side in GRIDS:
        row = run(options.file, side, options.agent)
        print(
            f"{side:>4} x {side:<3} {side * side:>6}  {row['ms']:>9.1f}  {row['photo_ms']:>11.1f}  "
            f"{row['longest_ms']:>7.1f}  {row['peak_mb']:>7.0f}"
        )
    if options.whole:
        print(whole(options.file, options.agent))


def run(file: Path, side: int, agent: str) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.field_scale",
        "--file",
        str(file),
        "--grid",
        str(side),
        "--agent",
        agent,
    ]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def measure(file: Path, side: int, agent: str) -> dict[str, float]:
    """Search for an image that is in no cell, so that the whole budget is used."""
    import numpy as np
    import torch

    from airloc.agents.registry import make_agent
    from airloc.areas.layout import lay_out, read_cell
    from airloc.areas.raster import Raster
    from airloc.missions.searcher import Glimpse, Searcher

    torch.set_num_threads(1)
    goal = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    with Raster(file) as raster:
        layout = lay_out(raster, outline(raster, side), CELL_M)
        assert layout.grid.shape == (side, side), layout.grid
        start = side // 2, side // 2
        searcher = Searcher(make_agent(agent), goal, layout.grid, start=start, budget=2 * side)
        photos, over_areas, moves = [], [], []
        advice = searcher.advice()
        while advice.next_cell is not None and len(moves) < MOVES:
            started = time.perf_counter()
            view = read_cell(raster, layout, advice.next_cell)
            photographed = time.perf_counter()
            advice = searcher.observe(advice.next_cell, Glimpse(view.pixels, view.coverage))
            moves.append(time.perf_counter() - started)
            if view.pixels.any():  # agents recognise repeated black glimpses at no cost
                photos.append(photographed - started)
                over_areas.append(moves[-1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    median = sorted(over_areas)[len(over_areas) // 2]
    photo = sorted(photos)[len(photos) // 2]
    return {"ms": 1000 * median, "photo_ms": 1000 * photo, "longest_ms": 1000 * max(moves[1:]), "peak_mb": peak}


def outline(raster: object, side: int) -> object:
    """Return a box of side x side cells in the centre of the image."""
    from shapely.geometry import MultiPolygon, Polygon

    plane = raster.plane()  # type: ignore[attr-defined]
    half = (side * CELL_M * 13 / 12 - CELL_M / 12) / 2 - 1.0
    corners = plane.to_degrees([(-half, -half), (half, -half), (half, half), (-half, half)])
    return MultiPolygon([Polygon(corners[:, ::-1])])


def whole(file: Path, agent: str) -> str:
    """Run `airloc search` with all its files on the largest grid."""
    with tempfile.TemporaryDirectory() as folder:
        goal = f"{folder}/goal.png"
        import numpy as np
        from PIL import Image

        Image.fromarray(np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)).save(goal)
        options = ["--area", str(file), "--goal", goal, "--cell", "100m", "--out", f"{folder}/out", "--agent", agent]
        code = f"from airloc.cli.main import main; main({['search', *options]!r})"
        code += "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        peak = float(done.stdout.splitlines()[-1])
        return f"airloc search, all files: {time.perf_counter() - started:.0f} s, peak {peak:.0f} MB"


def write_large(path: Path) -> None:
    """Write the file, with synthetic areas in the centre and along the diagonal."""
    import numpy as np
    import rasterio
    from rasterio.transform import from_origin
    from rasterio.windows import Window

    from airloc.areas.synthetic import Synthetic
    from airloc.grid import Grid

    patch = np.moveaxis(next(iter(Synthetic(count=1).areas(Grid(20, 20)))).image[:1024, :1024], -1, 0)
    options = {"tiled": True, "blockxsize": 512, "blockysize": 512, "BIGTIFF": "YES", "SPARSE_OK": "FALSE"}
    shape = {"height": SIDE, "width": SIDE, "count": 3, "dtype": "uint8"}
    placed = {"crs": "EPSG:32633", "transform": from_origin(500_000, 6_580_000, RESOLUTION, RESOLUTION)}
    with rasterio.open(path, "w", driver="GTiff", **shape, **placed, **options) as file:
        middle = SIDE // 2 // 1024
        near = [(row, col) for row in range(middle - 3, middle + 4) for col in range(middle - 3, middle + 4)]
        for row, col in {*near, *((n, n) for n in range(SIDE // 1024))}:
            file.write(patch, window=Window(col * 1024, row * 1024, 1024, 1024))


if __name__ == "__main__":
    main()
