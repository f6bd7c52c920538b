"""A grid laid on the ground in metres: cells of a size, a gap apart, turned to a heading, inside an outline.

The grid is the smallest one that covers the outline, centred on it; without an outline, the largest one that fits
into the image's extent. It stays a rectangle, as agents know it. Which of its cells are searched at all is a mask:
those that lie in the outline by a quarter or more and in the image by half or more.

Legend: plane coordinates are (x, y), x east and y north in metres; in an image without a georeference x right and y up
in pixels. A heading is the compass direction of the grid's columns, from bottom to top.
"""

import logging
import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import MultiPolygon, Polygon

from airloc.areas.area import Mask, Pixels
from airloc.areas.raster import Plane, Points, Raster, View
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

log = logging.getLogger(__name__)

SIDE = 48
"""Pixels of a glimpse, a side."""
GAP = 4 / 48
"""The gap as a share of the cell, as agents were trained."""
MIN_IN_OUTLINE, MIN_IN_IMAGE = 0.25, 0.5
MAX_CELLS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A grid on the ground."""

    grid: Grid
    cell_m: float
    """Side of a cell in metres, or in pixels where there is no georeference."""
    gap_m: float
    """From one cell to the next, in the same unit."""
    heading: float
    """Compass direction of the columns in degrees, 0 for north."""
    centre: tuple[float, float]
    """The middle of the grid in the plane."""
    plane: Plane | None
    """The flat map; None in pixels."""
    searchable: Mask
    """Which cells are searched, (rows, cols)."""

    @property
    def unit(self) -> str:
        """What lengths are in."""
        return "px" if self.plane is None else "m"

    @property
    def pitch_m(self) -> float:
        """From the middle of a cell to that of the next."""
        return self.cell_m + self.gap_m

    def place(self, cells: npt.ArrayLike) -> Points:
        """The middles of cells (..., 2) in the plane, (..., 2); defined outside the grid too."""
        return self._turned((np.asarray(cells, dtype=np.float64) + 0.5) * self.pitch_m - self.gap_m / 2)

    def corners(self, cell: Cell) -> Points:
        """The corners of a cell in the plane, (4, 2), clockwise from the upper left."""
        low = np.asarray(cell, dtype=np.float64) * self.pitch_m
        return self._turned(low + self.cell_m * np.array([(0, 0), (0, 1), (1, 1), (1, 0)]))

    def frame(self) -> Points:
        """The corners of the whole grid in the plane, (4, 2), clockwise from the upper left."""
        return self._turned(np.array([(0, 0), (0, 1), (1, 1), (1, 0)]) * self._size())

    def degrees(self, cells: npt.ArrayLike) -> Points:
        """Latitude and longitude of the middles of cells (..., 2), (..., 2)."""
        return self.flat_map().to_degrees(self.place(cells))

    def flat_map(self) -> Plane:
        """The plane, where there is one.

        Raises:
            AirlocError: When the image has no georeference.
        """
        if self.plane is None:
            raise AirlocError(
                "The image has no georeference, so that its cells have no latitude and longitude",
                "Georeference it, for example with gdal_translate -a_srs EPSG:... -a_ullr west north east south",
            )
        return self.plane

    def within(self, point: npt.ArrayLike) -> tuple[float, float]:
        """A point of the plane in rows and columns, as fractions: the middle of cell (0, 0) is (0, 0)."""
        across = np.asarray(point, dtype=np.float64) - self.centre
        up, right = _axes(self.heading)
        down = -across @ up + self._size()[0] / 2, across @ right + self._size()[1] / 2
        row, col = (float((side - self.cell_m / 2) / self.pitch_m) for side in down)
        return row, col

    def cell_at(self, point: npt.ArrayLike) -> Cell | None:
        """The cell whose middle is nearest to a point of the plane; None half a pitch or more outside the grid."""
        row, col = (math.floor(number + 0.5) for number in self.within(point))
        return (row, col) if self.grid.contains((row, col)) else None

    def polygons(self) -> npt.NDArray[np.object_]:
        """All cells as polygons in the plane, (rows * cols,)."""
        cells = np.array(list(self.grid.cells()), dtype=np.float64)
        square = np.array([(0, 0), (0, 1), (1, 1), (1, 0)])
        rings = self._turned(cells[:, None] * self.pitch_m + self.cell_m * square)
        return np.asarray(shapely.polygons(rings))

    def _size(self) -> Points:
        return np.array(self.grid.shape) * self.pitch_m - self.gap_m

    def _turned(self, down_right: Points) -> Points:
        """Points of the plane from metres down and to the right of the grid's upper left corner, (..., 2)."""
        up, right = _axes(self.heading)
        offset = down_right - self._size() / 2
        return np.asarray(self.centre - offset[..., :1] * up + offset[..., 1:] * right)


