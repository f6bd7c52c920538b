"""Games and moves in SQLite, committed before anybody hears of them.

The journal is a write-ahead log with `synchronous=NORMAL`: what was committed survives the end of the process, however
sudden, and a commit costs no wait for the disk. Free play keeps its games in memory; they are gone with the server.
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
    """All games of a server.

    Args:
        path: The file, created where there is none; None keeps everything in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.db = connect(path)
        self.db.executescript(SCHEMA)

    def begin(self, player: str, episode: Episode, budget: int, seconds: float, slot: int | None = None) -> Game:
        """Write a new game."""
        game = Game(secrets.token_urlsafe(18), player, episode, budget, seconds, slot=slot)
        (start_row, start_col), (goal_row, goal_col) = episode.start, episode.goal
        row = (game.id, player, slot, episode.area, start_row, start_col, goal_row, goal_col, budget, seconds, None, 0)
        with self.db:
            self.db.execute(f"INSERT INTO games ({_COLUMNS}) VALUES ({','.join('?' * len(row))})", row)
        return game

    def game(self, number: str) -> Game | None:
        """Read a game; None where there is none of that id."""
        row = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE id = ?", (number,)).fetchone()
        return None if row is None else self._game(row)

    def games_of(self, player: str) -> list[Game]:
        """A player's games, oldest first."""
        rows = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE player = ? ORDER BY rowid", (player,))
        return [self._game(row) for row in rows.fetchall()]

    def latest(self, player: str) -> Game | None:
        """A player's latest game."""
        rows = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE player = ? ORDER BY rowid DESC LIMIT 1", (player,))
        row = rows.fetchone()
        return None if row is None else self._game(row)

    def played(self, player: str) -> list[tuple[str, int, Ending | None]]:
        """Ids, areas and endings of a player's games, oldest first; without their moves, which is quick."""
        return self.db.execute(
            "SELECT id, area, ending FROM games WHERE player = ? ORDER BY rowid", (player,)
        ).fetchall()

    def recorded(self) -> list[Game]:
        """All games that have a slot, by player and slot."""
        rows = self.db.execute(f"SELECT {_COLUMNS} FROM games WHERE slot IS NOT NULL ORDER BY player, slot")
        return [self._game(row) for row in rows.fetchall()]

    def add_move(self, game: Game, move: int, elapsed: float, ending: Ending | None) -> Game:
        """Write a move and what it led to, in one transaction, the same statements whatever it led to."""
        with self.db:
            self.db.execute("INSERT INTO moves VALUES (?, ?, ?, ?)", (game.id, game.turn, move, elapsed))
            self._update(game, elapsed, ending)
        return replace(game, moves=(*game.moves, move), elapsed=elapsed, ending=ending)

    def end(self, game: Game, elapsed: float, ending: Ending) -> Game:
        """Write that a game is over without another move."""
        with self.db:
            self._update(game, elapsed, ending)
        return replace(game, elapsed=elapsed, ending=ending)

    def forget(self, number: str) -> None:
        """Delete a game with its moves."""
        with self.db:
            self.db.execute("DELETE FROM games WHERE id = ?", (number,))

    def close(self) -> None:
        """Close the file; what is in it stays."""
        self.db.close()

    def _update(self, game: Game, elapsed: float, ending: Ending | None) -> None:
        self.db.execute("UPDATE games SET elapsed = ?, ending = ? WHERE id = ?", (elapsed, ending, game.id))

    def _game(self, row: tuple[Any, ...]) -> Game:
        number, player, slot, area, start_row, start_col, goal_row, goal_col, budget, seconds, ending, elapsed = row
        made = self.db.execute("SELECT move FROM moves WHERE game = ? ORDER BY turn", (number,)).fetchall()
        episode = Episode(area, (start_row, start_col), (goal_row, goal_col))
        moves = tuple(move for (move,) in made)
        return Game(number, player, episode, budget, seconds, moves, cast("Ending | None", ending), elapsed, slot)


def connect(path: Path | None) -> sqlite3.Connection:
    """Open a database as the game needs it, readable by its owner alone.

    Raises:
        AirlocError: When the file cannot be opened, or is no database.
    """
    try:
        if path is not None:
            path.touch(mode=0o600)
        # The event loop's thread alone uses it, which may be another one than opened it.
        db = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False, timeout=10)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA foreign_keys=ON")
    except (sqlite3.Error, OSError) as error:
        raise AirlocError(f"Cannot open {str(path)!r}: {error}", "Give a file that airloc study create made") from error
    return db
