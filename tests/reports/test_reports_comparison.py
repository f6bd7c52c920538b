"""The paper's tables and the successors' results beside ours, from results written by hand."""

import pytest

from airloc.evaluation.benchmarks.paper import Setup, table
from airloc.reports.comparison import (
    compare_table,
    successor_problem,
    successor_rows,
    table_html,
    table_markdown,
)
from paper_results import VAL, record, results


def test_a_cell_is_marked_if_our_interval_excludes_the_papers_value():
    found = results(
        (Setup("airloc", *VAL), record(0.6, 0.55, 0.65)), (Setup("priv-local", *VAL), record(0.66, 0.6, 0.7))
    )
    lines = {line.agent: line for line in reversed(compare_table(table(4), found)) if line.agent}
    assert lines["airloc"].cells["success"].excluded
    assert not lines["priv-local"].cells["success"].excluded
    assert lines["airloc"].cells["step_ratio"].excluded, "1.49 is compared with the ratio as printed"
    text = table_markdown(table(4), compare_table(table(4), found))
    assert "| AiRLoc | 72.6 | 60.0 [55.0, 65.0] ≠ | 1.49 | 1.49 (1.70) ≠ | 6.0 | 6.0 | 2.4 | – |" in text  # noqa: RUF001
    assert text.count("≠") == 3
    assert "| blind optimum (5x5) | – | 52.1 |" in text  # noqa: RUF001
    assert table_html(table(4), compare_table(table(4), found)).count('class="number marked"') == 3


def test_the_average_is_over_the_seeds_with_results():
    seeds = [(Setup("airloc", *VAL, seed=seed), record(value)) for seed, value in (("median", 0.6), ("1", 0.7))]
    average = compare_table(table(4), results(*seeds))[5]
    assert average.name == "AiRLoc (average)"
    assert average.cells["success"].ours == pytest.approx(0.65)
    assert compare_table(table(4), results(seeds[0]))[5].cells["success"].ours is None


def test_agents_that_are_not_in_the_paper_have_a_row_without_a_printed_value():
    found = results((Setup("belief", *VAL), record(0.84)), (Setup("belief", *VAL, "7x7"), record(0.7)))
    assert [line.grid for line in compare_table(table(4), found) if line.agent == "belief"] == ["5x5"]
    own = [line for line in compare_table(table(5), found) if line.agent == "belief"]
    assert [(line.grid, line.cells["success"].printed, line.cells["success"].ours) for line in own] == [
        ("5x5", None, 0.84),
        ("7x7", None, 0.7),
    ]


def test_the_successors_table_shows_a_blind_optimum_above_the_published_results():
    four = Setup("airloc", *VAL, episodes="far-pairs", moves=4)
    header, rows = successor_rows(results((four, record(0.7, d4=0.5, d5=0.6, d6=0.7, d7=0.8, d8=0.9))))
    by_name = {row[0]: row for row in rows}
    assert by_name["blind optimum"][1:7] == ["48.3", "60.0", "90.0", "100.0", "100.0", "79.7"]
    published = [float(by_name[name][6]) for name in ("GOMAA-Geo", "GeoExplorer")]
    assert published == [64.4, 73.1]
    assert max(published) < 79.7
    assert "arXiv" in by_name["GeoExplorer"][header.index("Source")]
    assert "79.7 %" in successor_problem()
