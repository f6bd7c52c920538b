"""A flat map in metres around a point, on which grids are laid, and its way to latitude and longitude.

The map is the azimuthal equidistant projection of WGS 84 around its centre. Distances from the centre are exact; others
are too long by about (d / 16,000 km)^2 at a distance d from it: 4 mm in a kilometre at 30 km. Neither poles nor the
antimeridian are special.

Legend: plane coordinates are (x, y) in metres, x east and y north; degrees are (lat, lon) of WGS 84.
"""

import contextlib
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import rasterio
from PIL import Image
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError, ProjError
from rasterio.enums import ColorInterp, Resampling
from rasterio.errors import NotGeoreferencedWarning, RasterioError, RasterioIOError
from rasterio.windows import Window

from airloc.areas.area import Pixels
from airloc.errors import AirlocError

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plane:
    """The flat map around one point.

    >>> plane = Plane(59.33, 18.06)
    >>> lat, lon = plane.to_degrees(np.array([100.0, 0.0]))
    >>> round(float(lat), 4), round(float(lon), 4)
    (59.33, 18.0618)
    """

    lat: float
    lon: float

    def to_degrees(self, points: npt.ArrayLike) -> Points:
        """Turn metres (..., 2) into latitude and longitude (..., 2), the longitude in [-180, 180]."""
        x, y = np.moveaxis(np.asarray(points, dtype=np.float64), -1, 0)
        lon, lat = _transformer(self).transform(x, y, direction="INVERSE")
        return np.stack([lat, lon], axis=-1)

    def from_degrees(self, degrees: npt.ArrayLike) -> Points:
        """Turn latitude and longitude (..., 2) into metres (..., 2)."""
        lat, lon = np.moveaxis(np.asarray(degrees, dtype=np.float64), -1, 0)
        x, y = _transformer(self).transform(lon, lat)
        return np.stack([x, y], axis=-1)


@lru_cache(maxsize=64)
def _transformer(plane: Plane) -> Transformer:
    flat = CRS.from_proj4(f"+proj=aeqd +lat_0={plane.lat!r} +lon_0={plane.lon!r} +datum=WGS84 +units=m")
    return Transformer.from_crs("EPSG:4326", flat, always_xy=True)


# ---------- Georeferenced images of any size: GeoTIFF, cloud-optimised GeoTIFF and whatever else GDAL reads.
# ~
# ~ Only windows are read, through the file's overviews where it has them, so that memory does not grow with the file. Any
# ~ projection, resolution, turn and band layout will do:
# ~
# ~ - Red, green and blue are the bands marked as such, else the first three; a single band is grey.
# ~ - Bytes are taken as they are. Deeper values are brought to bytes by one scale for the whole file, from its half to its
# ~   99.5th percentile, sampled at spread windows.
# ~ - Nodata, transparent and masked pixels, and everything outside, are black, and are counted as not seen.
# ~ - An image without a georeference works in pixels: its plane has x to the right and y upwards, both in pixels.
# ~
# ~ A file that changes while it is being read is refused from then on: half of an old and half of a new image is neither.
# ~
# ~ Legend: corners are (4, 2) plane coordinates, in the order upper left, upper right, lower right, lower left.

FINER = 4
"""Points taken for one pixel of a view, a side, and averaged."""
SAMPLES = 8
"""Windows a side that the scale of deep values is sampled from."""
SAMPLE_SIDE = 64
CACHE_MB = 64
"""What GDAL may keep of blocks it has read."""
GEOREFERENCE = "Georeference it (gdal_translate -a_srs EPSG:... -a_ullr west north east south)"


class View(NamedTuple):
    """What an image shows of a square of ground."""

    pixels: Pixels
    """RGB (height, width, 3), black where nothing is known."""
    seen: float
    """Share of the square that the image knows."""


