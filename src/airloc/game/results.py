"""What people did in a study, as a score like any agent's, and who they were.

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
from airloc.evaluation.evaluate import Score
from airloc.evaluation.intervals import Bootstrap, Interval
from airloc.game.match import Game
from airloc.game.study import Person, Study
from airloc.grid import Cell, distance
from airloc.rollout import RolloutLog
from airloc.task.suites import Suite

HUMAN = "Human"
"""The name of the row."""

COLUMNS = (
    *("person", "age", "gender", "game", "area", "start_row", "start_col", "goal_row", "goal_col"),
    *("distance", "ending", "found", "moves", "seconds", "path"),
)


@dataclass(frozen=True)
class Ages:
    """How old people are, of those who said."""

    said: int
    span: tuple[int, int] | None
    mean: float | None
    median: float | None


@dataclass(frozen=True)
class PersonSuccess:
    """What one person found."""

    person: int
    games: int
    success: float
    success_by_distance: dict[str, float]


@dataclass(frozen=True)
class People:
    """Who played, and how the success of people spreads."""

    people: int
    games: int
    unfinished: int
    """Games that were begun and are not over; they do not count."""
    lost_by_time: int
    seconds_a_game: float
    success_ci95_over_people: Interval
    age: Ages
    gender: dict[str, int]
    success_by_person: list[PersonSuccess]


@dataclass(frozen=True)
class Results:
    """The games of a study that are over."""

    games: tuple[Game, ...]
    """By person, in the order of play."""
    people: tuple[Person, ...]
    """Who played each of them."""
    unfinished: int
    """Games that were begun and are not over; they do not count."""
    areas: tuple[SearchArea, ...]
    suite: Suite
    """The episodes of the games, in their order."""

    @property
    def players(self) -> list[Person]:
        """Everybody who has ended a game, once."""
        return list(dict.fromkeys(self.people))

    def score(self) -> Score:
        """People's games as a score; intervals resample areas, as those of agents do."""
        log = RolloutLog(
            agent=HUMAN,
            suite=self.suite,
            path=np.array([_padded(game) for game in self.games]),
            found=np.array([game.ending == "found" for game in self.games]),
            steps=np.array([game.turn if game.ending == "found" else game.budget for game in self.games]),
            seconds=sum(game.elapsed for game in self.games),
        )
        return Score.of(log, self.areas, seed=0)

    def of_people(self, score: Score) -> People:
        """Who played, and how the success of people spreads: its interval resamples people."""
        players = self.players
        people = Bootstrap([str(person.number) for person in self.people])
        return People(
            people=len(players),
            games=len(self.games),
            unfinished=self.unfinished,
            lost_by_time=sum(game.ending == "time" for game in self.games),
            seconds_a_game=statistics.fmean(game.elapsed for game in self.games),
            success_ci95_over_people=people.interval(score.metrics["success"]),
            age=_ages([person.age for person in players if person.age is not None]),
            gender=dict(sorted(Counter(person.gender or "not said" for person in players).items())),
            success_by_person=[self._success(person) for person in players],
        )

    def _success(self, person: Person) -> PersonSuccess:
        """One person's games and finds, in all and for every distance."""
        own = [game for game, player in zip(self.games, self.people, strict=True) if player == person]
        finds: dict[str, list[bool]] = defaultdict(list)
        for game in sorted(own, key=lambda game: distance(game.episode.start, game.episode.goal)):
            finds[str(distance(game.episode.start, game.episode.goal))].append(game.ending == "found")
        return PersonSuccess(
            person=person.number,
            games=len(own),
            success=statistics.fmean(game.ending == "found" for game in own),
            success_by_distance={away: statistics.fmean(found) for away, found in finds.items()},
        )

    def csv(self) -> str:
        """One line a game."""
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(COLUMNS)
        for game, person in zip(self.games, self.people, strict=True):
            start, goal = game.episode.start, game.episode.goal
            path = " ".join(f"{row}:{col}" for row, col in game.path)
            who = (person.number, person.age, person.gender, (game.slot or 0) + 1)
            where = (self.areas[game.episode.area].name, *start, *goal, distance(start, goal))
            how = (game.ending, int(game.ending == "found"), game.turn, f"{game.elapsed:.3f}", path)
            rows.writerow([*who, *where, *how])
        return out.getvalue()


def results_of(study: Study) -> Results:
    """Read what people did.

    Raises:
        AirlocError: When no game is over yet.
    """
    by_token = {person.token: person for person in study.people()}
    recorded = sorted(study.store.recorded(), key=lambda game: (by_token[game.player].number, game.slot))
    games = [game for game in recorded if game.ending is not None]
    if not games:
        raise AirlocError(f"Nobody has ended a game of {str(study.path)!r} yet", "Send the links, and wait")
    areas = study.areas()
    return Results(
        games=tuple(games),
        people=tuple(by_token[game.player] for game in games),
        unfinished=len(recorded) - len(games),
        areas=tuple(areas),
        suite=_suite(study, areas, games),
    )


def _suite(study: Study, areas: Sequence[SearchArea], games: Sequence[Game]) -> Suite:
    return Suite(
        name=study.path.name,
        grid=study.grid,
        budget=study.rules.budget,
        areas=tuple(area.name for area in areas),
        area=np.array([game.episode.area for game in games]),
        start=np.array([game.episode.start for game in games]),
        goal=np.array([game.episode.goal for game in games]),
    )


def _ages(ages: Sequence[int]) -> Ages:
    if not ages:
        return Ages(0, None, None, None)
    return Ages(len(ages), (min(ages), max(ages)), statistics.fmean(ages), float(statistics.median(ages)))


def _padded(game: Game) -> list[Cell]:
    """The path with its last cell repeated to T + 1 cells."""
    return [*game.path, *[game.position] * (game.budget - game.turn)]
