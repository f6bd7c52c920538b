"""The page of `airloc suites`: all agents on all suites, as Markdown with charts, and all records as JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloc.drawing.charts import Bars, bar_chart
from airloc.evaluation.benchmarks.suites import GROUPS, SuiteGroup, SuiteSpec
from airloc.evaluation.metrics import Interval
from airloc.files import write_atomically
from airloc.reports.figures import chart_style
from airloc.reports.results import EvaluationResult, SuiteResults
from airloc.reports.tables import DASH, floor_name, markdown_table, percent, percent_interval, signed_interval

PAGE, DATA, IMAGES = "suites.md", "suites.json", "img"

_TRAINED = "†"
"""Mark of agents that were trained on the areas of the suite."""

SUMMARY_AGENT, SUMMARY_BASELINE = "belief", "airloc"
"""The agent of the summary, and the agent that it is compared with."""

_CHARTED_AGENTS = ("belief", "airloc", "priv-local")
"""The agents of the charts."""

_INTRODUCTION = (
    "One command evaluates every available agent on every suite, and writes this page. A suite holds the arguments of "
    "an `airloc evaluate` command; all suites are declared in `airloc/evaluation/benchmarks/suites.toml`. The key of a "
    "result is made of the content of data and weights, the settings and the versions of the tasks, so the command "
    "computes only what has changed."
)

_LEGEND = (
    "Success in percent, with its 95 % interval by bootstrap over areas, or over the tiles that areas were cut from. "
    f"{_TRAINED}: the agent was trained on these areas. Blind optimum: the expected success of the best path that uses "
    f"no image; ≥ if it is not proven to be the best ({floor_name(False)!r} in `airloc evaluate`)."
)


@dataclass(frozen=True)
class SkippedSuite:
    """A suite whose data is absent."""

    suite: SuiteSpec
    reason: str


@dataclass(frozen=True)
class PageOptions:
    """What the page says about itself."""

    command: str
    """The command line that makes the page."""
    made_with: str
    """Version and machine."""
    suites: Sequence[SuiteSpec]
    """The selected suites."""
    agents: Sequence[str]
    """The selected agents in the order of the rows."""
    skipped: Sequence[SkippedSuite] = ()
    seed: int = 0
    limit: int | None = None
    """Largest number of areas of each suite; None for all."""


@dataclass(frozen=True)
class Page:
    """The content of the files of the page."""

    markdown: str
    charts: dict[str, str]
    """SVG by file name."""
    data: str
    """All records as JSON."""

    def write(self, folder: Path) -> Path:
        """Write all files and return the path of the page."""
        for name, content in self.charts.items():
            write_atomically(folder / IMAGES / name, content)
        write_atomically(folder / DATA, self.data)
        return write_atomically(folder / PAGE, self.markdown)


def make_page(results: SuiteResults, options: PageOptions) -> Page:
    """Make the page of the results."""
    charts: dict[str, str] = {}
    text = "".join(_text(results, options, charts))
    suites = {suite.name: suite for suite in options.suites}
    data = [_record(suites[suite], result) for (_, suite), result in results.items()]
    return Page(text, charts, json.dumps(data, indent=1, allow_nan=False) + "\n")


def group_table(
    group: SuiteGroup, agents: Sequence[str], results: SuiteResults, skipped: Sequence[SkippedSuite]
) -> str:
    """Return the table of a group: agents as rows, suites as columns; empty if no suite of the group is selected."""
    absent = {skip.suite.name for skip in skipped}
    selected = {suite for _, suite in results} | absent
    shown = [suite for suite in group.suites if suite.name in selected]
    if not shown:
        return ""
    rows = []
    for agent in agents:
        cells = [_cell(agent, suite, results) for suite in shown]
        if any(cells):
            rows.append([f"`{agent}`", *(cell or DASH for cell in cells)])
    rows.append(["*blind optimum*", *(_floor_cell(suite, results) for suite in shown)])
    titles = [f"{suite.title} (no data)" if suite.name in absent else suite.title for suite in shown]
    return markdown_table(["agent", *titles], rows, align_right=True)


def summary_table(suites: Sequence[SuiteSpec], results: SuiteResults) -> str:
    """Return one row per suite: the belief agent compared with the blind optimum and with AiRLoc."""
    header = [
        "suite",
        "blind optimum",
        f"`{SUMMARY_AGENT}`",
        "minus blind optimum",
        f"minus `{SUMMARY_BASELINE}`, paired",
    ]
    rows = [
        [suite.name, _floor_cell(suite, results), *_summary_cells(suite, results)]
        for suite in suites
        if _any_result(suite, results) is not None
    ]
    return markdown_table(header, rows, align_right=True)


def suite_size(suite: SuiteSpec, results: SuiteResults) -> str:
    """Return the size of a suite as a sentence; empty if there are no results."""
    result = _any_result(suite, results)
    if result is None:
        return ""
    record = result.record
    areas = f"{record['areas']} areas"
    if record["clusters"] < record["areas"]:
        areas += f" of {record['clusters']} tiles"
    grid = record["grid"].replace("x", " x ")
    return f"{grid} cells, {record['budget']} moves, {areas}, {record['episodes']:,} episodes."


def group_chart(group: SuiteGroup, results: SuiteResults) -> str | None:
    """Draw the success on the suites of a group; None if none of the charted agents has a result."""
    suites = [suite for suite in group.suites if any((agent, suite.name) in results for agent in _CHARTED_AGENTS)]
    if not suites:
        return None
    bars = []
    for index, agent in enumerate(_CHARTED_AGENTS):
        found = [results.get((agent, suite.name)) for suite in suites]
        if any(found):
            low, high = zip(*((None, None) if each is None else each.interval for each in found), strict=True)
            values = [None if each is None else each.success for each in found]
            bars.append(Bars(agent, values, low, high, style=chart_style(agent, index)))
    floors = [each.record["blind_optimum"] for suite in suites if (each := _any_result(suite, results))]
    bars.append(Bars("blind optimum", floors, style=chart_style("blind", len(_CHARTED_AGENTS))))
    titles = [_unbroken(suite.title, " x ") for suite in suites]
    return bar_chart(titles, bars, title=_unbroken(group.title, " x "), y_label="success", y_percent=True)


def _text(results: SuiteResults, options: PageOptions, charts: dict[str, str]) -> Iterator[str]:
    """Iterate over the parts of the page, and collect its charts."""
    yield "# Every agent on every suite\n\n"
    yield f"{_INTRODUCTION}\n\n    {options.command}\n\nSeed {options.seed}. {options.made_with}\n\n{_LEGEND}\n\n"
    yield from (f"**{remark}**\n\n" for remark in _remarks(options))
    yield f"## Summary\n\n{summary_table(options.suites, results)}\n"
    for number, group in enumerate(GROUPS, start=1):
        if table := group_table(group, options.agents, results, options.skipped):
            yield f"## {group.title}\n\n{table}\n"
            chart = group_chart(group, results)
            if chart is not None:
                charts[name := f"suites-{number}.svg"] = chart
                yield f"![Success on each suite beside the blind optimum]({IMAGES}/{name})\n\n"
    yield "## Suites and commands\n\n"
    for suite in options.suites:
        commands = "".join(f"    {command}\n" for command in suite.commands(seed=options.seed))
        description = f"{suite.description} {suite_size(suite, results)}".rstrip()
        yield f"**{suite.name}**: {description}\n\n{commands}\n"


def _remarks(options: PageOptions) -> Iterator[str]:
    if options.limit is not None:
        yield (
            f"At most {options.limit} areas of each suite were used, to see that everything runs. These numbers mean "
            "nothing; the commands below use all areas."
        )
    for skip in options.skipped:
        yield f"{skip.suite.name} was skipped: {skip.reason}."


def _record(suite: SuiteSpec, result: EvaluationResult) -> dict[str, Any]:
    commands = suite.commands(result.agent, seed=result.seed)
    named = {"suite": suite.name, "agent": result.agent, "commands": commands}
    return {**named, **result.provenance, "record": result.record}


def _any_result(suite: SuiteSpec, results: SuiteResults) -> EvaluationResult | None:
    """Return the result of any agent on a suite, for what all agents share."""
    return next((result for (_, name), result in results.items() if name == suite.name), None)


def _summary_cells(suite: SuiteSpec, results: SuiteResults) -> list[str]:
    ours, baseline = (results.get((agent, suite.name)) for agent in (SUMMARY_AGENT, SUMMARY_BASELINE))
    if ours is None:
        return [DASH] * 3
    low, high = ours.interval
    floor = ours.record["blind_optimum"]
    above = _difference(
        ours.success - floor, (None, None) if low is None or high is None else (low - floor, high - floor)
    )
    paired = DASH if baseline is None else _difference(*ours.minus(baseline))
    return [_cell(SUMMARY_AGENT, suite, results), above, paired]


def _cell(agent: str, suite: SuiteSpec, results: SuiteResults) -> str:
    result = results.get((agent, suite.name))
    if result is None:
        return ""
    mark = _TRAINED if suite.trained_on_areas(agent) else ""
    return f"{percent(result.success)}{mark} {_unbroken(percent_interval(result.interval))}".rstrip()


def _floor_cell(suite: SuiteSpec, results: SuiteResults) -> str:
    result = _any_result(suite, results)
    if result is None:
        return DASH
    return ("" if result.record["blind_optimum_exact"] else "≥ ") + percent(result.record["blind_optimum"])


def _difference(value: float, interval: Interval) -> str:
    return f"{100 * value:+.1f}{_unbroken(signed_interval(interval))}"


def _unbroken(text: str, separator: str = ", ") -> str:
    """Return a text without line breaks at a separator, such as that of an interval or of a grid size."""
    return text.replace(separator, separator.replace(" ", "\N{NO-BREAK SPACE}"))
