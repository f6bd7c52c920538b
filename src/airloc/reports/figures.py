"""The figures of a reproduction: charts, and searches side by side. Each figure carries the data it was made from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airloc.areas.area import Pixels
from airloc.areas.prepared import Prepared
from airloc.drawing.charts import Bars, Reference, Series, bar_chart, line_chart
from airloc.drawing.page import figure, image_tag, row
from airloc.drawing.palette import PATH_A, PATH_B
from airloc.drawing.trajectory import draw_trajectory
from airloc.evaluation.benchmarks.paper import PAPER_AGENTS, SUCCESSOR_PROTOCOL, SUCCESSOR_RESULTS, Setup
from airloc.grid import Grid
from airloc.reports.comparison import successor_floor, successor_results
from airloc.reports.results import Episodes, EvaluationResult, LearningCurve, PaperResults

_STYLED_AGENTS = ("airloc", "airloc-no-residual", "airloc-no-prior", "priv-local", "blind", "priv-random")
"""Agents that have the same style in every chart."""

CHARTED_VARIANTS = ("airloc", "airloc-no-residual", "airloc-no-prior")
"""The variants in the paper's charts."""

SEARCH_AGENTS = ("airloc", "priv-local")
"""The agents whose searches the paper shows side by side."""

_MAX_LINES = 8
"""Largest number of lines in a chart."""

SEARCH_PLACES = (
    ("masa", "5x5", "Massachusetts, test set", "--figure 2"),
    ("dubai", "5x5", "Dubai", "--figure 2"),
    ("xbd-disaster", "7x7", "xBD-disaster", "--figure 4"),
)
"""The datasets on which the paper shows searches."""

_SEARCH_PAIRS = 2
"""Pairs of searches in a figure."""

_FAILURES = 6
"""Failed searches in a figure."""


@dataclass(frozen=True)
class Figure:
    """A figure with its data."""

    name: str
    """Name of the data file."""
    heading: str
    caption: str
    data: Mapping[str, Any]
    content: str
    """SVG or HTML."""
    option: str
    """The option of `airloc reproduce` that makes the figure."""


def charts(results: PaperResults, curves: Sequence[LearningCurve]) -> Iterator[Figure]:
    """Iterate over all charts that have results."""
    for grid, part in (("5x5", "left"), ("7x7", "middle")):
        if found := _validation_results(results, grid):
            yield _distance_chart(found, grid, part)
    found = _validation_results(results, "5x5")
    if recorded := [result for result in found if result.agreement]:
        yield _agreement_chart(recorded)
    if seeds := _seeds(results):
        yield _seed_chart(seeds)
    if curves:
        yield _learning_chart(curves)
    if calibrated := [result for result in found if result.calibration]:
        yield _calibration_chart(calibrated)


def chart_style(agent: str, index: int) -> int:
    """Return the style of an agent, the same in every chart."""
    return _STYLED_AGENTS.index(agent) if agent in _STYLED_AGENTS else len(_STYLED_AGENTS) + index


def successor_chart(results: PaperResults) -> Figure | None:
    """Draw success by distance under the successors' protocol; None if there are no results."""
    found = [result for result in successor_results(results, "far-pairs") if result.agent != "blind"][: _MAX_LINES - 1]
    if not found:
        return None
    floor = successor_floor()
    series = [Series("blind optimum", list(floor), list(floor.values()), style=chart_style("blind", 0))]
    data: dict[str, Any] = {"blind optimum": {str(distance): value for distance, value in floor.items()}}
    for index, result in enumerate(found):
        strata = result.record["success_by_distance"]
        x, y = [int(distance) for distance in strata], list(strata.values())
        series.append(Series(result.agent, x, y, style=chart_style(result.agent, index)))
        data[result.agent] = strata
    svg = line_chart(
        series,
        title="Four moves, far goals: the successors' protocol",
        x_label="start-to-goal distance (Manhattan)",
        y_label="success",
        y_percent=True,
        y_range=(0, 1),
        x_ticks=list(SUCCESSOR_PROTOCOL.distances),
        references=[Reference(entry.success, f"{entry.agent} (average)") for entry in SUCCESSOR_RESULTS],
    )
    data["published averages"] = {entry.agent: entry.success for entry in SUCCESSOR_RESULTS}
    caption = "Dashed lines: published averages over these distances. The blind optimum uses no image."
    return Figure("successors", "The successors' protocol", caption, data, svg, "--all")


def search_figures(results: PaperResults) -> Iterator[Figure]:
    """Iterate over figures of searches: AiRLoc and Priv local over the same areas, and failures of AiRLoc."""
    for data, grid, title, option in SEARCH_PLACES:
        setups = [Setup(name, data, "test", grid) for name in SEARCH_AGENTS]
        if all(setup in results for setup in setups):
            first, second = (results[setup] for setup in setups)
            yield _search_pairs(first, second, f"searches-{data}-{grid}", f"Searches: {title}, {grid}", option)
    if (setup := Setup("airloc", "masa", "test")) in results:
        yield _failures(results[setup])


