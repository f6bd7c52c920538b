"""The paper's claims, checked on our results.

That one agent is above another is held to the paired difference on the same episodes: the claim holds where its 95 %
interval lies above zero and no single distance says otherwise, does not hold where an interval lies below zero, and
cannot be told where the episodes are too few. Other claims are read off the values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from airloc.evaluation.benchmarks.paper import CLAIMS, Claim, table
from airloc.evaluation.intervals import Bootstrap, Interval
from airloc.evaluation.metrics import Metric
from airloc.reports.outcomes import Outcome, Outcomes, Setup

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"
UNCHECKED, PEOPLE = "not checked", "said of people"


@dataclass(frozen=True)
class Verdict:
    """What our results say to a claim."""

    claim: Claim
    verdict: str
    why: str
    """Our values."""

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"where": self.claim.where, "said": self.claim.said, "verdict": self.verdict, "ours": self.why}


class _AbsentError(Exception):
    """A result that a claim is about is not there."""


def verdicts(outcomes: Outcomes) -> list[Verdict]:
    """Check every claim."""
    return [check(claim, outcomes) for claim in CLAIMS]


def check(claim: Claim, outcomes: Outcomes) -> Verdict:
    """Check one claim."""
    if claim.kind == "stated":
        return Verdict(claim, PEOPLE, "")
    try:
        verdict, why = CHECKS[claim.kind](claim, outcomes)
    except _AbsentError as absent:
        return Verdict(claim, UNCHECKED, f"no result of {absent}")
    return Verdict(claim, verdict, why)


def _read_off(true: bool) -> str:
    return HOLDS if true else FAILS


def _find(claim: Claim, name: str, outcomes: Outcomes, seed: str = "median") -> Outcome:
    """The result of an agent, written as `agent` or `agent@data` it was trained on, where the claim looks at it."""
    agent, _, trained = name.partition("@")
    place = ("masa", "val") if claim.table is None else (table(claim.table).data, table(claim.table).split)
    setup = Setup(agent, *place, claim.grid, trained or "masa", seed)
    if setup not in outcomes:
        raise _AbsentError(name)
    return outcomes[setup]


def _above(claim: Claim, outcomes: Outcomes) -> tuple[str, str]:
    distances = claim.details.get("distances", [])
    better = _find(claim, claim.details["better"], outcomes)
    found, why = [], []
    for name in claim.details["worse"]:
        worse = _find(claim, name, outcomes)
        gap, (low, high) = _difference(better, worse, distances)
        pairs = zip(better.success_at(distances), worse.success_at(distances), strict=True)
        below = [_difference(better, worse, [distance])[1][1] for distance in distances]
        if (high is not None and high < 0) or any(end is not None and end < 0 for end in below):
            found.append(FAILS)
        else:
            found.append(HOLDS if low is not None and low > 0 and all(a > b for a, b in pairs) else OPEN)
        span = "" if low is None or high is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
        why.append(f"{claim.details['better']} minus {name}: {100 * gap:+.1f}{span}")
    return next((verdict for verdict in (FAILS, OPEN) if verdict in found), HOLDS), ", ".join(why)


def _difference(first: Outcome, second: Outcome, distances: list[int]) -> tuple[float, Interval]:
    """By how much the first found more on the same episodes, over some distances or all, with its interval."""
    mine, theirs = first.searches(), second.searches()
    asked = np.array([not distances or search["distance"] in distances for search in mine], dtype=np.float64)
    bootstrap = Bootstrap([first.tiles[search["area"]] for search in mine])
    metrics = [Metric(asked * [search["found"] for search in searches], asked) for searches in (mine, theirs)]
    a, b = (metric.value() or 0.0 for metric in metrics)
    return a - b, bootstrap.difference(*metrics)


def _par(claim: Claim, outcomes: Outcomes) -> tuple[str, str]:
    first, second = (
        _find(claim, claim.details[which], outcomes).success_at(claim.details["distances"])
        for which in ("first", "second")
    )
    true = all(abs(a - b) <= claim.details["within"] for a, b in zip(first, second, strict=True))
    return _read_off(true), f"{claim.details['first']} {_shown(first)}, {claim.details['second']} {_shown(second)}"


def _falls(claim: Claim, outcomes: Outcomes) -> tuple[str, str]:
    true, why = True, []
    for name in claim.details["agents"]:
        found = _find(claim, name, outcomes)
        near, far = found.success_at([1, max(map(int, found.score["success_by_distance"]))])
        true = true and far < near
        why.append(f"{name} {100 * near:.1f} to {100 * far:.1f}")
    return _read_off(true), ", ".join(why)


def _varies(claim: Claim, outcomes: Outcomes) -> tuple[str, str]:
    spreads = {name: _spread(claim, name, outcomes) for name in (claim.details["agent"], *claim.details["others"])}
    first, *others = spreads.values()
    why = ", ".join(f"{name} {100 * spread:.1f} points" for name, spread in spreads.items())
    return _read_off(all(first > other for other in others)), why


def _spread(claim: Claim, name: str, outcomes: Outcomes) -> float:
    """How far the agreement with the prior varies over the distances of the grid."""
    found = _find(claim, name, outcomes)
    if found.agreement is None:
        raise _AbsentError(f"{name}'s agreement")
    shares = [float(share["share"]) for distance, share in found.agreement.items() if int(distance) <= 4]
    return max(shares) - min(shares)


def _seeds(claim: Claim, outcomes: Outcomes) -> tuple[str, str]:
    better = _all_seeds(claim, claim.details["better"], outcomes)
    true, why = True, [f"worst {claim.details['better']} {100 * min(better):.1f}"]
    for name in claim.details["worse"]:
        worse = _all_seeds(claim, name, outcomes)
        true = true and min(better) > max(worse)
        why.append(f"best {name} {100 * max(worse):.1f}")
    return _read_off(true), ", ".join(why)


def _all_seeds(claim: Claim, name: str, outcomes: Outcomes) -> list[float]:
    median = _find(claim, name, outcomes)
    others = [found for setup, found in outcomes.items() if setup == _other(median.setup, setup.seed)]
    if len(others) < 2 and name.startswith("airloc"):
        raise _AbsentError(f"other seeds of {name}")
    return [float(found.score["success"]) for found in others]


def _other(setup: Setup, seed: str) -> Setup:
    return Setup(setup.agent, setup.data, setup.split, setup.grid, setup.trained_on, seed)


def _shown(values: list[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


CHECKS: dict[str, Callable[[Claim, Outcomes], tuple[str, str]]] = {
    "above": _above,
    "par": _par,
    "falls": _falls,
    "varies": _varies,
    "seeds": _seeds,
}
