"""Search areas and the datasets they come from."""

from airloc.areas.area import SearchArea, fit
from airloc.areas.dataset import Dataset, data_root
from airloc.areas.records import ImageRecord, NameFilter, Status
from airloc.areas.registry import DATASETS, list_datasets, load_dataset, weight_terms

__all__ = [
    "DATASETS",
    "Dataset",
    "ImageRecord",
    "NameFilter",
    "SearchArea",
    "Status",
    "data_root",
    "fit",
    "list_datasets",
    "load_dataset",
    "weight_terms",
]
