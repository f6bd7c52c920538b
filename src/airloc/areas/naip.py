"""NAIP tiles of Californian cities (`naip`): the same places in 2016, 2018 and 2020.

The data: 256 x 256 px tiles at 0.6 m per pixel (154 m), in one folder, named CITY_YEAR_NUMBER. The same city and number
in another year is the same place; 97 % of the pairs are registered within 3 px.

    long_beach_2016_7.jpg    long_beach_2018_7.jpg    long_beach_2020_7.jpg

Terms: USDA National Agriculture Imagery Program, public domain.

Citation: USDA NAIP imagery, by way of J. Ventura et al., "Individual Tree Detection in Large-Scale Urban Environments
using High-Resolution Multispectral Imagery", 2022.

A tile is smaller than the 500 m of the paper's areas. Training therefore uses tiles at their own resolution and coarser
ones, as images of unknown ground size; set `metres_per_pixel` to 0.6 to give areas their ground size.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from airloc.areas.area import list_images
from airloc.areas.dataset import Dataset
from airloc.areas.folder import images_folder
from airloc.areas.records import ImageRecord
from airloc.errors import AirlocError

NAME = re.compile(r"(?P<city>.+)_(?P<year>(?:19|20)\d\d)_(?P<number>\d+)")
"""The names of tiles, without their suffix."""


@dataclass(frozen=True)
class Naip(Dataset):
    """Tiles of Californian cities in several years, each an area."""

    name = "naip"
    title = "NAIP"
    terms = "USDA NAIP, public domain"
    obtain = "the tiles are cut from the files at https://github.com/jonathanventura/urban-tree-detection-data"
    unpack = "Put images of the same size named CITY_YEAR_NUMBER, such as long_beach_2016_7.jpg, into {root}"

    root: Path | None = None
    """The folder of tiles. Default: $AIRLOC_DATA/naip."""
    years: tuple[int, ...] = ()
    """Only the tiles of these years. Default: all."""
    validation_city: str = ""
    """Put the tiles of this city, such as claremont, into the split val. Default: all tiles are for training."""
    metres_per_pixel: float | None = None
    """Side of a pixel on the ground (0.6). Default: areas have no ground size."""

    def scan(self) -> list[ImageRecord]:
        """List all tiles of the years, in the order of their names."""
        folder = images_folder(self.require_location())
        records = [self._record(path) for path in list_images(folder)]
        selected = [record for record in records if not self.years or record.day in self.years]
        if not selected:
            present = ", ".join(map(str, sorted({record.day for record in records if record.day})))
            raise AirlocError(
                f"{folder} has no tile of {', '.join(map(str, self.years))}", f"Give years that are there: {present}"
            )
        return selected

    def count_areas(self) -> dict[str, int]:
        """Return the number of tiles by year."""
        years = [record.day for record in self.scan()]
        return {str(year): years.count(year) for year in sorted(set(years))}

    def remark(self) -> str:
        """Return the number of pairs of years."""
        return f"{len(self.record_pairs())} pairs of years"

    def _record(self, path: Path) -> ImageRecord:
        match = NAME.fullmatch(path.stem)
        if match is None:
            return ImageRecord(path.name, path, metres_per_pixel=self.metres_per_pixel)
        place = f"{match['city']}_{match['number']}"
        split = "" if not self.validation_city else "val" if match["city"] == self.validation_city else "train"
        return ImageRecord(
            path.name,
            path,
            metres_per_pixel=self.metres_per_pixel,
            tile=place,
            split=split,
            place=place,
            day=int(match["year"]),
        )
