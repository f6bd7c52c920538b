"""Holds the games: begins them, makes moves by the rules, and ends them by the server's clock.

Every request reads the game from the store, so that there is one truth. The clock of a game stands still while the
server is down: a game goes on where it was.
"""

import math
import time
from collections.abc import Callable

from airloc.game.match import Episode, Game, RefusedError, no_such_game
from airloc.game.store import Store
from airloc.task.world import World


class Referee:
    """Lets people play on a world.

    Args:
        world: The areas, with their grid and budget.
        store: Where games are kept.
        seconds: The time limit of every game; infinite for none.
        clock: Seconds that never go back.
    """

    def __init__(self, world: World, store: Store, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.world = world
        self.store = store
        self.seconds = seconds
        self._clock = clock
        self._began: dict[str, float] = {}

    def begin(self, player: str, episode: Episode, slot: int | None = None) -> Game:
        """Begin a game; its time runs from now on."""
        game = self.store.begin(player, episode, self.world.budget, self.seconds, slot)
        self._began[game.id] = self._clock()
        return game

    def look(self, number: str, player: str) -> Game:
        """Give a player's game as it stands now.

        Raises:
            RefusedError: When it is none of this player's.
        """
        game = self.store.game(number)
        if game is None or game.player != player:
            raise no_such_game()
        return self._on_time(game)

    def move(self, number: str, player: str, turn: int, move: int) -> Game:
        """Make a move.

        Args:
            number: Which game.
            player: Who moves.
            turn: The number of the move, as the player sees it: a move that comes twice is made once.
            move: Which of the eight moves.

        Raises:
            RefusedError: When the game is none of this player's, is over, or has come to another turn; nothing changes.
        """
        game = self.look(number, player)
        if game.ending is not None:
            raise RefusedError(409, "over", "This game is over")
        if turn != game.turn:
            raise RefusedError(409, "turn", f"This game has come to turn {game.turn}, and the move is for turn {turn}")
        game = self.store.add_move(game, move, self._elapsed(game), game.ending_after((*game.moves, move)))
        self._drop_clock(game)
        return game

    def seconds_left(self, game: Game) -> float:
        """Time left of a game; none of one that is over."""
        return 0.0 if game.ending else max(0.0, game.seconds - self._elapsed(game))

    def expire(self) -> None:
        """End the games whose time is over although nobody asks; games without a clock wait for their players."""
        now = self._clock()
        for number in [number for number, began in self._began.items() if now - began >= self.seconds]:
            game = self.store.game(number)
            if game is not None:
                self._on_time(game)
            self._began.pop(number, None)

    def forget(self, number: str) -> None:
        """Delete a game."""
        self._began.pop(number, None)
        self.store.forget(number)

    def _on_time(self, game: Game) -> Game:
        """End the game if its time is over."""
        if game.ending is None and self._elapsed(game) >= game.seconds:
            game = self.store.end(game, game.seconds, "time")
        self._drop_clock(game)
        return game

    def _elapsed(self, game: Game) -> float:
        """Seconds played; a game from before the server's start goes on from what was recorded last."""
        began = self._began.setdefault(game.id, self._clock() - game.elapsed)
        return self._clock() - began

    def _drop_clock(self, game: Game) -> None:
        if game.ending is not None:
            self._began.pop(game.id, None)


def seconds_or_none(seconds: float) -> float | None:
    """A time as JSON can hold it: None for no limit."""
    return round(seconds, 3) if math.isfinite(seconds) else None
