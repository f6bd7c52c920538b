"""A grid on the ground: cells of a fixed size in metres, a gap apart, rotated to a heading, inside an outline.

The grid is the smallest one that covers the outline, centred on it; without an outline, the largest one that fits into
the extent of the image. It is a rectangle, as agents expect it. A mask marks the cells that are searched: those of
which a quarter or more lies in the outline and half or more lies in the image and has data.

Legend: plane coordinates are (x, y), x east and y north in metres; in an image without a georeference x right and y up
in pixels. A heading is the compass direction of the grid's columns, from bottom to top.
"""

import logging
import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import MultiPolygon, Polygon

from airloc.areas.area import Mask, Pixels
from airloc.areas.raster import Plane, Points, Raster, RasterView
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

log = logging.getLogger(__name__)

SIDE = 48
"""Side of a glimpse, in pixels."""
GAP = 4 / 48
"""The gap as a fraction of the cell, as agents were trained."""
MIN_IN_OUTLINE, MIN_IN_IMAGE = 0.25, 0.5
"""Smallest fraction of a searched cell that lies in the outline and in the image."""
SPOTS = 6
"""Points per side of a cell at which the image is checked for data."""
MAX_CELLS = 100_000
"""Largest number of cells of a grid."""
_SQUARE = np.array([(0, 0), (0, 1), (1, 1), (1, 0)])
"""Corners of a square of side 1 as (down, right), clockwise from the upper left."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A grid on the ground."""

    grid: Grid
    cell_m: float
    """Side of a cell in metres, or in pixels without a georeference."""
    gap_m: float
    """Gap between neighbouring cells, in the same unit."""
    heading: float
    """Compass direction of the columns in degrees, 0 for north."""
    centre: tuple[float, float]
    """Centre of the grid in the plane."""
    plane: Plane | None
    """The map projection; None if lengths are in pixels."""
    searchable: Mask
    """True for cells that are searched, (rows, cols)."""
    region: MultiPolygon | Polygon | None = None
    """The outline in the plane; None if the whole image is searched."""

    @property
    def unit(self) -> str:
        """Unit of lengths: `m` or `px`."""
        return "px" if self.plane is None else "m"

    @property
    def pitch_m(self) -> float:
        """Distance between the centres of neighbouring cells."""
        return self.cell_m + self.gap_m

    def centres(self, cells: npt.ArrayLike) -> Points:
        """Return the centres of cells (..., 2) in the plane, (..., 2); also defined outside the grid."""
        return self._rotate((np.asarray(cells, dtype=np.float64) + 0.5) * self.pitch_m - self.gap_m / 2)

    def corners(self, cells: npt.ArrayLike) -> Points:
        """Return the corners of cells (..., 2) in the plane, (..., 4, 2), clockwise from the upper left."""
        low = np.asarray(cells, dtype=np.float64)[..., None, :] * self.pitch_m
        return self._rotate(low + self.cell_m * _SQUARE)

    def frame(self) -> Points:
        """Return the corners of the whole grid in the plane, (4, 2), clockwise from the upper left."""
        return self._rotate(_SQUARE * self._size())

    def lat_lon(self, cells: npt.ArrayLike) -> Points:
        """Return latitude and longitude of the centres of cells (..., 2), (..., 2)."""
        return self.require_plane().to_degrees(self.centres(cells))

    def require_plane(self) -> Plane:
        """Return the plane, or raise an error if the image has no georeference."""
        if self.plane is None:
            raise AirlocError(
                "The image has no georeference, so its cells have no latitude and longitude",
                "Georeference it, for example with gdal_translate -a_srs EPSG:... -a_ullr west north east south",
            )
        return self.plane

    def grid_position(self, point: npt.ArrayLike) -> tuple[float, float]:
        """Return a point of the plane in fractional rows and columns: the centre of cell (0, 0) is (0, 0)."""
        offset = np.asarray(point, dtype=np.float64) - self.centre
        up, right = axes_of(self.heading)
        sides = -offset @ up + self._size()[0] / 2, offset @ right + self._size()[1] / 2
        row, col = (float((side - self.cell_m / 2) / self.pitch_m) for side in sides)
        return row, col

    def cell_at(self, point: npt.ArrayLike) -> Cell | None:
        """Return the cell with the nearest centre to a point; None half a pitch or more outside the grid."""
        row, col = (math.floor(number + 0.5) for number in self.grid_position(point))
        return (row, col) if self.grid.contains((row, col)) else None

    def polygons(self) -> npt.NDArray[np.object_]:
        """Return all cells as polygons in the plane, (rows * cols,)."""
        return np.asarray(shapely.polygons(self.corners(list(self.grid.cells()))))

    def _size(self) -> Points:
        return np.array(self.grid.shape) * self.pitch_m - self.gap_m

    def _rotate(self, down_right: Points) -> Points:
        """Convert metres down and to the right of the grid's upper left corner, (..., 2), to points of the plane."""
        up, right = axes_of(self.heading)
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
    """Place a grid on an image, or on the part of it inside an outline in (lon, lat).

    `Layout` describes `cell_m`, `gap_m` (by default a twelfth of the cell) and `heading`.

    Raises:
        AirlocError: If the outline does not lie on the image, or the grid has too few or too many cells.
    """
    plane = _choose_plane(raster, outline)
    image = Polygon(raster.border(plane))
    wanted = image if outline is None else _on_image(outline, plane, image, raster)
    layout = _cover(wanted, plane, cell_m, gap_m, heading, whole=outline is None)
    return _with_mask(replace(layout, region=None if outline is None else wanted), wanted, image, raster)


