"""Results of a study: people's games as a score like any agent's, and a summary of the participants.

Legend: E recorded games that are over, T budget.
"""

import csv
import io
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.metrics import Bootstrap, Interval
from airloc.evaluation.scores import Score
from airloc.game.store import ABSENT, Game
from airloc.game.study import Participant, Study
from airloc.grid import Cell, distance
from airloc.rollout import RolloutLog
from airloc.task.suites import Suite

HUMAN = "Human"
"""Name of the row."""

COLUMNS = (
    *("person", "age", "gender", "game", "area", "start_row", "start_col", "goal_row", "goal_col"),
    *("distance", "ending", "found", "moves", "seconds", "path"),
)


@dataclass(frozen=True)
class AgeSummary:
    """Ages of the participants who gave theirs."""

    said: int
    """Number of participants who gave their age."""
    span: tuple[int, int] | None
    mean: float | None
    median: float | None


@dataclass(frozen=True)
class ParticipantSuccess:
    """Success of one participant."""

    person: int
    games: int
    success: float
    success_by_distance: dict[str, float]


@dataclass(frozen=True)
class StudySummary:
    """The participants, and the spread of their success."""

    people: int
    games: int
    unfinished: int
    """Games that were begun and are not over; they do not count."""
    lost_by_time: int
    """Games whose time ran out while the page showed them; they count as not found."""
    left: int
    """Games that ended after the player had closed the page; they do not count."""
    disconnected: int
    """Games that ended without a page, which had not been closed; they do not count."""
    seconds_a_game: float
    success_ci95_over_people: Interval
    """Bootstrap interval that resamples participants."""
    age: AgeSummary
    gender: dict[str, int]
    success_by_person: list[ParticipantSuccess]


@dataclass(frozen=True)
class Results:
    """The finished games of a study."""

    games: tuple[Game, ...]
    """By participant, in order of play, (E,)."""
    people: tuple[Participant, ...]
    """Player of each game, (E,)."""
    absent: tuple[tuple[Game, Participant], ...]
    """Games that ended while no page showed them; they do not count."""
    unfinished: int
    """Games that were begun and are not over; they do not count."""
    areas: tuple[SearchArea, ...]
    suite: Suite
    """The episodes of the games, in the same order."""

    @classmethod
    def read(cls, study: Study) -> "Results":
        """Read the results of a study.

        Raises:
            AirlocError: If no game is over yet.
        """
        by_token = {person.token: person for person in study.participants()}
        recorded = sorted(study.store.recorded(), key=lambda game: (by_token[game.player].number, game.slot))
        over = [game for game in recorded if game.ending is not None]
        games = [game for game in over if game.ending not in ABSENT]
        if not games:
            raise AirlocError(f"No game of the study {str(study.path)!r} is finished", "Send the links and wait")
        areas = study.areas()
        return cls(
            games=tuple(games),
            people=tuple(by_token[game.player] for game in games),
            absent=tuple((game, by_token[game.player]) for game in over if game.ending in ABSENT),
            unfinished=len(recorded) - len(over),
            areas=tuple(areas),
            suite=_suite(study, areas, games),
        )

    def score(self) -> Score:
        """Return people's games as a score; its intervals resample areas, as those of agents do."""
        log = RolloutLog(
            agent=HUMAN,
            suite=self.suite,
            path=np.array([_padded_path(game) for game in self.games]),
            found=np.array([game.ending == "found" for game in self.games]),
            steps=np.array([game.turn if game.ending == "found" else game.budget for game in self.games]),
            seconds=sum(game.elapsed for game in self.games),
        )
        return Score.of(log, self.areas, seed=0)

    def summary(self, score: Score) -> StudySummary:
        """Summarize the participants; `score` is the result of `score()`."""
        players = list(dict.fromkeys(self.people))
        endings = Counter(game.ending for game in (*self.games, *(game for game, _ in self.absent)))
        bootstrap = Bootstrap([str(person.number) for person in self.people])
        return StudySummary(
            people=len(players),
            games=len(self.games),
            unfinished=self.unfinished,
            lost_by_time=endings["time"],
            left=endings["left"],
            disconnected=endings["disconnected"],
            seconds_a_game=statistics.fmean(game.elapsed for game in self.games),
            success_ci95_over_people=bootstrap.interval(score.metrics["success"]),
            age=_age_summary([person.age for person in players if person.age is not None]),
            gender=dict(sorted(Counter(person.gender or "not said" for person in players).items())),
            success_by_person=[self._success_of(person) for person in players],
        )

    def csv(self) -> str:
        """Return a CSV table with one row per game that is over, also of those that do not count."""
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(COLUMNS)
        over = [*zip(self.games, self.people, strict=True), *self.absent]
        for game, person in sorted(over, key=lambda row: (row[1].number, row[0].slot or 0)):
            start, goal = game.episode.start, game.episode.goal
            path = " ".join(f"{row}:{col}" for row, col in game.path)
            who = (person.number, person.age, person.gender, (game.slot or 0) + 1)
            where = (self.areas[game.episode.area].name, *start, *goal, distance(start, goal))
            how = (game.ending, int(game.ending == "found"), game.turn, f"{game.elapsed:.3f}", path)
            rows.writerow([*who, *where, *how])
        return out.getvalue()

    def _success_of(self, person: Participant) -> ParticipantSuccess:
        own = [game for game, player in zip(self.games, self.people, strict=True) if player == person]
        found: dict[int, list[bool]] = defaultdict(list)
        for game in own:
            found[distance(game.episode.start, game.episode.goal)].append(game.ending == "found")
        return ParticipantSuccess(
            person=person.number,
            games=len(own),
            success=statistics.fmean(game.ending == "found" for game in own),
            success_by_distance={str(away): statistics.fmean(found[away]) for away in sorted(found)},
        )


def _suite(study: Study, areas: Sequence[SearchArea], games: Sequence[Game]) -> Suite:
    return Suite(
        name=study.path.name,
        grid=study.grid,
        budget=study.config.budget,
        areas=tuple(area.name for area in areas),
        area=np.array([game.episode.area for game in games]),
        start=np.array([game.episode.start for game in games]),
        goal=np.array([game.episode.goal for game in games]),
    )


def _age_summary(ages: Sequence[int]) -> AgeSummary:
    if not ages:
        return AgeSummary(0, None, None, None)
    return AgeSummary(len(ages), (min(ages), max(ages)), statistics.fmean(ages), float(statistics.median(ages)))


def _padded_path(game: Game) -> list[Cell]:
    """Return the path with its last cell repeated to T + 1 cells."""
    return [*game.path, *[game.position] * (game.budget - game.turn)]