def lay_out(
    raster: Raster,
    outline: MultiPolygon | None,
    cell_m: float,
    *,
    gap_m: float | None = None,
    heading: float = 0.0,
) -> Layout:
    """Lay a grid on an image.

    Args:
        raster: The image.
        outline: Where to search, in (lon, lat); the whole image unless given.
        cell_m: Side of a cell in metres, or in pixels without a georeference.
        gap_m: From one cell to the next; a twelfth of the cell unless given.
        heading: Compass direction of the columns in degrees.

    Raises:
        AirlocError: When the outline does not lie on the image, or the grid has too few or too many cells.
    """
    plane = _choose_plane(raster, outline)
    image = Polygon(raster.border(plane))
    wanted = image if outline is None else _on_image(outline, plane, image, raster)
    layout = _cover(wanted, plane, cell_m, gap_m, heading, whole=outline is None)
    return _masked(layout, wanted, image)


def lay_out_outline(
    outline: MultiPolygon, cell_m: float, *, gap_m: float | None = None, heading: float = 0.0
) -> Layout:
    """Lay a grid on an outline alone, where there is no image of it; `lay_out` explains the arguments."""
    plane = _middle(outline)
    flat = _flat(outline, plane)
    return _masked(_cover(flat, plane, cell_m, gap_m, heading, whole=False), flat, None)


def look(raster: Raster, layout: Layout, cell: Cell) -> View:
    """What the image shows of a cell: a glimpse of 48 x 48 pixels, black where nothing is known."""
    return raster.view(layout.plane, layout.corners(cell), (SIDE, SIDE))


def overview(raster: Raster, layout: Layout, longest: int) -> Pixels:
    """The ground under the whole grid, with `longest` pixels on its longer side."""
    height, width = layout.grid.size
    scale = longest / max(height, width)
    size = max(1, round(height * scale)), max(1, round(width * scale))
    return raster.view(layout.plane, layout.frame(), size).pixels


def _cover(
    wanted: MultiPolygon | Polygon,
    plane: Plane | None,
    cell_m: float,
    gap_m: float | None,
    heading: float,
    *,
    whole: bool,
) -> Layout:
    """The smallest grid that covers a shape of the plane, or, of `whole` cells, the largest that fits its extent."""
    gap_m = cell_m * GAP if gap_m is None else gap_m
    if not math.isfinite(heading):
        raise AirlocError(f"A heading of {heading} degrees leads nowhere", "Give a compass direction, such as 30")
    if not (0 < cell_m < math.inf and 0 <= gap_m < math.inf):
        raise AirlocError(f"Cells of {cell_m:g} with gaps of {gap_m:g} do not exist", "Give a size above zero")
    axes = _axes(heading)
    points = shapely.get_coordinates(wanted)
    spans = [(float((points @ axis).min()), float((points @ axis).max())) for axis in axes]
    # A hair is allowed for, so that rounding neither drops a cell that fits nor adds one for nothing.
    fits = [((high - low) + gap_m) / (cell_m + gap_m) for low, high in spans]
    rows, cols = (math.floor(side + 1e-6) if whole else math.ceil(side - 1e-6) for side in fits)
    _check_count(rows, cols, cell_m, "px" if plane is None else "m")
    x, y = np.sum([(low + high) / 2 * axis for (low, high), axis in zip(spans, axes, strict=True)], axis=0).tolist()
    grid = Grid(rows, cols, SIDE, round(SIDE * gap_m / cell_m))
    return Layout(grid, cell_m, gap_m, heading % 360, (x, y), plane, np.ones(grid.shape, dtype=np.bool_))


