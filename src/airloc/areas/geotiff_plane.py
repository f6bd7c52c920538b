"""A flat map in metres around a point, on which grids are laid, and its way to latitude and longitude.

The map is the azimuthal equidistant projection of WGS 84 around its centre. Distances from the centre are exact; others
are too long by about (d / 16,000 km)^2 at a distance d from it: 4 mm in a kilometre at 30 km. Neither poles nor the
antimeridian are special.

Legend: plane coordinates are (x, y) in metres, x east and y north; degrees are (lat, lon) of WGS 84.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pyproj import CRS, Transformer

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
