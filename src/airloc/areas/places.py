"""Where datasets lie: in the folder that the environment variable AIRLOC_DATA names, or where a person says."""

import os
from pathlib import Path

from airloc.errors import AirlocError

VARIABLE = "AIRLOC_DATA"
"""The environment variable that names the folder of all datasets."""


def data_root() -> Path:
    """Give the folder of all datasets."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        raise AirlocError(f"No data folder is named: {VARIABLE} is not set", f"Set {VARIABLE}, or give --root")
    return Path(named).expanduser()


def dataset_root(root: Path | None, dataset: str) -> Path:
    """Give the folder of a dataset: `root` where given, else the dataset's name under the data folder."""
    return data_root() / dataset if root is None else root.expanduser()