def _choose_plane(raster: Raster, outline: MultiPolygon | None) -> Plane | None:
    if outline is None:
        return raster.plane()
    if not raster.georeferenced:
        problem = f"The image {raster.path} has no georeference, so that an outline cannot be found on it"
        raise AirlocError(problem, "Leave the outline out, or georeference the image first")
    return _middle(outline)


def _middle(outline: MultiPolygon) -> Plane:
    """The flat map around the middle of an outline."""
    middle = outline.centroid
    return Plane(middle.y, (middle.x + 180) % 360 - 180)


def _flat(outline: MultiPolygon, plane: Plane) -> MultiPolygon:
    """The outline in the plane.

    Raises:
        AirlocError: When it reaches around half the Earth.
    """
    flat = shapely.transform(outline, lambda points: plane.from_degrees(points[:, ::-1]))
    if not np.isfinite(flat.bounds).all():
        raise AirlocError("The outline reaches around the Earth", "Give the outline of one place")
    return flat if flat.is_valid else shapely.make_valid(flat)


def _kilometres(metres: float) -> str:
    return f"{metres / 1000:.1f} km" if metres < 100_000 else f"{metres / 1000:.0f} km"


def _on_image(outline: MultiPolygon, plane: Plane | None, image: Polygon, raster: Raster) -> MultiPolygon:
    """The outline in the plane, when some of it lies on the image."""
    assert plane is not None
    flat = _flat(outline, plane)
    inside = flat.intersection(image).area / flat.area
    if inside == 0:
        place = raster.plane()
        where = f", whose middle is {place.lat:.5f},{place.lon:.5f}" if place else ""
        raise AirlocError(
            f"The outline lies {_kilometres(flat.distance(image))} outside the image {raster.path}{where}",
            "Give the outline of a place on the image; on the command line, latitude before longitude",
        )
    if inside < 0.999:
        log.warning("%.0f %% of the outline lie outside the image and cannot be searched", 100 * (1 - inside))
    return flat


def _check_count(rows: int, cols: int, cell_m: float, unit: str) -> None:
    if rows * cols > MAX_CELLS:
        problem = f"Cells of {cell_m:g} {unit} make a grid of {rows} x {cols}, more than {MAX_CELLS:,} cells"
        raise AirlocError(problem, "Ask for larger cells, or a smaller outline")
    if rows < 1 or cols < 1 or rows * cols < 2:
        problem = f"Not two cells of {cell_m:g} {unit} fit into the area"
        raise AirlocError(problem, "Ask for smaller cells, such as a fifth of the area's side")


def _masked(layout: Layout, wanted: MultiPolygon | Polygon, image: Polygon | None) -> Layout:
    """The layout with its mask of cells that are searched."""
    cells, whole = layout.polygons(), layout.cell_m**2
    mask = _share(cells, wanted, whole) >= MIN_IN_OUTLINE
    if image is not None:
        mask &= _share(cells, image, whole) >= MIN_IN_IMAGE
    if mask.sum() < 2:
        raise AirlocError(
            f"Fewer than two cells of {layout.cell_m:g} {layout.unit} lie in the outline and on the image",
            "Ask for smaller cells, or a larger outline",
        )
    return replace(layout, searchable=mask.reshape(layout.grid.shape))


def _share(cells: npt.NDArray[np.object_], shape: MultiPolygon | Polygon, whole: float) -> Points:
    """The share of each cell that lies in a shape."""
    shapely.prepare(shape)
    return np.asarray(shapely.area(shapely.intersection(cells, shape)) / whole)


def _axes(heading: float) -> tuple[Points, Points]:
    """Unit vectors of the plane up and to the right in a grid of this heading."""
    turn = math.radians(heading)
    return np.array([math.sin(turn), math.cos(turn)]), np.array([math.cos(turn), -math.sin(turn)])
