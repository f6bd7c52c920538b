"""A study: one SQLite file with its areas, its games, its people and all that they did.

The areas' pixels are in the file, so that the agents can play exactly what people saw, wherever the file is taken.
About a person it holds what they chose to say of age and gender, and their moves; nothing else.
"""

import io
import json
import secrets
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.optimize import linear_sum_assignment

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.files import check_writable, encode_png
from airloc.game.match import Episode
from airloc.game.store import Store, connect
from airloc.grid import Grid, distance
from airloc.seeding import stream
from airloc.task.suites import Suite, per_distance

VERSION = 1
CURE = "Give a file that airloc study create made"

SCHEMA = """
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE areas (
    number INTEGER NOT NULL, practice INTEGER NOT NULL, name TEXT NOT NULL, tile TEXT NOT NULL, picture BLOB NOT NULL,
    PRIMARY KEY (practice, number)
);
CREATE TABLE people (
    number INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE,
    agreed INTEGER NOT NULL DEFAULT 0, practised INTEGER NOT NULL DEFAULT 0, age INTEGER, gender TEXT
);
CREATE TABLE assigned (
    person INTEGER NOT NULL REFERENCES people (number), slot INTEGER NOT NULL, area INTEGER NOT NULL,
    start_row INTEGER NOT NULL, start_col INTEGER NOT NULL, goal_row INTEGER NOT NULL, goal_col INTEGER NOT NULL,
    PRIMARY KEY (person, slot)
);
"""

CONSENT = """This is a study of how well people find places in aerial pictures. You will see a small picture of a \
place and look for it, one square at a time. You can practise first. It takes about fifteen minutes.

Recorded are your moves with their times and, if you give them, your age and gender. Nothing else about you is \
recorded, and nothing tells who you are. You can stop at any time by closing the page.
"""


@dataclass(frozen=True)
class Rules:
    """What a study is played by."""

    grid: str = "5x5"
    budget: int = 10
    seconds: float = 60.0
    seed: int = 0
    consent: str = CONSENT


@dataclass(frozen=True)
class Person:
    """A participant."""

    number: int
    token: str
    """Their link's secret part."""
    agreed: bool
    practised: bool
    """Whether they have gone on to the recorded games."""
    age: int | None
    gender: str | None


class Study:
    """An open study.

    Args:
        path: The file.

    Raises:
        AirlocError: When it is no study, or one of another version.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise AirlocError(f"There is no study {str(path)!r}", CURE)
        try:
            self.store = Store(path)
            held = dict(self.store.db.execute("SELECT key, value FROM study").fetchall())
        except sqlite3.Error as error:
            raise AirlocError(f"{str(path)!r} is no study: {error}", CURE) from error
        if held.get("version") != str(VERSION):
            raise AirlocError(f"{str(path)!r} is a study of version {held.get('version')}, not {VERSION}", CURE)
        self.path = path
        self.admin = held["admin"]
        self.rules = Rules(**json.loads(held["rules"]))
        self.grid = Grid.parse(self.rules.grid)

    def people(self) -> list[Person]:
        """All participants."""
        return [_person(row) for row in self.store.db.execute(f"{_PEOPLE} ORDER BY number").fetchall()]

    def person(self, token: str) -> Person:
        """The participant of a token that is somebody's."""
        return _person(self.store.db.execute(f"{_PEOPLE} WHERE token = ?", (token,)).fetchone())

    def games(self, person: int) -> list[Episode]:
        """What a participant is to play, in order."""
        rows = self.store.db.execute(
            "SELECT area, start_row, start_col, goal_row, goal_col FROM assigned WHERE person = ? ORDER BY slot",
            (person,),
        )
        return [Episode(area, (a, b), (c, d)) for area, a, b, c, d in rows.fetchall()]

    def areas(self, *, practice: bool = False) -> list[SearchArea]:
        """The areas of the recorded games, or those of practice."""
        rows = self.store.db.execute(
            "SELECT name, tile, picture FROM areas WHERE practice = ? ORDER BY number", (int(practice),)
        )
        return [SearchArea(name, _pixels(picture), tile=tile) for name, tile, picture in rows.fetchall()]

    def agree(self, token: str, age: int | None, gender: str | None) -> None:
        """Write that a participant has agreed, and what they chose to say."""
        with self.store.db as db:
            db.execute("UPDATE people SET agreed = 1, age = ?, gender = ? WHERE token = ?", (age, gender, token))

    def end_practice(self, token: str) -> None:
        """Write that a participant goes on to the recorded games."""
        with self.store.db as db:
            db.execute("UPDATE people SET practised = 1 WHERE token = ?", (token,))


_PEOPLE = "SELECT number, token, agreed, practised, age, gender FROM people"


def _person(row: tuple[Any, ...]) -> Person:
    number, token, agreed, practised, age, gender = row
    return Person(number, token, bool(agreed), bool(practised), age, gender)


def create_study(
    path: Path,
    rules: Rules,
    areas: Sequence[SearchArea],
    practice: Sequence[SearchArea],
    games: Sequence[Sequence[Episode]],
) -> Study:
    """Write a new study.

    Args:
        path: The file; it must not exist.
        rules: What it is played by.
        areas: The areas of the recorded games, fitted to the grid.
        practice: The areas of practice, fitted to the grid.
        games: The episodes of every participant.
    """
    if path.exists():
        raise AirlocError(f"There is a file {str(path)!r} already", "Choose another name; studies are never replaced")
    shown = {_content(area) for area in areas}
    if any(_content(area) in shown for area in practice):
        raise AirlocError("An area of practice is one of the study too", "Give other pictures with --practice")
    check_writable(path)
    db = connect(path)
    try:
        with db:
            db.executescript("BEGIN;" + SCHEMA)
            _fill(db, rules, areas, practice, games)
    except BaseException:
        db.close()
        path.unlink(missing_ok=True)
        raise
    db.close()
    return Study(path)


