"""Lobbies: who may play, and which game comes next. `PlayLobby` is for free play, `StudyLobby` for a study.

A visitor of free play gets a random token as a cookie; visitors and their games are kept in memory. A participant of a
study gets the token from a personal link.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from airloc.game.messages import seconds_or_none
from airloc.game.room import PlayRoom, Room
from airloc.game.store import Game, RefusedError, Store, UnknownGameError
from airloc.game.study import Participant, Study
from airloc.game.worker_pool import Baselines, WorkerPool
from airloc.task.sampling import EpisodeSampler

T = TypeVar("T")
MAX_VISITORS = 20_000
"""Visitors kept; the longest absent is dropped first."""

Stage = Literal["consent", "practice", "games", "done", "withdrawn"]
"""Where a participant is in a study."""


class Lobby(Protocol):
    """Admits players and begins their games. Only `is_player` and `run` may be called from an event loop."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function that uses the lobby in the thread of its store; see `Store.run`."""
        ...

    def is_player(self, token: str) -> bool:
        """Return True if the token belongs to a player."""
        ...

    def admit(self, token: str | None) -> str:
        """Return the token of a player; a visitor without one may get a new token.

        Raises:
            RefusedError: If only invited players may play.
        """
        ...

    def info(self, token: str) -> dict[str, Any]:
        """Return what the page shows before a game."""
        ...

    def begin(self, token: str, *, recorded: bool) -> tuple[Room, Game]:
        """Begin the player's next game.

        Raises:
            RefusedError: If the player may not begin such a game now.
        """
        ...

    def room_of(self, game_id: str) -> Room:
        """Return the room of a game."""
        ...

    @property
    def rooms(self) -> list[Room]:
        """All rooms."""
        ...


class PlayLobby:
    """Free play for any visitor, in one room."""

    def __init__(self, room: PlayRoom, max_visitors: int = MAX_VISITORS) -> None:
        self._room = room
        self._max_visitors = max_visitors
        self._visitors: OrderedDict[str, None] = OrderedDict()

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function that uses the lobby in the thread of its store."""
        return await self._room.store.run(work)

    def is_player(self, token: str) -> bool:
        """Return True if the token belongs to a visitor."""
        return token in self._visitors

    def admit(self, token: str | None) -> str:
        """Return a visitor's token, a new one for a new visitor."""
        if token is None or not self.is_player(token):
            token = secrets.token_urlsafe(24)
        self._visitors[token] = None
        self._visitors.move_to_end(token)
        if len(self._visitors) > self._max_visitors:
            self._delete_games(self._visitors.popitem(last=False)[0])
        return token

    def info(self, token: str) -> dict[str, Any]:
        """Return what the page shows before a game."""
        current = self._room.current(token)
        return {
            "mode": "play",
            **_room_info(self._room),
            "current": current and current.id,
            "tally": self._room.tally(token),
        }

    def begin(self, token: str, *, recorded: bool) -> tuple[Room, Game]:
        """Begin the visitor's next game."""
        if recorded:
            raise RefusedError(409, "no-study", "This server has no study, only free play.")
        return self._room, self._room.begin_random(token)

    def room_of(self, game_id: str) -> Room:
        """Return the room of a game."""
        if self._room.store.game(game_id) is None:
            raise UnknownGameError
        return self._room

    @property
    def rooms(self) -> list[Room]:
        """The only room."""
        return [self._room]

    def _delete_games(self, token: str) -> None:
        for game_id, _, _ in self._room.store.history(token):
            self._room.delete(game_id)


