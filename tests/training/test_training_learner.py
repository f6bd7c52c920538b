import gc
import itertools
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import nn

from airloc.training.learner import Learner, Prefetcher
from airloc.training.runs import restore_rng, rng_state


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))


def update(learner: Learner, seed: int) -> None:
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(seed))
    learner.step(learner.network(x).square().mean())


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_state_is_restored_exactly_and_training_continues_as_before():
    learner = Learner(network(), 1e-2)
    for seed in range(3):
        update(learner, seed)
    saved = learner.state_dict()
    for seed in range(3, 6):
        update(learner, seed)
    after = learner.state_dict()
    assert not same(saved, after)
    learner.load_state_dict(saved)
    assert same(learner.state_dict(), saved)
    for seed in range(3, 6):
        update(learner, seed)
    assert same(learner.state_dict(), after)


def test_a_state_can_be_loaded_into_another_learner():
    first, second = (
        Learner(network(), 1e-2),
        Learner(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)), 1e-2),
    )
    update(first, 0)
    second.load_state_dict(first.state_dict())
    update(first, 1)
    update(second, 1)
    assert same(first.state_dict(), second.state_dict())
    assert any(name.endswith("running_mean") for name in first.state_dict())
    assert any(name.endswith("exp_avg_sq") for name in first.state_dict())


def test_a_new_learner_equals_plain_adam():
    learner, plain = Learner(network(), 1e-2), network()
    optimizer = torch.optim.Adam(plain.parameters(), 1e-2)
    for seed in range(3):
        update(learner, seed)
        x = torch.randn(16, 4, generator=torch.Generator().manual_seed(seed))
        optimizer.zero_grad()
        plain(x).square().mean().backward()
        optimizer.step()
    # The batch normalisation removes the bias before it, so that the gradient of this bias is rounding error alone.
    names = [name for name, _ in plain.named_parameters() if name != "0.bias"]
    for name in names:
        torch.testing.assert_close(learner.network.get_parameter(name), plain.get_parameter(name))


def test_the_rate_can_be_changed_and_zero_moves_nothing():
    learner = Learner(network(), 1e-2)
    before = [parameter.detach().clone() for parameter in learner.network.parameters()]
    learner.set_learning_rate(0.0)
    update(learner, 0)
    assert all(torch.equal(a, b) for a, b in zip(before, learner.network.parameters(), strict=True))
    learner.set_learning_rate(1e-2)
    update(learner, 0)
    assert not torch.equal(before[0], learner.network[0].weight)


def test_on_the_cpu_an_update_is_not_captured():
    assert Learner(network(), 1e-2).capture(update_that := lambda: torch.zeros(1)) is update_that


def test_weight_decay_pulls_weights_towards_zero():
    free, pulled = Learner(network(), 1e-2), Learner(network(), 1e-2, weight_decay=0.5)
    for seed in range(5):
        update(free, seed)
        update(pulled, seed)
    norms = [sum(float(p.detach().square().sum()) for p in learner.network.parameters()) for learner in (free, pulled)]
    assert norms[1] < norms[0]


@pytest.mark.parametrize(("limit", "norm"), [(0.0, 5000.0), (2.0, 2.0), (9000.0, 5000.0)])
def test_the_gradient_is_scaled_down_to_its_largest_norm_and_never_up(limit: float, norm: float):
    layer = nn.Linear(2, 1, bias=False)
    Learner(layer, 1e-3, max_gradient_norm=limit).step(layer(torch.tensor([3000.0, 4000.0])).sum())
    assert layer.weight.grad is not None
    assert layer.weight.grad.norm() == pytest.approx(norm, rel=1e-4)


@pytest.mark.gpu
def test_a_captured_update_keeps_alive_what_it_reads():
    learner = Learner(network().cuda(), 0.0)

    def made():
        x = torch.full((16, 4), 3.0, device="cuda")
        return learner.capture(lambda: (x.sum() + 0 * learner.network(x).sum()).detach())

    replay = made()
    gc.collect()
    torch.cuda.empty_cache()
    filled = [torch.full((16, 4), -7.0, device="cuda") for _ in range(64)]
    assert float(replay()) == 16 * 4 * 3.0
    del filled


class Numbers(NamedTuple):
    """A batch, with a tensor whose rows share their memory."""

    value: torch.Tensor
    rows: torch.Tensor


def counters(count: int, device: str) -> list[Callable[[], Numbers]]:
    """Return functions that count their calls from zero on."""

    def counter() -> Callable[[], Numbers]:
        values = itertools.count()
        return lambda: Numbers(torch.tensor(next(values), device=device), torch.zeros(3, device=device).expand(2, 3))

    return [counter() for _ in range(count)]


def given(prefetcher: Prefetcher[Numbers], updates: int) -> list[list[float]]:
    """Return the values of the batches of some updates."""
    values = []
    for _ in range(updates):
        with prefetcher.batches() as batches:
            values.append([float(batch.value) for batch in batches])
    return values


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_every_batch_that_is_drawn_is_given_once_and_in_order(device: str):
    prefetcher = Prefetcher(counters(2, device), torch.device(device))
    assert given(prefetcher, 5) == [[number, number] for number in range(5)]


def test_on_the_cpu_batches_are_drawn_when_they_are_asked_for_and_none_is_saved():
    drawn = []
    prefetcher = Prefetcher([lambda: drawn.append(1) or Numbers(torch.ones(()), torch.ones(2, 3))], torch.device("cpu"))
    assert not drawn
    assert given(prefetcher, 1) == [[1.0]]
    assert len(drawn) == 1
    assert prefetcher.state() == []
    prefetcher.load_state([(torch.zeros(()), torch.zeros(2, 3))])  # drawn on a GPU
    assert given(prefetcher, 1) == [[1.0]]


@pytest.mark.gpu
@pytest.mark.parametrize("captured", [False, True])
def test_on_a_gpu_a_resumed_prefetcher_gives_the_same_batches(captured: bool):
    device = torch.device("cuda")

    def draw() -> Numbers:
        return Numbers(torch.rand((), device=device), torch.rand(3, device=device).expand(2, 3))

    def begin() -> tuple[Prefetcher[Numbers], Callable[[], torch.Tensor]]:
        prefetcher = Prefetcher([draw, draw], device)

        def update() -> torch.Tensor:
            with prefetcher.batches() as batches:
                return torch.stack([part for batch in batches for part in (batch.value, batch.rows.sum())])

        return prefetcher, Learner(network().cuda(), 0.0).capture(update) if captured else update

    torch.manual_seed(0)
    prefetcher, update = begin()
    before = [update().tolist() for _ in range(3)]
    state, generators = prefetcher.state(), rng_state(device)
    after = [update().tolist() for _ in range(3)]
    assert len({tuple(values) for values in before + after}) == 6, "no batch twice"
    resumed, update = begin()
    restore_rng(generators)
    resumed.load_state(state)
    assert [update().tolist() for _ in range(3)] == after