def choose_pairs(first: Episodes, second: Episodes) -> list[int]:
    """Choose episodes to show: one that only the first agent found, and one that both found on different paths."""
    order = sorted(range(len(first)), key=lambda number: (-first.distance[number], number))
    won = [n for n in order if first.found[n] and not second.found[n]]
    both = [n for n in order if first.found[n] and second.found[n] and first.record(n) != second.record(n)]
    return list(dict.fromkeys([*won[:1], *both[:1], *order]))[:_SEARCH_PAIRS]


def _validation_results(results: PaperResults, grid: str) -> list[EvaluationResult]:
    """Return results on the validation set: the agents of the paper's figure, and ours."""
    paper = (*CHARTED_VARIANTS, "priv-local", "blind", "priv-random")
    here = {s.agent: found for s, found in results.items() if s == Setup(s.agent, "masa", "val", grid)}
    sweeps = ("random", "lawnmower", "spiral")
    ours = [name for name in here if name not in (*paper, *sweeps) and name not in PAPER_AGENTS]
    return [here[name] for name in (*paper, *ours) if name in here][:_MAX_LINES]


def _distance_chart(found: Sequence[EvaluationResult], grid: str, part: str) -> Figure:
    series, data = [], {}
    for index, result in enumerate(found):
        success = result.record["success_by_distance"]
        intervals = [result.record["success_by_distance_ci95"][distance] for distance in success]
        low, high = zip(*intervals, strict=True)
        x, y = [int(distance) for distance in success], list(success.values())
        series.append(Series(result.agent, x, y, low, high, style=chart_style(result.agent, index)))
        data[result.agent] = {"success": success, "ci95": dict(zip(success, intervals, strict=True))}
    floor = found[0].record["blind_optimum"]
    svg = line_chart(
        series,
        title=f"Success by start-to-goal distance, {grid}",
        x_label="start-to-goal distance (moves)",
        y_label="success",
        y_percent=True,
        y_range=(0, 1),
        x_ticks=[int(distance) for distance in found[0].record["success_by_distance"]],
        references=[Reference(floor, "blind optimum")],
    )
    caption = (
        f"The paper's figure 3, {part}: Massachusetts, validation set, {grid}, with 95 % intervals. The dashed line is "
        "the blind optimum over all distances: the success of the best path that uses no image."
    )
    record = {"grid": grid, "blind_optimum": floor, "agents": data}
    return Figure(f"success-by-distance-{grid}", f"Success by distance, {grid}", caption, record, svg, "--figure 3")


def _agreement_chart(found: Sequence[EvaluationResult]) -> Figure:
    series, data = [], {}
    for index, result in enumerate(found):
        shares = {int(d): share for d, share in (result.agreement or {}).items() if int(d) <= 4}
        low, high = zip(*(share["ci95"] for share in shares.values()), strict=True)
        values = [share["share"] for share in shares.values()]
        series.append(Series(result.agent, list(shares), values, low, high, chart_style(result.agent, index)))
        data[result.agent] = {str(distance): share for distance, share in shares.items()}
    svg = line_chart(
        series,
        title="Agreement with the exploitation prior",
        x_label="distance left to the goal (moves)",
        y_label="moves that follow the prior",
        y_percent=True,
        y_range=(0, 1),
    )
    caption = (
        "The paper's figure 3, right: the fraction of moves that follow the most probable move of the exploitation "
        "prior, by the distance left. An agent that has learned when to trust the prior follows it more near the goal."
    )
    return Figure("agreement", "Agreement with the prior", caption, {"agents": data}, svg, "--figure 3")


def _seeds(results: PaperResults) -> dict[str, dict[str, EvaluationResult]]:
    """Return the results of each variant by seed, for variants with several seeds."""
    found: dict[str, dict[str, EvaluationResult]] = {}
    for setup, result in results.items():
        if setup == Setup(setup.agent, "masa", "val", seed=setup.seed) and setup.agent in CHARTED_VARIANTS:
            found.setdefault(setup.agent, {})[setup.seed] = result
    return {name: seeds for name, seeds in found.items() if len(seeds) > 1}


def _seed_chart(found: Mapping[str, Mapping[str, EvaluationResult]]) -> Figure:
    names = list(dict.fromkeys(seed for seeds in found.values() for seed in seeds))
    bars, data = [], {}
    for index, (agent, seeds) in enumerate(found.items()):
        values = [seeds[name].success if name in seeds else None for name in names]
        intervals = [seeds[name].interval if name in seeds else (None, None) for name in names]
        low, high = zip(*intervals, strict=True)
        bars.append(Bars(agent, values, low, high, style=index))
        data[agent] = {name: {"success": one.success, "ci95": list(one.interval)} for name, one in seeds.items()}
    groups = ["median seed" if name == "median" else f"seed #{name}" for name in names]
    svg = bar_chart(groups, bars, title="Seed sensitivity", y_label="success", y_percent=True)
    caption = "The paper's table 4 as a chart: policies that differ only in their seed, validation set, 5 x 5."
    return Figure("seeds", "Seed sensitivity", caption, {"agents": data}, svg, "--table 4")


