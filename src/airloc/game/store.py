"""Games and their store: an episode and the moves so far, in SQLite.

A game stores moves, not positions. Positions are replayed from the start, so that they always agree with
`airloc.task.rules`.

A server calls the store through `Store.run`, in a thread of its own: a database that another program has locked must
not stop the event loop. Every change is committed before the player gets the response. The journal is a write-ahead log
with `synchronous=NORMAL`: a commit survives the end of the process, even by SIGKILL, and does not wait for the disk.
Within a second or two after a game the log is written to the database file. Free play keeps its games in memory.
"""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np

from airloc.errors import AirlocError
from airloc.grid import MOVES, Cell
from airloc.task import rules

T = TypeVar("T")
BUSY_SECONDS = 2.0
"""Time that a request may wait for the database before it is refused."""

Ending = Literal["found", "moves", "time", "left", "disconnected"]
"""Why a game ended: the goal was found, no moves were left, or no time was left.

The last two are games whose time ran out while no page showed them: the player had closed the page ("left"), or the
page did not answer any more ("disconnected").
"""
ABSENT: tuple[Ending, ...] = ("left", "disconnected")
"""Endings of games that were not played to the end."""


class RefusedError(Exception):
    """A request that the server refuses; nothing has changed.

    Args:
        status: HTTP status, 4xx, or 503 if a later request may succeed.
        reason: Short identifier that the page understands.
        message: Explanation for the player.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class UnknownGameError(RefusedError):
    """The game does not exist or belongs to another player; both get the same response."""

    def __init__(self) -> None:
        super().__init__(404, "no-game", "This game does not exist.")


def check_seconds(seconds: float) -> float:
    """Return a time limit if it is valid: above 0, or infinite for no limit.

    Raises:
        AirlocError: If the time limit is not a number, or not above 0.
    """
    if not seconds > 0:  # NaN compares as False
        raise AirlocError(f"A time limit of {seconds} seconds is invalid", "Give --seconds above 0, or 0 for no limit")
    return seconds


class Episode(NamedTuple):
    """The episode of a game."""

    area: int
    """Index of the area in the episode sampler."""
    start: Cell
    goal: Cell


@dataclass(frozen=True)
class Game:
    """The state of a game."""

    id: str
    """Random identifier, known only to the player."""
    player: str
    """The player's token."""
    episode: Episode
    budget: int
    seconds: float
    """Time limit; infinite for none."""
    moves: tuple[int, ...] = ()
    ending: Ending | None = None
    """None while the game is in progress."""
    elapsed: float = 0.0
    """Seconds played at the last recorded event."""
    slot: int | None = None
    """Index among a participant's recorded games; None for free play and practice."""

    @property
    def turn(self) -> int:
        """Number of moves made, which is also the number of the next move."""
        return len(self.moves)

    @property
    def position(self) -> Cell:
        """The current cell, which may lie outside the area."""
        return self.path[-1]

    @cached_property
    def path(self) -> tuple[Cell, ...]:
        """Cells from the start to the current position."""
        return replay(self.episode, self.moves, self.budget)[0]

    def ending_after(self, move: int) -> Ending | None:
        """Return how the game ends with one more move, or None if it continues. Time is not considered."""
        return replay(self.episode, (*self.moves, move), self.budget)[1]


def replay(episode: Episode, moves: tuple[int, ...], budget: int) -> tuple[tuple[Cell, ...], Ending | None]:
    """Return the path of a sequence of moves, and how the episode ends after the last one.

    >>> replay(Episode(0, (0, 0), (2, 2)), (3, 3), budget=10)
    (((0, 0), (1, 1), (2, 2)), 'found')
    """
    position, goal, steps = np.array(episode.start), np.array(episode.goal), np.array(0)
    path, ending = [episode.start], None
    for action in moves:
        out = rules.move(position, steps, goal, np.array(action), moves=MOVES, budget=budget)
        position, steps = out.position, out.steps
        path.append((int(position[0]), int(position[1])))
        ending = _ENDINGS[bool(out.found), bool(out.truncated)]
    return tuple(path), ending


