"""The store of searches: one SQLite file with the settings, photos and verdicts of every search.

A write is on the disk before the server responds. Searchers are not stored: they are rebuilt from their photos. Only
one server at a time can open a store. Opening a store checks the whole file and never changes a damaged one;
`recovery` copies the searches that are still readable to a new store.
"""

import json
import shlex
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from airloc.errors import AirlocError
from airloc.missions.photos import SIDE

VERSION = 5
PATCH_BYTES = SIDE * SIDE * 3
SCHEMA = """
CREATE TABLE searches (id TEXT PRIMARY KEY, begun TEXT NOT NULL, config TEXT NOT NULL, goal BLOB NOT NULL,
                       cancelled INTEGER NOT NULL DEFAULT 0, picture BLOB);
CREATE TABLE glimpses (search TEXT NOT NULL REFERENCES searches (id), number INTEGER NOT NULL, row INTEGER NOT NULL,
                       col INTEGER NOT NULL, seen REAL NOT NULL, pixels BLOB NOT NULL, photo BLOB, position TEXT,
                       received TEXT, PRIMARY KEY (search, number));
"""
VERDICTS = """
CREATE TABLE verdicts (search TEXT NOT NULL REFERENCES searches (id), number INTEGER NOT NULL, photo INTEGER NOT NULL,
                       goal INTEGER NOT NULL, photos INTEGER NOT NULL, PRIMARY KEY (search, number))
"""
VEHICLES = """
CREATE TABLE vehicles (search TEXT NOT NULL REFERENCES searches (id), number INTEGER NOT NULL, vehicle TEXT NOT NULL,
                       row INTEGER NOT NULL, col INTEGER NOT NULL, budget INTEGER NOT NULL, photos INTEGER NOT NULL,
                       verdicts INTEGER NOT NULL, PRIMARY KEY (search, number))
"""
ORTHOPHOTOS = """
CREATE TABLE orthophotos (search TEXT PRIMARY KEY REFERENCES searches (id), file BLOB NOT NULL)
"""
UPGRADES = {
    1: (
        "ALTER TABLE searches ADD COLUMN picture BLOB",
        "ALTER TABLE glimpses ADD COLUMN photo BLOB",
        "ALTER TABLE glimpses ADD COLUMN position TEXT",
        VERDICTS,
    ),
    2: ("ALTER TABLE glimpses ADD COLUMN received TEXT",),
    3: (VEHICLES,),
    4: (ORTHOPHOTOS,),
}
"""Statements that upgrade a store of an earlier version to the next one."""
ADDED_TABLES = ("verdicts", "vehicles", "orthophotos")
"""Tables that stores of earlier versions do not have."""
VALID_ROWS = {
    "searches": f"typeof(id) = 'text' AND typeof(begun) = 'text' AND ifnull(json_valid(config), 0) AND "
    f"json_type(config) = 'object' AND typeof(goal) = 'blob' AND length(goal) = {PATCH_BYTES} AND cancelled IN (0, 1)",
    "glimpses": f"typeof(pixels) = 'blob' AND length(pixels) = {PATCH_BYTES} AND typeof(row) = 'integer' AND row >= 0 "
    "AND typeof(col) = 'integer' AND col >= 0 AND typeof(seen) = 'real' AND seen BETWEEN 0 AND 1.001 "
    "AND typeof(number) = 'integer'",
    "vehicles": "typeof(vehicle) = 'text' AND typeof(row) = 'integer' AND typeof(col) = 'integer' "
    "AND typeof(budget) = 'integer' AND typeof(photos) = 'integer' AND typeof(verdicts) = 'integer'",
    "orthophotos": "typeof(search) = 'text' AND typeof(file) = 'blob'",
    "verdicts": "typeof(photo) = 'integer' AND photo > 0 AND goal IN (0, 1) AND typeof(photos) = 'integer'",
}
"""Condition of valid rows by table."""


class StoreError(AirlocError):
    """The store cannot be opened, read or written."""


class StoredSearch(NamedTuple):
    """The beginning of a search."""

    id: str
    created: str
    """Time of creation in UTC, ISO 8601."""
    settings: dict[str, Any]
    """JSON values of `airloc.missions.messages.SearchSettings`."""
    goal: bytes
    """Goal patch, 48 x 48 RGB bytes."""
    cancelled: bool
    picture: bytes | None = None
    """File of the goal image as it was sent; stores of version 1 did not keep it."""


class StoredGlimpse(NamedTuple):
    """A glimpse that a searcher observed."""

    row: int
    col: int
    coverage: float
    pixels: bytes
    """48 x 48 RGB bytes."""
    photo: bytes | None = None
    """File of the photo as it was sent; stores of version 1 did not keep it."""
    position: str | None = None
    """JSON of `airloc.missions.messages.PhotoPosition`."""
    received: str | None = None
    """Time at which the server received the photo, in UTC, ISO 8601; stores before version 3 did not keep it."""


