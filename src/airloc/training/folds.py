"""Cross-validation: folds of tiles that are left out of training in turn, and their figures pooled.

Pictures cut from one tile are always left out together. Every fold is a run of its own with the same settings but
`fold`; the counts that it was checked with are in its metrics, so that what is pooled is exact.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airloc.areas.cutting import tile_of
from airloc.errors import AirlocError
from airloc.evaluation.overlap import Overlap
from airloc.training.runs import CONFIG, METRICS


def deal(tiles: Iterable[str], folds: int) -> dict[str, int]:
    """Number of each tile's fold: dealt out like cards, in the order of the hashes of the tiles' names.

    >>> deal(["a", "b", "c"], 2)
    {'c': 0, 'b': 1, 'a': 0}
    """
    order = sorted(set(tiles), key=lambda tile: hashlib.sha256(tile.encode()).digest())
    return {tile: number % folds for number, tile in enumerate(order)}


def leave_out(split_of: Mapping[str, str], masked: set[str], split: str, fold: int, folds: int) -> dict[str, str]:
    """Deal pictures for training and validation anew: one fold of their tiles is `val`, the rest is trained on.

    Args:
        split_of: The split of each picture by its file name; those in other splits, such as `test`, stay there.
        masked: Names of pictures with building masks, whose tiles are dealt for themselves: every fold has its share.
        split: The split that is trained on.
        fold: Which fold is left out.
        folds: How many there are.
    """
    tile = {name: tile_of(name) or name for name, own in split_of.items() if own in (split, "val")}
    marked = {tile[name] for name in tile if name in masked}
    number = deal(set(tile.values()) - marked, folds) | deal(marked, folds)
    return {**split_of, **{name: "val" if number[tile[name]] == fold else split for name in tile}}


def fold_overlaps(folders: Sequence[Path]) -> dict[int, Overlap]:
    """The last counts of the segmentation unit's run of every fold, by fold.

    Args:
        folders: Run folders of segmentation units, one for each fold.

    Raises:
        AirlocError: When one is no such run, has no figures yet, or they are not the folds of one cross-validation.
    """
    found: dict[int, Overlap] = {}
    first: dict[str, Any] = {}
    for folder in folders:
        settings = _settings(folder)
        fold = settings["data"].pop("fold")
        first = first or settings
        if settings != first or fold in found:
            problem = f"{str(folder)!r} is not another fold of the run in {str(folders[0])!r}"
            raise AirlocError(problem, "Give one run for each fold, trained with the same settings")
        found[fold] = _last_counts(folder / METRICS)
    if missing := sorted(set(range(first["data"]["folds"])) - set(found)):
        raise AirlocError(f"The fold {missing[0]} is missing", f"Train it with --fold {missing[0]}, and name it too")
    return dict(sorted(found.items()))


def _settings(folder: Path) -> dict[str, Any]:
    """The settings of a segmentation unit's run that has left a fold out."""
    try:
        content = json.loads((folder / CONFIG).read_bytes())
        settings: dict[str, Any] = content["settings"]
        right = content["kind"] == "SegmenterConfig" and settings["data"]["fold"] is not None
    except (OSError, ValueError, LookupError, TypeError):
        right = False
    if not right:
        problem = f"{str(folder)!r} is no run of a segmentation unit that left a fold out"
        raise AirlocError(problem, "Make one with 'airloc train segmenter --fold 0' and give its folder")
    return settings


def _last_counts(path: Path) -> Overlap:
    try:
        last = json.loads(path.read_bytes().splitlines()[-1])
        return Overlap(last["tp"], last["fp"], last["fn"])
    except (OSError, ValueError, LookupError, TypeError):
        problem = f"{str(path)!r} has no counts of a validation on masks"
        raise AirlocError(problem, "Train the run to its end, on data whose masks are left out in turn") from None
