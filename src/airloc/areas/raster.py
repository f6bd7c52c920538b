"""Read windows of georeferenced images of any size: GeoTIFF, cloud-optimised GeoTIFF and other formats of GDAL.

Only windows are read, through the overviews of the file if it has them, so that memory does not grow with the file. Any
coordinate reference system, resolution, rotation and band layout works:

- Red, green and blue are the bands marked as such, else the first three; a single band is grey.
- Bytes are used as they are. Values of more than 8 bits are scaled to bytes by one range for the whole file, from its
  0.5th to its 99.5th percentile, sampled at windows that are spread over the file.
- Nodata, transparent and masked pixels, and everything outside the image, are black and do not count as covered. If the
  file marks none, a black collar along its edges, as turned or clipped mosaics have it, counts as nodata.
- An image without a georeference works in pixels: its plane has x to the right and y upwards, both in pixels.

A file that changes while it is open is refused from then on, so that old and new pixels never mix.

Positions lie on a `Plane`: the azimuthal equidistant projection of WGS 84 around a centre. Distances from the centre
are exact; others are too long by about (d / 16,000 km)^2 at a distance d from it: 4 mm per kilometre at 30 km. The
projection also works at the poles and at the antimeridian.

Legend: plane coordinates are (x, y) in metres, x east and y north; degrees are (lat, lon) of WGS 84; corners are (4, 2)
plane coordinates, in the order upper left, upper right, lower right, lower left.
"""

import contextlib
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import rasterio
from PIL import Image
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError, ProjError
from rasterio.enums import ColorInterp, MaskFlags, Resampling
from rasterio.errors import NotGeoreferencedWarning, RasterioError, RasterioIOError
from rasterio.windows import Window
from scipy.ndimage import label

from airloc.areas.area import Pixels
from airloc.errors import AirlocError, reason_of

Points = npt.NDArray[np.float64]

_OVERSAMPLING = 4
"""Sample points per side of a pixel, which are averaged."""
_SAMPLES = 8
"""Windows per side that the range of deep values is sampled from."""
_SAMPLE_SIDE = 64
"""Side of these windows, in pixels."""
_MAX_MASK_SIDE = 4096
"""Largest side at which the mask of valid data is read, in pixels."""
_MIN_COLLAR = 0.02
"""Smallest fraction of the edges of an image that is black if it has a black collar."""
_CACHE_MB = 64
"""Size of GDAL's block cache."""
_GEOREFERENCE = "Georeference it (gdal_translate -a_srs EPSG:... -a_ullr west north east south)"
_SYSTEM = "Write the right one to the file (gdal_translate -a_srs EPSG:32633); for --area and --path --crs does, too"


@dataclass(frozen=True, slots=True)
class Plane:
    """The local map projection around one point.

    >>> plane = Plane(59.33, 18.06)
    >>> lat, lon = plane.to_degrees(np.array([100.0, 0.0]))
    >>> round(float(lat), 4), round(float(lon), 4)
    (59.33, 18.0618)
    """

    lat: float
    lon: float

    @property
    def crs(self) -> CRS:
        """The projection as a coordinate reference system."""
        return CRS.from_proj4(f"+proj=aeqd +lat_0={self.lat!r} +lon_0={self.lon!r} +datum=WGS84 +units=m")

    def to_degrees(self, points: npt.ArrayLike) -> Points:
        """Convert metres (..., 2) to latitude and longitude (..., 2), the longitude in [-180, 180]."""
        x, y = np.moveaxis(np.asarray(points, dtype=np.float64), -1, 0)
        lon, lat = _transformer(self).transform(x, y, direction="INVERSE")
        return np.stack([lat, lon], axis=-1)

    def from_degrees(self, degrees: npt.ArrayLike) -> Points:
        """Convert latitude and longitude (..., 2) to metres (..., 2)."""
        lat, lon = np.moveaxis(np.asarray(degrees, dtype=np.float64), -1, 0)
        x, y = _transformer(self).transform(lon, lat)
        return np.stack([x, y], axis=-1)


