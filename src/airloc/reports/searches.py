"""Searches to look at: step by step as a strip or an animation, and a sheet of those that failed.

Frames show what the agent knows: visited cells as they look, the others under its belief, or dark where it has none.
The last frame shows the whole area with the path flown.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image

from airloc.areas.area import Pixels, SearchArea
from airloc.areas.changes import CHANGES, View, take
from airloc.areas.prepared import Prepared
from airloc.areas.synthetic import generate
from airloc.drawing.heatmap import belief_strip, draw_belief, percent, stacked
from airloc.drawing.page import figure, image_tag, row
from airloc.drawing.palette import PATH_A, PATH_B
from airloc.drawing.sheet import contact_sheet
from airloc.drawing.trajectory import draw_trajectory
from airloc.grid import Cell, Grid, distance
from airloc.reports.figures import Figure
from airloc.reports.outcomes import Outcome, Outcomes, Setup
from airloc.rollout import EpisodeRecord, RolloutLog
from airloc.seeding import stream

COLUMNS = 6
"""The most frames in a row of a strip."""


def search_strip(searches: Sequence[EpisodeRecord], grid: Grid, *, scale: int = 2) -> Pixels:
    """Lay the steps of searches over one area in rows, each search after the goal that it was given.

    Args:
        searches: How agents searched for one goal, from one start.
        grid: The grid.
        scale: Pixels of the picture for one of the grid.
    """
    top, margin = _top(searches, grid), _margin(searches, grid)
    strips = []
    for search in searches:
        goal = _goal_tile(search, grid, scale)
        frames, captions = _frames(search, grid, scale, top, margin), _captions(search)
        columns = balanced(len(frames))
        captions[0] = f"{search.agent} at the {captions[0]}"
        for first in range(0, len(frames) + -(-len(frames) // columns), columns + 1):
            frames.insert(first, goal if first == 0 else np.full_like(goal, 255))
            captions.insert(first, "" if first else "goal")
        strips.append(belief_strip(_level(frames), captions, columns=columns + 1))
    return _framed(stacked(strips, gap=20 * scale))


def balanced(frames: int) -> int:
    """Frames in a row of a strip, so that its rows, as few as can be, are about equally long.

    >>> balanced(2), balanced(6), balanced(7), balanced(11)
    (2, 6, 4, 6)
    """
    return -(-frames // -(-frames // COLUMNS))


def search_animation(searches: Sequence[EpisodeRecord], grid: Grid, *, scale: int = 2) -> list[Pixels]:
    """The frames of an animation of searches over one area, side by side; those that end first wait for the others."""
    top, margin = _top(searches, grid), _margin(searches, grid)
    panels = [_level(_frames(search, grid, scale, top, margin)) for search in searches]
    captions = [[f"{search.agent}: {caption}" for caption in _captions(search)] for search in searches]
    goal = _goal_tile(searches[0], grid, scale)
    moments = []
    for step in range(max(map(len, panels))):
        now = [frames[min(step, len(frames) - 1)] for frames in panels]
        said = [texts[min(step, len(texts) - 1)] for texts in captions]
        moments.append(_framed(belief_strip(_level([goal, *now]), ["goal", *said])))
    return moments


def failure_sheet(
    log: RolloutLog,
    numbers: Sequence[int],
    areas: Sequence[SearchArea],
    goal_areas: Sequence[SearchArea] | None = None,
    *,
    columns: int = 2,
) -> Pixels:
    """Lay failed searches out: the goal's picture, the path over the area, and the last belief."""
    suite, failed = log.suite, int((~log.found).sum())
    pictures, captions = [], []
    for number in numbers:
        search = log.episode(number, areas, goal_areas)
        pictures.append(_failure(search, suite.grid))
        captions.append(failure_caption(search, suite.grid))
    title = f"{log.agent}: {len(numbers)} of {failed} failures in {len(suite)} searches ({suite.name}, {suite.grid})"
    return contact_sheet(pictures, captions, columns=columns, tile=900, title=title)


def failure_caption(search: EpisodeRecord, grid: Grid) -> str:
    """Say what search it was and how near the belief came."""
    said = f"{search.area.name}, goal {distance(search.path[0], search.goal)} away"
    if search.goal_probability is None:
        return said
    still_open = grid.count - len(set(filter(grid.contains, search.path)))
    held = f"held {percent(search.goal_probability)} probable at the end"
    return f"{said}, {held}: place {search.goal_rank} of {still_open} open cells"


