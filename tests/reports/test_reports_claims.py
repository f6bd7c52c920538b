"""Claims of the paper, checked on results written by hand."""

from pathlib import Path

import pytest

from airloc.evaluation.benchmarks.paper import CLAIMS, Setup
from airloc.reports.claims import CONFIRMED, HUMAN, OPEN, REFUTED, UNCHECKED, check_claim, check_claims
from airloc.reports.results import EvaluationResult
from paper_results import VAL, played, record, results


def verdict(part: str, found: dict[Setup, EvaluationResult]) -> str:
    [claim] = [claim for claim in CLAIMS if part in claim.statement]
    return check_claim(claim, found).verdict


@pytest.mark.parametrize(
    ("far", "expected"),
    [
        ([True] * 9 + [False], CONFIRMED),
        ([False] * 10, REFUTED),  # clearly below at one distance
        ([True, True, True] + [False] * 7, OPEN),  # below by one episode at one distance, which may be chance
    ],
)
def test_airloc_above_priv_local_at_distances_of_three_and_more(far: list[bool], expected: str, tmp_path: Path):
    near = {1: [False] * 10, 2: [False] * 10}
    many, few = [True] * 9 + [False], [True] * 4 + [False] * 6
    ours, theirs = (Setup(name, *VAL, "7x7") for name in ("airloc", "priv-local"))
    found = {
        ours: played(ours, {**near, 3: many, 4: many, 5: many, 6: far}, tmp_path),
        theirs: played(theirs, {1: many, 2: many, 3: few, 4: few, 5: few, 6: few}, tmp_path),
    }
    assert verdict("three or more steps apart", found) == expected
    assert verdict("close to each other", found) == CONFIRMED


def test_one_tile_leaves_a_claim_open(tmp_path: Path):
    hits = {distance: [distance > 2] for distance in range(1, 7)}
    ours, theirs = (Setup(name, *VAL, "7x7") for name in ("airloc", "priv-local"))
    none = {distance: [False] for distance in hits}
    found = {ours: played(ours, hits, tmp_path), theirs: played(theirs, none, tmp_path)}
    assert verdict("three or more steps apart", found) == OPEN


def test_claims_without_results_are_not_checked_and_neither_are_claims_about_people():
    assert {found.verdict for found in check_claims({})} == {UNCHECKED, HUMAN}
    assert verdict("human", {}) == HUMAN


@pytest.mark.parametrize(("episodes", "expected"), [(24, UNCHECKED), (99, UNCHECKED), (100, CONFIRMED)])
def test_few_episodes_give_no_verdict(episodes: int, expected: str):
    names = ("airloc", "airloc-no-residual", "airloc-no-prior", "priv-local")
    found = results(*((Setup(name, *VAL), record(0.5, d1=0.9, d4=0.2) | {"episodes": episodes}) for name in names))
    [claim] = [claim for claim in CLAIMS if "start is closer" in claim.statement]
    checked = check_claim(claim, found)
    assert checked.verdict == expected
    assert (f"{episodes} episodes of airloc are too few" in checked.values) == (expected == UNCHECKED)


@pytest.mark.parametrize(("worst", "expected"), [(0.61, CONFIRMED), (0.59, REFUTED)])
def test_the_worst_seed_is_compared_with_the_best_of_others(worst: float, expected: str):
    found = results(
        *((Setup("airloc", *VAL, seed=seed), record(value)) for seed, value in (("median", 0.7), ("1", worst))),
        *((Setup("airloc-no-residual", *VAL, seed=seed), record(0.5)) for seed in ("median", "1")),
        *((Setup("airloc-no-prior", *VAL, seed=seed), record(0.4)) for seed in ("median", "1")),
        (Setup("priv-local", *VAL), record(0.6)),
    )
    assert verdict("worst seed", found) == expected


@pytest.mark.parametrize(("spread", "expected"), [(0.5, CONFIRMED), (0.1, REFUTED)])
def test_the_agreement_of_airloc_varies_most(spread: float, expected: str):
    found = {}
    for name, far in (("airloc", 0.8 - spread), ("airloc-no-residual", 0.6), ("airloc-no-prior", 0.7)):
        shares = {
            distance: {"share": share, "ci95": [0, 1]} for distance, share in (("1", 0.8), ("4", far), ("9", 0.0))
        }
        found[Setup(name, *VAL)] = EvaluationResult(name, record(0.5), Path("none"), agreement=shares)
    assert verdict("largest variability", found) == expected
