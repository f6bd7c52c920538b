"""Write a georeferenced image, an outline on it, a photo of a place on it and what is known, to try a search on.

    python examples/make_ortho.py FOLDER

`ortho.tif` is a synthetic area of 0.8 km in UTM zone 33, `area.geojson` an outline on it, and `goal.jpg` a photo of one
place, in different light and a few metres off. `hunch.geojson` has places that are more or less likely, and
`last-year.tif` is the area in the light of another day.
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

    from airloc.areas.changes import adjust_colours, photometric
    from airloc.areas.synthetic import Synthetic
    from airloc.grid import Grid
except ModuleNotFoundError as error:
    raise SystemExit(f"This example needs {error.name}. Run: pip install 'airloc[field]'.") from None

METRES, LEFT, TOP, CRS = 2.0, 500_000.0, 6_580_000.0, "EPSG:32633"
OUTLINE = [(30, 30), (440, 30), (440, 250), (795, 250), (795, 795), (30, 795)]
"""Corners in metres, right of and below the upper left corner of the image."""
GOAL, SIDE = (53, 314), 48
"""Upper left pixel (x, y) of the goal photo, and its side."""
HUNCHES = {("seen here", 4.0): (30, 480, 400, 795), ("searched on foot", 0.1): (440, 250, 795, 480)}
"""Boxes in metres (left, top, right, bottom) by name and weight."""


def main(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    ground = next(iter(Synthetic(count=1, seed=7).areas(Grid(8, 8)))).image
    width = ground.shape[1]
    write_image(folder / "ortho.tif", ground)
    write_image(folder / "last-year.tif", adjust_colours(ground, photometric(np.random.default_rng(3), 0.5)))
    (folder / "area.geojson").write_text(json.dumps(polygon(OUTLINE)))
    boxes = {known: [(a, b), (c, b), (c, d), (a, d)] for known, (a, b, c, d) in HUNCHES.items()}
    features = [
        {"type": "Feature", "properties": {"name": name, "weight": weight}, "geometry": polygon(box)}
        for (name, weight), box in boxes.items()
    ]
    (folder / "hunch.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}, indent=1))
    x, y = GOAL
    view = ground[y : y + SIDE, x : x + SIDE]
    other_light = np.clip(0.85 * view.astype(np.float64) + (24, 14, 4), 0, 255).astype(np.uint8)
    Image.fromarray(other_light).resize((240, 240), Image.Resampling.BICUBIC).save(folder / "goal.jpg", quality=92)
    print(f"{folder}: ortho.tif ({width * METRES / 1000:.1f} km wide), area.geojson, goal.jpg, ...")


def write_image(path: Path, image: "np.ndarray") -> None:
    """Write an image of the area as GeoTIFF."""
    height, width = image.shape[:2]
    with rasterio.open(
        path, "w", driver="GTiff", height=height, width=width, count=3, dtype="uint8", crs=CRS,
        transform=from_origin(LEFT, TOP, METRES, METRES), compress="deflate", tiled=True,
    ) as file:  # fmt: skip
        file.write(np.moveaxis(image, -1, 0))


def polygon(corners: list[tuple[float, float]]) -> dict[str, object]:
    """Return corners, in metres right of and below the upper left corner of the image, as GeoJSON."""
    to_degrees = Transformer.from_crs(CRS, "EPSG:4326", always_xy=True)
    ring = [list(to_degrees.transform(LEFT + x, TOP - y)) for x, y in [*corners, corners[0]]]
    return {"type": "Polygon", "coordinates": [ring]}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "field"))