def lay_out_outline(
    outline: MultiPolygon, cell_m: float, *, gap_m: float | None = None, heading: float = 0.0
) -> Layout:
    """Place a grid on an outline without an image; `lay_out` describes the arguments."""
    plane = _plane_around(outline)
    flat = project(outline, plane)
    layout = _cover(flat, plane, cell_m, gap_m, heading, whole=False)
    return _with_mask(replace(layout, region=flat), flat)


def read_cell(raster: Raster, layout: Layout, cell: Cell) -> RasterView:
    """Read the glimpse of a cell, 48 x 48 pixels, black where the image has no data."""
    return raster.read_quad(layout.plane, layout.corners(cell), (SIDE, SIDE))


def read_square(
    raster: Raster, layout: Layout, place: tuple[float, float], cells: float, side: int, turn: float = 0.0
) -> RasterView:
    """Read a square of ground around a fractional row and column.

    Args:
        raster: The image.
        layout: The grid on the ground.
        place: Row and column of its centre.
        cells: Side of the square in cells, without gaps.
        side: Side in pixels.
        turn: Compass direction of its upper edge minus the heading of the grid, in degrees.
    """
    reach = cells / 2 * layout.cell_m / layout.pitch_m
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    up, right = np.array([-cos, sin]), np.array([sin, cos])
    corners = np.array(place) + reach * np.array([up - right, up + right, right - up, -up - right])
    return raster.read_quad(layout.plane, layout.centres(corners), (side, side))


def read_overview(raster: Raster, layout: Layout, longest: int) -> Pixels:
    """Read the whole grid, with `longest` pixels on its longer side."""
    height, width = layout.grid.size
    scale = longest / max(height, width)
    size = max(1, round(height * scale)), max(1, round(width * scale))
    return raster.read_quad(layout.plane, layout.frame(), size).pixels


def _cover(
    wanted: MultiPolygon | Polygon,
    plane: Plane | None,
    cell_m: float,
    gap_m: float | None,
    heading: float,
    *,
    whole: bool,
) -> Layout:
    """Return the smallest grid that covers a shape of the plane or, if `whole`, the largest that fits its extent."""
    gap_m = cell_m * GAP if gap_m is None else gap_m
    if not math.isfinite(heading):
        raise AirlocError(f"A heading of {heading} degrees is not valid", "Give a compass direction, such as 30")
    if not (0 < cell_m < math.inf and 0 <= gap_m < math.inf):
        raise AirlocError(f"Cells of {cell_m:g} with gaps of {gap_m:g} are not valid", "Give a size above zero")
    axes = axes_of(heading)
    points = shapely.get_coordinates(wanted)
    spans = [(float((points @ axis).min()), float((points @ axis).max())) for axis in axes]
    # The tolerance keeps rounding errors from dropping a cell that fits or adding one that does not.
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
        problem = f"The image {raster.path} has no georeference, so an outline cannot be located on it"
        raise AirlocError(problem, "Leave out the outline, or georeference the image first")
    return _plane_around(outline)


def _plane_around(outline: MultiPolygon) -> Plane:
    """Return the plane around the centroid of an outline."""
    centre = outline.centroid
    return Plane(centre.y, (centre.x + 180) % 360 - 180)


Shape = TypeVar("Shape", bound=shapely.Geometry)


