"""Captions of cells in words, from what is known about the ground."""

from airloc.areas.captions.facts import Facts, cell_facts
from airloc.areas.captions.land_cover import Cover, LandCover, from_building_mask, from_classes
from airloc.areas.captions.sentences import Caption, Detail, describe_cells, write_caption

__all__ = [
    "Caption",
    "Cover",
    "Detail",
    "Facts",
    "LandCover",
    "cell_facts",
    "describe_cells",
    "from_building_mask",
    "from_classes",
    "write_caption",
]
