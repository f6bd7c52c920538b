"""Procedural areas of 256 x 256 a second on one core."""

from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from benchmarks.timing import best_of

COUNT = 40


def run() -> list[tuple[str, str, str, str]]:
    source = Synthetic(count=COUNT)
    speed = COUNT / best_of(lambda: list(source.areas(Grid(5, 5))), runs=2)
    return [("procedural areas/s", f"{speed:.1f}", "20", f"{speed / 20:.1f} x the aim")]
