"""The figures of a reproduction: each is data first, and a chart of that data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airloc.drawing.charts import Bars, Reference, Series, bar_chart, line_chart
from airloc.evaluation.benchmarks.paper import TABLES
from airloc.reports.outcomes import Curve, Outcome, Outcomes, Setup

LEADING = ("airloc", "airloc-no-residual", "airloc-no-prior", "priv-local", "blind", "priv-random")
"""Agents that keep their look from chart to chart."""

VARIANTS = ("airloc", "airloc-no-residual", "airloc-no-prior")

CHARTED = 8
"""More lines than these cannot be told apart."""


@dataclass(frozen=True)
class Figure:
    """A figure with the data it was made from."""

    name: str
    """Of the file of its data."""
    heading: str
    caption: str
    data: Mapping[str, Any]
    content: str
    """SVG or HTML."""
    asked_by: str
    """What of the command line makes it."""


def charts(outcomes: Outcomes, curves: Sequence[Curve]) -> Iterator[Figure]:
    """All charts that there are results for."""
    for grid, part in (("5x5", "left"), ("7x7", "middle")):
        if found := _validation(outcomes, grid):
            yield _by_distance(found, grid, part)
    if followed := [found for found in _validation(outcomes, "5x5") if found.agreement]:
        yield _agreement(followed)
    if seeds := _seeds(outcomes):
        yield _seed_chart(seeds)
    if curves:
        yield _learning(curves)
    if calibrated := [found for found in _validation(outcomes, "5x5") if found.calibration]:
        yield _calibration(calibrated)


def style_of(agent: str, place: int) -> int:
    """The look of an agent, the same in every chart."""
    return LEADING.index(agent) if agent in LEADING else len(LEADING) + place


def _validation(outcomes: Outcomes, grid: str) -> list[Outcome]:
    """Agents on the validation set: those of the paper's figure, and ours."""
    wanted = (*VARIANTS, "priv-local", "blind", "priv-random")
    here = {s.agent: found for s, found in outcomes.items() if s == Setup(s.agent, "masa", "val", grid)}
    own = [name for name in here if name not in wanted and _is_own(name)]
    return [here[name] for name in (*wanted, *own) if name in here][:CHARTED]


def _is_own(name: str) -> bool:
    """Whether an agent is neither the paper's nor one that only flies about."""
    paper = {row.agent for each in TABLES for row in each.rows}
    return name not in paper and name not in ("random", "lawnmower", "spiral")


def _by_distance(found: Sequence[Outcome], grid: str, part: str) -> Figure:
    series, data = [], {}
    for place, outcome in enumerate(found):
        shares = outcome.score["success_by_distance"]
        ends = [outcome.score["success_by_distance_ci95"][distance] for distance in shares]
        low, high = zip(*ends, strict=True)
        x, y = [int(distance) for distance in shares], list(shares.values())
        series.append(Series(outcome.setup.agent, x, y, low, high, style=style_of(outcome.setup.agent, place)))
        data[outcome.setup.agent] = {"success": shares, "ci95": dict(zip(shares, ends, strict=True))}
    floor = found[0].score["blind_optimum"]
    svg = line_chart(
        series,
        title=f"Success by start-to-goal distance, {grid}",
        x_label="start-to-goal distance (moves)",
        y_label="success",
        y_percent=True,
        y_range=(0, 1),
        x_ticks=[int(distance) for distance in found[0].score["success_by_distance"]],
        references=[Reference(floor, "blind optimum")],
    )
    caption = (
        f"The paper's figure 3, {part}: Massachusetts, validation set, {grid}, with 95 % intervals. The dashed line is "
        "the best path that looks at nothing, over all distances."
    )
    record = {"grid": grid, "blind_optimum": floor, "agents": data}
    return Figure(f"success-by-distance-{grid}", f"Success by distance, {grid}", caption, record, svg, "--figure 3")


