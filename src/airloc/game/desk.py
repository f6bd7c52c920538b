"""Who plays, and what: free play for anybody. `study_desk` is the other kind of desk.

A visitor gets a random token as a cookie. Visitors and their games are kept in memory, as many as `Bounds` allows.
"""

import secrets
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from airloc.game.match import Episode, Game
from airloc.game.referee import Referee, seconds_or_none
from airloc.game.refusal import RefusedError, no_such_game
from airloc.game.rivals import Rivals
from airloc.task.world import World


@dataclass(frozen=True)
class Bounds:
    """How much is kept for visitors."""

    visitors: int = 20_000
    """Visitors remembered; the one who has been away longest goes first."""
    games: int = 50
    """Games remembered of each, the oldest go first."""


class Table(Protocol):
    """A place to play at: the referee, and the agents that play the same episodes."""

    @property
    def referee(self) -> Referee:
        """Who holds the games."""
        ...

    @property
    def rivals(self) -> Rivals:
        """Who plays the same episodes afterwards."""
        ...


class Desk(Protocol):
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


class FreeTable:
    """Free play on a world: endless games, areas that the player has seen least first."""

    def __init__(self, referee: Referee, rivals: Rivals, games: int = Bounds.games) -> None:
        self.referee = referee
        self.rivals = rivals
        self._games = games
        self._rng = np.random.default_rng(secrets.randbits(128))

    def begin(self, token: str) -> Game:
        """Begin a game on an area that this player has played least often."""
        before = self.referee.store.games_of(token)
        for game in before[: max(0, len(before) - self._games + 1)]:
            self.referee.forget(game)
        return self.referee.begin(token, self._draw(before))

    def current(self, token: str) -> Game | None:
        """The player's latest game, if it goes on."""
        games = [self.referee.look(game.id, token) for game in self.referee.store.games_of(token)[-1:]]
        return next((game for game in games if game.ending is None), None)

    def tally(self, token: str) -> dict[str, int]:
        """How many games the player has ended, and how many goals were found."""
        endings = [game.ending for game in self.referee.store.games_of(token) if game.ending]
        return {"played": len(endings), "found": endings.count("found")}

    def _draw(self, before: list[Game]) -> Episode:
        world = self.referee.world
        played = Counter(game.episode.area for game in before)
        least = min(played[area] for area in range(len(world.names)))
        areas = [area for area in range(len(world.names)) if played[area] == least]
        (start,), (goal,) = world.sampler.draw(self._rng, 1)
        area = int(self._rng.choice(areas))
        return Episode(area, (int(start[0]), int(start[1])), (int(goal[0]), int(goal[1])))


class PlayDesk:
    """Free play for anybody.

    Args:
        table: Where they play.
        bounds: How much is kept.
    """

    def __init__(self, table: FreeTable, bounds: Bounds | None = None) -> None:
        self._table = table
        self._bounds = bounds or Bounds()
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
        if len(self._visitors) > self._bounds.visitors:
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
        for game in self._table.referee.store.games_of(token):
            self._table.referee.forget(game)


def about_world(referee: Referee) -> dict[str, Any]:
    """The sizes that a player is told beforehand."""
    world: World = referee.world
    return {
        "rows": world.grid.rows,
        "cols": world.grid.cols,
        "budget": world.budget,
        "seconds": seconds_or_none(referee.seconds),
    }