class StoredSummary(NamedTuple):
    """A search in a list of searches."""

    id: str
    created: str
    name: str | None
    cancelled: bool
    photos: int


class StoredVerdict(NamedTuple):
    """The verdict of a person on a photo."""

    photo: int
    """Number of the photo, from 1."""
    goal: bool
    """Whether the photo shows the goal."""
    photos: int
    """Number of photos at the time of the verdict."""


class StoredVehicle(NamedTuple):
    """A vehicle that joined a search or left it."""

    vehicle: str
    """Name of the vehicle."""
    row: int
    col: int
    budget: int
    """Moves that it may fly; zero if it left."""
    photos: int
    """Number of photos at that time."""
    verdicts: int
    """Number of verdicts at that time."""


class SearchStore:
    """The file of all searches, created if it does not exist.

    The folder must exist: with a mistyped path, the searches of the intended store would not continue.

    Raises:
        StoreError: If the folder does not exist, or the file is damaged, not a store, or open in another server.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writes = 0
        """Number of changes since the store was opened."""
        self._lock = threading.Lock()
        check_folder(path)
        try:
            if not path.exists():
                path.touch(mode=0o600)  # only its owner may read the photos and where they were taken
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=0.5)
        except (sqlite3.Error, OSError) as error:
            raise self._cannot_open(error) from error
        try:
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._file.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                self._prepare()
        except sqlite3.Error as error:
            self._file.close()
            raise self._cannot_open(error) from error
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def add(self, search: StoredSearch, orthophoto: bytes | None = None) -> None:
        """Add a new search, with its orthophoto if it has one."""
        values = (search.id, search.created, json.dumps(search.settings), search.goal, search.picture)
        with self._writing():
            self._file.execute("INSERT INTO searches (id, begun, config, goal, picture) VALUES (?, ?, ?, ?, ?)", values)
            if orthophoto is not None:
                self._file.execute("INSERT INTO orthophotos VALUES (?, ?)", (search.id, orthophoto))

    def find(self, search: str) -> StoredSearch | None:
        """Return a search by its id, or None."""
        rows = self._read("SELECT id, begun, config, goal, cancelled, picture FROM searches WHERE id = ?", search)
        if not rows:
            return None
        name, created, settings, goal, cancelled, picture = rows[0]
        return StoredSearch(name, created, json.loads(settings), goal, bool(cancelled), picture)

    def is_cancelled(self, search: str) -> bool:
        """Return whether a search is cancelled, without reading its goal."""
        rows = self._read("SELECT cancelled FROM searches WHERE id = ?", search)
        return bool(rows and rows[0][0])

    def list_ids(self) -> list[str]:
        """Return the ids of all searches, newest first."""
        return [row[0] for row in self._read("SELECT id FROM searches ORDER BY begun DESC, rowid DESC")]

    def summaries(self) -> list[StoredSummary]:
        """Return all searches with their numbers of photos, newest first."""
        photos = "(SELECT count(*) FROM glimpses WHERE search = searches.id)"
        columns = f"id, begun, json_extract(config, '$.name'), cancelled, {photos}"
        rows = self._read(f"SELECT {columns} FROM searches ORDER BY begun DESC, rowid DESC")
        return [
            StoredSummary(search, created, name if isinstance(name, str) else None, bool(cancelled), photos)
            for search, created, name, cancelled, photos in rows
        ]

    def cancel(self, search: str) -> None:
        """Mark a search as cancelled."""
        with self._writing():
            self._file.execute("UPDATE searches SET cancelled = 1 WHERE id = ?", (search,))

    def append(self, search: str, number: int, glimpse: StoredGlimpse) -> None:
        """Add glimpse number `number` of a search."""
        with self._writing():
            self._file.execute("INSERT INTO glimpses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (search, number, *glimpse))

    def glimpses(self, search: str) -> list[StoredGlimpse]:
        """Return all glimpses of a search in order."""
        query = (
            "SELECT row, col, seen, pixels, photo, position, received FROM glimpses WHERE search = ? ORDER BY number"
        )
        return [StoredGlimpse(*row) for row in self._read(query, search)]

    def cells(self, search: str) -> list[tuple[int, int]]:
        """Return the cells of all glimpses of a search in order."""
        return [(row, col) for row, col in self._read("SELECT row, col FROM glimpses WHERE search = ?", search)]

    def photo(self, search: str, number: int) -> bytes | None:
        """Return the file of photo number `number`, from 1; None if the store does not have it."""
        rows = self._read("SELECT photo FROM glimpses WHERE search = ? AND number = ?", search, number - 1)
        return rows[0][0] if rows else None

    def append_verdict(self, search: str, verdict: StoredVerdict) -> None:
        """Add a verdict on a photo of a search."""
        query = "INSERT INTO verdicts SELECT ?, count(*), ?, ?, ? FROM verdicts WHERE search = ?"
        with self._writing():
            self._file.execute(query, (search, *verdict, search))

    def verdicts(self, search: str) -> list[StoredVerdict]:
        """Return all verdicts of a search in order."""
        query = "SELECT photo, goal, photos FROM verdicts WHERE search = ? ORDER BY number"
        return [StoredVerdict(photo, bool(goal), photos) for photo, goal, photos in self._read(query, search)]

    def append_vehicle(self, search: str, event: StoredVehicle) -> None:
        """Add the arrival or departure of a vehicle of a search."""
        query = "INSERT INTO vehicles SELECT ?, count(*), ?, ?, ?, ?, ?, ? FROM vehicles WHERE search = ?"
        with self._writing():
            self._file.execute(query, (search, *event, search))

    def vehicles(self, search: str) -> list[StoredVehicle]:
        """Return all arrivals and departures of vehicles of a search in order."""
        query = "SELECT vehicle, row, col, budget, photos, verdicts FROM vehicles WHERE search = ? ORDER BY number"
        return [StoredVehicle(*row) for row in self._read(query, search)]

    def set_orthophoto(self, search: str, file: bytes) -> None:
        """Keep the orthophoto of a search instead of an earlier one."""
        with self._writing():
            self._file.execute("INSERT OR REPLACE INTO orthophotos VALUES (?, ?)", (search, file))

    def orthophoto(self, search: str) -> bytes | None:
        """Return the file of the orthophoto of a search; None if there is none."""
        rows = self._read("SELECT file FROM orthophotos WHERE search = ?", search)
        return rows[0][0] if rows else None

    def _prepare(self) -> None:
        """Create the tables of a new file, or check an existing file."""
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables == 0:
            for statement in [*SCHEMA.split(";")[:-1], VERDICTS, VEHICLES, ORTHOPHOTOS]:
                self._file.execute(statement)
            self._file.execute(f"PRAGMA user_version = {VERSION}")
        elif version not in (*UPGRADES, VERSION):
            raise StoreError(f"The file {str(self.path)!r} is not a store of searches", "Give another --store")
        else:
            self._check_content()
            for earlier in range(version, VERSION):
                for statement in UPGRADES[earlier]:
                    self._file.execute(statement)
            self._file.execute(f"PRAGMA user_version = {VERSION}")

    def _check_content(self) -> None:
        """Read the whole file once, so that damage shows now and not in a response."""
        (result,) = self._file.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise self.damaged(result.splitlines()[-1])
        tables = {name for (name,) in self._file.execute("SELECT name FROM sqlite_master")}
        for table, valid in VALID_ROWS.items():
            if table not in tables and table in ADDED_TABLES:
                continue
            (count,) = self._file.execute(f"SELECT count(*) FROM {table} WHERE NOT ({valid})").fetchone()
            if count:
                raise self.damaged(f"{count} rows of the table {table} have invalid values")

    def _read(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._file.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self._failed("read", error) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._transaction():
                yield
                self.writes += 1
        except sqlite3.Error as error:
            raise self._failed("write to", error) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._file.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # the first error is the one to report
                    self._file.execute("ROLLBACK")
                raise

    def _cannot_open(self, error: Exception) -> StoreError:
        if "locked" in str(error):
            problem = f"The store {str(self.path)!r} is open in another server"
            return StoreError(problem, "Stop the other server, or give another --store")
        if "malformed" in str(error):
            return self.damaged(str(error))
        return StoreError(f"Cannot open the store {str(self.path)!r}: {error}", "Give another --store")

    def damaged(self, reason: str) -> StoreError:
        """Return the error for damaged content of the store."""
        command = f"airloc serve --store {shlex.quote(str(self.path))} --recover recovered.sqlite"
        cure = f"Restore a backup, or continue with the readable searches: {command}"
        return StoreError(f"The store {str(self.path)!r} is damaged: {reason}; the file is unchanged", cure)

    def _failed(self, action: str, error: sqlite3.Error) -> StoreError:
        if isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error):
            return self.damaged(str(error))
        problem = f"The server cannot {action} its store {str(self.path)!r}: {error}"
        return StoreError(problem, "Check the disk of the server and its free space, and send the request again")


def check_folder(path: Path) -> None:
    """Check that the folder of a store exists."""
    if not path.parent.is_dir():
        raise StoreError(f"There is no folder {str(path.parent)!r} for the store", "Create it, or check the path")
