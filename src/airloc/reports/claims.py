"""Check the claims of the paper on our results.

That one agent is better than another is tested on the paired difference in success on the same episodes. The claim is
confirmed if the 95 % interval is above zero and no single distance contradicts it. It is refuted if an interval is
below zero, and open otherwise. Other claims are read off the values. Results of fewer than `MIN_EPISODES` episodes give
no verdict.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airloc.evaluation.benchmarks.paper import CLAIMS, Claim, Setup, table
from airloc.reports.results import EvaluationResult, PaperResults
from airloc.reports.tables import signed_interval

CONFIRMED, REFUTED, OPEN = "confirmed", "refuted", "open"
UNCHECKED, HUMAN = "not checked", "about people"

MIN_EPISODES = 100
"""Fewest episodes that give a verdict; their success is known to about 10 points."""


@dataclass(frozen=True)
class Verdict:
    """Whether our results confirm a claim."""

    claim: Claim
    verdict: str
    values: str
    """Our values."""

    def record(self) -> dict[str, Any]:
        """Return JSON values."""
        claim = self.claim
        return {"where": claim.reference, "claim": claim.statement, "verdict": self.verdict, "ours": self.values}


class _UncheckedError(Exception):
    """Why a claim cannot be checked."""


def check_claims(results: PaperResults) -> list[Verdict]:
    """Check every claim."""
    return [check_claim(claim, results) for claim in CLAIMS]


def check_claim(claim: Claim, results: PaperResults) -> Verdict:
    """Check one claim."""
    if claim.kind == "human":
        return Verdict(claim, HUMAN, "")
    try:
        verdict, values = CHECKS[claim.kind](claim, results)
    except _UncheckedError as reason:
        return Verdict(claim, UNCHECKED, str(reason))
    return Verdict(claim, verdict, values)


def _higher(claim: Claim, results: PaperResults) -> tuple[str, str]:
    distances = claim.details.get("distances", [])
    better = _find(claim, claim.details["better"], results)
    verdicts, values = [], []
    for name in claim.details["worse"]:
        worse = _find(claim, name, results)
        difference, interval = better.minus(worse, distances)
        verdicts.append(_compare(better, worse, distances))
        span = signed_interval(interval)
        values.append(f"{claim.details['better']} minus {name}: {100 * difference:+.1f}{span}")
    return next((verdict for verdict in (REFUTED, OPEN) if verdict in verdicts), CONFIRMED), ", ".join(values)


def _compare(better: EvaluationResult, worse: EvaluationResult, distances: list[int]) -> str:
    """Decide whether one agent is better than another, at each of the distances."""
    _, (low, high) = better.minus(worse, distances)
    highs = [high, *(better.minus(worse, [distance])[1][1] for distance in distances)]
    if any(end is not None and end < 0 for end in highs):
        return REFUTED
    pairs = zip(better.success_at(distances), worse.success_at(distances), strict=True)
    return CONFIRMED if low is not None and low > 0 and all(a > b for a, b in pairs) else OPEN


def _similar(claim: Claim, results: PaperResults) -> tuple[str, str]:
    first, second = (
        _find(claim, claim.details[which], results).success_at(claim.details["distances"])
        for which in ("first", "second")
    )
    true = all(abs(a - b) <= claim.details["within"] for a, b in zip(first, second, strict=True))
    values = f"{claim.details['first']} {_percents(first)}, {claim.details['second']} {_percents(second)}"
    return _verdict(true), values


def _decreasing(claim: Claim, results: PaperResults) -> tuple[str, str]:
    true, values = True, []
    for name in claim.details["agents"]:
        found = _find(claim, name, results)
        near, far = found.success_at([1, max(map(int, found.record["success_by_distance"]))])
        true = true and far < near
        values.append(f"{name} {100 * near:.1f} to {100 * far:.1f}")
    return _verdict(true), ", ".join(values)


def _varying(claim: Claim, results: PaperResults) -> tuple[str, str]:
    names = (claim.details["agent"], *claim.details["others"])
    ranges = {name: _agreement_range(claim, name, results) for name in names}
    first, *others = ranges.values()
    values = ", ".join(f"{name} {100 * value:.1f} points" for name, value in ranges.items())
    return _verdict(all(first > other for other in others)), values


def _agreement_range(claim: Claim, name: str, results: PaperResults) -> float:
    """Return the range of the agreement with the prior over the distances of the grid."""
    found = _find(claim, name, results)
    if found.agreement is None:
        raise _UncheckedError(f"no result of {name}'s agreement")
    shares = [float(share["share"]) for distance, share in found.agreement.items() if int(distance) <= 4]
    return max(shares) - min(shares)


def _seeds(claim: Claim, results: PaperResults) -> tuple[str, str]:
    better = _all_seeds(claim, claim.details["better"], results)
    true, values = True, [f"worst {claim.details['better']} {100 * min(better):.1f}"]
    for name in claim.details["worse"]:
        worse = _all_seeds(claim, name, results)
        true = true and min(better) > max(worse)
        values.append(f"best {name} {100 * max(worse):.1f}")
    return _verdict(true), ", ".join(values)


def _all_seeds(claim: Claim, name: str, results: PaperResults) -> list[float]:
    """Return the success of all seeds of an agent."""
    _find(claim, name, results)
    found = [result for setup, result in results.items() if setup == _setup(claim, name, setup.seed)]
    if len(found) < 2 and name.startswith("airloc"):
        raise _UncheckedError(f"no result of other seeds of {name}")
    return [result.success for result in found]


def _find(claim: Claim, name: str, results: PaperResults) -> EvaluationResult:
    """Return the result of an agent, written as `agent` or as `agent@dataset` with the training dataset."""
    setup = _setup(claim, name, "median")
    if setup not in results:
        raise _UncheckedError(f"no result of {name}")
    found = results[setup]
    if found.record["episodes"] < MIN_EPISODES:
        raise _UncheckedError(f"{found.record['episodes']} episodes of {name} are too few")
    return found


def _setup(claim: Claim, name: str, seed: str) -> Setup:
    agent, _, trained_on = name.partition("@")
    place = ("masa", "val") if claim.table is None else (table(claim.table).data, table(claim.table).split)
    return Setup(agent, *place, claim.grid, trained_on or "masa", seed)


def _verdict(true: bool) -> str:
    return CONFIRMED if true else REFUTED


def _percents(values: list[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


CHECKS: dict[str, Callable[[Claim, PaperResults], tuple[str, str]]] = {
    "higher": _higher,
    "similar": _similar,
    "decreasing": _decreasing,
    "varying": _varying,
    "seeds": _seeds,
}
"""The check of each kind of claim."""
