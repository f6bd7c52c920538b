"""Deprecated names, until all callers use `airloc.areas.load_dataset`."""

from collections.abc import Iterable
from pathlib import Path

from airloc.areas.folder import Folder
from airloc.areas.records import NameFilter


class Names(NameFilter):
    def wants(self, name: str) -> bool:
        return self.matches(name)

    def choose(self, names: Iterable[str], where: object) -> list[str]:
        return self.select(names, where)


ALL_NAMES = Names()


def pair_up(folder: Path) -> list[tuple[Path, Path]]:
    from airloc.errors import AirlocError

    try:
        return [(first.path, second.path) for first, second in Folder(folder).record_pairs()]
    except AirlocError as error:
        if "no selected pair" in error.problem:
            return []
        raise
