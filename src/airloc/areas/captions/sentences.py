"""Captions: English sentences about a cell, written from facts in varied words and detail.

>>> rng = np.random.default_rng(0)
>>> write_caption({"trees": "all", "road": "NS", "road at": "W"}, rng).facts
{'road': 'NS', 'road at': 'W', 'trees': 'all'}
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from airloc.areas.captions.facts import AROUND, Facts, cell_facts
from airloc.areas.captions.land_cover import LandCover
from airloc.grid import Cell, Grid

Detail = Literal["vague", "plain", "detailed"]

_SIDE = {"N": "north", "E": "east", "S": "south", "W": "west"}
_OPPOSITE = {"N": "south", "E": "west", "S": "north", "W": "east"}
_SCREEN = {"N": "top", "E": "right", "S": "bottom", "W": "left"}
_NONE = ("road", "trees", "water", "buildings")
"""What people mention that is absent."""


@dataclass(frozen=True)
class Caption:
    """A description of a cell."""

    text: str
    facts: Facts
    """The facts that the text states."""
    present: frozenset[str] = frozenset()
    """Topics of which the text only says that they are there: "a road"."""

    def fits(self, cell: Mapping[str, str]) -> bool:
        """Return True if every stated fact holds for a cell."""
        there = all(cell.get(topic, "none") != "none" for topic in self.present)
        return there and all(cell.get(topic) == value for topic, value in self.facts.items())


class _Writer:
    """Chooses words at random."""

    def __init__(self, facts: Facts, rng: np.random.Generator, vague: bool) -> None:
        self.facts, self.rng, self.vague = facts, rng, vague
        self.stated: Facts = {}
        self.present: set[str] = set()

    def say(self, *options: str) -> str:
        """Return one of the options."""
        return options[int(self.rng.integers(len(options)))]

    def state(self, topic: str) -> str:
        """Return the value of a topic, and note that the caption states it."""
        self.stated[topic] = self.facts[topic]
        return self.facts[topic]

    def where(self, topic: str) -> str:
        """Return where in the cell something lies, with a space before it; empty if that is left out."""
        key = f"{topic} at"
        if key not in self.facts or self.vague or self.rng.random() < 0.12:
            return ""
        return self.place(self.state(key))

    def place(self, at: str) -> str:
        """Return words for a place in the cell, with a space before them."""
        if at == "C":
            return " " + self.say("in the middle", "in the centre", "near the middle")
        compass = _compass(at)
        screen = " ".join(_SCREEN[part] for part in at)
        if len(at) == 2:
            return " " + self.say(f"in the {compass}", f"in the {compass} corner", f"at the {screen}")
        return " " + self.say(
            f"in the {compass}", f"on the {compass} side", f"in the {compass}ern part", f"along the {compass}ern edge",
            f"at the {screen}", f"on the {compass}ern side",
        )  # fmt: skip


_Clause: TypeAlias = Callable[[_Writer], str]
"""Writes a clause about one topic."""


def _buildings(say: _Writer) -> str:
    count = say.state("buildings")
    if count == "0":
        return say.say("no buildings", "no houses", "without any buildings", "nothing built")
    large = say.facts.get("building size") == "large" and say.rng.random() < 0.8
    colour = ""
    if "roofs" in say.facts and (not say.vague or say.rng.random() < 0.3) and say.rng.random() < 0.8:
        name = say.state("roofs")
        colour = f" with a {name} roof" if count == "1" else f" with {name} roofs"
        say.rng.integers(2)  # keeps the words of later clauses
    if large:
        say.state("building size")
    one = say.say("building", "house") if not large else say.say("large building", "big building", "large hall")
    many = one + "s" if large else say.say("houses", "buildings", "homes", "small buildings")
    if count in ("dozens", "many", "several"):
        many = say.say(many, "buildings", "houses")
    words = {
        "1": (f"a single {one}", f"one {one}", f"a {one}", f"a lone {one}"),
        "2": (f"two {many}", f"a pair of {many}", f"2 {many}"),
        "3": (f"three {many}", f"3 {many}"),
        "few": (f"a few {many}", f"about five {many}", f"four to six {many}", f"some {many}", f"half a dozen {many}"),
        "several": (f"several {many}", f"about ten {many}", f"about eight {many}", f"a group of {many}"),
        "many": (f"many {many}", f"more than a dozen {many}", f"about fifteen {many}", f"lots of {many}"),
        "dozens": (f"dozens of {many}", f"more than twenty {many}", f"very many {many}", f"rows of {many}"),
    }
    return say.say(*words[count]) + colour + say.where("buildings")


def _line(topic: str, names: Sequence[str]) -> _Clause:
    """Return the writer of a clause about a road, a railway or a river."""

    def write(say: _Writer) -> str:
        exits, name = say.state(topic), say.say(*names)
        if exits == "none":
            return say.say(f"no {name}", f"without a {name}")
        if say.vague:
            say.stated.pop(topic)
            say.present.add(topic)
            return f"a {name}"
        if exits == "inside":
            return say.say(f"a short piece of {name}", f"a {name} that ends here") + say.where(topic)
        return _exits(say, name, exits) + (say.where(topic) if exits in ("NS", "EW") else "")

    return write


def _exits(say: _Writer, name: str, exits: str) -> str:
    """Say by which sides of the cell a line leaves it."""
    sides = [_SIDE[side] for side in exits]
    if len(sides) == 1:
        return say.say(
            f"a {name} coming in from the {sides[0]}", f"a {name} that leaves to the {sides[0]}",
            f"a {name} at the {_SCREEN[exits]} edge",
        )  # fmt: skip
    if len(sides) == 2:
        first, last = say.rng.permutation(sides)
        straight = exits in ("NS", "EW")
        return say.say(
            f"a {name} from {first} to {last}",
            f"a {name} running {first} to {last}",
            f"a {name} running {first}-{last}" if straight else f"a {name} between the {first} and the {last} edge",
            f"a {name} crossing from {first} to {last}" if straight else f"a {name} bending from {first} to {last}",
        )
    if len(sides) == 4:
        return say.say(f"{name}s in all directions", f"a {name} crossing", f"crossing {name}s")
    missing = next(word for side, word in _SIDE.items() if side not in exits)
    return say.say(
        f"{name}s to the {sides[0]}, {sides[1]} and {sides[2]}", f"a {name} junction with no {name} to the {missing}"
    )


def _share(topic: str, words: Mapping[str, Sequence[str]]) -> _Clause:
    def write(say: _Writer) -> str:
        value = say.state(topic)
        return say.say(*words[value]) + (say.where(topic) if value in ("some", "much") else "")

    return write


def _located(topic: str, *names: str) -> _Clause:
    def write(say: _Writer) -> str:
        return say.say(*names) + say.place(say.state(topic))

    return write


def _water(say: _Writer) -> str:
    amount = say.state("water")
    if amount == "none":
        return say.say("no water", "no water nearby")
    kind = say.facts.get("water kind", "")
    if kind:
        say.state("water kind")
    names = {
        "sea": ("the sea", "the ocean", "sea"),
        "lake": ("a pond", "a lake", "a small lake"),
        "river": ("a river",),
    }
    name = say.say(*names.get(kind, ("water",)))
    if amount == "all":
        return say.say(f"{name} everywhere", f"nothing but {name}", f"all covered by {name}")
    if amount == "much" and say.rng.random() < 0.6:
        much = name if kind in ("lake", "river") else f"a lot of {name}"
        name = say.say(f"{name} covering a large part", much, name)
    return name + say.where("water")


def _compass(side: str, words: Mapping[str, str] = _SIDE) -> str:
    """Return one of the eight directions in words."""
    return "-".join(words[part] for part in side)


def _neighbour(side: str) -> _Clause:
    def write(say: _Writer) -> str:
        name, direction = say.say(*_COVER_WORDS[say.state(side)]), _compass(side)
        land = "empty land" if name.startswith("no ") else name  # nothing lies next to no houses
        return say.say(
            f"{name} further {direction}", f"{name} beyond to the {direction}", f"{name} lying to the {direction}",
            f"next to {land} on the {direction}", f"{name} {direction} of it", f"{_compass(side, _OPPOSITE)} of {land}",
        )  # fmt: skip

    return write


_COVER_WORDS = {
    "water": ("water", "open water"), "fields": ("fields", "farmland"), "trees": ("woods", "trees"),
    "sparse": ("a few scattered houses", "scattered buildings"), "loose": ("loosely built houses", "detached houses"),
    "dense": ("closely built houses", "dense housing"), "sand": ("bare ground", "sand"),
    "open": ("open grass", "meadows"),
    "empty": ("no houses", "empty land", "no buildings"),
}  # fmt: skip
_LANDMARK_WORDS = {
    "railway": ("a railway line", "a railway"), "river": ("a river", "a stream"),
    "highway": ("a highway", "a motorway"), "pitch": ("a sports field", "a playing field"),
    "water": ("water", "some water"), "hall": ("a large building", "a big roof", "a large hall"),
    "car park": ("a car park", "a parking lot"),
}  # fmt: skip


_FAR = ("{} two blocks {}", "{} farther off to the {}", "{} in the distance to the {}", "{} some way to the {}")
_BY = ("{} just {} of it", "{} nearby to the {}", "{} next to it on the {}", "{1} of it is {0}")
_BEYOND = ("{} two blocks to the {}", "{} some way to the {}", "{} farther off to the {}")
_DENSITY = ("{} to the {}", "{} on the {} of it", "{} towards the {}")
"""Phrases with a name and a direction."""


def _around(distance: str, side: str, words: Mapping[str, Sequence[str]], phrases: Sequence[str]) -> _Clause:
    """Return the writer of a clause about what lies at a distance in one of the eight directions."""

    def write(say: _Writer) -> str:
        name = say.say(*words[say.state(f"{distance} {side}")])
        return say.say(*phrases).format(name, _compass(side))

    return write


def _density(topic: str, *names: str) -> _Clause:
    def write(say: _Writer) -> str:
        direction, name = _SIDE[say.state(topic)], say.say(*names)
        return say.say(*_DENSITY).format(name, direction)

    return write


def _present(topic: str, *options: str) -> _Clause:
    def write(say: _Writer) -> str:
        say.state(topic)
        return say.say(*options)

    return write


_CLAUSES: dict[str, _Clause] = {
    "buildings": _buildings,
    "built": _share(
        "built",
        {
            "sparse": ("loosely built", "lots of space between the houses", "scattered buildings"),
            "loose": ("houses with gardens", "buildings not too close together"),
            "dense": ("densely built up", "buildings close together", "little space between the buildings"),
        },
    ),
    "open at": _located("open at", "open ground", "a gap between the buildings", "an open space", "an empty spot"),
    "hall at": _located("hall at", "a large building", "a big roof", "the biggest building"),
    "road": _line("road", ("road", "street", "road", "lane")),
    "water": _water,
    "highway": _line("highway", ("highway", "motorway")),
    "railway": _line("railway", ("railway line", "railway", "train track")),
    "river": _line("river", ("river", "stream")),
    "trees": _share(
        "trees",
        {
            "none": ("no trees", "without trees", "treeless"),
            "some": ("a few trees", "some trees", "scattered trees"),
            "much": ("many trees", "a lot of trees", "trees"),
            "all": ("dense forest", "woods", "covered with trees", "a forest"),
        },
    ),
    "field": _share(
        "field",
        {
            "none": ("no fields",),
            "some": ("part of a field", "a field"),
            "much": ("fields", "farmland", "a large field"),
            "all": ("only fields", "farmland everywhere", "open farmland"),
        },
    ),
    "grass": _share(
        "grass",
        {
            "none": ("no grass",),
            "some": ("some grass", "a patch of grass"),
            "much": ("a lot of grass", "meadow", "lawns"),
            "all": ("open grass", "grassland", "a big meadow"),
        },
    ),
    "sand": _share(
        "sand",
        {
            "none": ("no bare ground",),
            "some": ("a strip of sand", "some bare ground", "a patch of bare soil"),
            "much": ("a lot of sand", "bare ground", "sandy ground"),
            "all": ("empty desert", "only bare ground", "sand everywhere"),
        },
    ),
    "pitch": _present("pitch", "a sports field", "a sports ground", "a football pitch", "a playing field"),
    "pool": _present("pool", "a swimming pool", "a garden with a pool", "a pool"),
    "car park": _present("car park", "a car park", "a parking lot", "paved ground", "a large paved area"),
    **{side: _neighbour(side) for side in AROUND},
    **{f"far {side}": _around("far", side, _COVER_WORDS, _FAR) for side in AROUND},
    **{f"by {side}": _around("by", side, _LANDMARK_WORDS, _BY) for side in AROUND},
    **{f"beyond {side}": _around("beyond", side, _LANDMARK_WORDS, _BEYOND) for side in AROUND},
    "denser": _density("denser", "more buildings", "more houses", "denser building"),
    "sparser": _density("sparser", "fewer buildings", "fewer houses", "more open ground"),
}
"""Writers of clauses by topic."""

_WEIGHTS = {
    "built": 0.7,
    "open at": 1.5,
    "hall at": 1.2,
    "field": 1.5,
    "grass": 0.5,
    "sand": 0.8,
    "trees": 1.0,
    **dict.fromkeys(AROUND, 0.7),
    **{f"far {side}": 0.35 for side in AROUND},
    **{f"by {side}": 0.35 for side in AROUND},
    **{f"beyond {side}": 0.25 for side in AROUND},
    "denser": 0.7,
    "sparser": 0.7,
}
_COUNTS: dict[Detail, tuple[int, int]] = {"vague": (1, 2), "plain": (2, 4), "detailed": (5, 8)}
"""Smallest and largest number of clauses."""
_STARTS = (
    "", "", "", "A place with ", "It shows ", "I can see ", "It has ", "You see ", "Somewhere with ", "An area with ",
)  # fmt: skip
_NO_OBJECTS = (
    "no ", "without ", "nothing ", "next ", "all ", "only ", "covered", "north", "east", "south", "west", "treeless",
    "loosely built", "densely built",
)  # fmt: skip
"""Beginnings of clauses that cannot follow "it shows" or "beside"."""
_APART = re.compile(
    r"no |nothing built|without |treeless|covered |all covered |(loosely|densely) built(?! houses)|next to "
    r"|(north|east|south|west)[a-z-]* of (?!it )"
)
"""Clauses that only commas join to others: "no houses and a road" and "west of fields beside a road" mislead."""


def write_caption(
    facts: Mapping[str, str],
    rng: np.random.Generator,
    detail: Detail = "detailed",
    wrong: Mapping[str, str] | None = None,
) -> Caption:
    """Write a caption.

    Args:
        facts: Facts about the cell.
        rng: Source of the choice of facts and words.
        detail: How many facts to mention. Vague captions leave out where things lie.
        wrong: Facts about another cell. One clause is written from them instead.

    Returns:
        The caption. Its facts are those that its text states, true or not.
    """
    topics = [topic for topic in _CLAUSES if topic in facts and _mentions(topic, facts[topic], rng)]
    topics = topics or [topic for topic in _CLAUSES if topic in facts]
    weights = np.array([_WEIGHTS.get(topic, 2.0) for topic in topics])
    low, high = _COUNTS[detail]
    count = min(len(topics), int(rng.integers(low, high + 1)))
    keys = rng.exponential(size=len(topics)) / weights
    chosen = [topics[place] for place in np.sort(np.argsort(keys)[:count])] if topics else []
    if rng.random() < 0.5:
        chosen = [chosen[place] for place in rng.permutation(len(chosen))]
    writer, clauses = _Writer(dict(facts), rng, detail == "vague"), []
    misled = int(rng.integers(len(chosen))) if wrong is not None and chosen else -1
    for place, topic in enumerate(chosen):
        if place == misled and wrong is not None and topic in wrong:
            other = _Writer(dict(wrong), rng, writer.vague)
            clauses.append(_CLAUSES[topic](other))
            writer.stated |= other.stated
            writer.present |= other.present
        else:
            clauses.append(_CLAUSES[topic](writer))
    return Caption(_join(clauses, rng), writer.stated, frozenset(writer.present))


def _mentions(topic: str, value: str, rng: np.random.Generator) -> bool:
    """Return False for facts that people rarely mention: most things that are absent."""
    if value in ("none", "0"):
        return topic in _NONE and rng.random() < 0.35
    return True


def _join(clauses: Sequence[str], rng: np.random.Generator) -> str:
    """Join clauses to sentences."""
    if not clauses:
        return ""
    style = rng.random()
    if style < 0.3 and len(clauses) > 1:
        word = " and " if rng.random() < 0.7 and not any(map(_APART.match, clauses[-2:])) else ", "
        text = ", ".join(clauses[:-1]) + word + clauses[-1]
    elif style < 0.55 and len(clauses) > 2:
        cut = int(rng.integers(1, len(clauses)))
        text = ", ".join(clauses[:cut]) + ". " + ", ".join(clauses[cut:]).capitalize()
    elif style < 0.75 and len(clauses) > 1:
        word = str(rng.choice([" with ", ", ", " and ", " beside ", " next to "]))
        word = ", " if clauses[1].startswith(_NO_OBJECTS) or _APART.match(clauses[0]) else word
        text = clauses[0] + word + ", ".join(clauses[1:])
    elif style < 0.85:
        text = ". ".join(clause.capitalize() for clause in clauses)
    else:
        text = ", ".join(clauses)
    start = _STARTS[int(rng.integers(len(_STARTS)))]
    if start and not text.lower().startswith(_NO_OBJECTS):
        text = start + text[0].lower() + text[1:]
    return text[0].upper() + text[1:] + ("." if rng.random() < 0.7 else "")


def describe_cells(
    land: LandCover, grid: Grid, rng: np.random.Generator, detail: Detail = "detailed", *, wrong: bool = False
) -> Iterator[tuple[Cell, Caption, tuple[Cell, ...]]]:
    """Write a caption for every cell of an area: yield the cell, its caption, and all cells that the caption fits.

    With `wrong`, one clause of every caption is about another cell; it then fits its own cell as well.
    """
    facts = cell_facts(land, grid, rng)
    for cell, here in zip(grid.cells(), facts, strict=True):
        other = facts[int(rng.integers(len(facts)))] if wrong else None
        caption = write_caption(here, rng, detail, other)
        fitting = zip(grid.cells(), facts, strict=True)
        yield cell, caption, tuple(one for one, there in fitting if one == cell or caption.fits(there))
