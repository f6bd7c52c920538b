"""The parameters of each regime: a dense city, a suburb, farmland, a coast, a desert.

Colours are RGB reflectances as bytes would show them in full sun; lengths are in metres.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

Colour: TypeAlias = tuple[int, int, int]
Range: TypeAlias = tuple[float, float]


class Use(IntEnum):
    """Land use of a block between streets."""

    WILD = 0
    """Natural ground: forest, meadow or sand."""
    HOUSES = 1
    """Detached houses on lots along the streets."""
    ROWS = 2
    """Terraces and blocks of flats along the streets."""
    TOWERS = 3
    """Large buildings on parcels of their own, some of them high."""
    COMMERCE = 4
    """A big flat building beside its car park."""
    PARK = 5
    SPORT = 6
    FIELD = 7
    YARD = 8
    """Bare ground: building sites, storage, playgrounds."""


@dataclass(frozen=True)
class Regime:
    """Layout and colours of a kind of landscape."""

    blocks: tuple[Range, Range]
    """Sides of a block along and across its rows of houses."""
    steepness: Range
    """How much the streets bend."""
    street: Range
    """Width of an ordinary street."""
    missing: float
    """Fraction of street segments that are missing."""
    closes: float
    """Fraction of those that end in a turning circle half-way."""
    developed: float
    """How far development reaches: 0 is half of the area, 1 nearly all of it."""
    sparse: dict[Use, float]
    """Odds of the uses far from the centre."""
    dense: dict[Use, float]
    """Odds of the uses at the centre."""
    arterials: tuple[int, int]
    """Fewest and most arterial roads."""
    odds: dict[str, float]
    """Chances of a river, a railway, a highway, a shore and a lake."""
    forest: float
    """How much of the wild ground carries trees: 0 is half of it, 1 most of it."""
    trees: dict[Use, float]
    """Fraction of sites for a crown that carry one."""
    lot: Range
    """Width of a lot for one house."""
    house: tuple[Range, Range]
    """Length along the street and depth of a house."""
    setback: Range
    """From the pavement to the house."""
    roofs: tuple[Colour, ...]
    grass: Colour
    """Lush lawn and meadow; dried out it turns into `dry`."""
    dry: Colour
    soil: Colour
    road: Colour
    pavement: float
    """Contrast of pavements beside the streets."""
    pools: float
    """Fraction of houses with a pool."""
    cars: float
    """Parked and driving cars per 100 m of street."""


_GREY_ROOFS: tuple[Colour, ...] = (
    (118, 116, 114), (142, 138, 132), (92, 92, 98), (152, 136, 118), (126, 108, 96), (170, 168, 164), (108, 90, 80),
    (134, 98, 84), (188, 184, 176), (102, 110, 118), (82, 80, 82), (146, 122, 106),
)  # fmt: skip
_WARM_ROOFS: tuple[Colour, ...] = (
    (152, 102, 82), (164, 118, 96), (138, 92, 78), (176, 140, 116), (160, 150, 140), (128, 110, 100), (198, 186, 170),
)  # fmt: skip
_PALE_ROOFS: tuple[Colour, ...] = (
    (206, 198, 186), (188, 178, 166), (220, 214, 204), (176, 160, 144), (170, 120, 94), (196, 150, 120),
    (150, 146, 144),
)  # fmt: skip

REGIMES: dict[str, Regime] = {
    "city": Regime(
        blocks=((85, 150), (56, 78)), steepness=(0.02, 0.14), street=(8, 10), missing=0.08, closes=0.0, developed=1.6,
        sparse={Use.HOUSES: 5, Use.ROWS: 2, Use.COMMERCE: 1.5, Use.PARK: 0.7, Use.SPORT: 0.3, Use.YARD: 0.3},
        dense={Use.ROWS: 4, Use.TOWERS: 4, Use.COMMERCE: 1.4, Use.PARK: 0.6, Use.YARD: 0.3},
        arterials=(1, 2), odds={"river": 0.3, "railway": 0.35, "highway": 0.15, "shore": 0.0, "lake": 0.08}, forest=0.2,
        trees={Use.HOUSES: 0.3, Use.ROWS: 0.16, Use.TOWERS: 0.06, Use.COMMERCE: 0.05, Use.PARK: 0.5, Use.SPORT: 0.12,
               Use.YARD: 0.06},
        lot=(11, 16), house=((8, 11), (10, 15)), setback=(2, 5), roofs=_GREY_ROOFS + _WARM_ROOFS[:3],
        grass=(92, 110, 66), dry=(132, 126, 98), soil=(134, 122, 106), road=(120, 119, 118), pavement=0.7, pools=0.01,
        cars=3.5,
    ),
    "suburb": Regime(
        blocks=((130, 280), (72, 100)), steepness=(0.12, 0.42), street=(7, 8.5), missing=0.3, closes=0.8,
        developed=1.05,
        sparse={Use.HOUSES: 8, Use.PARK: 0.4, Use.SPORT: 0.25, Use.WILD: 1.0, Use.YARD: 0.1},
        dense={Use.HOUSES: 8, Use.ROWS: 0.7, Use.COMMERCE: 0.9, Use.SPORT: 0.35, Use.PARK: 0.4},
        arterials=(1, 1), odds={"river": 0.25, "railway": 0.15, "highway": 0.15, "shore": 0.0, "lake": 0.28},
        forest=0.9,
        trees={Use.HOUSES: 0.25, Use.ROWS: 0.2, Use.COMMERCE: 0.07, Use.PARK: 0.4, Use.SPORT: 0.1, Use.YARD: 0.1},
        lot=(19, 27), house=((13, 18), (9.5, 13)), setback=(6, 10), roofs=_GREY_ROOFS,
        grass=(102, 120, 68), dry=(150, 142, 104), soil=(136, 120, 98), road=(138, 136, 132), pavement=0.45, pools=0.14,
        cars=1.0,
    ),
    "rural": Regime(
        blocks=((180, 340), (120, 210)), steepness=(0.08, 0.34), street=(4.5, 6.5), missing=0.4, closes=0.0,
        developed=0.7,
        sparse={Use.FIELD: 8, Use.WILD: 2, Use.HOUSES: 0.9},
        dense={Use.FIELD: 4, Use.HOUSES: 3.5, Use.PARK: 0.4, Use.WILD: 0.7, Use.SPORT: 0.25, Use.COMMERCE: 0.15},
        arterials=(0, 1), odds={"river": 0.45, "railway": 0.2, "highway": 0.1, "shore": 0.0, "lake": 0.3}, forest=0.45,
        trees={Use.HOUSES: 0.4, Use.FIELD: 0.003, Use.PARK: 0.4, Use.SPORT: 0.1, Use.COMMERCE: 0.08},
        lot=(28, 50), house=((13, 22), (9, 13)), setback=(9, 22), roofs=_GREY_ROOFS + _WARM_ROOFS[:4],
        grass=(100, 116, 64), dry=(152, 142, 98), soil=(146, 120, 92), road=(152, 146, 136), pavement=0.12, pools=0.05,
        cars=0.25,
    ),
    "coast": Regime(
        blocks=((110, 220), (66, 92)), steepness=(0.06, 0.3), street=(6.5, 8), missing=0.2, closes=0.6, developed=0.9,
        sparse={Use.HOUSES: 6, Use.WILD: 2.5, Use.PARK: 0.7, Use.SPORT: 0.3},
        dense={Use.HOUSES: 6, Use.ROWS: 1.2, Use.COMMERCE: 1.3, Use.TOWERS: 0.5, Use.PARK: 0.5, Use.SPORT: 0.4},
        arterials=(1, 1), odds={"river": 0.2, "railway": 0.08, "highway": 0.05, "shore": 1.0, "lake": 0.1}, forest=0.35,
        trees={Use.HOUSES: 0.26, Use.ROWS: 0.14, Use.TOWERS: 0.1, Use.COMMERCE: 0.06, Use.PARK: 0.35, Use.SPORT: 0.1},
        lot=(17, 26), house=((11, 16), (9, 13)), setback=(4, 9), roofs=_GREY_ROOFS + _WARM_ROOFS,
        grass=(104, 118, 72), dry=(158, 148, 112), soil=(170, 156, 128), road=(144, 141, 136), pavement=0.5, pools=0.12,
        cars=1.4,
    ),
    "desert": Regime(
        blocks=((110, 210), (70, 100)), steepness=(0.02, 0.22), street=(7, 10), missing=0.16, closes=0.5,
        developed=0.25,
        sparse={Use.HOUSES: 4, Use.WILD: 3, Use.YARD: 2.5, Use.SPORT: 0.2},
        dense={Use.HOUSES: 6, Use.ROWS: 1.5, Use.COMMERCE: 1.5, Use.YARD: 1, Use.TOWERS: 0.5, Use.PARK: 0.5},
        arterials=(1, 2), odds={"river": 0.05, "railway": 0.08, "highway": 0.3, "shore": 0.05, "lake": 0.04},
        forest=-2.2,
        trees={Use.HOUSES: 0.11, Use.ROWS: 0.06, Use.TOWERS: 0.06, Use.COMMERCE: 0.03, Use.PARK: 0.3, Use.SPORT: 0.1},
        lot=(19, 28), house=((13, 18), (12, 17)), setback=(3, 7), roofs=_PALE_ROOFS,
        grass=(112, 122, 72), dry=(190, 170, 138), soil=(202, 182, 150), road=(140, 134, 126), pavement=0.55,
        pools=0.16, cars=1.0,
    ),
}  # fmt: skip
"""The regimes by name."""
