"""Options of `airloc search` about the flight: home and landing, fence, wind, reserve, ground heights."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from airloc.missions.endurance import FlightSettings
from airloc.missions.units import parse_length, parse_percentage, parse_position, parse_speed, parse_wind

if TYPE_CHECKING:
    from airloc.missions.routes import ElevationModel


@dataclass(frozen=True)
class FlightOptions:
    """How and where the vehicle flies."""

    home: Annotated[str | None, arg(metavar="LAT,LON")] = None
    """Position of take-off and landing; the first cell by default."""
    landing: Annotated[str | None, arg(metavar="LAT,LON")] = None
    """Position of landing, if it is another one."""
    margin: str = "0m"
    """Distance that waypoints and legs may lie outside the outline."""
    no_fly: Annotated[tuple[str, ...], arg(metavar="FILE|CORNERS")] = ()
    """Zones that no leg enters: .geojson or .kml files, or corners 'lat,lon lat,lon ...'."""
    climb: str = "3m/s"
    """Climb rate."""
    descent: str = "2m/s"
    """Descent rate."""
    wind: Annotated[str | None, arg(metavar="SPEED,DIRECTION")] = None
    """Wind speed and the compass direction that it comes from, such as 5m/s,270."""
    reserve: str = "0%"
    """Part of the endurance that is kept in reserve, such as 20%."""
    dem: Path | None = None
    """Elevation model of the ground (GeoTIFF, metres): waypoints have the same height above it."""

    def settings(self) -> FlightSettings:
        """Parse the options."""
        import shapely

        from airloc.areas.outline import read_outline

        zones = [read_outline(text, "no-fly zone") for text in self.no_fly]
        wind, wind_from = (0.0, 0.0) if self.wind is None else parse_wind(self.wind)
        return FlightSettings(
            home=None if self.home is None else parse_position(self.home),
            landing=None if self.landing is None else parse_position(self.landing),
            margin_m=parse_length(self.margin, georeferenced=True, allow_zero=True),
            no_fly=shapely.union_all(zones) if zones else None,
            climb=parse_speed(self.climb),
            descent=parse_speed(self.descent),
            wind=wind,
            wind_from=wind_from,
            reserve=parse_percentage(self.reserve),
        )

    def elevation_model(self) -> "ElevationModel | None":
        """Open the elevation model, if there is one."""
        from airloc.missions.routes import ElevationModel

        return None if self.dem is None else ElevationModel(self.dem)
