"""The page of `airloc demo`: a table, a chart and trajectories."""

from collections.abc import Sequence

import numpy as np

from airloc.areas.area import Pixels, SearchArea
from airloc.drawing.charts import Reference, Series, line_chart
from airloc.drawing.page import Html, command, figure, image_tag, page, paragraph, row, section, table
from airloc.drawing.trajectory import draw_trajectory
from airloc.evaluation.metrics import blind_optimum_is_exact
from airloc.evaluation.scores import Score
from airloc.reports.tables import floor_name, number, percent, percent_interval

TRAJECTORIES = 8
"""Number of trajectories on the page."""

_CHARTED = ("random", "priv-random", "blind", "local", "priv-local", "airloc", "belief")
"""Agents of the chart, if they played. More lines are hard to read."""

_CHART_CAPTION = (
    "Success by start-to-goal distance with 95 % intervals. The dashed line is the best path that uses no image."
)

_BELIEF_CAPTION = (
    "The goal image first, then the belief before each move: the probability of each cell to be the goal. The last "
    "picture shows the whole area with the path."
)


def demo_page(
    scores: Sequence[Score],
    areas: Sequence[SearchArea],
    blind_optimum: float,
    made_by: str,
    belief: Pixels | None = None,
) -> str:
    """Return the HTML page of scores on one suite.

    Args:
        scores: Scores of the agents, the best last.
        areas: The areas, numbered as in the suite.
        blind_optimum: Success of the best blind path.
        made_by: The command line that makes the page.
        belief: A search step by step with its beliefs.
    """
    suite, best = scores[0].suite, scores[-1]
    introduction = (
        "An agent is above one cell of an area and sees only that cell. It searches for the cell that matches a goal "
        f"image, and has {suite.budget} moves. Success is the fraction of goals found."
    )
    selection = "Six searches that found the goal and two that did not, where possible, from all distances."
    chart = figure(_chart(_charted(scores), blind_optimum), _CHART_CAPTION)
    body = [
        paragraph(introduction),
        section("Scores", _table(scores, blind_optimum)),
        section("Success by distance", chart),
        section(f"Trajectories of {best.agent}", paragraph(selection), _trajectories(best, areas)),
    ]
    if belief is not None:
        strip = figure(image_tag(belief, "A search step by step"), _BELIEF_CAPTION)
        body.append(section("The belief during a search", strip))
    body.append(section("Command", command(made_by)))
    subtitle = f"{len(suite)} episodes on {len(areas)} procedural areas, {suite.grid} cells, {suite.budget} moves"
    return page("Searching from above", "\n".join(body), subtitle=subtitle)


def choose_search(score: Score) -> int:
    """Choose an episode that shows an agent at work: of the farthest goals that it found, the median by moves."""
    found = score.log.found
    far = found & (score.suite.distance == score.suite.distance[found].max(initial=0))
    order = np.flatnonzero(far)[np.argsort(score.log.steps[far], kind="stable")]
    return int(order[len(order) // 2]) if len(order) else 0


def draw_searches(score: Score, areas: Sequence[SearchArea]) -> list[tuple[Pixels, str]]:
    """Draw episodes of different areas and distances, and return pictures with captions."""
    suite, played = score.suite, score.log
    drawn = []
    for chosen in _choose_episodes(score):
        found, steps = bool(played.found[chosen]), int(played.steps[chosen])
        path = [(int(r), int(c)) for r, c in played.path[chosen, : steps + 1]]
        goal_row, goal_col = suite.goal[chosen].tolist()
        image = areas[suite.area[chosen]].image
        picture = draw_trajectory(image, suite.grid, path, (goal_row, goal_col), scale=2, found=found)
        moves = f"{steps} move{'' if steps == 1 else 's'}"
        end = f"found after {moves}" if found else f"not found in {moves}"
        drawn.append((picture, f"distance {suite.distance[chosen]}, {end}"))
    return drawn


def _table(scores: Sequence[Score], blind_optimum: float) -> Html:
    header = ["Agent", "Success %", "95 %", "Steps", "Step ratio", "Res. distance", "ms per episode"]
    rows: list[list[str | float | None]] = [
        [
            score.agent,
            percent(score.value("success")),
            percent_interval(score.interval("success")),
            number(score.value("steps"), 2),
            number(score.value("step_ratio"), 2),
            number(score.value("residual_distance"), 2),
            number(score.runtime_ms, 3),
        ]
        for score in scores
    ]
    rows.append([_floor_name(scores), percent(blind_optimum), *[None] * 5])
    return table(header, rows)


def _charted(scores: Sequence[Score]) -> Sequence[Score]:
    return [score for score in scores if score.agent in _CHARTED] or scores


def _chart(scores: Sequence[Score], blind_optimum: float) -> str:
    series = []
    for style, score in enumerate(scores):
        strata = score.by_distance()
        low, high = zip(*(interval for _, interval in strata.values()), strict=True)
        values = [value for value, _ in strata.values()]
        series.append(Series(score.agent, list(strata), values, low, high, style=style))
    return line_chart(
        series,
        title="Success by distance",
        x_label="start-to-goal distance (moves)",
        y_label="success",
        y_percent=True,
        y_range=(0, 1),
        x_ticks=list(scores[0].by_distance()),
        references=[Reference(blind_optimum, _floor_name(scores))],
    )


def _floor_name(scores: Sequence[Score]) -> str:
    return floor_name(blind_optimum_is_exact(scores[0].suite))


def _trajectories(score: Score, areas: Sequence[SearchArea]) -> Html:
    drawn = draw_searches(score, areas)
    return row(*(figure(image_tag(picture, f"A path: {caption}"), caption) for picture, caption in drawn))


def _choose_episodes(score: Score) -> list[int]:
    """Choose episodes of different areas and all distances, three quarters of them successful where possible."""
    suite, found = score.suite, score.log.found
    distances = np.unique(suite.distance)
    chosen: list[int] = []
    for turn in range(TRAJECTORIES):
        wanted = distances[turn % len(distances)]
        unused = ~np.isin(suite.area, suite.area[chosen]) if chosen else np.ones(len(suite), dtype=bool)
        there = np.flatnonzero((suite.distance == wanted) & unused)
        there = there if len(there) else np.flatnonzero(suite.distance == wanted)
        preferred = there[found[there] == (turn < TRAJECTORIES * 3 // 4)]
        chosen.append(int(preferred[0] if len(preferred) else there[0]))
    return chosen
