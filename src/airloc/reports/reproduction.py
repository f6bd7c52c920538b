"""The report of `airloc reproduce`: the paper's tables and figures next to ours, as one self-contained HTML page."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloc.drawing.page import Html, command, figure, link, page, paragraph, section, table
from airloc.evaluation.benchmarks import paper
from airloc.evaluation.benchmarks.paper import Table
from airloc.files import write_atomically
from airloc.reports import comparison
from airloc.reports.claims import MIN_EPISODES, REFUTED, Verdict, check_claims
from airloc.reports.comparison import MARK, SUCCESSOR_REMEDY, ComparedRow
from airloc.reports.figures import Figure, charts, search_figures, successor_chart
from airloc.reports.results import LearningCurve, PaperResults
from airloc.reports.tables import markdown_table

PAGE, TABLES = "report.html", "tables.md"
_FIGURES = "figures"

_STEP_RATIO = (
    "The tables print the step ratio as 1 / mean(minimum / steps), while the text defines it as mean(steps / minimum). "
    "Ours is given as printed, and in brackets as defined in the text. One printed value, 0.79 for Local in table 5, "
    "fits neither definition, because no ratio can be below one."
)

_CLAIMS_NOTE = (
    "A claim that one agent is better than another is confirmed if the paired difference on the same episodes is above "
    "zero with its whole 95 % interval. It is open if there are too few episodes to tell the sign, and not checked on "
    f"fewer than {MIN_EPISODES} episodes."
)


@dataclass(frozen=True)
class ReportOptions:
    """What a report says about itself."""

    command: str
    """The command line that makes the report."""
    base: str
    """The same command without --all, --table and --figure."""
    remarks: Sequence[str]
    """How the data differs from the paper's."""
    made_with: str
    """Version and machine."""
    tables: tuple[int, ...]
    """The selected tables."""
    successors: bool = True
    """Whether to show the successors' protocol."""


@dataclass(frozen=True)
class Report:
    """The content of the files of a report."""

    page: str
    tables: str
    figures: dict[str, str]
    """JSON by name."""

    def write(self, folder: Path) -> Path:
        """Write all files and return the path of the page."""
        for name, content in self.figures.items():
            write_atomically(folder / _FIGURES / f"{name}.json", content)
        write_atomically(folder / TABLES, self.tables)
        return write_atomically(folder / PAGE, self.page)


def make_report(results: PaperResults, curves: Sequence[LearningCurve], options: ReportOptions) -> Report:
    """Make the report of a reproduction."""
    compared = [(each, comparison.compare_table(each, results)) for each in map(paper.table, options.tables)]
    verdicts = check_claims(results)
    figures = [*charts(results, curves), *search_figures(results)]
    successors = successor_chart(results) if options.successors else None
    body = [
        _introduction(options),
        *(_table_section(each, lines, options) for each, lines in compared),
        section("Claims of the paper", paragraph(_CLAIMS_NOTE), _claims(verdicts), _data_link("claims")),
        *(_figure_section(each, options) for each in figures),
        *([_successor_section(results, successors, options)] if successors else []),
        section("Command", command(options.command), paragraph(options.made_with)),
    ]
    data: dict[str, Any] = {f"table-{each.number}": [line.record() for line in lines] for each, lines in compared}
    data |= {each.name: dict(each.data) for each in (*figures, *([successors] if successors else []))}
    data["claims"] = [verdict.record() for verdict in verdicts]
    markdown = [*_markdown(compared, verdicts, options), *(_successor_markdown(results) if successors else [])]
    return Report(
        page=page("The paper, reproduced", "\n".join(body), subtitle="Aerial view goal localization: theirs and ours"),
        tables="".join(markdown),
        figures={name: json.dumps(content, indent=1, allow_nan=False) + "\n" for name, content in data.items()},
    )


def _introduction(options: ReportOptions) -> Html:
    text = (
        "Each table of the paper shows for every metric the printed value, then ours. Intervals are 95 %, by bootstrap "
        f"over areas or the tiles they were cut from. {MARK} marks a value of the paper that our interval excludes. "
        "The data of every table and figure is in a file beside this page."
    )
    remarks = [paragraph(remark) for remark in options.remarks]
    return Html("\n".join([paragraph(text), *remarks, paragraph(_STEP_RATIO)]))


def _table_section(each: Table, lines: Sequence[ComparedRow], options: ReportOptions) -> Html:
    made_by = command(f"{options.base} --table {each.number}")
    content = comparison.table_html(each, lines)
    return section(f"Table {each.number}", content, _data_link(f"table-{each.number}"), made_by)


def _figure_section(each: Figure, options: ReportOptions) -> Html:
    return section(each.heading, _figure(each, options))


def _figure(each: Figure, options: ReportOptions) -> Html:
    made_by = f"{options.base} {each.option}"
    return figure(each.content, each.caption, source=_data_path(each.name), made_by=made_by)


def _successor_section(results: PaperResults, chart: Figure, options: ReportOptions) -> Html:
    problem, table_ = paragraph(comparison.successor_problem()), comparison.successor_html(results)
    return section(chart.heading, problem, table_, _figure(chart, options), paragraph(SUCCESSOR_REMEDY))


def _claims(verdicts: Sequence[Verdict]) -> Html:
    marked = {(at, 2) for at, verdict in enumerate(verdicts) if verdict.verdict == REFUTED}
    return table(["Where", "Claim", "Here", "Ours (success, points)"], _claim_rows(verdicts), highlight=marked)


def _claim_rows(verdicts: Sequence[Verdict]) -> list[list[str]]:
    return [[each.claim.reference, each.claim.statement, each.verdict, each.values] for each in verdicts]


def _data_link(name: str) -> Html:
    return paragraph(link("Data", _data_path(name)))


def _data_path(name: str) -> str:
    return f"{_FIGURES}/{name}.json"


def _markdown(
    compared: Sequence[tuple[Table, Sequence[ComparedRow]]], verdicts: Sequence[Verdict], options: ReportOptions
) -> Iterator[str]:
    yield "".join(f"{remark}\n\n" for remark in options.remarks)
    yield f"{MARK} marks a value of the paper that our 95 % interval excludes. {_STEP_RATIO}\n\n"
    yield f"    {options.command}\n\n{options.made_with}\n\n"
    for each, lines in compared:
        yield f"## Table {each.number}: {each.title}\n\n{comparison.table_markdown(each, lines)}\n"
    yield f"## Claims\n\n{_CLAIMS_NOTE}\n\n"
    yield markdown_table(["where", "claim", "here", "ours (success, points)"], _claim_rows(verdicts))


def _successor_markdown(results: PaperResults) -> Iterator[str]:
    table_ = comparison.successor_markdown(results)
    yield f"\n## The successors' protocol\n\n{comparison.successor_problem()}\n\n{table_}\n{SUCCESSOR_REMEDY}\n"
