"""The desk of a study: who has a link, what they have done, what comes next."""

from typing import Any, Literal

from airloc.game.lobby import FreeTable, Table, about_world
from airloc.game.match import Game, RefusedError
from airloc.game.study import Person, Study

Stage = Literal["consent", "practice", "games", "done"]


class StudyLobby:
    """Lets participants agree, practise, and play their games once.

    Args:
        study: The study.
        recorded: Where its games are played.
        practice: Where people practise; kept in memory alone.
    """

    def __init__(self, study: Study, recorded: Table, practice: FreeTable) -> None:
        self.study = study
        self._recorded = recorded
        self._practice = practice
        self._games = {person.token: study.games(person.number) for person in study.people()}

    def knows(self, token: str) -> bool:
        """Whether a token is a participant's."""
        return token in self._games

    def admit(self, token: str | None) -> str:
        """Give a participant's token; nobody else may play."""
        if token is None or not self.knows(token):
            raise RefusedError(401, "no-link", "This study is by invitation: open the link that you were given.")
        return token

    def about(self, token: str) -> dict[str, Any]:
        """What the page shows a participant before a game."""
        played, stage = self._played(token), self.stage(token)
        current = self._practice.current(token) if stage == "practice" else self._under_way(token)
        return {
            "mode": "study",
            **about_world(self._recorded.referee),
            "stage": stage,
            "consent": self.study.rules.consent,
            "games": len(self._games[token]),
            "next": len(played),
            "found": sum(game.ending == "found" for game in played),
            "current": current and current.id,
        }

    def stage(self, token: str) -> Stage:
        """What a participant does now."""
        return self._stage(self.study.person(token), self._played(token))

    def agree(self, token: str, age: int | None, gender: str | None) -> None:
        """Write that a participant agrees; once."""
        if self.stage(token) != "consent":
            raise RefusedError(409, "agreed", "You have agreed already")
        self.study.agree(token, age, gender)

    def end_practice(self, token: str) -> None:
        """Go on to the recorded games; there is no way back."""
        if self.stage(token) != "practice":
            raise RefusedError(409, "stage", "This is not the time to begin the recorded games")
        self.study.end_practice(token)

    def begin(self, token: str, recorded: bool) -> tuple[Table, Game]:
        """Begin a practice game, or the next recorded one."""
        stage = self.stage(token)
        if not recorded:
            if stage != "practice":
                raise RefusedError(409, "stage", "This is not the time to practise")
            return self._practice, self._practice.begin(token)
        if stage != "games":
            raise RefusedError(409, "stage", "There is no recorded game to begin now")
        if self._under_way(token) is not None:
            raise RefusedError(409, "game-under-way", "Your last game is not over yet")
        slot = len(self._played(token))
        return self._recorded, self._recorded.referee.begin(token, self._games[token][slot], slot)

    def table_of(self, game: str) -> Table:
        """Where a game is played."""
        return self._practice if self._recorded.referee.store.game(game) is None else self._recorded

    def tables(self) -> list[Table]:
        """Both places to play at."""
        return [self._recorded, self._practice]

    def progress(self) -> list[dict[str, Any]]:
        """How far everybody is, for those who run the study; looking does not start anybody's clock."""
        everybody = [(person, self.study.store.games_of(person.token)) for person in self.study.people()]
        return [
            {
                "person": person.number,
                "link": f"/join/{person.token}",
                "stage": self._stage(person, games),
                "played": sum(game.ending is not None for game in games),
                "games": len(self._games[person.token]),
            }
            for person, games in everybody
        ]

    def _stage(self, person: Person, games: list[Game]) -> Stage:
        if not person.agreed:
            return "consent"
        if not person.practised:
            return "practice"
        ended = sum(game.ending is not None for game in games)
        return "games" if ended < len(self._games[person.token]) else "done"

    def _played(self, token: str) -> list[Game]:
        referee = self._recorded.referee
        return [referee.look(game.id, token) for game in referee.store.games_of(token)]

    def _under_way(self, token: str) -> Game | None:
        return next((game for game in self._played(token) if game.ending is None), None)
