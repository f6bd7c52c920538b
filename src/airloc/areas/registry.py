"""All sources of search areas. A new one is a file beside this, a line here and a test."""

from collections.abc import Iterator
from typing import Protocol

from airloc.areas.area import SearchArea
from airloc.areas.dubai import Dubai
from airloc.areas.folder import Folder
from airloc.areas.geotiff_source import GeoTiff
from airloc.areas.masa import Masa
from airloc.areas.prepared import Prepared
from airloc.areas.synthetic import Synthetic
from airloc.areas.xbd import Xbd
from airloc.grid import Grid


class AreaSource(Protocol):
    """Where areas come from: a frozen dataclass of options with one method."""

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Give the areas one by one, cut and fitted to the grid, so that only one is in memory at a time."""
        ...


SOURCES: dict[str, type[AreaSource]] = {
    "synthetic": Synthetic,
    "folder": Folder,
    "masa": Masa,
    "dubai": Dubai,
    "xbd": Xbd,
    "geotiff": GeoTiff,
    "prepared": Prepared,
}
"""Sources by the name they have on the command line."""
