"""The report of a reproduction: the paper's tables and figures next to ours, on one page that fetches nothing."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloc.drawing.page import Html, command, figure, link, page, paragraph, section, table
from airloc.evaluation.benchmarks import paper
from airloc.evaluation.benchmarks.paper import Table
from airloc.files import write_atomically
from airloc.reports import comparison, successors
from airloc.reports.comparison import MARK
from airloc.reports.figures import Figure, charts
from airloc.reports.outcomes import Curve, Outcomes
from airloc.reports.searches import examples
from airloc.reports.verdicts import FAILS, Verdict, verdicts

PAGE, TABLES = "report.html", "tables.md"
FIGURES = "figures"

RATIO = (
    "The step ratio is printed as 1 / mean(minimum / steps), while the paper's text defines mean(steps / minimum). "
    "Ours is given as printed, and in brackets as defined. One printed value, 0.79 for Local in table 5, fits neither: "
    "no ratio lies below one."
)

CLAIMED = (
    "That one agent is above another holds where the paired difference on the same episodes is clearly above zero, and "
    "cannot be told where the episodes are too few for its sign."
)


@dataclass(frozen=True)
class About:
    """What a report says about itself."""

    command: str
    """Makes everything again, as typed."""
    base: str
    """The command without what is asked for: with `--table 1` or so it makes a part again."""
    remarks: Sequence[str]
    """What differs from the paper's data."""
    made_with: str
    """Version, commit and machine."""
    tables: tuple[int, ...]
    """The tables that were asked for."""
    protocol: bool = True
    """Whether the successors' protocol was asked for."""


@dataclass(frozen=True)
class Report:
    """A report as the content of its files."""

    page: str
    tables: str
    figures: dict[str, str]
    """JSON by name."""

    def write(self, folder: Path) -> Path:
        """Write all files; give the page."""
        for name, content in self.figures.items():
            write_atomically(folder / FIGURES / f"{name}.json", content)
        write_atomically(folder / TABLES, self.tables)
        return write_atomically(folder / PAGE, self.page)


def make_report(outcomes: Outcomes, curves: Sequence[Curve], about: About) -> Report:
    """Make the report of what was computed."""
    shown = [paper.table(number) for number in about.tables]
    compared = {each.number: comparison.lines(each, outcomes) for each in shown}
    checked = verdicts(outcomes)
    drawn = [*charts(outcomes, curves), *examples(outcomes)]
    protocol = successors.chart(outcomes) if about.protocol else None
    body = [
        _head(about),
        *(_table_section(each, compared[each.number], about) for each in shown),
        section("What the paper claims", paragraph(CLAIMED), _claims(checked), _source("claims")),
        *(_figure_section(each, about) for each in drawn),
        *([_protocol_section(outcomes, protocol, about)] if protocol else []),
        section("Make it again", command(about.command), paragraph(about.made_with)),
    ]
    data: dict[str, Any] = {f"table-{number}": [line.record() for line in lines] for number, lines in compared.items()}
    data |= {each.name: dict(each.data) for each in (*drawn, *([protocol] if protocol else []))}
    data["claims"] = [verdict.record() for verdict in checked]
    return Report(
        page=page("The paper, reproduced", "\n".join(body), subtitle="Aerial view goal localization: theirs and ours"),
        tables="".join(_markdown(shown, compared, checked, outcomes, about, protocol is not None)),
        figures={name: json.dumps(content, indent=1, allow_nan=False) + "\n" for name, content in data.items()},
    )


def _head(about: About) -> Html:
    intro = (
        "Each of the paper's tables: for every metric what the paper prints, then ours. Intervals are 95 %, by "
        f"bootstrap over areas or the tiles they were cut from; {MARK} marks where ours excludes the paper's value. "
        "The data behind every table and figure lies in a file beside this page."
    )
    remarks = [paragraph(remark) for remark in about.remarks]
    return Html("\n".join([paragraph(intro), *remarks, paragraph(RATIO)]))


def _table_section(each: Table, lines: Sequence[comparison.Line], about: About) -> Html:
    again = command(f"{about.base} --table {each.number}")
    return section(f"Table {each.number}", comparison.as_html(each, lines), _source(f"table-{each.number}"), again)


def _figure_section(each: Figure, about: About) -> Html:
    made_by = f"{about.base} {each.asked_by}"
    return section(each.heading, figure(each.content, each.caption, source=_path(each.name), made_by=made_by))


def _protocol_section(outcomes: Outcomes, drawn: Figure, about: About) -> Html:
    shown = figure(drawn.content, drawn.caption, source=_path(drawn.name), made_by=f"{about.base} {drawn.asked_by}")
    told = (paragraph(successors.explanation()), successors.as_html(outcomes), shown, paragraph(successors.REMEDY))
    return section(drawn.heading, *told)


def _claims(checked: Sequence[Verdict]) -> Html:
    marked = {(at, 2) for at, verdict in enumerate(checked) if verdict.verdict == FAILS}
    rows = [[verdict.claim.where, verdict.claim.said, verdict.verdict, verdict.why] for verdict in checked]
    return table(["Where", "What it says", "Here", "Ours (success, points)"], rows, highlight=marked)


def _source(name: str) -> Html:
    return paragraph(link("Data", _path(name)))


def _path(name: str) -> str:
    return f"{FIGURES}/{name}.json"


def _markdown(
    shown: Sequence[Table],
    compared: dict[int, list[comparison.Line]],
    checked: Sequence[Verdict],
    outcomes: Outcomes,
    about: About,
    protocol: bool,
) -> Iterator[str]:
    yield "".join(f"{remark}\n\n" for remark in about.remarks)
    yield f"{MARK} marks where our 95 % interval excludes what the paper prints. {RATIO}\n\n"
    yield f"    {about.command}\n\n{about.made_with}\n\n"
    for each in shown:
        yield f"## Table {each.number}: {each.title}\n\n{comparison.markdown(each, compared[each.number])}\n"
    yield f"## Claims\n\n{CLAIMED}\n\n"
    yield "| where | what the paper says | here | ours (success, points) |\n| --- | --- | --- | --- |\n"
    for verdict in checked:
        yield f"| {verdict.claim.where} | {verdict.claim.said} | {verdict.verdict} | {verdict.why} |\n"
    if protocol:
        yield f"\n## The successors' protocol\n\n{successors.explanation()}\n\n{successors.markdown(outcomes)}\n"
        yield f"{successors.REMEDY}\n"