def project(shape: Shape, plane: Plane, name: str = "outline") -> Shape:
    """Project a shape in (lon, lat) to the plane; `name` says what it is, for the error message."""
    flat: Shape = shapely.transform(shape, lambda points: plane.from_degrees(points[:, ::-1]))
    if not np.isfinite(flat.bounds).all():
        raise AirlocError(f"The {name} spans half the Earth", f"Give the {name} of one place")
    if not flat.is_valid:
        flat = shapely.make_valid(flat)
    return flat


def _kilometres(metres: float) -> str:
    return f"{metres / 1000:.1f} km" if metres < 100_000 else f"{metres / 1000:.0f} km"


def _on_image(outline: MultiPolygon, plane: Plane | None, image: Polygon, raster: Raster) -> MultiPolygon:
    """Project an outline to the plane, if some of it lies on the image."""
    assert plane is not None
    flat = project(outline, plane)
    inside = flat.intersection(image).area / flat.area
    if inside == 0:
        place = raster.plane()
        where = f", whose centre is {place.lat:.5f},{place.lon:.5f}" if place else ""
        raise AirlocError(
            f"The outline lies {_kilometres(flat.distance(image))} outside the image {raster.path}{where}",
            "Give the outline of a place on the image; on the command line, latitude before longitude",
        )
    if inside < 0.999:
        log.warning("%.0f %% of the outline is outside the image and is not searched", 100 * (1 - inside))
    return flat


def _check_count(rows: int, cols: int, cell_m: float, unit: str) -> None:
    if rows * cols > MAX_CELLS:
        problem = f"Cells of {cell_m:g} {unit} make a grid of {rows} x {cols}, more than {MAX_CELLS:,} cells"
        raise AirlocError(problem, "Give larger cells, or a smaller outline")
    if rows < 1 or cols < 1 or rows * cols < 2:
        problem = f"Fewer than two cells of {cell_m:g} {unit} fit into the area"
        raise AirlocError(problem, "Give smaller cells, such as a fifth of the area's side")


def _with_mask(
    layout: Layout, wanted: MultiPolygon | Polygon, image: Polygon | None = None, raster: Raster | None = None
) -> Layout:
    """Return the layout with the mask of cells that are searched."""
    cells, whole = layout.polygons(), layout.cell_m**2
    mask = fraction_inside(cells, wanted, whole) >= MIN_IN_OUTLINE
    if image is not None:
        mask &= fraction_inside(cells, image, whole) >= MIN_IN_IMAGE
    if raster is not None:
        with_data = _fraction_with_data(layout, raster)
        if not with_data.any():
            problem = f"The image {raster.path} has no data in the search area, only nodata, transparency or black"
            raise AirlocError(problem, "Give an image with data there, or search elsewhere")
        mask &= with_data >= MIN_IN_IMAGE
    if mask.sum() < 2:
        raise AirlocError(
            f"Fewer than two cells of {layout.cell_m:g} {layout.unit} lie in the outline and on the data of the image",
            "Give smaller cells, or a larger outline",
        )
    return replace(layout, searchable=mask.reshape(layout.grid.shape))


def spots_in_cell(side: int) -> Points:
    """Return points that are evenly spread over a cell, in rows and columns from its centre, (side, side, 2)."""
    steps = (np.arange(side) + 0.5) / side - 0.5
    return np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1)


def fraction_inside(cells: npt.NDArray[np.object_], shape: MultiPolygon | Polygon, whole: float) -> Points:
    """Return the fraction of each cell, of an area `whole`, that lies in a shape, (n,)."""
    shapely.prepare(shape)
    share, near = np.zeros(len(cells)), shapely.intersects(shape, cells)
    share[near] = shapely.area(shapely.intersection(cells[near], shape)) / whole
    return np.where(share > 1 - 1e-9, 1.0, share)  # without rounding errors, so that excluded cells are excluded


def _fraction_with_data(layout: Layout, raster: Raster) -> Points:
    """Return the fraction of each cell for which the image has data, not nodata, (rows * cols,)."""
    spots = (np.arange(SPOTS) + 0.5) / SPOTS
    within = np.stack(np.meshgrid(spots, spots), axis=-1).reshape(-1, 2) * layout.cell_m
    cells = np.array(list(layout.grid.cells()), dtype=np.float64)
    points = layout._rotate(cells[:, None] * layout.pitch_m + within)
    return np.asarray(raster.has_data(layout.plane, points, layout.cell_m / SPOTS).mean(axis=1))


def axes_of(heading: float) -> tuple[Points, Points]:
    """Return the unit vectors of the plane up and to the right in a grid or a photo of this heading."""
    turn = math.radians(heading)
    return np.array([math.sin(turn), math.cos(turn)]), np.array([math.cos(turn), -math.sin(turn)])