_ENDINGS: dict[tuple[bool, bool], Ending | None] = {
    (True, False): "found",
    (False, True): "moves",
    (False, False): None,
}


_GAMES = """
CREATE TABLE IF NOT EXISTS games (
    id TEXT PRIMARY KEY,
    player TEXT NOT NULL,
    slot INTEGER,
    area INTEGER NOT NULL,
    start_row INTEGER NOT NULL, start_col INTEGER NOT NULL,
    goal_row INTEGER NOT NULL, goal_col INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    seconds REAL NOT NULL,
    ending TEXT CHECK (ending IN ('found', 'moves', 'time', 'left', 'disconnected')),
    elapsed REAL NOT NULL,
    UNIQUE (player, slot)
);
"""
SCHEMA = f"""{_GAMES}
CREATE INDEX IF NOT EXISTS games_of_player ON games (player);
CREATE TABLE IF NOT EXISTS moves (
    game TEXT NOT NULL REFERENCES games (id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    move INTEGER NOT NULL CHECK (move BETWEEN 0 AND 7),
    elapsed REAL NOT NULL,
    PRIMARY KEY (game, turn)
) WITHOUT ROWID;
"""

_COLUMNS = "id, player, slot, area, start_row, start_col, goal_row, goal_col, budget, seconds, ending, elapsed"


