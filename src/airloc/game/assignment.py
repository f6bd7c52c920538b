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
_MOST_DRAWS = 64


def draw_episodes(areas: Sequence[str], grid: Grid, people: int, each: int, seed: int) -> list[Episode]:
    """Draw per-distance suites over the areas until no two people need the same episode, or nothing new comes.

    Args:
        areas: Names of the areas.
        grid: The grid laid on them.
        people: How many participants.
        each: Games per distance and participant.
        seed: Decides the draw; the first suite is the one that `airloc evaluate --seed` plays on the areas.
    """
    needed = people * each
    drawn: dict[Episode, None] = {}
    for turn in range(_MOST_DRAWS):
        drawn.update(dict.fromkeys(episodes_of(per_distance(areas, grid, seed=seed + turn))))
        counts = Counter(distance(episode.start, episode.goal) for episode in drawn)
        # A further suite leaves room where areas are few: everybody needs different ones.
        if min(counts.values()) >= needed + (len(areas) if turn else 0):
            break
    return list(drawn)


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
    for _ in range(people):
        chosen = _choose(slots, areas, offered, played, rng)
        played.update(chosen)
        games.append([chosen[i] for i in rng.permutation(len(chosen))])
    return games


def _choose(
    slots: Sequence[int],
    areas: Sequence[int],
    offered: dict[tuple[int, int], list[Episode]],
    played: Counter[Episode],
    rng: np.random.Generator,
) -> list[Episode]:
    """Choose one person's episodes on different areas, those that were played least, from the areas with most left."""
    best = {key: min(some, key=played.__getitem__) for key, some in offered.items()}
    fresh = {key: sum(not played[episode] for episode in some) for key, some in offered.items()}
    cost = np.full((len(slots), len(areas)), _IMPOSSIBLE)
    for (row, away), (col, area) in ((r, c) for r in enumerate(slots) for c in enumerate(areas)):
        if (away, area) in best:
            cost[row, col] = 1000 * played[best[away, area]] - fresh[away, area] + rng.random()
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
