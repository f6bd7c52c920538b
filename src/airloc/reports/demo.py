"""The page that `airloc demo` writes: a table, a chart and trajectories to look at."""

from collections.abc import Sequence

import numpy as np

from airloc.areas.area import Pixels, SearchArea
from airloc.drawing.charts import Reference, Series, line_chart
from airloc.drawing.page import Html, command, figure, image_tag, page, paragraph, row, section, table
from airloc.drawing.trajectory import draw_trajectory
from airloc.evaluation.evaluate import Score
from airloc.evaluation.metrics import blind_optimum_is_exact
from airloc.reports.tables import floor_name, number, percent, percent_interval

TRAJECTORIES = 8
CHARTED = ("random", "priv-random", "blind", "local", "priv-local", "airloc", "belief")
"""Agents that the chart shows where they played: more lines than these cannot be told apart."""


def demo_page(
    scores: Sequence[Score],
    areas: Sequence[SearchArea],
    blind_optimum: float,
    made_by: str,
    believed: Pixels | None = None,
) -> str:
    """Make the page from scores on one suite over these areas.

    Args:
        scores: The agents' scores, best last.
        areas: The areas, numbered as in the suite.
        blind_optimum: What blind flight reaches.
        made_by: The command that makes the page again.
        believed: A search step by step with what was believed, if there is one.
    """
    suite = scores[0].suite
    body = [
        paragraph(
            "An agent stands over one cell of an area and sees that cell alone. It is given the picture of another "
            f"cell and has {suite.budget} moves to stand over it. Success is the share of goals found."
        ),
        section("Scores", _table(scores, blind_optimum)),
        section("Success by distance", figure(_chart(_charted(scores), blind_optimum), _CHART_CAPTION)),
        section(
            f"Trajectories of {shown(scores).agent}",
            paragraph(
                "Six searches that found the goal and two that did not, where there are such, from all distances."
            ),
            _trajectories(shown(scores), areas),
        ),
        *([] if believed is None else [_belief(believed)]),
        section("Make it again", command(made_by)),
    ]
    subtitle = f"{len(suite)} episodes on {len(areas)} procedural areas, {suite.grid} cells, {suite.budget} moves"
    return page("Searching from above", "\n".join(body), subtitle=subtitle)


_CHART_CAPTION = (
    "Success by start-to-goal distance with 95 % intervals; the dashed line is blind flight, the best path that looks "
    "at nothing."
)


def _belief(strip: Pixels) -> Html:
    caption = (
        "One search. Visited cells are shown as they look; over the others lies the probability of being the goal's, "
        "before each move. The last picture shows the whole area with the path flown."
    )
    return section("What the belief searcher believes", figure(image_tag(strip, "A search step by step"), caption))


def _table(scores: Sequence[Score], blind_optimum: float) -> Html:
    header = ["Agent", "Success %", "95 %", "Steps", "Step ratio", "Res. distance", "ms an episode"]
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
    return [score for score in scores if score.agent in CHARTED] or scores


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


def shown(scores: Sequence[Score]) -> Score:
    """Whose trajectories are drawn: the best agent's."""
    return scores[-1]


def telling_search(score: Score) -> int:
    """Number of the episode that shows an agent at work: of the farthest goals that it found, the median by moves."""
    found = score.log.found
    far = found & (score.suite.distance == score.suite.distance[found].max(initial=0))
    order = np.flatnonzero(far)[np.argsort(score.log.steps[far], kind="stable")]
    return int(order[len(order) // 2]) if len(order) else 0


def searches(score: Score, areas: Sequence[SearchArea]) -> list[tuple[Pixels, str]]:
    """Draw episodes from different areas, the distances in turn; give pictures and captions."""
    suite, played = score.suite, score.log
    drawn = []
    for chosen in _spread(score):
        found, steps = bool(played.found[chosen]), int(played.steps[chosen])
        path = [(int(r), int(c)) for r, c in played.path[chosen, : steps + 1]]
        goal_row, goal_col = suite.goal[chosen].tolist()
        image = areas[suite.area[chosen]].image
        picture = draw_trajectory(image, suite.grid, path, (goal_row, goal_col), scale=2, found=found)
        moves = f"{steps} move{'' if steps == 1 else 's'}"
        end = f"found after {moves}" if found else f"not found in {moves}"
        drawn.append((picture, f"{suite.distance[chosen]} away, {end}"))
    return drawn


def _trajectories(score: Score, areas: Sequence[SearchArea]) -> Html:
    figures = [figure(image_tag(picture, f"A path: {caption}"), caption) for picture, caption in searches(score, areas)]
    return row(*figures)


def _spread(score: Score) -> list[int]:
    """Numbers of episodes to show: different areas, all distances, and finds and failures both where there are."""
    suite, found = score.suite, score.log.found
    distances = np.unique(suite.distance)
    chosen: list[int] = []
    for turn in range(TRAJECTORIES):
        wanted = distances[turn % len(distances)]
        fresh = ~np.isin(suite.area, suite.area[chosen]) if chosen else np.ones(len(suite), dtype=bool)
        there = np.flatnonzero((suite.distance == wanted) & fresh)
        there = there if len(there) else np.flatnonzero(suite.distance == wanted)
        preferred = there[found[there] == (turn < TRAJECTORIES * 3 // 4)]
        chosen.append(int(preferred[0] if len(preferred) else there[0]))
    return chosen