def _agreement(found: Sequence[Outcome]) -> Figure:
    series, data = [], {}
    for place, outcome in enumerate(found):
        shares = {int(d): share for d, share in (outcome.agreement or {}).items() if int(d) <= 4}
        low, high = zip(*(share["ci95"] for share in shares.values()), strict=True)
        values = [share["share"] for share in shares.values()]
        series.append(
            Series(outcome.setup.agent, list(shares), values, low, high, style_of(outcome.setup.agent, place))
        )
        data[outcome.setup.agent] = {str(distance): share for distance, share in shares.items()}
    svg = line_chart(
        series,
        title="Agreement with the exploitation prior",
        x_label="distance left to the goal (moves)",
        y_label="moves that follow the prior",
        y_percent=True,
        y_range=(0, 1),
    )
    caption = (
        "The paper's figure 3, right: how often an agent makes the move that the exploitation prior holds for most "
        "probable, by the distance left. An agent that has learned when to trust it follows it more when near."
    )
    return Figure("agreement", "Agreement with the prior", caption, {"agents": data}, svg, "--figure 3")


def _seeds(outcomes: Outcomes) -> dict[str, dict[str, Outcome]]:
    """Results of each variant by seed, where there are several."""
    found: dict[str, dict[str, Outcome]] = {}
    for setup, outcome in outcomes.items():
        if setup == Setup(setup.agent, "masa", "val", seed=setup.seed) and setup.agent in VARIANTS:
            found.setdefault(setup.agent, {})[setup.seed] = outcome
    return {name: seeds for name, seeds in found.items() if len(seeds) > 1}


def _seed_chart(found: Mapping[str, Mapping[str, Outcome]]) -> Figure:
    names = list(dict.fromkeys(seed for seeds in found.values() for seed in seeds))
    bars, data = [], {}
    for place, (agent, seeds) in enumerate(found.items()):
        scores = {name: seeds[name].score for name in names if name in seeds}
        values = [scores[name]["success"] if name in scores else None for name in names]
        ends = [scores[name]["ci95"]["success"] if name in scores else (None, None) for name in names]
        low, high = zip(*ends, strict=True)
        bars.append(Bars(agent, values, low, high, style=place))
        data[agent] = {
            name: {"success": score["success"], "ci95": score["ci95"]["success"]} for name, score in scores.items()
        }
    groups = ["median seed" if name == "median" else f"seed #{name}" for name in names]
    svg = bar_chart(groups, bars, title="Seed sensitivity", y_label="success", y_percent=True)
    caption = (
        "The paper's table 4 as a picture: policies that differ in their first weights alone, validation set, 5 x 5."
    )
    return Figure("seeds", "Seed sensitivity", caption, {"agents": data}, svg, "--table 4")


def _learning(curves: Sequence[Curve]) -> Figure:
    shown = [curve for curve in curves if curve.agent in VARIANTS or curve.agent == "airloc-no-sem-seg"][:CHARTED]
    series = [Series(_named(curve), curve.steps, curve.success, style=place) for place, curve in enumerate(shown)]
    svg = line_chart(
        series,
        title="Learning curves",
        x_label="episodes of each seed",
        y_label="validation success, mean of the seeds",
        y_percent=True,
        y_range=(0, 1),
    )
    data = {_named(curve): {"episodes": curve.steps, "val_success": curve.success} for curve in curves}
    caption = "Success on all pairs of the validation areas, weighed to equal distances, while policies are trained."
    return Figure("learning-curves", "Learning curves", caption, data, svg, "--table 5")


def _named(curve: Curve) -> str:
    return curve.agent if curve.trained_on == "masa" else f"{curve.agent} on {curve.trained_on}"


def _calibration(found: Sequence[Outcome]) -> Figure:
    series = [Series("calibrated", [0.0, 1.0], [0.0, 1.0], guide=True)]
    data = {}
    for place, outcome in enumerate(found):
        record = outcome.calibration or {}
        bins = record["bins"]
        x, y = [entry["forecast"] for entry in bins], [entry["hit"] for entry in bins]
        series.append(Series(outcome.setup.agent, x, y, style=style_of(outcome.setup.agent, place)))
        data[outcome.setup.agent] = record
    svg = line_chart(
        series,
        title="Calibration",
        x_label="probability that the agent gave",
        y_label="share that came true",
        y_percent=True,
        y_range=(0, 1),
        x_ticks=[0, 0.2, 0.4, 0.6, 0.8, 1],
    )
    caption = (
        "Is the goal where an agent believes it, as often as it says? Of every cell not yet visited, before every move."
    )
    return Figure("calibration", "Calibration of the belief", caption, {"agents": data}, svg, "--figure 3")
