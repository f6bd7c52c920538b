"""Which games each participant plays: as many of every distance, each on another area, none twice while they last."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from airloc.errors import AirlocError
from airloc.game.match import Episode
from airloc.grid import Grid, distance
from airloc.seeding import stream
from airloc.task.suites import Suite, per_distance

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
