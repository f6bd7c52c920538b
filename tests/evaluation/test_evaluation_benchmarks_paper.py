"""The numbers of the paper are complete and as printed."""

import pytest

from airloc.agents.registry import AGENTS
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.paper import CLAIMS, SUCCESSOR_PROTOCOL, SUCCESSOR_RESULTS, TABLES, table

KINDS = {"higher", "similar", "decreasing", "varying", "seeds", "human"}


@pytest.mark.parametrize(
    ("number", "rows", "total"), [(1, 14, 617.3), (2, 14, 613.2), (3, 12, 613.1), (4, 19, 1312.6), (5, 26, 1467.7)]
)
def test_every_row_is_present_and_the_successes_add_up(number: int, rows: int, total: float):
    found = table(number)
    assert len(found.rows) == rows
    assert 100 * sum(row.printed["success"] for row in found.rows) == pytest.approx(total)
    assert all(set(row.printed) == set(found.columns) for row in found.rows)


def test_every_row_is_of_an_agent_that_we_have():
    assert {row.agent for found in TABLES for row in found.rows} <= set(AGENTS)


def test_some_cells_read_as_the_paper_prints_them():
    first = table(1).rows[0]
    assert (first.name, first.agent, first.grid) == ("AiRLoc (5x5)", "airloc", "5x5")
    assert first.printed == {
        "success": 0.676,
        "step_ratio": 1.45,
        "steps": 6.2,
        "residual_distance": 2.4,
        "runtime_ms": 120,
    }
    trained = [(row.agent, row.trained_on, row.printed["success"]) for row in table(3).rows if row.grid == "5x5"]
    assert trained[:2] == [("airloc", "masa", 0.661), ("airloc", "xbd-pre", 0.728)]
    assert [row.seed for row in table(4).rows[:6]] == ["median", "1", "2", "3", "4", "average"]


def test_the_papers_averages_over_seeds_are_those_of_its_rows():
    for name in ("airloc", "airloc-no-residual", "airloc-no-prior"):
        rows = [row for row in table(4).rows if row.agent == name]
        mean = sum(row.printed["success"] for row in rows[:5]) / 5
        assert rows[5].printed["success"] == pytest.approx(mean, abs=0.0006)


def _is_reciprocal(ratio: float) -> bool:
    return any(round(1 / (hundredths / 100), 2) == ratio for hundredths in range(1, 101))


def test_printed_step_ratios_are_reciprocals_of_numbers_with_two_digits_but_for_one_cell():
    rows = [row for number in (1, 2, 4, 5) for row in table(number).rows if row.seed == "median"]
    odd = [(row.name, row.printed["step_ratio"]) for row in rows if not _is_reciprocal(row.printed["step_ratio"])]
    assert odd == [("Local", 0.79)]
    assert len(rows) == 58


def test_an_unknown_table_is_refused():
    with pytest.raises(AirlocError, match="table 6"):
        table(6)


def test_claims_have_a_known_kind_and_a_reference():
    assert {claim.kind for claim in CLAIMS} == KINDS
    assert all(bool(claim.figure) != bool(claim.table) for claim in CLAIMS)
    assert CLAIMS[0].reference == "Figure 3, left"
    human = next(claim for claim in CLAIMS if "human" in claim.statement)
    assert (human.kind, human.details) == ("human", {})


def test_the_successors_results_have_a_source():
    assert {(entry.agent, entry.success) for entry in SUCCESSOR_RESULTS} == {
        ("GOMAA-Geo", 0.644),
        ("GeoExplorer", 0.731),
    }
    assert all("arXiv" in entry.source for entry in SUCCESSOR_RESULTS)
    protocol = SUCCESSOR_PROTOCOL
    assert (protocol.moves, protocol.budget, protocol.distances) == (4, 10, (4, 5, 6, 7, 8))
