"""A study: one SQLite file with its areas, episodes, participants and games.

The file holds the pixels of the areas, so that agents can play exactly what people saw on any machine. About a
participant it holds the moves, and the age and gender that they chose to give.
"""

import fcntl
import io
import json
import secrets
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy.optimize import linear_sum_assignment

from airloc.areas.area import Pixels, SearchArea
from airloc.errors import AirlocError
from airloc.files import check_writable, encode_png
from airloc.game.store import Episode, Store, check_seconds, connect
from airloc.grid import Grid, distance
from airloc.seeding import stream
from airloc.task.sampling import EpisodeSampler
from airloc.task.suites import Suite, per_distance

VERSION = 1
_CURE = "Give a file that airloc study create wrote"

_SCHEMA = """
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
_PEOPLE = "SELECT number, token, agreed, practised, age, gender FROM people"

CONSENT = """This is a study of how well people find places in aerial images. You see a small image of a place and \
look for it, one square at a time. You can practise first. It takes about fifteen minutes.

We record your moves and their times and, if you give them, your age and gender. We record nothing else about you, and \
nothing that identifies you. You can stop at any time by closing the page. You can also withdraw on the page: this \
deletes everything that we have recorded about you.
"""


@dataclass(frozen=True)
class StudyConfig:
    """Settings of a study."""

    grid: str = "5x5"
    budget: int = 10
    seconds: float = 60.0
    """Time limit of a game; infinite for none."""
    seed: int = 0
    consent: str = CONSENT
    """Text that participants agree to; empty lines separate paragraphs."""

    def __post_init__(self) -> None:
        check_seconds(self.seconds)
        if not self.consent.strip():
            raise AirlocError(
                "The consent text is empty", "Write what participants agree to, and give it with --consent"
            )


@dataclass(frozen=True)
class Participant:
    """A participant of a study."""

    number: int
    token: str
    """Secret part of the personal link."""
    agreed: bool
    practised: bool
    """True once they have started the recorded games."""
    age: int | None
    gender: str | None

    @property
    def withdrawn(self) -> bool:
        """True for a participant who took part and no longer agrees."""
        return self.practised and not self.agreed


class Study:
    """An open study.

    Raises:
        AirlocError: If the file is not a study, or a study of another version.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise AirlocError(f"The study {str(path)!r} does not exist", _CURE)
        self.admin_token, self.config = _read_facts(path)  # before the store adds its tables to the file
        self.grid = Grid.parse(self.config.grid)
        self.path = path
        self.store = Store(path)

    def participants(self) -> list[Participant]:
        """Return all participants."""
        return [_participant(row) for row in self.store.db.execute(f"{_PEOPLE} ORDER BY number").fetchall()]

    def participant(self, token: str) -> Participant:
        """Return the participant with this token."""
        return _participant(self.store.db.execute(f"{_PEOPLE} WHERE token = ?", (token,)).fetchone())

    def episodes(self, person: int) -> list[Episode]:
        """Return the episodes of a participant's recorded games, in order of play."""
        rows = self.store.db.execute(
            "SELECT area, start_row, start_col, goal_row, goal_col FROM assigned WHERE person = ? ORDER BY slot",
            (person,),
        )
        return [Episode(area, (a, b), (c, d)) for area, a, b, c, d in rows.fetchall()]

    def areas(self, *, practice: bool = False) -> list[SearchArea]:
        """Return the areas of the recorded games, or those of practice."""
        rows = self.store.db.execute(
            "SELECT name, tile, picture FROM areas WHERE practice = ? ORDER BY number", (int(practice),)
        )
        return [SearchArea(name, _decode(png), tile=tile) for name, tile, png in rows.fetchall()]

    def samplers(self) -> dict[str, EpisodeSampler]:
        """Return the episode samplers of the recorded games ("games") and of practice ("practice")."""
        areas = {"games": self.areas(), "practice": self.areas(practice=True)}
        return {
            name: EpisodeSampler.build(some, self.grid, self.config.budget, "per-distance", None)
            for name, some in areas.items()
        }

    def record_consent(self, token: str, age: int | None, gender: str | None) -> None:
        """Record that a participant has agreed, with age and gender if they gave them."""
        with self.store.db as db:
            db.execute("UPDATE people SET agreed = 1, age = ?, gender = ? WHERE token = ?", (age, gender, token))

    def record_practice_end(self, token: str) -> None:
        """Record that a participant has started the recorded games."""
        with self.store.db as db:
            db.execute("UPDATE people SET practised = 1 WHERE token = ?", (token,))

    def record_withdrawal(self, token: str) -> None:
        """Delete a participant's games, age and gender, and record that they have withdrawn."""
        with self.store.db as db:
            db.execute("DELETE FROM games WHERE player = ?", (token,))
            db.execute(
                "UPDATE people SET agreed = 0, practised = 1, age = NULL, gender = NULL WHERE token = ?", (token,)
            )
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the write-ahead log holds no copy either

    @contextmanager
    def served(self) -> Iterator[None]:
        """Keep the study for one server: two would not know of each other's clocks.

        Raises:
            AirlocError: If another server runs it.
        """
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # gone with the process, even after a SIGKILL
            except OSError as error:
                problem = f"Another server runs the study {str(self.path)!r}"
                raise AirlocError(problem, "Use that one, or stop it first") from error
            try:
                yield
            finally:
                self.store.close()  # first: closing the file would release SQLite's locks on it

    def backup(self, path: Path) -> None:
        """Copy the study to a new file, as it is at this moment. A server may run meanwhile.

        Raises:
            AirlocError: If the file exists or cannot be written.
        """
        if path.exists():
            raise AirlocError(f"The file {str(path)!r} already exists", "Choose another name for the copy")
        check_writable(path)
        part = path.with_name(f".{path.name}.part")
        try:
            part.touch(mode=0o600)
            with closing(sqlite3.connect(part)) as copy:
                self.store.db.backup(copy)
            part.rename(path)
        except (sqlite3.Error, OSError) as error:
            cure = "Free some space, or choose another disk"
            raise AirlocError(f"Cannot write the copy {str(path)!r}: {error}", cure) from error
        finally:
            part.unlink(missing_ok=True)


