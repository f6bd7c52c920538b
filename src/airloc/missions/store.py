"""Searches on disk: what they were begun with and every glimpse that counted, so that they go on after a restart.

One SQLite file, written to the disk before a client is answered. A searcher is not stored: it follows from its photos.
One server at a time may use a file.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from airloc.errors import AirlocError

VERSION = 1
SCHEMA = """
CREATE TABLE searches (id TEXT PRIMARY KEY, begun TEXT NOT NULL, config TEXT NOT NULL, goal BLOB NOT NULL,
                       cancelled INTEGER NOT NULL DEFAULT 0);
CREATE TABLE glimpses (search TEXT NOT NULL REFERENCES searches (id), number INTEGER NOT NULL, row INTEGER NOT NULL,
                       col INTEGER NOT NULL, seen REAL NOT NULL, pixels BLOB NOT NULL, PRIMARY KEY (search, number));
"""


class StoredSearch(NamedTuple):
    """What a search was begun with."""

    id: str
    begun: str
    """When, in UTC, as ISO 8601."""
    config: dict[str, Any]
    goal: bytes
    """The goal's patch, 48 x 48 RGB bytes."""
    cancelled: bool


class StoredGlimpse(NamedTuple):
    """A photo that counted."""

    row: int
    col: int
    seen: float
    pixels: bytes
    """48 x 48 RGB bytes."""


class Store:
    """The file of all searches.

    Args:
        path: Where; made when it is not there.

    Raises:
        AirlocError: When the file is none of airloc's, or another server uses it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=0.5)
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._file.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                self._prepare()
        except (sqlite3.Error, OSError) as error:
            locked = "locked" in str(error)
            cure = "Stop the other server, or give another --store" if locked else "Give another --store"
            reason = "another server uses it" if locked else str(error)
            raise AirlocError(f"Cannot open the store {str(path)!r}: {reason}", cure) from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def add(self, search: StoredSearch) -> None:
        """Keep a new search."""
        values = (search.id, search.begun, json.dumps(search.config), search.goal)
        with self._transaction():
            self._file.execute("INSERT INTO searches (id, begun, config, goal) VALUES (?, ?, ?, ?)", values)

    def find(self, name: str) -> StoredSearch | None:
        """Give a search by its id."""
        with self._lock:
            columns = "id, begun, config, goal, cancelled"
            row = self._file.execute(f"SELECT {columns} FROM searches WHERE id = ?", (name,)).fetchone()
        return None if row is None else StoredSearch(row[0], row[1], json.loads(row[2]), row[3], bool(row[4]))

    def names(self) -> list[str]:
        """The ids of all searches, the newest first."""
        with self._lock:
            rows = self._file.execute("SELECT id FROM searches ORDER BY begun DESC, id").fetchall()
        return [row[0] for row in rows]

    def cancel(self, name: str) -> None:
        """Mark a search as cancelled."""
        with self._transaction():
            self._file.execute("UPDATE searches SET cancelled = 1 WHERE id = ?", (name,))

    def append(self, name: str, number: int, glimpse: StoredGlimpse) -> None:
        """Keep the glimpse with this number of a search."""
        with self._transaction():
            self._file.execute("INSERT INTO glimpses VALUES (?, ?, ?, ?, ?, ?)", (name, number, *glimpse))

    def glimpses(self, name: str) -> list[StoredGlimpse]:
        """Give all glimpses of a search in their order."""
        with self._lock:
            query = "SELECT row, col, seen, pixels FROM glimpses WHERE search = ? ORDER BY number"
            return [StoredGlimpse(*row) for row in self._file.execute(query, (name,)).fetchall()]

    def _prepare(self) -> None:
        """Make the tables of a new file; refuse a file of another kind."""
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables == 0:
            for statement in SCHEMA.split(";")[:-1]:
                self._file.execute(statement)
            self._file.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            raise AirlocError(f"{str(self.path)!r} is no store of searches", "Give another --store")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")
