"""Choosing areas by their names, such as one event of many in one folder."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from airloc.areas.images import list_pictures, pick
from airloc.errors import AirlocError


@dataclass(frozen=True)
class Names:
    """Which names are wanted; by default all.

    >>> Names(only=("*-fire_*",), without=("socal*",)).wants("santa-rosa-fire_00000003_post_disaster.png")
    True
    """

    only: tuple[str, ...] = ()
    """Shell patterns (* ? [abc]); a name has to match one of them, where there are any."""
    without: tuple[str, ...] = ()
    """Shell patterns; a name must match none of them."""

    def __bool__(self) -> bool:
        return bool(self.only or self.without)

    def wants(self, name: str) -> bool:
        """Whether a name is wanted; upper and lower case differ."""
        chosen = not self.only or any(fnmatchcase(name, pattern) for pattern in self.only)
        return chosen and not any(fnmatchcase(name, pattern) for pattern in self.without)

    def choose(self, names: Iterable[str], where: Path) -> list[str]:
        """Give the wanted ones of the names found in a place; none at all is an error."""
        chosen = [name for name in names if self.wants(name)]
        if not chosen:
            asked = [f"--only {pattern}" for pattern in self.only] + [f"--except {pattern}" for pattern in self.without]
            raise AirlocError(
                f"No area of {where} is left by {' '.join(asked)}", "Check the patterns, and quote them for the shell"
            )
        return chosen


ALL_NAMES = Names()


# ---------- Pairs of pictures of one place: the area that is flown over, and the picture its goal patch is taken from.
# ~

PRE, POST = "pre_disaster", "post_disaster"
"""What tells the two pictures of a pair apart in their names, as xBD writes it."""


def partner(name: str) -> str | None:
    """Name of the other picture of a pair; None where the name is of neither kind.

    >>> partner("socal-fire_00000001_post_disaster.png"), partner("town.png")
    ('socal-fire_00000001_pre_disaster.png', None)
    """
    if POST in name:
        return name.replace(POST, PRE)
    return name.replace(PRE, POST) if PRE in name else None


def goal_pictures(
    areas: Path, goals: Path, names: Sequence[str] | None = None, wanted: Names = ALL_NAMES
) -> dict[str, Path]:
    """Find the picture that each area's goal patch is taken from.

    It is the picture of the same file name in the folder of goals or, failing that, its `partner`. Where both
    folders are one, only the `post_disaster` pictures are areas.

    Args:
        areas: The folder of areas.
        goals: The folder of pictures to take the goals from.
        names: The areas, by file name; None for all that the folder holds.
        wanted: Which of them are wanted.

    Returns:
        The goal picture of each area, in the order of `names`.
    """
    here = [path.name for path in list_pictures(areas)]
    there = {path.name for path in list_pictures(goals)}
    if names is not None:
        pick(list_pictures(areas), names, areas)
    return {name: goals / goal for name, goal in goal_names(areas, here, goals, there, names, wanted).items()}


def goal_names(
    areas: Path,
    here: Sequence[str],
    goals: Path,
    there: Collection[str],
    names: Sequence[str] | None = None,
    wanted: Names = ALL_NAMES,
) -> dict[str, str]:
    """Match the names of areas with those of the pictures that their goals are taken from, as `goal_pictures` says.

    Args:
        areas: Where the areas are.
        here: What is there.
        goals: Where the pictures of goals are.
        there: What is there.
        names: Which of the areas; None for all.
        wanted: Which of them are wanted.
    """
    same = areas.resolve() == goals.resolve()
    if names is None:
        names = [name for name in here if not same or POST in name]
        if not names:
            raise AirlocError(
                f"The folder {areas} holds no pictures named ..._{POST}, and the goals come from the same folder",
                "Give another folder of goals",
            )
    return {name: _goal_name(name, there, goals, same) for name in wanted.choose(names, areas)}


def pair_up(folder: Path) -> list[tuple[Path, Path]]:
    """Give the (pre, post) pairs of a folder in the order of their names; pictures without a partner are left out."""
    there = {path.name: path for path in list_pictures(folder)}
    pairs = [(path, there.get(partner(name) or "")) for name, path in there.items() if PRE in name]
    return [(pre, post) for pre, post in pairs if post is not None]


def _goal_name(name: str, there: Collection[str], goals: Path, same: bool) -> str:
    other = partner(name)
    if same and POST not in name:
        raise AirlocError(
            f"The area {name!r} is no ..._{POST} picture, and its goal would come from the same folder {goals}",
            f"Search {POST} pictures only, or give another folder of goals",
        )
    if name in there and not same:
        return name
    if other is not None and other in there:
        return other
    wanted = f"{name!r}" if other is None else f"{other!r}" if same else f"{name!r} or {other!r}"
    raise AirlocError(
        f"The folder of goals {goals} has no picture {wanted} for the area {name!r}",
        "Put it there, or leave the area out",
    )