class Raster:
    """An open image.

    Args:
        path: The file.
        crs: The projection of an image that does not name its own, such as `EPSG:32633`.
        bands: Numbers of the red, green and blue band, from 1, where the file does not say or says it wrongly.

    Raises:
        AirlocError: When it is no image, or its georeference makes no sense.
    """

    def __init__(self, path: Path, *, crs: str | None = None, bands: tuple[int, int, int] | None = None) -> None:
        self.path = path
        with self._explained():
            self._stamp = _stamp(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotGeoreferencedWarning)  # `georeferenced` tells
                self._file: Any = rasterio.open(path)
        self.width, self.height = int(self._file.width), int(self._file.height)
        self._bands = _choose_bands(self._file, bands, path)
        self._scale: tuple[float, float] | None = None
        self._system = self._find_system(crs)

    def __enter__(self) -> "Raster":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def georeferenced(self) -> bool:
        """Whether pixels have latitudes and longitudes; otherwise the plane is in pixels."""
        return self._system is not None

    def plane(self) -> Plane | None:
        """The flat map around the middle of the image; None where it has no georeference."""
        if self._system is None:
            return None
        lat, lon = self._degrees(np.array([self.width / 2, self.height / 2])).tolist()
        return Plane(lat, lon)

    def border(self, plane: Plane | None) -> Points:
        """The edge of the image in the plane, (n, 2)."""
        t = np.linspace(0, 1, 9)[:-1]
        sides = [(t, 0 * t), (1 + 0 * t, t), (1 - t, 1 + 0 * t), (0 * t, 1 - t)]
        pixels = np.concatenate([np.stack(side, axis=-1) for side in sides]) * (self.width, self.height)
        return pixels * (1, -1) if plane is None else plane.from_degrees(self._degrees(pixels))

    def view(self, plane: Plane | None, corners: Points, size: tuple[int, int]) -> View:
        """Look at a square of ground: resample it, antialiased, to `size` (height, width)."""
        quad = self._pixels(plane, corners)
        low = np.clip(np.floor(quad.min(axis=0)).astype(int) - 1, 0, None)
        high = np.minimum(np.ceil(quad.max(axis=0)).astype(int) + 1, (self.width, self.height))
        if not (high > low).all():
            return View(np.zeros((*size, 3), dtype=np.uint8), 0.0)
        window = Window(*low.tolist(), *(high - low).tolist())
        # A quarter of a view's pixel is fine enough: coarser pixels come from the file's overviews.
        extent = math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])
        coarse = [max(1.0, side / (FINER * pixels)) for side, pixels in zip(extent, size[::-1], strict=True)]
        shape = tuple(max(1, round(side / min(coarse))) for side in (window.height, window.width))
        rgb, known = self._read(window, shape)
        ratio = np.array([shape[1] / window.width, shape[0] / window.height])
        return _warped(rgb, known, (quad - low) * ratio, size)

    def pixel_size(self, plane: Plane | None) -> float:
        """Side of a pixel at the middle of the image, in units of the plane."""
        middle = np.array([self.width / 2, self.height / 2])
        if plane is None:
            return 1.0
        here, there = plane.from_degrees(self._degrees(middle + np.array([(0.0, 0.0), (1.0, 0.0)])))
        return math.dist(here, there)

    def _read(self, window: Window, shape: tuple[int, ...]) -> tuple[Pixels, Pixels]:
        """Read a window at a shape (h, w): RGB bytes (h, w, 3) and what is known (h, w), 0 or 255."""
        with self._explained():
            bands = self._file.read(self._bands, window=window, out_shape=shape, resampling=Resampling.average)
            known = self._file.dataset_mask(window=window, out_shape=shape)
        values = np.moveaxis(bands, 0, -1)
        if values.dtype.kind in "fc":
            known = np.where(np.isfinite(values).all(axis=-1), known, 0).astype(np.uint8)
        rgb = values if values.dtype == np.uint8 else self._bytes(values)
        if rgb.shape[-1] == 1:
            rgb = np.repeat(rgb, 3, axis=-1)
        return np.where(known[..., None] > 0, rgb, 0).astype(np.uint8), known

    def _bytes(self, values: npt.NDArray[Any]) -> Pixels:
        """Bring deep values to bytes by the one scale of the file."""
        if self._scale is None:
            self._scale = self._sample_scale()
        low, high = self._scale
        share = (np.nan_to_num(np.real(values).astype(np.float64)) - low) / (high - low)
        return np.round(255 * np.clip(share, 0, 1)).astype(np.uint8)

    def _sample_scale(self) -> tuple[float, float]:
        """The values that become black and white."""
        samples = []
        for row in np.linspace(0, max(0, self.height - SAMPLE_SIDE), SAMPLES).astype(int).tolist():
            for col in np.linspace(0, max(0, self.width - SAMPLE_SIDE), SAMPLES).astype(int).tolist():
                side = min(SAMPLE_SIDE, self.width - col), min(SAMPLE_SIDE, self.height - row)
                with self._explained():
                    window = Window(col, row, *side)
                    values = np.real(self._file.read(self._bands, window=window)).astype(np.float64)
                    known = self._file.dataset_mask(window=window) > 0
                samples.append(values[:, known].ravel())
        everything = np.concatenate(samples)
        everything = everything[np.isfinite(everything)]
        if not everything.size or everything.min() == everything.max():
            return 0.0, max(1.0, float(everything.max(initial=1.0)))
        low, high = np.percentile(everything, [0.5, 99.5])
        return (float(low), float(high)) if high > low else (float(everything.min()), float(everything.max()))

    def _find_system(self, named: str | None) -> "_System | None":
        """Find out how pixels lie on Earth; None where nothing is said of it."""
        placed = not self._file.transform.is_identity
        own = self._file.crs
        if not placed:
            if named or own:
                raise AirlocError(f"The image {self.path} names a projection but no place in it", GEOREFERENCE)
            return None
        if own is None and named is None:
            raise AirlocError(
                f"The image {self.path} does not name its projection", "Name it with --crs, such as --crs EPSG:32633"
            )
        try:
            with contextlib.suppress(CRSError):
                own = CRS.from_wkt(own.to_wkt()) if own is not None else None
            system = _System(CRS.from_user_input(named or own))
            corners = self._corners(system)
        except (CRSError, ProjError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            problem = f"The projection of the image {self.path} leads nowhere on Earth: {reason[:120]}"
            raise AirlocError(problem, "Name the right one with --crs, such as --crs EPSG:32633") from error
        if not np.isfinite(corners).all() or np.abs(corners[:, 0]).max() > 90 or np.ptp(corners[:, 1]) > 359:
            problem = f"The corners of the image {self.path} lie nowhere on Earth in {system.name}"
            raise AirlocError(problem, "Name the right projection with --crs, such as --crs EPSG:32633")
        return system

    def _corners(self, system: "_System") -> Points:
        pixels = np.array([(0, 0), (self.width, 0), (self.width, self.height), (0, self.height)], dtype=np.float64)
        return system.to_degrees(self._to_map(pixels))

    def _to_map(self, pixels: Points) -> Points:
        x, y = self._file.transform @ (pixels[..., 0], pixels[..., 1])
        return np.stack([x, y], axis=-1)

    def _degrees(self, pixels: Points) -> Points:
        """Latitude and longitude of pixels (..., 2) as (x, y)."""
        assert self._system is not None
        return self._system.to_degrees(self._to_map(pixels))

    def _pixels(self, plane: Plane | None, points: Points) -> Points:
        """Pixels (x, y) of points of the plane (..., 2)."""
        if plane is None:
            return points * (1, -1)
        assert self._system is not None
        around = self._file.transform @ (self.width / 2, self.height / 2)
        on_map = self._system.from_degrees(plane.to_degrees(points), around[0])
        x, y = ~self._file.transform @ (on_map[..., 0], on_map[..., 1])
        return np.stack([x, y], axis=-1)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what reading may raise into errors for people, and refuse a file that has changed."""
        try:
            with rasterio.Env(GDAL_CACHEMAX=CACHE_MB):
                yield
            if hasattr(self, "_stamp") and _stamp(self.path) != self._stamp:
                raise AirlocError(f"The image {self.path} changed while it was read", "Wait until it is whole")
        except FileNotFoundError:
            raise AirlocError(f"There is no image {self.path}", "Check the path, and leave it in place") from None
        except (RasterioIOError, RasterioError, OSError, ValueError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise AirlocError(f"Cannot read the image {self.path}: {reason}", "Give a whole GeoTIFF") from error


class _System:
    """A coordinate reference system and its way to WGS 84."""

    def __init__(self, crs: CRS) -> None:
        self.name = crs.name
        self._geographic = crs.is_geographic
        self._forward = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)

    def to_degrees(self, points: Points) -> Points:
        lon, lat = self._forward.transform(points[..., 0], points[..., 1])
        return np.stack([lat, lon], axis=-1)

    def from_degrees(self, degrees: Points, around_x: float) -> Points:
        """Map coordinates; longitudes are given on the side of the antimeridian where `around_x` is."""
        x, y = self._forward.transform(degrees[..., 1], degrees[..., 0], direction="INVERSE")
        if self._geographic:
            x = x + 360 * np.round((around_x - x) / 360)
        return np.stack([x, y], axis=-1)


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written to, cut off or replaced."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _choose_bands(file: Any, wanted: Sequence[int] | None, path: Path) -> list[int]:
    """The bands that are read as red, green and blue, or the one that is read as grey."""
    if wanted is not None:
        if not all(1 <= band <= file.count for band in wanted):
            problem = f"The image {path} has {file.count} band{'s' * (file.count > 1)}, and not {tuple(wanted)}"
            raise AirlocError(problem, "Give --bands from those it has, counted from 1")
        return list(wanted)
    marked = list(file.colorinterp)
    colours = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    if all(colour in marked for colour in colours):
        return [marked.index(colour) + 1 for colour in colours]
    plain = [number for number, meaning in enumerate(marked, start=1) if meaning != ColorInterp.alpha]
    return plain[:3] if len(plain) >= 3 else plain[:1] or [1]


def _warped(rgb: Pixels, known: Pixels, quad: Points, size: tuple[int, int]) -> View:
    """Lay a quadrilateral of an image out as a rectangle.

    Points are taken `FINER` times too densely and averaged: pixels finer than the view's are weighted by their area,
    coarser ones are interpolated.
    """
    fine = FINER * size[1], FINER * size[0]
    data = tuple(quad[[0, 3, 2, 1]].ravel().tolist())  # Pillow goes around the other way
    quad_mode = Image.Transform.QUAD
    extent = math.dist(quad[0], quad[1]) / size[1], math.dist(quad[0], quad[3]) / size[0]
    coarser = min(extent) < 0.99
    method = Image.Resampling.BILINEAR if coarser else Image.Resampling.NEAREST
    picture = Image.fromarray(rgb).transform(fine, quad_mode, data, method)
    mask = Image.fromarray(known).transform(fine, quad_mode, data, Image.Resampling.NEAREST)
    small = picture.resize(size[::-1], Image.Resampling.BOX)
    return View(np.array(small), float(np.mean(np.asarray(mask) > 0)))
