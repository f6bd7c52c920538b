"""Searches to look at: two agents side by side over the same area, and what went wrong."""

from collections.abc import Iterator, Sequence
from typing import Any

from airloc.areas.area import Pixels
from airloc.areas.prepared import Prepared
from airloc.drawing.page import figure, image_tag, row
from airloc.drawing.palette import PATH_A, PATH_B
from airloc.drawing.trajectory import draw_trajectory
from airloc.grid import Grid
from airloc.reports.figures import Figure
from airloc.reports.outcomes import Outcome, Outcomes, Setup

PLACES = (
    ("masa", "5x5", "Massachusetts, test set", "--figure 2"),
    ("dubai", "5x5", "Dubai", "--figure 2"),
    ("xbd-disaster", "7x7", "xBD-disaster", "--figure 4"),
)
"""Where the paper shows searches."""

PAIRS = 2
FAILURES = 6

Search = dict[str, Any]


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


def telling_pairs(first: Sequence[Search], second: Sequence[Search]) -> list[int]:
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
    outcome: Outcome, search: Search, picture: Pixels, colour: tuple[int, int, int], *, dashed: bool = False
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
