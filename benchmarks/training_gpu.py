"""Episodes per second of policy training on a GPU, against three bounds; no rows without a GPU.

An update is bounded by its arithmetic (matrix products at the GPU's TF32 peak), by its memory traffic (weights, moments
and activations at the memory bandwidth) and by the number of its kernels, each of which takes at least as long as an
empty one. With the paper's batch of 64 the kernels are the bound by far.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from airloc.agents.policy import HIDDEN, Policy
from airloc.training.features import PAIR_SIZE
from airloc.training.learner import Learner
from airloc.training.reinforce import PolicyConfig, reinforce_update
from benchmarks.timing import best_of
from benchmarks.training import random_features

AREAS = 3000
SETTINGS = ((64, 1, 50_000), (64, 5, None), (4096, 3, 500_000))
"""Episodes per update, stacked policies, and the target in episodes per second."""
PEAKS = {"H200": (494.7e12, 4.8e12), "H100": (494.7e12, 3.35e12), "A100": (156e12, 2.0e12)}
"""TF32 operations (without sparsity) and bytes of memory traffic per second."""


def run() -> list[tuple[str, str, str, str]]:
    if not torch.cuda.is_available():
        return []
    torch.backends.cuda.matmul.allow_tf32 = True
    features = random_features(AREAS, torch.device("cuda"))
    rows = []
    for batch, policies, target in SETTINGS:
        config = PolicyConfig(batch=batch, seeds=policies)
        policy = Policy(config.variant, policies).cuda()
        learner = Learner(policy, config.learning_rate)
        learn = partial(reinforce_update, policy, learner, features, config)
        episodes = batch * policies
        speed = episodes / _replayed(learner.capture(learn))
        rows.append(
            (f"GPU training, {policies} x {batch}, episodes/s", f"{speed:,.0f}", f"{target:,}" if target else "", "")
        )
        for bound, seconds in _bounds(config, policy, learn).items():
            rows.append((f"  bound by {bound}", f"{episodes / seconds:,.0f}", "", f"{speed * seconds / episodes:.3f}"))
    return rows


def _bounds(config: PolicyConfig, policy: Policy, learn: Callable[[], object]) -> dict[str, float]:
    """Return the lower bounds of the seconds of an update, by what bounds it."""
    count, empty = _kernels(learn), _empty_kernel()
    bounds = {f"{count} kernels of {1e6 * empty:.2f} µs": count * empty}
    name = torch.cuda.get_device_name()
    for model, (compute, traffic) in PEAKS.items():
        if model in name:
            bounds["TF32 arithmetic"] = _operations(config) / compute
            bounds["memory traffic"] = _bytes(config, policy) / traffic
    return bounds


def _operations(config: PolicyConfig) -> float:
    """Return the multiplications and additions of the matrix products of one update, forward and backward."""
    gates, decide = (PAIR_SIZE + HIDDEN) * 4 * HIDDEN, HIDDEN * 8
    forward = gates + decide
    backward = gates + HIDDEN * 4 * HIDDEN + 2 * decide
    return 2.0 * (forward + backward) * config.budget * config.batch * config.seeds


def _bytes(config: PolicyConfig, policy: Policy) -> float:
    """Return the bytes that one update reads and writes at least: ten passes over the weights, and the activations."""
    weights = 10 * 4 * sum(parameter.numel() for parameter in policy.parameters())
    activations = (
        2 * 4 * (PAIR_SIZE + HIDDEN + 2 * HIDDEN + 2 * 4 * HIDDEN)
    )  # inputs, states, gates and their gradients
    return weights + float((2 * PAIR_SIZE + activations) * config.budget * config.batch * config.seeds)


def _kernels(work: Callable[[], object]) -> int:
    """Return the number of kernels that a function launches."""
    work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        work()
        torch.cuda.synchronize()
    return sum(event.device_type == DeviceType.CUDA and not event.is_user_annotation for event in trace.events())


def _empty_kernel(count: int = 1000) -> float:
    """Return the seconds of an almost empty kernel in a replayed graph, one after the other."""
    number = torch.zeros(1, device="cuda")
    number += 1
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            number += 1
    return _replayed(graph.replay, times=20) / count


def _replayed(work: Callable[[], object], times: int = 300) -> float:
    """Return the seconds of one call among many consecutive ones."""

    def many() -> None:
        for _ in range(times):
            work()
        torch.cuda.synchronize()

    return best_of(many) / times


if __name__ == "__main__":
    for row in run():
        print(*row, sep=" | ")
