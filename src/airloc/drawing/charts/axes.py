"""Axes: ticks at round numbers, value to pixel, labels that do not overlap.

Legend: coordinates are SVG user units, y downwards.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high` laid from pixel `start` to pixel `end`, with ticks."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    percent: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def text(self, tick: float) -> str:
        """How a tick is written."""
        steps = [abs(b - a) for a, b in pairwise(self.ticks)]
        return tick_text(tick, min(steps, default=abs(tick)), self.percent)


def round_ticks(low: float, high: float, wanted: int = 5) -> tuple[float, ...]:
    """About `wanted` round numbers that enclose low and high: steps of 1, 2, 2.5 or 5 times a power of ten.

    >>> round_ticks(0, 0.93)
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    >>> round_ticks(-3, 12)
    (-5.0, 0.0, 5.0, 10.0, 15.0)
    """
    span = max(high - low, 1e-9, 1e-6 * max(abs(low), abs(high)))
    raw = span / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10, 20) if factor * power >= raw * 0.85)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    decimals = max(0, 2 - math.floor(math.log10(step)))
    return tuple(round(count * step, decimals) for count in range(first, max(last, first + 1) + 1))


def inner_ticks(low: float, high: float, wanted: int = 6) -> tuple[float, ...]:
    """Round numbers that lie between low and high, for an axis that ends where the data does."""
    inside = tuple(tick for tick in round_ticks(low, high, wanted) if low <= tick <= high)
    return inside or (low,)


def tick_text(value: float, step: float, percent: bool) -> str:
    """Write a tick with as many decimals as its step needs.

    >>> tick_text(0.2, 0.2, True), tick_text(0.025, 0.025, True), tick_text(2.5, 2.5, False), tick_text(2e4, 5e3, False)
    ('20 %', '2.5 %', '2.5', '20 k')
    """
    if percent:
        return f"{_decimal(100 * value, 100 * step)} %"
    for unit, sign in ((1e6, "M"), (1e3, "k")):
        if step >= unit and value:
            return f"{_decimal(value / unit, step / unit)} {sign}"
    return _decimal(value, step)


def value_writer(values: Iterable[float], percent: bool) -> Callable[[float], str]:
    """Give the function that writes all values of a chart with the same decimals, as few as they need.

    >>> write = value_writer([0.84, 0.521], True)
    >>> write(0.84), write(0.521)
    ('84.0 %', '52.1 %')
    """
    shown = [100 * value if percent else value for value in values]
    largest = max(map(abs, shown), default=0.0)
    if largest and not 0.02 <= largest < 1e7:
        return lambda value: f"{value:.3g}"
    most = 1 if percent else max(0, 2 - math.floor(math.log10(max(largest, 1.0))))
    exact = (count for count in range(most) if all(abs(round(value, count) - value) < 1e-9 for value in shown))
    decimals = next(exact, most)

    def write(value: float) -> str:
        text = f"{100 * value if percent else value:,.{decimals}f}"
        text = text.removeprefix("-") if not text.strip("-0.") else text.replace("-", "\N{MINUS SIGN}")
        return f"{text} %" if percent else text

    return write


def _decimal(value: float, step: float) -> str:
    if step and not 1e-4 <= step < 1e9:
        return f"{value:.3g}"
    decimals = next(count for count in range(7) if step == 0 or abs(round(step, count) - step) < step * 1e-3)
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text.replace("-", "\N{MINUS SIGN}")


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places apart so that neighbours are `gap` apart, each as little as possible, between low and high.

    Where there is not enough room they overlap evenly.

    >>> spread([10, 12, 50], 10, 0, 100)
    [6.0, 16.0, 50.0]
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[tuple[float, int]] = []  # (mean of wanted place less index * gap, how many)
    for rank, index in enumerate(order):
        mean, count = wanted[index] - rank * gap, 1
        while blocks and blocks[-1][0] >= mean:
            other, more = blocks.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        blocks.append((mean, count))
    free = high - (len(wanted) - 1) * gap
    flat = [min(max(mean, low), max(low, free)) for mean, count in blocks for _ in range(count)]
    places = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        places[index] = float(flat[rank] + rank * gap)
    return places
