"""What a chart shows, checked: series of points, groups of bars, reference lines."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airloc.errors import AirlocError

_LARGEST = 1e15


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a line chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    """One value each; None where there is none: the line has a gap there."""
    low: Sequence[float | None] | None = None
    """Lower ends of the intervals."""
    high: Sequence[float | None] | None = None
    """Upper ends of the intervals."""
    style: int | None = None
    """Number of its colour, marker and dash; by default its place in the chart. Give one to keep an agent's look."""
    guide: bool = False
    """A quiet dashed line without markers to compare with, such as the diagonal of a reliability diagram."""

    def __post_init__(self) -> None:
        _require_lengths(self.name, len(self.x), self.y, self.low, self.high)
        _require_finite(self.name, [*self.x, *self.y, *(self.low or ()), *(self.high or ())])

    def points(self) -> list[tuple[float, float, float | None, float | None]]:
        """(x, y, low, high) of the points that exist, by x."""
        return [point for run in self.runs() for point in run]

    def runs(self) -> list[list[tuple[float, float, float | None, float | None]]]:
        """Points by x, in runs without a gap."""
        none: list[float | None] = [None] * len(self.x)
        table = sorted(zip(self.x, self.y, self.low or none, self.high or none, strict=True), key=lambda row: row[0])
        runs: list[list[tuple[float, float, float | None, float | None]]] = [[]]
        for x, y, low, high in table:
            if y is None:
                runs.append([])
            else:
                runs[-1].append((x, y, low, high))
        return [run for run in runs if run]


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars of one colour in a bar chart, one in each group."""

    name: str
    values: Sequence[float | None]
    """One for each group; None where there is none."""
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    style: int | None = None
    """Number of its colour and hatching; by default its place in the chart."""

    def __post_init__(self) -> None:
        _require_lengths(self.name, len(self.values), self.values, self.low, self.high)
        _require_finite(self.name, [*self.values, *(self.low or ()), *(self.high or ())])

    def interval(self, group: int) -> tuple[float, float] | None:
        """The interval of one bar, where it has one."""
        low, high = (ends[group] if ends is not None else None for ends in (self.low, self.high))
        return None if low is None or high is None else (low, high)


@dataclass(frozen=True, slots=True)
class Reference:
    """A dashed horizontal line to compare with, such as the blind optimum."""

    value: float
    label: str

    def __post_init__(self) -> None:
        _require_finite(self.label, [self.value])


def require_some(names: Sequence[str], values: Iterable[float | None]) -> None:
    """Refuse a chart without a single value."""
    if all(value is None for value in values):
        series = ", ".join(names) or "no series"
        raise AirlocError(f"There is nothing to draw in a chart of {series}", "Give at least one value")


def _require_lengths(name: str, length: int, *columns: Sequence[float | None] | None) -> None:
    lengths = {length, *(len(column) for column in columns if column is not None)}
    if len(lengths) > 1:
        raise AirlocError(
            f"Series {name!r} has columns of {sorted(lengths)} values", "Give as many values as places, None for none"
        )


def _require_finite(name: str, values: Iterable[float | None]) -> None:
    for value in values:
        if value is not None and not (math.isfinite(value) and abs(value) <= _LARGEST):
            raise AirlocError(
                f"Series {name!r} holds {value}, which cannot be drawn", "Give None where there is no value"
            )
