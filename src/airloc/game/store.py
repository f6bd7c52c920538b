"""Games and moves in SQLite. Every change is committed before the player gets the response.

The journal is a write-ahead log with `synchronous=NORMAL`: a commit survives the end of the process, even by SIGKILL,
and does not wait for the disk. Free play keeps its games in memory.
"""

import secrets
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from airloc.errors import AirlocError
from airloc.game.match import Ending, Episode, Game

SCHEMA = """
CREATE TABLE IF NOT EXISTS games (
    id TEXT PRIMARY KEY,
    player TEXT NOT NULL,
    slot INTEGER,
    area INTEGER NOT NULL,
    start_row INTEGER NOT NULL, start_col INTEGER NOT NULL,
    goal_row INTEGER NOT NULL, goal_col INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    seconds REAL NOT NULL,
    ending TEXT CHECK (ending IN ('found', 'moves', 'time')),
    elapsed REAL NOT NULL,
    UNIQUE (player, slot)
);
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

    Args:
        path: SQLite file, created if it does not exist; None keeps everything in memory.

    Raises:
        AirlocError: If the file cannot be opened or is not a database.
    """

    def __init__(self, path: Path | None = None) -> None:
        try:
            self.db = connect(path)
            self.db.executescript(SCHEMA)
        except (sqlite3.Error, OSError) as error:
            cure = "Give a file that airloc study create wrote"
            raise AirlocError(f"Cannot open the study {str(path)!r}: {error}", cure) from error

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

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def _update(self, game: Game, elapsed: float, ending: Ending | None) -> None:
        self.db.execute("UPDATE games SET elapsed = ?, ending = ? WHERE id = ?", (elapsed, ending, game.id))

    def _game(self, row: tuple[Any, ...]) -> Game:
        game_id, player, slot, area, start_row, start_col, goal_row, goal_col, budget, seconds, ending, elapsed = row
        rows = self.db.execute("SELECT move FROM moves WHERE game = ? ORDER BY turn", (game_id,)).fetchall()
        episode = Episode(area, (start_row, start_col), (goal_row, goal_col))
        moves = tuple(move for (move,) in rows)
        return Game(game_id, player, episode, budget, seconds, moves, cast("Ending | None", ending), elapsed, slot)


def connect(path: Path | None) -> sqlite3.Connection:
    """Open a database that only its owner can read, or one in memory.

    Raises:
        OSError: If the file cannot be created.
        sqlite3.Error: If the file cannot be written or is not a database.
    """
    if path is not None:
        path.touch(mode=0o600)
    # Only the thread of the event loop uses the connection, but another thread may have opened it.
    db = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False, timeout=10)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA foreign_keys=ON")
    except sqlite3.Error:
        db.close()
        raise
    return db