def _read_facts(path: Path) -> tuple[str, StudyConfig]:
    """Read the admin token and the settings of a study without changing a file that is none."""
    # Even a reader adds a log beside a file that has none, unless the file is declared immutable.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as db:
            facts = dict(db.execute("SELECT key, value FROM study").fetchall())
            for table in ("areas", "people", "assigned"):
                db.execute(f"SELECT 1 FROM {table}")
        if facts["version"] == str(VERSION):
            return facts["admin"], StudyConfig(**json.loads(facts["rules"]))
    except sqlite3.Error as error:
        raise AirlocError(f"{str(path)!r} is not a study: {error}", _CURE) from error
    except (KeyError, TypeError, ValueError) as error:
        raise AirlocError(f"{str(path)!r} is not a study: its settings are missing or damaged", _CURE) from error
    raise AirlocError(f"{str(path)!r} is a study of version {facts['version']}, not {VERSION}", _CURE)


def _participant(row: tuple[Any, ...]) -> Participant:
    number, token, agreed, practised, age, gender = row
    return Participant(number, token, bool(agreed), bool(practised), age, gender)


def _decode(png: bytes) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def create_study(
    path: Path,
    config: StudyConfig,
    areas: Sequence[SearchArea],
    practice: Sequence[SearchArea],
    games: Sequence[Sequence[Episode]],
) -> Study:
    """Create a study; nothing is left behind if that fails.

    Args:
        path: The file, which must not exist.
        config: Settings.
        areas: Areas of the recorded games, fitted to the grid.
        practice: Areas of the practice games, fitted to the grid.
        games: The episodes of each participant.

    Raises:
        AirlocError: If the file exists or cannot be written, or an area of practice is also one of the study.
    """
    if path.exists():
        raise AirlocError(f"The file {str(path)!r} already exists", "Choose another name; studies are not overwritten")
    pixels = {area.image.tobytes() for area in areas}
    if any(area.image.tobytes() in pixels for area in practice):
        raise AirlocError("An area of practice is also an area of the study", "Give other images with --practice")
    check_writable(path)
    try:
        _write(path, config, areas, practice, games)
        return Study(path)
    except BaseException as error:
        for suffix in ("", "-journal", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        if isinstance(error, (sqlite3.Error, OSError)):
            cure = "Free some space, or choose another disk"
            raise AirlocError(f"Cannot write the study {str(path)!r}: {error}", cure) from error
        raise


def _write(
    path: Path,
    config: StudyConfig,
    areas: Sequence[SearchArea],
    practice: Sequence[SearchArea],
    games: Sequence[Sequence[Episode]],
) -> None:
    db = connect(path)
    try:
        with db:
            db.executescript("BEGIN;" + _SCHEMA)
            facts = {"version": str(VERSION), "admin": secrets.token_urlsafe(24), "rules": json.dumps(asdict(config))}
            db.executemany("INSERT INTO study VALUES (?, ?)", facts.items())
            for kind, group in ((0, areas), (1, practice)):
                rows = ((n, kind, area.name, area.tile, encode_png(area.image)) for n, area in enumerate(group))
                db.executemany("INSERT INTO areas VALUES (?, ?, ?, ?, ?)", rows)
            for person, episodes in enumerate(games, start=1):
                db.execute("INSERT INTO people (number, token) VALUES (?, ?)", (person, secrets.token_urlsafe(24)))
                slots = ((person, slot, e.area, *e.start, *e.goal) for slot, e in enumerate(episodes))
                db.executemany("INSERT INTO assigned VALUES (?, ?, ?, ?, ?, ?, ?)", slots)
    finally:
        db.close()


_IMPOSSIBLE = 1e9
_REPEATED = 1e6
"""Cost of an episode that another participant plays: more than any cost that is not `_IMPOSSIBLE`."""
_SPARE_DRAWS = 16
"""Suites drawn beyond those needed, because draws on few cells repeat."""


def draw_games(areas: Sequence[str], grid: Grid, people: int, each: int, seed: int) -> list[list[Episode]]:
    """Draw the episodes of every participant from per-distance suites.

    Every participant plays the same number of episodes at each distance, each on another area. Suites are drawn until
    no two participants share an episode, or until further draws bring nothing new.

    Args:
        areas: Names of the areas.
        grid: The grid on the areas.
        people: Number of participants.
        each: Games per distance and participant.
        seed: Random seed; the first suite is the one of `airloc evaluate --seed` on these areas.

    Raises:
        AirlocError: If there are too few areas to play each game on another one.
    """
    drawn: dict[Episode, None] = {}
    games: list[list[Episode]] = []
    for turn in range(-(-people * each // len(areas)) + _SPARE_DRAWS):
        drawn.update(dict.fromkeys(episodes_of(per_distance(areas, grid, seed=seed + turn))))
        if len(drawn) >= people * each * grid.max_distance:
            games = assign_episodes(list(drawn), people, each, seed)
            if not count_shared(games):
                break
    return games or assign_episodes(list(drawn), people, each, seed)


def episodes_of(suite: Suite) -> list[Episode]:
    """Return the episodes of a suite."""
    rows = zip(suite.area.tolist(), suite.start.tolist(), suite.goal.tolist(), strict=True)
    return [Episode(area, (start[0], start[1]), (goal[0], goal[1])) for area, start, goal in rows]


def assign_episodes(episodes: Sequence[Episode], people: int, each: int, seed: int) -> list[list[Episode]]:
    """Return the episodes of each participant, in order of play, with `each` games per distance.

    Raises:
        AirlocError: If there are too few areas to play each game on another one.
    """
    rng = stream(seed, "study", "assignment")
    drawn: dict[tuple[int, int], list[Episode]] = defaultdict(list)
    for episode in (episodes[i] for i in rng.permutation(len(episodes))):
        drawn[distance(episode.start, episode.goal), episode.area].append(episode)
    distances, areas = (sorted({key[part] for key in drawn}) for part in (0, 1))
    available = [[drawn.get((away, area), []) for area in areas] for away in distances for _ in range(each)]
    games = []
    size = np.array([[len(some) for some in row] for row in available])
    used = np.zeros_like(size)
    for people_left in range(people, 0, -1):
        slots = _choose_areas(size, used, each, people_left, rng)
        chosen = [available[row][col][used[row, col] % size[row, col]] for row, col in enumerate(slots)]
        for row, col in enumerate(slots):
            first = row - row % each
            used[first : first + each, col] += 1  # the slots of a distance share its episodes
        games.append([chosen[i] for i in rng.permutation(len(chosen))])
    return games


def _choose_areas(
    size: npt.NDArray[np.int64], used: npt.NDArray[np.int64], each: int, people_left: int, rng: np.random.Generator
) -> list[int]:
    """Choose one participant's areas, a different one for each slot, where the episodes are least used.

    An area with as many unused episodes as participants left comes first: each of them has to take one, or some
    episodes would never be played (the decomposition of a bipartite graph into matchings).

    Args:
        size: Number of episodes by slot and area; the `each` slots of a distance follow each other.
        used: How often one of them was chosen.
        each: Games per distance and participant.
        people_left: Number of participants without games.
        rng: Random numbers for ties.
    """
    unused = np.maximum(size - used, 0)[::each].sum(axis=0)
    there = size > 0
    cost = np.full(size.shape, _IMPOSSIBLE)
    urgency = np.broadcast_to(1000 * (unused >= people_left) + unused, size.shape)
    cost[there] = _REPEATED * (used[there] // size[there]) - urgency[there] + rng.random(there.sum())
    slots, areas = size.shape
    rows, cols = linear_sum_assignment(cost) if areas >= slots else ([], [])
    if len(rows) < slots or cost[rows, cols].max() >= _IMPOSSIBLE:
        raise AirlocError(
            f"{areas} areas are too few for {slots} games per participant, each on another area",
            "Give more areas, or fewer games with --per-distance",
        )
    return [int(col) for col in cols]


def count_shared(games: Sequence[Sequence[Episode]]) -> int:
    """Return how many games use an episode that another game already uses."""
    uses = Counter(episode for some in games for episode in some)
    return sum(uses.values()) - len(uses)