def _fill(
    db: sqlite3.Connection,
    rules: Rules,
    areas: Sequence[SearchArea],
    practice: Sequence[SearchArea],
    games: Sequence[Sequence[Episode]],
) -> None:
    facts = {"version": str(VERSION), "admin": secrets.token_urlsafe(24), "rules": json.dumps(asdict(rules))}
    db.executemany("INSERT INTO study VALUES (?, ?)", facts.items())
    for kind, some in ((0, areas), (1, practice)):
        rows = ((n, kind, area.name, area.tile, encode_png(area.image)) for n, area in enumerate(some))
        db.executemany("INSERT INTO areas VALUES (?, ?, ?, ?, ?)", rows)
    for person, episodes in enumerate(games):
        db.execute("INSERT INTO people (number, token) VALUES (?, ?)", (person + 1, secrets.token_urlsafe(24)))
        slots: list[tuple[Any, ...]] = [(person + 1, n, e.area, *e.start, *e.goal) for n, e in enumerate(episodes)]
        db.executemany("INSERT INTO assigned VALUES (?, ?, ?, ?, ?, ?, ?)", slots)


def _pixels(picture: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


def _content(area: SearchArea) -> bytes:
    return area.image.tobytes()


# ---------- Which games each participant plays: as many of every distance, each on another area, none twice while they last.
# ~

_IMPOSSIBLE = 1e9
_AGAIN = 1e6
"""What it costs to play an episode once more: more than anything that is not impossible."""
_SPARE_DRAWS = 16
"""Suites beyond those needed: draws on few cells repeat themselves."""


def draw_games(areas: Sequence[str], grid: Grid, people: int, each: int, seed: int) -> list[list[Episode]]:
    """Draw per-distance suites over the areas until everybody has games of their own, or nothing new comes.

    Args:
        areas: Names of the areas.
        grid: The grid laid on them.
        people: How many participants.
        each: Games per distance and participant.
        seed: Decides the draw; the first suite is the one that `airloc evaluate --seed` plays on the areas.

    Raises:
        AirlocError: When there are not enough areas for games that all lie on different ones.
    """
    drawn: dict[Episode, None] = {}
    games: list[list[Episode]] = []
    for turn in range(-(-people * each // len(areas)) + _SPARE_DRAWS):
        drawn.update(dict.fromkeys(episodes_of(per_distance(areas, grid, seed=seed + turn))))
        if len(drawn) >= people * each * grid.max_distance:
            games = assign(list(drawn), people, each, seed)
            if not overlaps(games):
                break
    return games or assign(list(drawn), people, each, seed)


def episodes_of(suite: Suite) -> list[Episode]:
    """The episodes of a suite."""
    rows = zip(suite.area.tolist(), suite.start.tolist(), suite.goal.tolist(), strict=True)
    return [Episode(area, (start[0], start[1]), (goal[0], goal[1])) for area, start, goal in rows]


def assign(episodes: Sequence[Episode], people: int, each: int, seed: int) -> list[list[Episode]]:
    """Give every participant their games, in the order of play.

    Args:
        episodes: What there is to play.
        people: How many participants.
        each: Games per distance and participant.
        seed: Decides who plays what in which order.

    Raises:
        AirlocError: When there are not enough areas for games that all lie on different ones.
    """
    rng = stream(seed, "study", "assignment")
    offered: dict[tuple[int, int], list[Episode]] = defaultdict(list)
    for episode in (episodes[i] for i in rng.permutation(len(episodes))):
        offered[distance(episode.start, episode.goal), episode.area].append(episode)
    distances, areas = (sorted({key[part] for key in offered}) for part in (0, 1))
    slots = [away for away in distances for _ in range(each)]
    played: Counter[Episode] = Counter()
    games = []
    for left in range(people, 0, -1):
        chosen = _choose(slots, areas, offered, played, left, rng)
        played.update(chosen)
        games.append([chosen[i] for i in rng.permutation(len(chosen))])
    return games


def _choose(
    slots: Sequence[int],
    areas: Sequence[int],
    offered: dict[tuple[int, int], list[Episode]],
    played: Counter[Episode],
    left: int,
    rng: np.random.Generator,
) -> list[Episode]:
    """Choose one person's episodes on different areas, those that were played least.

    Areas with as many fresh episodes as there are people left come first: everybody has to take one from then on, or
    some would never be played. That is how a bipartite graph is taken apart into matchings.
    """
    best = {key: min(some, key=played.__getitem__) for key, some in offered.items()}
    fresh = Counter(area for (_, area), some in offered.items() for episode in some if not played[episode])
    cost = np.full((len(slots), len(areas)), _IMPOSSIBLE)
    for (row, away), (col, area) in ((r, c) for r in enumerate(slots) for c in enumerate(areas)):
        if (away, area) in best:
            urgent = 1000 * (fresh[area] >= left)
            cost[row, col] = _AGAIN * played[best[away, area]] - urgent - fresh[area] + rng.random()
    rows, cols = linear_sum_assignment(cost) if len(areas) >= len(slots) else ([], [])
    if len(rows) < len(slots) or cost[rows, cols].max() >= _IMPOSSIBLE:
        raise AirlocError(
            f"{len(areas)} areas are too few for {len(slots)} games a person, each on another area",
            "Give more areas, or fewer games with --per-distance",
        )
    return [best[slots[row], areas[col]] for row, col in zip(rows, cols, strict=True)]


def overlaps(games: Sequence[Sequence[Episode]]) -> int:
    """How many games are played by somebody else too."""
    times = Counter(episode for some in games for episode in some)
    return sum(times.values()) - len(times)
