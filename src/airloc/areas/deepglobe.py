"""DeepGlobe scenes (`deepglobe`): villages and fields in Thailand, Indonesia and India, 360 x 360 px (512 m).

Terms: DeepGlobe 2018, imagery by DigitalGlobe, research use only; weights trained on it carry the same terms.

Citation: I. Demir et al., "DeepGlobe 2018: A Challenge to Parse the Earth through Satellite Images", CVPR Workshops,
2018.
"""

from dataclasses import dataclass
from pathlib import Path

from airloc.areas.folder import ImageSet


@dataclass(frozen=True)
class DeepGlobe(ImageSet):
    """Rural scenes, each an area."""

    name = "deepglobe"
    title = "DeepGlobe"
    terms = "DeepGlobe 2018, research use only"
    weight_terms = "the terms of DeepGlobe 2018 (research only)"
    obtain = "the scenes are available to registered users only: http://deepglobe.org"
    unpack = "Put the images into {root}"

    root: Path | None = None
    """The folder of images. Default: $AIRLOC_DATA/deepglobe."""
