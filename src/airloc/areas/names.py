"""Choosing areas by their names, such as one event of many in one folder."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

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
