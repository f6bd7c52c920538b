"""Search areas and the datasets they come from."""

from airloc.areas.area import SearchArea, fit
from airloc.areas.dataset import Dataset, data_root
from airloc.areas.records import ImageRecord, NameFilter, Status
from airloc.areas.registry import DATASETS, all_datasets, find_kind, list_datasets, load_dataset, weight_terms

__all__ = [
    "DATASETS",
    "Dataset",
    "ImageRecord",
    "NameFilter",
    "SearchArea",
    "Status",
    "all_datasets",
    "data_root",
    "find_kind",
    "fit",
    "list_datasets",
    "load_dataset",
    "weight_terms",
]