class Store:
    """The games of a server.

    Its methods block while another program has locked the file; `run` calls them from an event loop.

    Args:
        path: SQLite file, created if it does not exist; None keeps everything in memory.

    Raises:
        AirlocError: If the file cannot be opened or is not a database.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._ended_since_checkpoint = path, False
        try:
            self.db = connect(path)
            _allow_all_endings(self.db)
            self.db.executescript(SCHEMA)
        except (sqlite3.Error, OSError) as error:
            cure = "Give a file that airloc study create wrote"
            raise AirlocError(f"Cannot open the study {str(path)!r}: {error}", cure) from error
        self._thread = ThreadPoolExecutor(1, "store")

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function that uses the store in the thread of the store. One runs after the other: each is atomic.

        Raises:
            sqlite3.Error: If the database fails, or is busy for longer than `BUSY_SECONDS`.
        """
        until = time.monotonic() + BUSY_SECONDS
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run_before, until, work)

    def _run_before(self, until: float, work: Callable[[], T]) -> T:
        """Run a function unless it has waited too long behind others; limit how long it waits for a lock."""
        left = until - time.monotonic()
        if left <= 0:
            raise sqlite3.OperationalError("the database is busy")
        self.db.execute(f"PRAGMA busy_timeout = {int(1000 * left)}")
        return work()

    def create(self, player: str, episode: Episode, budget: int, seconds: float, slot: int | None = None) -> Game:
        """Create a game."""
        game = Game(secrets.token_urlsafe(18), player, episode, budget, seconds, slot=slot)
        (start_row, start_col), (goal_row, goal_col) = episode.start, episode.goal
        row = (game.id, player, slot, episode.area, start_row, start_col, goal_row, goal_col, budget, seconds, None, 0)
        with self.db:
            self.db.execute(f"INSERT INTO games ({_COLUMNS}) VALUES ({','.join('?' * len(row))})", row)
        return game

    def game(self, game_id: str) -> Game | None:
        """Return a game, or None if it does not exist."""
        row = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE id = ?", (game_id,)).fetchone()
        return None if row is None else self._game(row)

    def games_of(self, player: str) -> list[Game]:
        """Return a player's games, oldest first."""
        rows = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE player = ? ORDER BY rowid", (player,))
        return [self._game(row) for row in rows.fetchall()]

    def latest(self, player: str) -> Game | None:
        """Return a player's latest game, or None."""
        rows = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE player = ? ORDER BY rowid DESC LIMIT 1", (player,))
        row = rows.fetchone()
        return None if row is None else self._game(row)

    def history(self, player: str) -> list[tuple[str, int, Ending | None]]:
        """Return id, area and ending of a player's games, oldest first, without reading their moves."""
        return self.db.execute(
            "SELECT id, area, ending FROM games WHERE player = ? ORDER BY rowid", (player,)
        ).fetchall()

    def recorded(self) -> list[Game]:
        """Return all games that have a slot, ordered by player and slot."""
        rows = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE slot IS NOT NULL ORDER BY player, slot")
        return [self._game(row) for row in rows.fetchall()]

    def add_move(self, game: Game, move: int, elapsed: float, ending: Ending | None) -> Game:
        """Add a move in one transaction. The statements are the same whether or not the move finds the goal."""
        with self.db:
            self.db.execute("INSERT INTO moves VALUES (?, ?, ?, ?)", (game.id, game.turn, move, elapsed))
            self._update(game, elapsed, ending)
        return replace(game, moves=(*game.moves, move), elapsed=elapsed, ending=ending)

    def end(self, game: Game, elapsed: float, ending: Ending) -> Game:
        """End a game without another move."""
        with self.db:
            self._update(game, elapsed, ending)
        return replace(game, elapsed=elapsed, ending=ending)

    def delete(self, game_id: str) -> None:
        """Delete a game and its moves."""
        with self.db:
            self.db.execute("DELETE FROM games WHERE id = ?", (game_id,))

    def checkpoint(self) -> None:
        """Write the log to the database file if a game has ended since the last time. Players need not wait meanwhile.

        Raises:
            sqlite3.Error: If the file cannot be written.
        """
        if self._path is None or not self._ended_since_checkpoint:
            return
        self._ended_since_checkpoint = False
        with closing(sqlite3.connect(self._path)) as db:  # another connection, so that it can run in another thread
            busy, pages, written = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if busy or written < pages:
            self._ended_since_checkpoint = True  # a reader was in the way: try again

    def close(self) -> None:
        """Close the database."""
        self._thread.shutdown()
        self.db.close()

    def _update(self, game: Game, elapsed: float, ending: Ending | None) -> None:
        self.db.execute("UPDATE games SET elapsed = ?, ending = ? WHERE id = ?", (elapsed, ending, game.id))
        self._ended_since_checkpoint |= ending is not None

    def _game(self, row: tuple[Any, ...]) -> Game:
        game_id, player, slot, area, start_row, start_col, goal_row, goal_col, budget, seconds, ending, elapsed = row
        rows = self.db.execute("SELECT move FROM moves WHERE game = ? ORDER BY turn", (game_id,)).fetchall()
        episode = Episode(area, (start_row, start_col), (goal_row, goal_col))
        moves = tuple(move for (move,) in rows)
        return Game(game_id, player, episode, budget, seconds, moves, cast("Ending | None", ending), elapsed, slot)


def _allow_all_endings(db: sqlite3.Connection) -> None:
    """Rebuild the table of games in a file of an earlier version, which allows fewer endings."""
    table = db.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'games'").fetchone()
    if table is not None and "'disconnected'" not in table[0]:
        db.executescript(
            f"PRAGMA foreign_keys=OFF; BEGIN; {_GAMES.replace('games', 'new_games', 1)}"
            f"INSERT INTO new_games ({_COLUMNS}) SELECT {_COLUMNS} FROM games ORDER BY rowid;"
            "DROP TABLE games; ALTER TABLE new_games RENAME TO games; COMMIT; PRAGMA foreign_keys=ON;"
        )


def connect(path: Path | None) -> sqlite3.Connection:
    """Open a database that only its owner can read, or one in memory.

    Raises:
        OSError: If the file cannot be created.
        sqlite3.Error: If the file cannot be written or is not a database.
    """
    if path is not None:
        path.touch(mode=0o600)
    # One thread at a time uses the connection, but not always the one that opened it.
    db = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False, timeout=10)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA foreign_keys=ON")
        db.execute("PRAGMA secure_delete=ON")  # what a participant withdraws is overwritten
    except sqlite3.Error:
        db.close()
        raise
    return db
