import math
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from airloc.errors import AirlocError
from airloc.training import runs
from airloc.training.learner import Learner
from airloc.training.loop import PATIENCE, BestWeights, MeanWeights, UpdateLoop, cosine_schedule
from airloc.training.runs import Run


@dataclass(frozen=True)
class Config:
    steps: int = 7
    validate_every: int = 3
    learning_rate: float = 0.1


def begin(run: Run, losses: list[float], **options) -> tuple[Learner, UpdateLoop]:
    """Return a loop whose updates return the losses in turn."""
    learner = Learner(nn.Linear(1, 1), 0.1)
    if run.state:
        learner.load_state_dict(run.state["learner"])
    left = iter(losses)
    return learner, UpdateLoop(run, Config(), learner, lambda: torch.tensor([next(left)]), metrics=1, **options)


def test_it_pauses_at_validations_with_the_mean_since_the_last_one(tmp_path: Path):
    with Run.open(tmp_path, Config()) as run:
        _, loop = begin(run, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
        assert list(loop) == [(2, [2.0], True), (5, [5.0], True), (6, [7.0], True)], "the last update is validated too"


def test_it_pauses_for_saves_and_resumes_within_a_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runs, "SAVE_SECONDS", 0.0)
    with Run.open(tmp_path, Config()) as run:
        _, loop = begin(run, [1.0, 2.0])
        pauses = iter(loop)
        assert next(pauses) == (0, [1.0], False)
        step, means, validates = next(pauses)
        assert (step, means, validates) == (1, [1.5], False)
        run.save_state(step, loop.state())
        expected = torch.rand(3)
    with Run.open(tmp_path, Config()) as run:
        _, loop = begin(run, [6.0])
        assert torch.equal(torch.rand(3), expected)
        assert next(iter(loop)) == (2, [3.0], True)


def test_a_mean_that_is_no_number_ends_it(tmp_path: Path):
    with Run.open(tmp_path, Config()) as run:
        _, loop = begin(run, [1.0, math.nan, 1.0])
        with pytest.raises(AirlocError, match="NaN at step 2"):
            next(iter(loop))


def test_it_stops_before_an_update(tmp_path: Path):
    with Run.open(tmp_path, Config()) as run:
        seen: list[int] = []
        _, loop = begin(run, [1.0] * 3, stop=lambda: bool(seen))
        for step, _, _ in loop:
            seen.append(step)
        assert seen == [2]


def test_the_learning_rate_rises_and_then_falls_to_zero():
    shares = [cosine_schedule(step, 5000) for step in range(5000)]
    assert shares[0] == pytest.approx(1 / 500)
    assert shares[:480] == sorted(shares[:480])
    assert shares[500:] == sorted(shares[500:], reverse=True)
    assert cosine_schedule(2500, 5000) == pytest.approx(0.5)
    assert shares[-1] < 1e-6
    assert max(cosine_schedule(step, 300) for step in range(300)) > 0.95, "a short training has a short rise"
    assert cosine_schedule(0, 1) == 1.0


def test_the_best_weights_are_kept_and_restored_in_place():
    network = nn.Linear(1, 1)
    best, weight = BestWeights(network), network.weight
    for value, now in ((0.1, 1.0), (0.7, 2.0), (0.7, 3.0), (0.6, 4.0)):
        weight.data.fill_(now)
        best.offer(value)
    resumed = BestWeights(network)
    resumed.load_state_dict(best.state_dict())
    resumed.restore()
    assert network.weight is weight
    assert float(weight.detach()) == 2.0
    untouched = BestWeights(network)
    untouched.restore()
    assert float(weight.detach()) == 2.0, "no validation, no other weights"


def test_the_mean_of_weights_is_exact_and_is_restored_in_place():
    network = nn.Linear(1, 1)
    mean, weight = MeanWeights(network), network.weight
    mean.restore()
    for value in (1.0, 2.0, 6.0):
        weight.data.fill_(value)
        mean.add()
    resumed = MeanWeights(network)
    resumed.load_state_dict(mean.state_dict())
    resumed.restore()
    assert network.weight is weight
    assert float(weight.detach()) == 3.0


def test_a_training_has_converged_after_some_validations_without_better_weights():
    best = BestWeights(nn.Linear(1, 1))
    for value in (0.1, 0.2, *[0.2] * (PATIENCE - 1)):
        best.offer(value)
        assert not best.converged
    best.offer(0.0)
    assert best.converged
    best.offer(0.3)
    assert not best.converged