def spread_failures(log: RolloutLog, count: int, seed: int = 0) -> list[int]:
    """Numbers of failed episodes to show: drawn by the seed, from as many areas as there are."""
    failed = stream(seed, "failures").permutation(np.flatnonzero(~log.found))
    area = log.suite.area[failed]
    earlier = [int((area[:place] == area[place]).sum()) for place in range(len(failed))]
    chosen: list[int] = failed[np.argsort(earlier, kind="stable")][:count].tolist()
    return chosen


def _failure(search: EpisodeRecord, grid: Grid) -> Pixels:
    """The goal's picture, the path over the area and the last belief, side by side."""
    frames = [_goal_tile(search, grid, 2)]
    frames.append(draw_trajectory(search.area.image, grid, search.path, search.goal, scale=2, found=False))
    if search.last_belief is not None:
        frames.append(
            draw_belief(search.area.image, grid, search.last_belief, path=search.path, goal=search.goal, scale=2)
        )
    return belief_strip(_level(frames))


def _frames(search: EpisodeRecord, grid: Grid, scale: int, top: float | None, margin: int) -> list[Pixels]:
    """One picture before every move, and one of the end."""
    image, path, goal = search.area.image, search.path, search.goal
    frames = []
    for step in range(search.moves):
        flown = path[: step + 1]
        if search.beliefs is None:
            frames.append(draw_trajectory(image, grid, flown, goal, scale=scale, dim_unvisited=True, margin=margin))
        else:
            belief = search.beliefs[step]
            frames.append(draw_belief(image, grid, belief, path=flown, goal=goal, top=top, scale=scale, margin=margin))
    return [*frames, draw_trajectory(image, grid, path, goal, scale=scale, found=search.found, margin=margin)]


def _captions(search: EpisodeRecord) -> list[str]:
    """What each frame shows: the move and the belief at the goal, and how it ended."""
    moves = f"{search.moves} move{'' if search.moves == 1 else 's'}"
    captions = []
    for step in range(search.moves):
        held = "" if search.beliefs is None else f", goal held {percent(float(search.beliefs[step][search.goal]))}"
        captions.append(("start" if step == 0 else f"move {step}") + held)
    return [*captions, f"found after {moves}" if search.found else f"not found in {moves}"]


def _goal_tile(search: EpisodeRecord, grid: Grid, scale: int) -> Pixels:
    """The goal's picture, enlarged to two cells with the gap between them."""
    side = scale * (2 * grid.cell + grid.gap)
    return np.asarray(Image.fromarray(search.goal_patch).resize((side, side), Image.Resampling.BICUBIC))


def _top(searches: Sequence[EpisodeRecord], grid: Grid) -> float | None:
    """Where the colours of all frames end: low enough to see what an early belief, still spread out, prefers."""
    largest = [float(search.beliefs.max()) for search in searches if search.beliefs is not None]
    return min(1.0, *largest, 10 / grid.count) if largest else None


def _margin(searches: Sequence[EpisodeRecord], grid: Grid) -> int:
    """Cells of margin that the paths need, the same on all sides so that all frames have one size."""
    over = [
        max(-row, -col, row - grid.rows + 1, col - grid.cols + 1) for search in searches for row, col in search.path
    ]
    return min(max(0, *over), max(grid.shape))


def _level(frames: Sequence[Pixels]) -> list[Pixels]:
    """Frames made as high as the highest of them, with white below."""
    highest = max(frame.shape[0] for frame in frames)
    return [np.pad(frame, ((0, highest - frame.shape[0]), (0, 0), (0, 0)), constant_values=255) for frame in frames]


def _framed(picture: Pixels, border: int = 16) -> Pixels:
    """A picture with a white border."""
    return np.pad(picture, ((border, border), (border, border), (0, 0)), constant_values=255)


# ---------- Searches to look at: two agents side by side over the same area, and what went wrong.
# ~

PLACES = (
    ("masa", "5x5", "Massachusetts, test set", "--figure 2"),
    ("dubai", "5x5", "Dubai", "--figure 2"),
    ("xbd-disaster", "7x7", "xBD-disaster", "--figure 4"),
)
"""Where the paper shows searches."""

PAIRS = 2
FAILURES = 6

SearchRecord = dict[str, Any]


def examples(outcomes: Outcomes) -> Iterator[Figure]:
    """Searches of AiRLoc and Priv local over the same areas, as the paper shows them, and AiRLoc's failures."""
    for data, grid, title, asked_by in PLACES:
        first, second = (outcomes.get(Setup(name, data, "test", grid)) for name in ("airloc", "priv-local"))
        if first and second:
            yield _side_by_side(first, second, title, asked_by)
    shown = next((outcomes[s] for s in (Setup("airloc", "masa", "test"),) if s in outcomes), None)
    if shown is not None:
        yield _failures(shown)


