"""Write a georeferenced image, an outline on it and a photo of a place on it, to try a search on.

    python examples/make_ortho.py FOLDER

`ortho.tif` is a synthetic area of 0.8 km in UTM zone 33, `area.geojson` an outline on it, and `goal.jpg` a photo of one
place, in different light and a few metres off.
"""

import json
import sys
from pathlib import Path

try:
    import numpy as np
    import rasterio
    from PIL import Image
    from pyproj import Transformer
    from rasterio.transform import from_origin

    from airloc.areas.synthetic import Synthetic
    from airloc.grid import Grid
except ModuleNotFoundError as error:
    raise SystemExit(f"This example needs {error.name}. Run: pip install 'airloc[field]'.") from None

METRES, LEFT, TOP, CRS = 2.0, 500_000.0, 6_580_000.0, "EPSG:32633"
OUTLINE = [(30, 30), (440, 30), (440, 250), (795, 250), (795, 795), (30, 795)]
"""Corners in metres, right of and below the upper left corner of the image."""
GOAL, SIDE = (53, 314), 48
"""Upper left pixel (x, y) of the goal photo, and its side."""


def main(folder: Path) -> None:
    """Write the three files."""
    folder.mkdir(parents=True, exist_ok=True)
    ground = next(iter(Synthetic(count=1, seed=7).areas(Grid(8, 8)))).image
    height, width = ground.shape[:2]
    with rasterio.open(
        folder / "ortho.tif", "w", driver="GTiff", height=height, width=width, count=3, dtype="uint8", crs=CRS,
        transform=from_origin(LEFT, TOP, METRES, METRES), compress="deflate", tiled=True,
    ) as file:  # fmt: skip
        file.write(np.moveaxis(ground, -1, 0))
    to_degrees = Transformer.from_crs(CRS, "EPSG:4326", always_xy=True)
    corners = [list(to_degrees.transform(LEFT + x, TOP - y)) for x, y in [*OUTLINE, OUTLINE[0]]]
    (folder / "area.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [corners]}))
    x, y = GOAL
    view = ground[y : y + SIDE, x : x + SIDE]
    other_light = np.clip(0.85 * view.astype(np.float64) + (24, 14, 4), 0, 255).astype(np.uint8)
    Image.fromarray(other_light).resize((240, 240), Image.Resampling.BICUBIC).save(folder / "goal.jpg", quality=92)
    print(f"{folder}: ortho.tif ({width * METRES / 1000:.1f} km wide), area.geojson, goal.jpg")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "field"))
