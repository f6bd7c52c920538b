"""The report of a reproduction, from results written by hand."""

import json
from pathlib import Path

from airloc.evaluation.benchmarks.paper import Setup
from airloc.reports.reproduction import ReportOptions, make_report
from paper_results import VAL, record, results

OPTIONS = ReportOptions("airloc reproduce --all", "airloc reproduce", ["<b>not the paper's data</b>"], "airloc", (4,))


def test_the_report_escapes_text_links_its_data_and_prints_commands(tmp_path: Path):
    report = make_report(results((Setup("airloc", *VAL), record(0.6))), [], OPTIONS)
    assert "<b>" not in report.page
    assert set(report.figures) == {"table-4", "claims", "success-by-distance-5x5"}
    page = report.write(tmp_path)
    assert page == tmp_path / "report.html"
    for name in report.figures:
        assert f'href="figures/{name}.json"' in report.page
        json.loads((tmp_path / "figures" / f"{name}.json").read_text())
    assert "airloc reproduce --table 4" in report.page
    assert "## Table 4" in (tmp_path / "tables.md").read_text(encoding="utf-8")