def _learning_chart(curves: Sequence[LearningCurve]) -> Figure:
    shown = [curve for curve in curves if curve.agent in CHARTED_VARIANTS or curve.agent == "airloc-no-sem-seg"][
        :_MAX_LINES
    ]
    series = [Series(_label(curve), curve.episodes, curve.success, style=index) for index, curve in enumerate(shown)]
    svg = line_chart(
        series,
        title="Learning curves",
        x_label="episodes of each seed",
        y_label="validation success, mean of the seeds",
        y_percent=True,
        y_range=(0, 1),
    )
    data = {_label(curve): {"episodes": curve.episodes, "val_success": curve.success} for curve in curves}
    caption = "Success on the validation areas during training, on the episodes that select the weights."
    return Figure("learning-curves", "Learning curves", caption, data, svg, "--table 5")


def _label(curve: LearningCurve) -> str:
    return curve.agent if curve.trained_on == "masa" else f"{curve.agent} on {curve.trained_on}"


def _calibration_chart(found: Sequence[EvaluationResult]) -> Figure:
    series = [Series("calibrated", [0.0, 1.0], [0.0, 1.0], guide=True)]
    data = {}
    for index, result in enumerate(found):
        record = result.calibration or {}
        x, y = ([entry[name] for entry in record["bins"]] for name in ("forecast", "hit"))
        series.append(Series(result.agent, x, y, style=chart_style(result.agent, index)))
        data[result.agent] = record
    svg = line_chart(
        series,
        title="Calibration",
        x_label="probability in the belief",
        y_label="frequency of the goal",
        y_percent=True,
        y_range=(0, 1),
        x_ticks=[0, 0.2, 0.4, 0.6, 0.8, 1],
    )
    caption = "How often a cell is the goal over the probability in the belief, for unvisited cells before each move."
    return Figure("calibration", "Calibration of the belief", caption, {"agents": data}, svg, "--figure 3")


def _search_pairs(first: EvaluationResult, second: EvaluationResult, name: str, heading: str, option: str) -> Figure:
    """Draw searches of two agents side by side."""
    images = _images(first)
    chosen = choose_pairs(first.episodes, second.episodes)
    pairs = []
    for number in chosen:
        left = _search(first, number, images, PATH_A)
        pairs.append(row(left, _search(second, number, images, PATH_B, dashed=True)))
    data = {
        "agents": [first.agent, second.agent],
        "searches": [{each.agent: each.episodes.record(number) for each in (first, second)} for number in chosen],
    }
    caption = (
        "Circles are numbered in the order of the visits. S is the start and G the goal; its frame is dashed if it was "
        "not found. The agents do not see the area."
    )
    return Figure(name, heading, caption, data, "\n".join(pairs), option)


def _failures(result: EvaluationResult) -> Figure:
    """Draw failed searches over different areas."""
    episodes = result.episodes
    failed = [number for number in range(len(episodes)) if not episodes.found[number]]
    by_area = {int(episodes.area[n]): n for n in sorted(failed, key=lambda number: episodes.distance[number])}
    chosen = list(by_area.values())[:_FAILURES]
    images = _images(result)
    parts = [_search(result, number, images, PATH_A) for number in chosen]
    content = row(*parts) if parts else "<p>There are no failures.</p>"
    caption = f"{len(failed)} of {result.record['episodes']} goals were not found. One search per area is shown."
    data = {"searches": [episodes.record(number) for number in chosen]}
    return Figure("failures", "Failures of AiRLoc", caption, data, content, "--figure 2")


def _images(result: EvaluationResult) -> dict[str, Pixels]:
    """Read the areas of a result by name."""
    assert result.areas is not None
    return {area.name: area.image for area in Prepared(result.areas).areas(Grid.parse(result.record["grid"]))}


def _search(
    result: EvaluationResult,
    number: int,
    images: Mapping[str, Pixels],
    colour: tuple[int, int, int],
    *,
    dashed: bool = False,
) -> str:
    """Draw one search as an HTML figure."""
    record, grid = result.episodes.record(number), Grid.parse(result.record["grid"])
    path = [(int(line), int(col)) for line, col in record["path"]]
    goal = (record["goal"][0], record["goal"][1])
    image = images[record["area"]]
    drawn = draw_trajectory(image, grid, path, goal, colour=colour, dashed=dashed, scale=2, found=record["found"])
    end = f"found after {record['steps']}" if record["found"] else f"not found in {record['steps']}"
    caption = f"{result.agent}: distance {record['distance']}, {end} moves"
    return figure(image_tag(drawn, f"A search, {caption}"), caption)
