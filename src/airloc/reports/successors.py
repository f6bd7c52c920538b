"""The successors' protocol, and why it cannot tell agents that look from one that does not."""

from collections.abc import Sequence
from typing import Any

from airloc.drawing.charts import Reference, Series, line_chart
from airloc.drawing.page import Content, Html, table
from airloc.evaluation.benchmarks.paper import PROTOCOL, PUBLISHED
from airloc.evaluation.metrics import blind_optimum_by_distance
from airloc.grid import Grid
from airloc.reports.figures import CHARTED, Figure, style_of
from airloc.reports.outcomes import Outcome, Outcomes
from airloc.reports.tables import percent, percent_interval
from airloc.task import priors

EXPLANATION = (
    "Later papers move in four directions and draw goals at Manhattan distance 4 to 8 on 5 x 5, each distance equally "
    "often. Far goals lie in the corners away from the start, so that the start gives the goal away: the best path "
    "that looks at nothing finds {optimum} % of them, more than the averages published under this protocol. A score "
    "below that is no evidence of vision, and one above it has to be read against that floor."
)

REMEDY = (
    "The remedy is to draw the goal uniformly over the other cells and to report distances as strata, not to sample "
    "them: 10 moves then reach at most 10 of 24 cells, and no path that looks at nothing finds more than 41.7 %. "
    "`airloc evaluate AGENT --moves 4 --episodes uniform` plays it; `--episodes far-pairs` is the protocol above."
)


def floor_by_distance() -> dict[int, float]:
    """What the best blind path finds under the successors' protocol, by distance."""
    grid = Grid.parse(PROTOCOL.grid, moves=4)
    return blind_optimum_by_distance(grid, PROTOCOL.budget, priors.far_pairs)


def explanation() -> str:
    """What is wrong with the protocol, in words."""
    floor = floor_by_distance()
    return EXPLANATION.format(optimum=percent(sum(floor.values()) / len(floor)))


def played(outcomes: Outcomes, suite: str) -> list[Outcome]:
    """The results of a suite with four moves, best first."""
    found = [outcome for setup, outcome in outcomes.items() if setup.suite == suite and setup.moves == PROTOCOL.moves]
    return sorted(found, key=lambda outcome: -outcome.score["success"])


def rows(outcomes: Outcomes) -> tuple[list[str], list[list[str | None]]]:
    """Header and rows: agents by distance, then what is published, then the floor."""
    distances = [str(distance) for distance in PROTOCOL.distances]
    header = ["Agent", *(f"d = {distance}" for distance in distances), "Average %", "95 %", "Uniform goals %", "Source"]
    uniform = {outcome.setup.agent: outcome for outcome in played(outcomes, "uniform")}
    body: list[list[str | None]] = []
    for outcome in played(outcomes, "far-pairs"):
        strata, other = outcome.score["success_by_distance"], uniform.get(outcome.setup.agent)
        body.append(
            [
                outcome.setup.agent,
                *(percent(strata.get(distance)) for distance in distances),
                percent(outcome.score["success"]),
                percent_interval(tuple(outcome.score["ci95"]["success"])) or None,
                percent(other.score["success"]) if other else None,
                "here",
            ]
        )
    body += [
        [entry.agent, *[None] * len(distances), percent(entry.success), None, None, entry.source] for entry in PUBLISHED
    ]
    floor = floor_by_distance()
    average = percent(sum(floor.values()) / len(floor))
    body.append(["blind optimum", *(percent(floor[int(d)]) for d in distances), average, None, "41.7", "exact"])
    return header, body


def as_html(outcomes: Outcomes) -> Html:
    """The table for a page."""
    header, body = rows(outcomes)
    cells: list[list[Content]] = [list(line) for line in body]
    return table(header, cells, caption="Success in %, four moves, 5 x 5, 10 moves; Massachusetts, validation set")


def markdown(outcomes: Outcomes) -> str:
    """The table as Markdown."""
    header, body = rows(outcomes)
    lines: list[Sequence[str | None]] = [header, ["---"] * len(header), *body]
    return "".join("| " + " | ".join(cell or "–" for cell in line) + " |\n" for line in lines)  # noqa: RUF001


def chart(outcomes: Outcomes) -> Figure | None:
    """Agents by distance against the floor; nothing where nobody played."""
    found = [outcome for outcome in played(outcomes, "far-pairs") if outcome.setup.agent != "blind"][: CHARTED - 1]
    if not found:
        return None
    floor = floor_by_distance()
    series = [Series("blind optimum", list(floor), list(floor.values()), style=style_of("blind", 0))]
    data: dict[str, Any] = {"blind optimum": {str(distance): value for distance, value in floor.items()}}
    for place, outcome in enumerate(found):
        strata = outcome.score["success_by_distance"]
        x, y = [int(distance) for distance in strata], list(strata.values())
        series.append(Series(outcome.setup.agent, x, y, style=style_of(outcome.setup.agent, place)))
        data[outcome.setup.agent] = strata
    svg = line_chart(
        series,
        title="Four moves, far goals: the successors' protocol",
        x_label="start-to-goal distance (Manhattan)",
        y_label="success",
        y_percent=True,
        y_range=(0, 1),
        x_ticks=list(PROTOCOL.distances),
        references=[Reference(entry.success, f"{entry.agent} (average)") for entry in PUBLISHED],
    )
    data["published averages"] = {entry.agent: entry.success for entry in PUBLISHED}
    caption = "Dashed: what is published as the average over these distances. The blind optimum looks at nothing."
    return Figure("successors", "The successors' protocol", caption, data, svg, "--all")
