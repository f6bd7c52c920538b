"""Tables, claims and figures of a reproduction, from results written by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from airloc.evaluation.benchmarks.paper import CLAIMS, table
from airloc.reports import comparison, successors
from airloc.reports.figures import charts
from airloc.reports.outcomes import Curve, Outcome, Setup
from airloc.reports.reproduction import About, make_report
from airloc.reports.searches import telling_pairs
from airloc.reports.verdicts import FAILS, HOLDS, OPEN, PEOPLE, UNCHECKED, check, verdicts

ABOUT = About("airloc reproduce --all", "airloc reproduce", ["<b>not the paper's data</b>"], "airloc", (4,))


def score(success: float, low: float = 0.0, high: float = 1.0, **by_distance: float) -> dict[str, Any]:
    strata = {name.removeprefix("d"): value for name, value in by_distance.items()} or {
        str(distance): success for distance in (1, 2, 3, 4)
    }
    metrics = ("success", "steps", "step_ratio", "step_ratio_table", "residual_distance")
    return {
        "success": success,
        "steps": 6.04,
        "step_ratio": 1.7,
        "step_ratio_table": 1.49,
        "residual_distance": None,
        "runtime_ms": 3.0,
        "episodes": 8,
        "success_by_distance": strata,
        "success_by_distance_ci95": {distance: [0.0, 1.0] for distance in strata},
        "ci95": {name: [None, None] for name in metrics} | {"success": [low, high], "step_ratio_table": [1.4, 1.45]},
        "blind_optimum": 0.521,
    }


def outcome(setup: Setup, result: dict[str, Any], agreement: dict[str, Any] | None = None) -> Outcome:
    return Outcome(setup, result, agreement, None, {}, Path("none"), Path("none"))


def played(*entries: tuple[Setup, dict[str, Any]]) -> dict[Setup, Outcome]:
    return {setup: outcome(setup, result) for setup, result in entries}


VAL = ("masa", "val")


def test_a_cell_is_marked_where_our_interval_excludes_the_papers_value():
    found = played((Setup("airloc", *VAL), score(0.6, 0.55, 0.65)), (Setup("priv-local", *VAL), score(0.66, 0.6, 0.7)))
    lines = {line.agent: line for line in reversed(comparison.lines(table(4), found)) if line.agent}
    assert lines["airloc"].cells["success"].excluded
    assert not lines["priv-local"].cells["success"].excluded
    assert lines["airloc"].cells["step_ratio"].excluded, "1.49 is compared with the ratio as printed"
    text = comparison.markdown(table(4), comparison.lines(table(4), found))
    assert "| AiRLoc | 72.6 | 60.0 [55.0, 65.0] ≠ | 1.49 | 1.49 (1.70) ≠ | 6.0 | 6.0 | 2.4 | – |" in text  # noqa: RUF001
    assert text.count("≠") == 3
    assert "| blind optimum (5x5) | – | 52.1 |" in text  # noqa: RUF001


def test_the_average_is_over_the_seeds_that_there_are():
    seeds = [(Setup("airloc", *VAL, seed=seed), score(value)) for seed, value in (("median", 0.6), ("1", 0.7))]
    average = comparison.lines(table(4), played(*seeds))[5]
    assert average.name == "AiRLoc (average)"
    assert average.cells["success"].ours == pytest.approx(0.65)
    assert comparison.lines(table(4), played(seeds[0]))[5].cells["success"].ours is None


def test_agents_of_our_own_have_a_row_without_the_papers_value():
    found = played((Setup("belief", *VAL), score(0.84)), (Setup("belief", *VAL, "7x7"), score(0.7)))
    assert [line.grid for line in comparison.lines(table(4), found) if line.agent == "belief"] == ["5x5"]
    own = [line for line in comparison.lines(table(5), found) if line.agent == "belief"]
    assert [(line.grid, line.cells["success"].printed, line.cells["success"].ours) for line in own] == [
        ("5x5", None, 0.84),
        ("7x7", None, 0.7),
    ]


def test_a_page_marks_the_cells_too():
    found = played((Setup("airloc", *VAL), score(0.6, 0.55, 0.65)))
    text = comparison.as_html(table(4), comparison.lines(table(4), found))
    assert text.count('class="number marked"') == 2


def said(part: str, found: dict[Setup, Outcome]) -> str:
    [claim] = [claim for claim in CLAIMS if part in claim.said]
    return check(claim, found).verdict


def flown(setup: Setup, found: dict[int, list[bool]], folder: Path) -> Outcome:
    """A result whose episodes are as listed by distance, one area each."""
    strata = {f"d{distance}": sum(hits) / len(hits) for distance, hits in found.items()}
    lines = [
        json.dumps({"area": f"area {number}", "distance": distance, "found": hit}) + "\n"
        for distance, hits in found.items()
        for number, hit in enumerate(hits)
    ]
    path = folder / f"{setup.agent}.jsonl"
    path.write_text("".join(lines))
    tiles = {f"area {number}": f"tile {number}" for number in range(100)}
    return Outcome(setup, score(0.5, **strata), None, None, tiles, path, Path("none"))


@pytest.mark.parametrize(
    ("far", "verdict"),
    [
        ([True] * 9 + [False], HOLDS),
        ([False] * 10, FAILS),  # clearly below at one distance
        ([True, True, True] + [False] * 7, OPEN),  # below by one at one distance, which may be chance
    ],
)
def test_airloc_above_priv_local_at_distances_of_three_and_more(far: list[bool], verdict: str, tmp_path: Path):
    near = {1: [False] * 10, 2: [False] * 10}
    many, few = [True] * 9 + [False], [True] * 4 + [False] * 6
    ours = flown(Setup("airloc", *VAL, "7x7"), {**near, 3: many, 4: many, 5: many, 6: far}, tmp_path)
    theirs = flown(Setup("priv-local", *VAL, "7x7"), {1: many, 2: many, 3: few, 4: few, 5: few, 6: few}, tmp_path)
    found = {ours.setup: ours, theirs.setup: theirs}
    assert said("three or more steps apart", found) == verdict
    assert said("close to each other", found) == HOLDS


def test_one_tile_cannot_tell(tmp_path: Path):
    hits = {distance: [distance > 2] for distance in range(1, 7)}
    ours = flown(Setup("airloc", *VAL, "7x7"), hits, tmp_path)
    theirs = flown(Setup("priv-local", *VAL, "7x7"), {distance: [False] for distance in hits}, tmp_path)
    assert said("three or more steps apart", {ours.setup: ours, theirs.setup: theirs}) == OPEN


def test_claims_without_results_are_not_checked_and_people_are_not_measured():
    assert {verdict.verdict for verdict in verdicts({})} == {UNCHECKED, PEOPLE}
    assert said("human", {}) == PEOPLE


@pytest.mark.parametrize(("worst", "verdict"), [(0.61, HOLDS), (0.59, FAILS)])
def test_the_worst_seed_is_held_against_the_best_of_others(worst: float, verdict: str):
    found = played(
        *((Setup("airloc", *VAL, seed=seed), score(value)) for seed, value in (("median", 0.7), ("1", worst))),
        *((Setup("airloc-no-residual", *VAL, seed=seed), score(0.5)) for seed in ("median", "1")),
        *((Setup("airloc-no-prior", *VAL, seed=seed), score(0.4)) for seed in ("median", "1")),
        (Setup("priv-local", *VAL), score(0.6)),
    )
    assert said("worst seed", found) == verdict


@pytest.mark.parametrize(("spread", "verdict"), [(0.5, HOLDS), (0.1, FAILS)])
def test_the_agreement_that_varies_most(spread: float, verdict: str):
    found = {}
    for name, far in (("airloc", 0.8 - spread), ("airloc-no-residual", 0.6), ("airloc-no-prior", 0.7)):
        shares = {"1": {"share": 0.8, "ci95": [0, 1]}, "4": {"share": far, "ci95": [0, 1]}}
        setup = Setup(name, *VAL)
        found[setup] = outcome(setup, score(0.5), shares | {"9": {"share": 0.0, "ci95": [0, 1]}})
    assert said("largest variability", found) == verdict


def test_charts_carry_the_data_they_were_made_from():
    shares = {"1": {"share": 0.8, "ci95": [0.7, 0.9]}, "2": {"share": 0.5, "ci95": [0.4, 0.6]}}
    setup = Setup("airloc", *VAL)
    bins = [{"forecast": 0.1, "hit": 0.2, "count": 5}, {"forecast": 0.9, "hit": 0.7, "count": 5}]
    calibrated = Outcome(setup, score(0.6), shares, {"ece": 0.1, "bins": bins}, {}, Path(), Path())
    others = [(Setup(name, *VAL), score(0.5)) for name in ("belief", "lawnmower", "airloc-priv")]
    found = {setup: calibrated, **played((Setup("airloc", *VAL, seed="1"), score(0.5)), *others)}
    made = {figure.name: figure for figure in charts(found, [Curve("airloc", "masa", (10, 20), (0.1, 0.2))])}
    names = ["success-by-distance-5x5", "agreement", "seeds", "learning-curves", "calibration"]
    assert list(made) == names
    assert made["success-by-distance-5x5"].data["agents"]["airloc"]["success"] == {
        "1": 0.6,
        "2": 0.6,
        "3": 0.6,
        "4": 0.6,
    }
    assert list(made["success-by-distance-5x5"].data["agents"]) == ["airloc", "belief"]
    assert made["agreement"].data["agents"]["airloc"]["2"]["share"] == 0.5
    assert made["seeds"].data["agents"]["airloc"]["1"]["success"] == 0.5
    assert made["calibration"].data["agents"]["airloc"]["bins"] == bins
    assert all("<svg" in figure.content for figure in made.values())


def test_the_successors_table_shows_the_floor_above_what_is_published():
    four = Setup("airloc", *VAL, suite="far-pairs", moves=4)
    found = played((four, score(0.7, d4=0.5, d5=0.6, d6=0.7, d7=0.8, d8=0.9)))
    header, rows = successors.rows(found)
    by_name = {row[0]: row for row in rows}
    assert by_name["blind optimum"][1:7] == ["48.3", "60.0", "90.0", "100.0", "100.0", "79.7"]
    published = [float(by_name[name][6] or 0) for name in ("GOMAA-Geo", "GeoExplorer")]
    assert published == [64.4, 73.1]
    assert max(published) < 79.7
    assert "arXiv" in (by_name["GeoExplorer"][header.index("Source")] or "")
    assert "79.7 %" in successors.explanation()
    assert successors.chart({}) is None


def test_the_pairs_shown_tell_agents_apart():
    def search(distance: int, found: bool, path: str) -> dict[str, Any]:
        return {"distance": distance, "found": found, "path": path}

    first = [search(1, True, "a"), search(2, True, "b"), search(3, False, "c"), search(4, True, "d")]
    second = [search(1, True, "a"), search(2, False, "x"), search(3, False, "c"), search(4, True, "y")]
    assert telling_pairs(first, second) == [1, 3]
    assert telling_pairs(first[:1], second[:1]) == [0]


def test_the_report_escapes_links_and_repeats(tmp_path: Path):
    report = make_report(played((Setup("airloc", *VAL), score(0.6))), [], ABOUT)
    assert "<b>" not in report.page
    assert set(report.figures) == {"table-4", "claims", "success-by-distance-5x5"}
    page = report.write(tmp_path)
    assert page == tmp_path / "report.html"
    for name in report.figures:
        assert f'href="figures/{name}.json"' in report.page
        json.loads((tmp_path / "figures" / f"{name}.json").read_text())
    assert "airloc reproduce --table 4" in report.page
    assert "## Table 4" in (tmp_path / "tables.md").read_text(encoding="utf-8")