@lru_cache(maxsize=64)
def _transformer(plane: Plane) -> Transformer:
    return Transformer.from_crs("EPSG:4326", plane.crs, always_xy=True)


class RasterView(NamedTuple):
    """A part of an image, resampled."""

    pixels: Pixels
    """RGB (height, width, 3), black where the image has no data."""
    coverage: float
    """Share of the part for which the image has data."""


class Raster:
    """An open image.

    Args:
        path: The file.
        crs: Coordinate reference system of an image that does not name its own, such as `EPSG:32633`.
        bands: Numbers of the red, green and blue band, from 1, if the file does not mark them or marks them wrongly.

    Raises:
        AirlocError: If the file is not an image, or its georeference is not valid.
    """

    def __init__(self, path: Path, *, crs: str | None = None, bands: tuple[int, int, int] | None = None) -> None:
        self.path = path
        with self._translate_errors():
            self._stamp = _stamp(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotGeoreferencedWarning)  # see `georeferenced`
                self._file: Any = rasterio.open(path)
        self.width, self.height = int(self._file.width), int(self._file.height)
        self.bands, self.bands_marked = _choose_bands(self._file, bands, path)
        """Numbers of the bands that are read as red, green and blue, or of the one that is read as grey; and whether
        the file or the caller says so."""
        self._range: tuple[float, float] | None = None
        self._system = self._find_system(crs)

    def __enter__(self) -> "Raster":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def georeferenced(self) -> bool:
        """True if pixels have latitudes and longitudes; otherwise the plane is in pixels."""
        return self._system is not None

    def plane(self) -> Plane | None:
        """Return the plane around the centre of the image; None if it has no georeference."""
        if self._system is None:
            return None
        lat, lon = self._degrees(np.array([self.width / 2, self.height / 2])).tolist()
        return Plane(lat, lon)

    def border(self, plane: Plane | None) -> Points:
        """Return points along the edge of the image in the plane, (n, 2)."""
        t = np.linspace(0, 1, 9)[:-1]
        sides = [(t, 0 * t), (1 + 0 * t, t), (1 - t, 1 + 0 * t), (0 * t, 1 - t)]
        pixels = np.concatenate([np.stack(side, axis=-1) for side in sides]) * (self.width, self.height)
        return pixels * (1, -1) if plane is None else plane.from_degrees(self._degrees(pixels))

    def read_quad(self, plane: Plane | None, corners: Points, size: tuple[int, int]) -> RasterView:
        """Read the quadrilateral between four corners, resampled (antialiased) to `size` (height, width)."""
        quad = self._pixels(plane, corners)
        low = np.clip(np.floor(quad.min(axis=0)).astype(int) - 1, 0, None)
        high = np.minimum(np.ceil(quad.max(axis=0)).astype(int) + 1, (self.width, self.height))
        if not (high > low).all():
            return RasterView(np.zeros((*size, 3), dtype=np.uint8), 0.0)
        window = Window(*low.tolist(), *(high - low).tolist())
        # A quarter of an output pixel is fine enough: coarser pixels come from the file's overviews.
        extent = math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])
        coarse = [max(1.0, side / (_OVERSAMPLING * pixels)) for side, pixels in zip(extent, size[::-1], strict=True)]
        shape = tuple(max(1, round(side / min(coarse))) for side in (window.height, window.width))
        rgb, valid = self._read(window, shape)
        ratio = np.array([shape[1] / window.width, shape[0] / window.height])
        return _warp(rgb, valid, (quad - low) * ratio, size)

    def has_data(self, plane: Plane | None, points: Points, resolution: float) -> npt.NDArray[np.bool_]:
        """Return where the image has data, not nodata, at points of the plane (..., 2); outside it has none.

        Args:
            plane: The plane of the points.
            points: The points.
            resolution: Distance in the plane that may be ignored; coarser pixels are read faster.
        """
        pixels = self._pixels(plane, points)
        inside = self._contains(pixels)
        floats = any(kind.startswith(("float", "complex")) for kind in self._file.dtypes)
        if self._all_valid and not floats and not self.collared:
            return inside
        here, right = self._pixels(plane, np.array([points.reshape(-1, 2)[0], points.reshape(-1, 2)[0] + (1, 0)]))
        coarse = max(1.0, resolution * math.dist(here, right), max(self.width, self.height) / _MAX_MASK_SIDE)
        shape = max(1, round(self.height / coarse)), max(1, round(self.width / coarse))
        with self._translate_errors():
            valid = self._file.dataset_mask(out_shape=shape) > 0
            if floats:
                valid &= np.isfinite(self._file.read(self.bands[0], out_shape=shape))
            if self.collared:
                valid &= ~_collar(self._file.read(self.bands, out_shape=shape))
        col, row = np.moveaxis(pixels * (shape[1] / self.width, shape[0] / self.height), -1, 0).astype(int)
        return np.asarray(inside & valid[np.clip(row, 0, shape[0] - 1), np.clip(col, 0, shape[1] - 1)])

    @property
    def _all_valid(self) -> bool:
        """True if the file marks no pixel as nodata, transparent or masked."""
        return {flag for band in self._file.mask_flag_enums for flag in band} == {MaskFlags.all_valid}

    @cached_property
    def collared(self) -> bool:
        """True if the file marks no nodata and has a black collar along its edges, which is no data then."""
        if not self._all_valid or self._file.dtypes[0].startswith(("float", "complex")):
            return False
        edges = [(0, 0, self.width, 1), (0, self.height - 1, self.width, 1)]
        edges += [(0, 0, 1, self.height), (self.width - 1, 0, 1, self.height)]
        with self._translate_errors():
            lines = [self._file.read(self.bands, window=Window(*edge)).reshape(len(self.bands), -1) for edge in edges]
        return bool((np.concatenate(lines, axis=1) == 0).all(axis=0).mean() >= _MIN_COLLAR)

    def sample(self, plane: Plane | None, points: Points) -> npt.NDArray[np.float64]:
        """Return the values of the first band at points of the plane (..., 2), (...); NaN where the image has no data.

        Where the image is much finer than the points lie apart, a value is the mean of the pixels around its point.
        """
        pixels = self._pixels(plane, points)
        values = np.full(pixels.shape[:-1], np.nan)
        inside = self._contains(pixels)
        if not inside.any():
            return values
        chosen = pixels[inside]
        low, high = np.floor(chosen.min(axis=0)).astype(int), np.floor(chosen.max(axis=0)).astype(int) + 1
        window = Window(*low.tolist(), *(high - low).tolist())
        most = max(_SAMPLE_SIDE, 2 * math.isqrt(inside.size))
        shape = min(window.height, most), min(window.width, most)
        with self._translate_errors():
            band = self._file.read(1, window=window, out_shape=shape, resampling=Resampling.average, masked=True)
        x, y = ((chosen - low) * (shape[1] / window.width, shape[0] / window.height)).astype(int).T
        values[inside] = np.ma.filled(band.astype(np.float64), np.nan)[y.clip(0, shape[0] - 1), x.clip(0, shape[1] - 1)]
        return values

    def _contains(self, pixels: Points) -> npt.NDArray[np.bool_]:
        """Return True for pixels (..., 2) inside the image, (...)."""
        return np.asarray(((pixels >= 0) & (pixels < (self.width, self.height))).all(axis=-1))

    def _read(self, window: Window, shape: tuple[int, ...]) -> tuple[Pixels, Pixels]:
        """Read a window at a shape (h, w): RGB bytes (h, w, 3) and the valid-data mask (h, w), 0 or 255."""
        with self._translate_errors():
            bands = self._file.read(self.bands, window=window, out_shape=shape, resampling=Resampling.average)
            valid = self._file.dataset_mask(window=window, out_shape=shape)
        values = np.moveaxis(bands, 0, -1)
        if values.dtype.kind in "fc":
            valid = np.where(np.isfinite(values).all(axis=-1), valid, 0).astype(np.uint8)
        if self.collared:
            valid = np.where(values.any(axis=-1), valid, 0).astype(np.uint8)
        rgb = values if values.dtype == np.uint8 else self._bytes(values)
        if rgb.shape[-1] == 1:
            rgb = np.repeat(rgb, 3, axis=-1)
        return np.where(valid[..., None] > 0, rgb, 0).astype(np.uint8), valid

    def _bytes(self, values: npt.NDArray[Any]) -> Pixels:
        """Scale values of more than 8 bits to bytes by the value range of the file."""
        if self._range is None:
            self._range = self._sample_range()
        low, high = self._range
        fraction = (np.nan_to_num(np.real(values).astype(np.float64)) - low) / (high - low)
        return np.round(255 * np.clip(fraction, 0, 1)).astype(np.uint8)

    def _sample_range(self) -> tuple[float, float]:
        """Return the values that become black and white."""
        samples = []
        for row in np.linspace(0, max(0, self.height - _SAMPLE_SIDE), _SAMPLES).astype(int).tolist():
            for col in np.linspace(0, max(0, self.width - _SAMPLE_SIDE), _SAMPLES).astype(int).tolist():
                side = min(_SAMPLE_SIDE, self.width - col), min(_SAMPLE_SIDE, self.height - row)
                with self._translate_errors():
                    window = Window(col, row, *side)
                    values = np.real(self._file.read(self.bands, window=window)).astype(np.float64)
                    valid = self._file.dataset_mask(window=window) > 0
                samples.append(values[:, valid].ravel())
        values = np.concatenate(samples)
        values = values[np.isfinite(values)]
        if not values.size or values.min() == values.max():
            return 0.0, max(1.0, float(values.max(initial=1.0)))
        low, high = np.percentile(values, [0.5, 99.5])
        return (float(low), float(high)) if high > low else (float(values.min()), float(values.max()))

    def _find_system(self, crs: str | None) -> "_ReferenceSystem | None":
        """Return the coordinate reference system of the image; None if it has no georeference."""
        own = self._file.crs
        if self._file.transform.is_identity:
            if crs or own:
                raise AirlocError(
                    f"The image {self.path} names a coordinate reference system but no position in it", _GEOREFERENCE
                )
            return None
        if own is None and crs is None:
            raise AirlocError(f"The image {self.path} does not name its coordinate reference system", _SYSTEM)
        try:
            with contextlib.suppress(CRSError):
                own = CRS.from_wkt(own.to_wkt()) if own is not None else None
            system = _ReferenceSystem(CRS.from_user_input(crs or own))
            corners = self._corners(system)
        except (CRSError, ProjError) as error:
            problem = f"The coordinate reference system of the image {self.path} is not valid: {reason_of(error)[:120]}"
            raise AirlocError(problem, _SYSTEM) from error
        if not np.isfinite(corners).all() or np.abs(corners[:, 0]).max() > 90 or np.ptp(corners[:, 1]) > 359:
            problem = f"The corners of the image {self.path} are not on Earth in {system.name}"
            raise AirlocError(problem, _SYSTEM)
        return system

    def _corners(self, system: "_ReferenceSystem") -> Points:
        pixels = np.array([(0, 0), (self.width, 0), (self.width, self.height), (0, self.height)], dtype=np.float64)
        return system.to_degrees(self._to_map(pixels))

    def _to_map(self, pixels: Points) -> Points:
        x, y = self._file.transform @ (pixels[..., 0], pixels[..., 1])
        return np.stack([x, y], axis=-1)

    def _degrees(self, pixels: Points) -> Points:
        """Convert pixels (..., 2) as (x, y) to latitude and longitude."""
        assert self._system is not None
        return self._system.to_degrees(self._to_map(pixels))

    def _pixels(self, plane: Plane | None, points: Points) -> Points:
        """Convert points of the plane (..., 2) to pixels (x, y)."""
        if plane is None:
            return points * (1, -1)
        assert self._system is not None
        centre = self._file.transform @ (self.width / 2, self.height / 2)
        on_map = self._system.from_degrees(plane.to_degrees(points), centre[0])
        x, y = ~self._file.transform @ (on_map[..., 0], on_map[..., 1])
        return np.stack([x, y], axis=-1)

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise AirlocError for errors of reading, and for a file that has changed."""
        try:
            with rasterio.Env(GDAL_CACHEMAX=_CACHE_MB):
                yield
            if hasattr(self, "_stamp") and _stamp(self.path) != self._stamp:
                raise AirlocError(
                    f"The image {self.path} changed while it was read", "Wait until it is written, and open it again"
                )
        except FileNotFoundError:
            raise AirlocError(f"There is no image {self.path}", "Check the path, and do not move the file") from None
        except (RasterioIOError, RasterioError, OSError, ValueError) as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            problem = f"Cannot read the image {self.path}: {reason_of(cause)}"
            raise AirlocError(problem, "Give a complete GeoTIFF") from error


class _ReferenceSystem:
    """A coordinate reference system and its transformation to WGS 84."""

    def __init__(self, crs: CRS) -> None:
        self.name = crs.name
        self._geographic = crs.is_geographic
        self._forward = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)

    def to_degrees(self, points: Points) -> Points:
        lon, lat = self._forward.transform(points[..., 0], points[..., 1])
        return np.stack([lat, lon], axis=-1)

    def from_degrees(self, degrees: Points, near_x: float) -> Points:
        """Convert degrees to map coordinates; longitudes lie on the side of the antimeridian where `near_x` is."""
        x, y = self._forward.transform(degrees[..., 1], degrees[..., 0], direction="INVERSE")
        if self._geographic:
            x = x + 360 * np.round((near_x - x) / 360)
        return np.stack([x, y], axis=-1)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return values that change when a file is written, truncated or replaced."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _collar(bands: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return the black pixels of bands (n, h, w) that are connected with the edges, (h, w)."""
    parts, _ = label((bands == 0).all(axis=0))
    edges = np.unique(np.concatenate([parts[0], parts[-1], parts[:, 0], parts[:, -1]]))
    return np.isin(parts, edges[edges > 0])


