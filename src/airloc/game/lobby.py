"""Who plays, and what: free play for anybody. `study_desk` is the other kind of desk.

A visitor gets a random token as a cookie. Visitors and their games are kept in memory, a bounded number of them.
"""

import secrets
from collections import Counter, OrderedDict
from typing import Any, Protocol

import numpy as np

from airloc.game.baselines import Baselines
from airloc.game.match import Episode, Game, RefusedError, no_such_game
from airloc.game.messages import Answers
from airloc.game.referee import Referee, seconds_or_none
from airloc.task.world import World

MAX_VISITORS = 20_000
"""Visitors remembered; the one who has been away longest goes first."""
MAX_GAMES = 50
"""Games remembered of each, the oldest go first."""


class Table:
    """A place to play at.

    Args:
        referee: Who holds the games.
        rivals: The agents that play the same episodes afterwards.
    """

    def __init__(self, referee: Referee, baselines: Baselines) -> None:
        self.referee = referee
        self.baselines = baselines
        self.answers = Answers(referee.world)


class Lobby(Protocol):
    """What the server asks about people."""

    def knows(self, token: str) -> bool:
        """Whether a token is somebody's."""
        ...

    def admit(self, token: str | None) -> str:
        """Give the token of whoever comes with this one; a new one for a stranger, where strangers may play.

        Raises:
            RefusedError: When they may not.
        """
        ...

    def about(self, token: str) -> dict[str, Any]:
        """What the page shows before a game."""
        ...

    def begin(self, token: str, recorded: bool) -> tuple[Table, Game]:
        """Begin this person's next game."""
        ...

    def table_of(self, game: str) -> Table:
        """Where a game is played."""
        ...

    def tables(self) -> list[Table]:
        """All places to play at."""
        ...


class FreeTable(Table):
    """Free play on a world: endless games, areas that the player has seen least first."""

    def __init__(self, referee: Referee, baselines: Baselines, games: int = MAX_GAMES) -> None:
        super().__init__(referee, baselines)
        self._games = games
        self._rng = np.random.default_rng(secrets.randbits(128))

    def begin(self, token: str) -> Game:
        """Begin a game on an area that this player has played least often."""
        before = self.referee.store.played(token)
        for number, _, _ in before[: max(0, len(before) - self._games + 1)]:
            self.referee.forget(number)
        return self.referee.begin(token, self._draw([area for _, area, _ in before]))

    def current(self, token: str) -> Game | None:
        """The player's latest game, if it goes on."""
        latest = self.referee.store.latest(token)
        game = latest and self.referee.look(latest.id, token)
        return game if game and game.ending is None else None

    def tally(self, token: str) -> dict[str, int]:
        """How many games the player has ended, and how many goals were found."""
        endings = [ending for _, _, ending in self.referee.store.played(token) if ending]
        return {"played": len(endings), "found": endings.count("found")}

    def _draw(self, before: list[int]) -> Episode:
        """Draw an episode, given the areas played before."""
        world, played = self.referee.world, Counter(before)
        least = min(played[area] for area in range(len(world.names)))
        areas = [area for area in range(len(world.names)) if played[area] == least]
        (start,), (goal,) = world.sampler.sample(self._rng, 1)
        return Episode(int(self._rng.choice(areas)), (int(start[0]), int(start[1])), (int(goal[0]), int(goal[1])))


class PlayDesk:
    """Free play for anybody.

    Args:
        table: Where they play.
        visitors: How many are remembered.
    """

    def __init__(self, table: FreeTable, visitors: int = MAX_VISITORS) -> None:
        self._table = table
        self._most = visitors
        self._visitors: OrderedDict[str, None] = OrderedDict()

    def knows(self, token: str) -> bool:
        """Whether a token is a visitor's."""
        return token in self._visitors

    def admit(self, token: str | None) -> str:
        """Give a visitor's token, a new one to a stranger."""
        if token is None or not self.knows(token):
            token = secrets.token_urlsafe(24)
        self._visitors[token] = None
        self._visitors.move_to_end(token)
        if len(self._visitors) > self._most:
            self._forget(self._visitors.popitem(last=False)[0])
        return token

    def about(self, token: str) -> dict[str, Any]:
        """What the page shows before a game."""
        current = self._table.current(token)
        return {
            "mode": "play",
            **about_world(self._table.referee),
            "current": current and current.id,
            "tally": self._table.tally(token),
        }

    def begin(self, token: str, recorded: bool) -> tuple[Table, Game]:
        """Begin the visitor's next game."""
        if recorded:
            raise RefusedError(409, "no-study", "There is no study here, only free play")
        return self._table, self._table.begin(token)

    def table_of(self, game: str) -> Table:
        """Where a game is played."""
        if self._table.referee.store.game(game) is None:
            raise no_such_game()
        return self._table

    def tables(self) -> list[Table]:
        """The one place to play at."""
        return [self._table]

    def _forget(self, token: str) -> None:
        for number, _, _ in self._table.referee.store.played(token):
            self._table.referee.forget(number)


def about_world(referee: Referee) -> dict[str, Any]:
    """The sizes that a player is told beforehand."""
    world: World = referee.world
    return {
        "rows": world.grid.rows,
        "cols": world.grid.cols,
        "budget": world.budget,
        "seconds": seconds_or_none(referee.seconds),
    }