class StudyLobby:
    """Participants of a study give consent, practise, and play their recorded games once.

    Args:
        study: The study.
        games_room: Room of the recorded games.
        practice_room: Room of the practice games, which are kept in memory.
    """

    def __init__(self, study: Study, games_room: Room, practice_room: PlayRoom) -> None:
        self.study = study
        self._games_room = games_room
        self._practice_room = practice_room
        self._episodes = {person.token: study.episodes(person.number) for person in study.participants()}

    @classmethod
    def open(
        cls, study: Study, samplers: Mapping[str, EpisodeSampler], worker_pool: WorkerPool, agents: Sequence[str]
    ) -> "StudyLobby":
        """Open the rooms of a study on `study.samplers()`; the paths of the agents are shown after a game."""
        baselines = {name: Baselines(agents, worker_pool, name) for name in samplers}
        seconds = study.config.seconds
        return cls(
            study,
            Room(samplers["games"], study.store, seconds, baselines["games"]),
            PlayRoom(samplers["practice"], Store(), seconds, baselines["practice"]),
        )

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function that uses the lobby in the thread of the study's store."""
        return await self.study.store.run(work)

    def is_player(self, token: str) -> bool:
        """Return True if the token belongs to a participant."""
        return token in self._episodes

    def admit(self, token: str | None) -> str:
        """Return a participant's token; nobody else may play."""
        if token is None or not self.is_player(token):
            raise RefusedError(401, "no-link", "This study is by invitation only. Open the link that you received.")
        return token

    def info(self, token: str) -> dict[str, Any]:
        """Return what the page shows a participant before a game."""
        games = self._games(token)
        stage = self._stage(self.study.participant(token), games)
        current = self._practice_room.current(token) if stage == "practice" else _in_progress(games)
        return {
            "mode": "study",
            **_room_info(self._games_room),
            "stage": stage,
            "consent": self.study.config.consent,
            "games": len(self._episodes[token]),
            "next": len(games),
            "found": sum(game.ending == "found" for game in games),
            "current": current and current.id,
        }

    def stage(self, token: str) -> Stage:
        """Return where a participant is in the study."""
        return self._stage(self.study.participant(token), self._games(token))

    def give_consent(self, token: str, age: int | None, gender: str | None) -> None:
        """Record a participant's consent, once."""
        if self.stage(token) != "consent":
            raise RefusedError(409, "agreed", "You have already agreed.")
        self.study.record_consent(token, age, gender)

    def end_practice(self, token: str) -> None:
        """Continue to the recorded games; a participant cannot go back to practice."""
        if self.stage(token) != "practice":
            raise RefusedError(409, "stage", "You cannot start the recorded games now.")
        self.study.record_practice_end(token)

    def withdraw(self, token: str) -> None:
        """Delete what is recorded about a participant, who cannot take part again."""
        if self.stage(token) == "consent":
            raise RefusedError(409, "stage", "Nothing about you has been recorded.")
        self.study.record_withdrawal(token)
        for game_id, _, _ in self._practice_room.store.history(token):
            self._practice_room.delete(game_id)

    def begin(self, token: str, *, recorded: bool) -> tuple[Room, Game]:
        """Begin a practice game, or the next recorded game."""
        games = self._games(token)
        stage = self._stage(self.study.participant(token), games)
        if not recorded:
            if stage != "practice":
                raise RefusedError(409, "stage", "You cannot practise now.")
            return self._practice_room, self._practice_room.begin_random(token)
        if stage != "games":
            raise RefusedError(409, "stage", "You cannot start a recorded game now.")
        if _in_progress(games) is not None:
            raise RefusedError(409, "game-in-progress", "Your last game is still in progress.")
        slot = len(games)
        return self._games_room, self._games_room.begin(token, self._episodes[token][slot], slot)

    def room_of(self, game_id: str) -> Room:
        """Return the room of a game."""
        return self._practice_room if self._games_room.store.game(game_id) is None else self._games_room

    @property
    def rooms(self) -> list[Room]:
        """The rooms of the recorded games and of practice."""
        return [self._games_room, self._practice_room]

    def progress(self) -> list[dict[str, Any]]:
        """Return every participant's progress. Reading it starts no clock."""
        games = {person: self.study.store.games_of(person.token) for person in self.study.participants()}
        return [
            {
                "person": person.number,
                "link": f"/join/{person.token}",
                "stage": self._stage(person, own),
                "played": sum(game.ending is not None for game in own),
                "games": len(self._episodes[person.token]),
            }
            for person, own in games.items()
        ]

    def _stage(self, person: Participant, games: list[Game]) -> Stage:
        if person.withdrawn:
            return "withdrawn"
        if not person.agreed:
            return "consent"
        if not person.practised:
            return "practice"
        ended = sum(game.ending is not None for game in games)
        return "games" if ended < len(self._episodes[person.token]) else "done"

    def _games(self, token: str) -> list[Game]:
        """Return a participant's recorded games, up to date with the clock."""
        return [self._games_room.up_to_date(game) for game in self._games_room.store.games_of(token)]


def _in_progress(games: Sequence[Game]) -> Game | None:
    return next((game for game in games if game.ending is None), None)


def _room_info(room: Room) -> dict[str, Any]:
    return {
        "rows": room.sampler.grid.rows,
        "cols": room.sampler.grid.cols,
        "budget": room.sampler.budget,
        "seconds": seconds_or_none(room.seconds),
    }