def _choose_bands(file: Any, wanted: Sequence[int] | None, path: Path) -> tuple[list[int], bool]:
    """Return the bands to read as red, green and blue, or the one to read as grey, and whether they are certain."""
    if wanted is not None:
        if not all(1 <= band <= file.count for band in wanted):
            problem = f"The image {path} has {file.count} band{'s' * (file.count > 1)}, not the bands {tuple(wanted)}"
            raise AirlocError(problem, "Give --bands that exist, counted from 1")
        return list(wanted), True
    marked = list(file.colorinterp)
    colours = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    if all(colour in marked for colour in colours):
        return [marked.index(colour) + 1 for colour in colours], True
    plain = [number for number, meaning in enumerate(marked, start=1) if meaning != ColorInterp.alpha]
    return plain[:3] if len(plain) >= 3 else plain[:1] or [1], file.count == 1


def _warp(rgb: Pixels, valid: Pixels, quad: Points, size: tuple[int, int]) -> RasterView:
    """Warp a quadrilateral of an image to a rectangle.

    Each output pixel averages `_OVERSAMPLING` x `_OVERSAMPLING` points: finer pixels of the image are weighted by their
    area, coarser ones are interpolated.
    """
    fine = _OVERSAMPLING * size[1], _OVERSAMPLING * size[0]
    data = tuple(quad[[0, 3, 2, 1]].ravel().tolist())  # Pillow orders corners counterclockwise
    quad_mode = Image.Transform.QUAD
    extent = math.dist(quad[0], quad[1]) / size[1], math.dist(quad[0], quad[3]) / size[0]
    coarser = min(extent) < 0.99
    method = Image.Resampling.BILINEAR if coarser else Image.Resampling.NEAREST
    warped = Image.fromarray(rgb).transform(fine, quad_mode, data, method)
    mask = Image.fromarray(valid).transform(fine, quad_mode, data, Image.Resampling.NEAREST)
    small = warped.resize(size[::-1], Image.Resampling.BOX)
    return RasterView(np.array(small), float(np.mean(np.asarray(mask) > 0)))
