"""Rooms: an episode sampler, the games on its areas, and their clock.

Every request reads the game from the store, so that the store is the only copy. The clock of a game stops while the
server is down, and while the store cannot be written.

A page asks for its game when the time is over. A game for which nobody asks then has no page: the player has closed it,
or the connection is lost.
"""

import asyncio
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from airloc.files import encode_png
from airloc.game.messages import GameMessages
from airloc.game.store import Ending, Episode, Game, RefusedError, Store, UnknownGameError, check_seconds
from airloc.game.worker_pool import Baselines
from airloc.grid import Cell
from airloc.task.sampling import EpisodeSampler

ABSENT_SECONDS = 10.0
"""Time after the end of a game's time in which its page asks for it."""
MAX_GAMES = 50
"""Games kept per visitor in free play; the oldest are deleted first."""


class Room:
    """Plays games on the areas of one sampler.

    Args:
        sampler: The areas with their grid and budget.
        store: Where the games are kept.
        seconds: Time limit of a game; infinite for none.
        baselines: The agents that play the same episodes for comparison.
        texts: Descriptions of all cells by area and cell, if players search by words.
        clock: Monotonic time in seconds.
    """

    def __init__(
        self,
        sampler: EpisodeSampler,
        store: Store,
        seconds: float,
        baselines: Baselines,
        texts: Mapping[tuple[str, Cell], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sampler = sampler
        self.store = store
        self.seconds = check_seconds(seconds)
        self.baselines = baselines
        self.messages = GameMessages(sampler, texts)
        self._clock = clock
        self._started: dict[str, float] = {}
        self._left: set[str] = set()
        self._images: dict[int, bytes] = {}

    async def area_png(self, area: int) -> bytes:
        """Return a whole area as PNG."""
        if area not in self._images:
            self._images[area] = await asyncio.to_thread(encode_png, self.sampler.image(area))
        return self._images[area]

    def begin(self, player: str, episode: Episode, slot: int | None = None) -> Game:
        """Begin a game; its clock starts now."""
        game = self.store.create(player, episode, self.sampler.budget, self.seconds, slot)
        self._started[game.id] = self._clock()
        return game

    def game(self, game_id: str, player: str) -> Game:
        """Return the current state of a player's game.

        Raises:
            UnknownGameError: If the player has no such game.
        """
        game = self.store.game(game_id)
        if game is None or game.player != player:
            raise UnknownGameError
        return self.up_to_date(game)

    def move(self, game_id: str, player: str, turn: int, move: int) -> Game:
        """Make a move.

        Args:
            game_id: The game.
            player: Token of the player.
            turn: Number of the move as the page counts it, so that a repeated request moves once.
            move: One of the eight moves.

        Raises:
            RefusedError: If the game is not the player's, is over, or is at another turn. Nothing changes then.
        """
        game = self.game(game_id, player)
        if game.ending is not None:
            raise RefusedError(409, "over", "This game is over.")
        if turn != game.turn:
            raise RefusedError(409, "turn", f"This game is at turn {game.turn}, and the move is for turn {turn}.")
        with self._recording(game):
            game = self.store.add_move(game, move, self._elapsed(game), game.ending_after(move))
        self._stop_clock(game)
        return game

    def leave(self, game_id: str, player: str) -> None:
        """Note that the player has closed the page of a game; any other request about the game takes that back."""
        if self.game(game_id, player).ending is None:
            self._left.add(game_id)

    def seconds_left(self, game: Game) -> float:
        """Return the remaining time; 0 for a game that is over."""
        return 0.0 if game.ending else max(0.0, game.seconds - self._elapsed(game))

    def end_late_games(self) -> None:
        """End the games whose time is over and that have no page.

        Games loaded after a restart wait for their player's first request.

        Raises:
            sqlite3.Error: If the store cannot be written; the next call tries again.
        """
        latest = self._clock() - self.seconds - ABSENT_SECONDS
        for game_id in [game_id for game_id, started in self._started.items() if started <= latest]:
            game = self.store.game(game_id)
            if game is not None and game.ending is None:
                self.store.end(game, *self._late_ending(game))
            self._forget(game_id)

    def delete(self, game_id: str) -> None:
        """Delete a game."""
        self._forget(game_id)
        self.store.delete(game_id)

    def up_to_date(self, game: Game) -> Game:
        """Return a stored game as it is now: ended if its time is over."""
        if game.ending is None and self._elapsed(game) >= game.seconds:
            with self._recording(game):
                game = self.store.end(game, *self._late_ending(game))
        self._left.discard(game.id)
        self._stop_clock(game)
        return game

    def _late_ending(self, game: Game) -> tuple[float, Ending]:
        """Return the seconds played and the ending of a game whose time is over."""
        if self._elapsed(game) < game.seconds + ABSENT_SECONDS:
            return game.seconds, "time"
        return game.elapsed, "left" if game.id in self._left else "disconnected"

    @contextmanager
    def _recording(self, game: Game) -> Iterator[None]:
        """If the store fails, forget the clock: it continues from the last recorded event, as after a restart."""
        try:
            yield
        except sqlite3.Error:
            self._started.pop(game.id, None)
            raise

    def _elapsed(self, game: Game) -> float:
        """Return the seconds played; after a restart the clock continues from the last recorded event."""
        started = self._started.setdefault(game.id, self._clock() - game.elapsed)
        return self._clock() - started

    def _stop_clock(self, game: Game) -> None:
        if game.ending is not None:
            self._forget(game.id)

    def _forget(self, game_id: str) -> None:
        self._started.pop(game_id, None)
        self._left.discard(game_id)


class PlayRoom(Room):
    """A room for free play and practice: any number of games, on the areas that the player has seen least."""

    max_games = MAX_GAMES

    def begin_random(self, player: str) -> Game:
        """Begin a game on an area that the player has played least often."""
        history = self.store.history(player)
        for game_id, _, _ in history[: max(0, len(history) - self.max_games + 1)]:
            self.delete(game_id)
        return self.begin(player, self._draw_episode([area for _, area, _ in history]))

    def current(self, player: str) -> Game | None:
        """Return the player's latest game if it is in progress."""
        latest = self.store.latest(player)
        game = latest and self.game(latest.id, player)
        return game if game and game.ending is None else None

    def tally(self, player: str) -> dict[str, int]:
        """Return how many games the player has finished, and in how many the goal was found."""
        endings = [ending for _, _, ending in self.store.history(player) if ending]
        return {"played": len(endings), "found": endings.count("found")}

    def _draw_episode(self, played_areas: Sequence[int]) -> Episode:
        rng, counts = np.random.default_rng(secrets.randbits(128)), Counter(played_areas)
        fewest = min(counts[area] for area in range(len(self.sampler.names)))
        areas = [area for area in range(len(self.sampler.names)) if counts[area] == fewest]
        (start,), (goal,) = self.sampler.pair_sampler.sample(rng, 1)
        return Episode(int(rng.choice(areas)), (int(start[0]), int(start[1])), (int(goal[0]), int(goal[1])))
