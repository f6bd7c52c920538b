"""Recovery of a damaged store: copies the searches that are still readable to a new store."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from airloc.missions.store import (
    PATCH_BYTES,
    VALID_ROWS,
    SearchStore,
    StoredGlimpse,
    StoredSearch,
    StoredVehicle,
    StoredVerdict,
    StoreError,
    check_folder,
)

VERDICTS_PER_PHOTO = 10
"""Number of verdicts for each photo that recovery reads at most."""


def recover_store(
    damaged: Path, target: Path, valid: Callable[[dict[str, Any]], bool] = lambda settings: True
) -> tuple[int, int]:
    """Copy the readable searches of a damaged store to a new store.

    A search keeps its readable photos in order. The searcher asks again for the cells of lost photos.

    Args:
        damaged: The damaged store; it stays as it is.
        target: The new store; it must not exist.
        valid: Returns whether the settings of a search are valid; other searches are left out.

    Returns:
        The numbers of recovered searches and photos.

    Raises:
        StoreError: If the target exists or has no folder, or no search is readable.
    """
    check_folder(target)
    if target.exists():
        raise StoreError(f"The file {str(target)!r} exists", "Give another --recover")
    if not damaged.is_file():
        raise StoreError(f"There is no store {str(damaged)!r}", "Give the damaged file as --store")
    max_rows = damaged.stat().st_size // PATCH_BYTES + 1  # every row holds a patch
    with closing(sqlite3.connect(f"{damaged.absolute().as_uri()}?immutable=1", uri=True)) as file:
        searches = [row for row in _readable_rows(file, "searches", max_rows) if valid(json.loads(row[2]))]
        glimpses = list(_readable_rows(file, "glimpses", max_rows))
        verdicts = list(_readable_rows(file, "verdicts", VERDICTS_PER_PHOTO * max_rows))
        vehicles = list(_readable_rows(file, "vehicles", VERDICTS_PER_PHOTO * max_rows))
        orthophotos = dict(_readable_rows(file, "orthophotos", max_rows))
    if not searches:
        raise StoreError(f"The store {str(damaged)!r} has no readable search", "Restore a backup")
    photos = 0
    with closing(SearchStore(target)) as store:
        for name, created, settings, goal, cancelled, *picture in searches:
            store.add(StoredSearch(name, created, json.loads(settings), goal, False, *picture))
            if cancelled:
                store.cancel(name)
            own = sorted(row[1:] for row in glimpses if row[0] == name)
            for number, (_, *glimpse) in enumerate(own):
                store.append(name, number, StoredGlimpse(*glimpse))
            photos += len(own)
            numbers = [row[0] for row in own]
            _recover_verdicts(store, name, numbers, sorted(row[1:] for row in verdicts if row[0] == name))
            if name in orthophotos:
                store.set_orthophoto(name, orthophotos[name])
            _recover_vehicles(store, name, numbers, sorted(row[1:] for row in vehicles if row[0] == name))
    return len(searches), photos


def _recover_verdicts(store: SearchStore, search: str, numbers: list[int], verdicts: list[tuple[int, ...]]) -> None:
    """Add the verdicts on photos that were recovered.

    Args:
        store: The new store.
        search: Id of the search.
        numbers: Earlier numbers of the recovered photos, from 0.
        verdicts: Rows of the damaged store: number, photo, goal and photos.
    """
    for _, photo, goal, photos in verdicts:
        if photo - 1 in numbers:
            seen = sum(number < photos for number in numbers)
            store.append_verdict(search, StoredVerdict(numbers.index(photo - 1) + 1, bool(goal), seen))


def _recover_vehicles(store: SearchStore, search: str, numbers: list[int], events: list[tuple[Any, ...]]) -> None:
    """Add the arrivals and departures of vehicles; the arguments are those of `_recover_verdicts`."""
    judged = len(store.verdicts(search))
    for _, *event in events:
        stored = StoredVehicle(*event)
        photos = sum(number < stored.photos for number in numbers)
        store.append_vehicle(search, stored._replace(photos=photos, verdicts=min(stored.verdicts, judged)))


def _readable_rows(file: sqlite3.Connection, table: str, max_rows: int) -> Iterator[tuple[Any, ...]]:
    """Yield the valid rows of a table one by one, without those on damaged pages."""
    query = f"SELECT * FROM {table} WHERE rowid = ? AND {VALID_ROWS[table]}"
    for number in range(1, max_rows + 1):
        with suppress(sqlite3.Error):
            row = file.execute(query, (number,)).fetchone()
            if row is not None:
                yield row
