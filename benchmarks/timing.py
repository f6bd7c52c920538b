"""The best of several runs, which is what the code costs when the machine is left alone."""

import time
from collections.abc import Callable


def best_of(work: Callable[[], object], runs: int = 5) -> float:
    """Seconds of the fastest of some runs, after one to warm up."""
    work()
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
