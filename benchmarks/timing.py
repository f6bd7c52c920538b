"""The best of several runs, which is what the code costs when the machine is left alone."""

import time
from collections.abc import Callable, Sequence

Clock = Callable[[], float]


def best_of(work: Callable[[], object], runs: int = 5, clock: Clock = time.perf_counter) -> float:
    """Seconds of the fastest of some runs, after one to warm up; with `time.process_time` those of the CPU alone."""
    return best_of_each([work], runs, clock)[0]


def best_of_each(works: Sequence[Callable[[], object]], runs: int = 5, clock: Clock = time.perf_counter) -> list[float]:
    """Seconds of the fastest run of each work; they take turns, so that what else the machine does slows all alike."""
    seconds: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(runs):
        for work, taken in zip(works, seconds, strict=True):
            began = clock()
            work()
            taken.append(clock() - began)
    return [min(taken) for taken in seconds]