def _side_by_side(first: Outcome, second: Outcome, title: str, asked_by: str) -> Figure:
    mine, theirs = first.searches(), second.searches()
    pictures = _pictures(first)
    chosen = telling_pairs(mine, theirs)
    pairs = []
    for number in chosen:
        area = pictures[mine[number]["area"]]
        left = _drawn(first, mine[number], area, PATH_A)
        pairs.append(row(left, _drawn(second, theirs[number], area, PATH_B, dashed=True)))
    data = {
        "agents": [first.setup.agent, second.setup.agent],
        "searches": [{"airloc": mine[number], "priv-local": theirs[number]} for number in chosen],
    }
    caption = (
        "Numbered circles in the order of the visits, S the start, G the goal (its frame dashed where it was not "
        "found). No agent sees the area: it is shown for the reader."
    )
    name = f"searches-{first.setup.data}-{first.setup.grid}"
    return Figure(name, f"Searches: {title}, {first.setup.grid}", caption, data, "\n".join(pairs), asked_by)


def telling_pairs(first: Sequence[SearchRecord], second: Sequence[SearchRecord]) -> list[int]:
    """Episodes worth looking at: one that the first found and the second did not, one that both found differently."""
    order = sorted(range(len(first)), key=lambda number: (-first[number]["distance"], number))
    won = [n for n in order if first[n]["found"] and not second[n]["found"]]
    both = [n for n in order if first[n]["found"] and second[n]["found"] and first[n]["path"] != second[n]["path"]]
    chosen = list(dict.fromkeys([*won[:1], *both[:1], *order]))
    return chosen[:PAIRS]


def _failures(outcome: Outcome) -> Figure:
    lost = [search for search in outcome.searches() if not search["found"]]
    by_area = {search["area"]: search for search in sorted(lost, key=lambda search: search["distance"])}
    chosen = list(by_area.values())[:FAILURES]
    pictures = _pictures(outcome)
    parts = [_drawn(outcome, search, pictures[search["area"]], PATH_A) for search in chosen]
    content = row(*parts) if parts else "<p>There are none.</p>"
    caption = f"{len(lost)} of {outcome.score['episodes']} goals were not found; one search an area is shown."
    return Figure("failures", "Failures of AiRLoc", caption, {"searches": chosen}, content, "--figure 2")


def _pictures(outcome: Outcome) -> dict[str, Pixels]:
    areas = Prepared(outcome.areas).areas(Grid.parse(outcome.setup.grid))
    return {area.name: area.image for area in areas}


def _drawn(
    outcome: Outcome,
    search: SearchRecord,
    picture: Pixels,
    colour: tuple[int, int, int],
    *,
    dashed: bool = False,
) -> str:
    grid = Grid.parse(outcome.setup.grid)
    path = [(int(line), int(col)) for line, col in search["path"]]
    goal_row, goal_col = search["goal"]
    drawn = draw_trajectory(
        picture, grid, path, (goal_row, goal_col), colour=colour, dashed=dashed, scale=2, found=search["found"]
    )
    end = f"found after {search['steps']}" if search["found"] else f"not found in {search['steps']}"
    caption = f"{outcome.setup.agent}: goal {search['distance']} away, {end} moves"
    return figure(image_tag(drawn, f"A search, {caption}"), caption)


# ---------- The picture that explains changed goals: what the flight sees of a cell, beside pictures of it as a goal.
# ~

CHANGE_PLACES: tuple[tuple[str, Cell], ...] = (
    ("city", (1, 2)),
    ("suburb", (3, 1)),
    ("coast", (2, 3)),
    ("rural", (0, 0)),
)
"""Regimes of the procedural world, and the cell of each that is shown; the last one lies in a corner."""


def changes_sheet(seed: int = 0, tile: int = 112) -> Pixels:
    """Draw a row for every change: four procedural cells, each beside its changed picture.

    Args:
        seed: Decides the places and what is drawn.
        tile: Side of each picture on the sheet, in pixels.
    """
    grid = Grid()
    images = {regime: generate(seed, size=grid.size, regime=regime).image for regime, _ in CHANGE_PLACES}
    pictures, captions = [], []
    for name, change in CHANGES.items():
        for regime, cell in CHANGE_PLACES:
            view = change(stream(seed, "sheet", name, regime), 1.0)
            pictures += [take(images[regime], grid, cell, shown) for shown in (View(), view)]
            captions += ["the cell", name]
    return contact_sheet(pictures, captions, columns=2 * len(CHANGE_PLACES), tile=tile)
