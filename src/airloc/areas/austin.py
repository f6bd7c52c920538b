"""Two mosaics of Austin (`austin`): large areas from the air, 2500 x 2500 px at 0.6 m per pixel (1500 m).

Terms: USGS imagery, public domain.

Citation: E. Maggiori et al., "Can Semantic Labeling Methods Generalize to Any City? The Inria Aerial Image Labeling
Benchmark", IGARSS 2017.
"""

from dataclasses import dataclass
from pathlib import Path

from airloc.areas.folder import ImageSet


@dataclass(frozen=True)
class Austin(ImageSet):
    """Mosaics of Austin, each an area, or cut into areas."""

    name = "austin"
    title = "Austin"
    terms = "Inria Aerial Image Labeling, USGS imagery, public domain"
    obtain = "the mosaics are cut from the files at https://project.inria.fr/aerialimagelabeling/"
    unpack = "Put the images into {root}"

    root: Path | None = None
    """The folder of images. Default: $AIRLOC_DATA/austin."""
