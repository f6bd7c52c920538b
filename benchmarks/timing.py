"""The best of several runs, which is what the code costs when the machine is left alone."""

import time
from collections.abc import Callable


def best_of(work: Callable[[], object], runs: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of some runs, after one to warm up; with `time.process_time` those of the CPU alone."""
    work()
    seconds = []
    for _ in range(runs):
        began = clock()
        work()
        seconds.append(clock() - began)
    return min(seconds)
