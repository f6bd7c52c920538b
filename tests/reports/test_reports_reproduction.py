"""The report of a reproduction, from results written by hand."""

import json
from pathlib import Path

import pytest

from airloc.drawing.page import page
from airloc.evaluation.benchmarks.paper import TABLES, Setup
from airloc.reports.comparison import compare_table, successor_html, table_html
from airloc.reports.reproduction import ReportOptions, make_report
from paper_results import VAL, record, results

OPTIONS = ReportOptions("airloc reproduce --all", "airloc reproduce", ["<b>not the paper's data</b>"], "airloc", (4,))


def test_the_report_escapes_text_links_its_data_and_prints_commands(tmp_path: Path):
    report = make_report(results((Setup("airloc", *VAL), record(0.6))), [], OPTIONS)
    assert "<b>" not in report.page
    assert set(report.figures) == {"table-4", "claims", "success-by-distance-5x5"}
    path = report.write(tmp_path)
    assert path == tmp_path / "report.html"
    for name in report.figures:
        assert f'href="figures/{name}.json"' in report.page
        json.loads((tmp_path / "figures" / f"{name}.json").read_text())
    assert "airloc reproduce --table 4" in report.page
    assert "## Table 4" in (tmp_path / "tables.md").read_text(encoding="utf-8")


@pytest.mark.browser
def test_every_table_with_all_its_rows_fits_a_window_of_1200_px(tmp_path: Path, open_report):
    setups = {Setup.of(each, row) for each in TABLES for row in each.rows if row.seed != "average"}
    setups |= {Setup("belief-no-memory", each.data, each.split, "7x7") for each in TABLES}
    found = results(*((setup, record(0.6, 0.251, 0.748)) for setup in sorted(setups, key=str)))
    far = Setup("belief-no-memory", *VAL, "5x5", episodes="far-pairs", moves=4)
    tables = [table_html(each, compare_table(each, found)) for each in TABLES]
    tables.append(successor_html(results((far, record(0.6, 0.251, 0.748, d4=0.5, d5=0.5, d6=1.0, d7=1.0, d8=1.0)))))
    path = tmp_path / "page.html"
    path.write_text(page("Tables", "\n".join(tables)))
    widths = open_report(path).eval_on_selector_all(".table", "all => all.map(t => [t.scrollWidth, t.clientWidth])")
    assert len(widths) == len(tables)
    assert [(needed, given) for needed, given in widths if needed > given] == []
