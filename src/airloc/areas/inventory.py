"""What data is there: where it was looked for, what was found, and how it differs from the paper."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from airloc.areas import dubai, masa, xbd
from airloc.areas.pictures import SUFFIXES
from airloc.areas.prepared import is_prepared, open_prepared
from airloc.areas.splits import NAMES
from airloc.areas.windows import INDEX as WINDOWS
from airloc.areas.windows import read_windows
from airloc.errors import AirlocError
from airloc.grid import Grid

PAPER: dict[str, Mapping[str, int]] = {"masa": masa.PAPER, "dubai": dubai.PAPER, "xbd": xbd.PAPER}
"""Areas of 5 x 5 cells in the paper, by dataset and subset."""

_COUNT: dict[str, Callable[[Path], dict[str, int]]] = {
    "masa": lambda root: masa.count(root, Grid()),
    "dubai": lambda root: dubai.count(root, Grid()),
    "xbd": xbd.count,
}


@dataclass(frozen=True)
class Found:
    """One dataset, as found."""

    name: str
    place: Path
    """Where it was looked for."""
    state: str
    """`published layout`, `windows`, `pictures`, `prepared`, `absent` or `damaged`."""
    areas: Mapping[str, int] = field(default_factory=dict)
    """Areas of 5 x 5 cells by split or subset; for pictures their number."""
    source: str = ""
    """What to give to a command to read it."""
    remark: str = ""
    """What to know or to do about it."""

    @property
    def paper(self) -> Mapping[str, int]:
        """The paper's counts; empty for what the paper does not use or is not as published."""
        return PAPER.get(self.name, {}) if self.state in ("published layout", "absent") else {}

    @property
    def differences(self) -> dict[str, int]:
        """How many areas there are more (or fewer) than in the paper, where that is not none."""
        if self.state != "published layout":
            return {}
        gaps = {split: self.areas.get(split, 0) - count for split, count in self.paper.items()}
        return {split: gap for split, gap in gaps.items() if gap}


def take_stock(root: Path) -> Iterator[Found]:
    """Look for the published datasets and for any other pictures in the folders under `root`."""
    if not root.is_dir():
        raise AirlocError(
            f"There is no folder {root}", "Set AIRLOC_DATA to the folder of your datasets, or give --root"
        )
    for name in PAPER:
        yield check(name, root / name)
    for place in sorted(path for path in root.iterdir() if path.is_dir() and path.name not in PAPER):
        yield from _others(place)


def check(name: str, place: Path) -> Found:
    """Look for one of the published datasets in a folder, and count its areas."""
    if not place.exists():
        return Found(name, place, "absent", remark=f"run `airloc data fetch {name}`")
    if (place / WINDOWS).is_file():
        return _windows(name, place)
    try:
        return Found(name, place, "published layout", _COUNT[name](place), f"{name} --root {quote(str(place))}")
    except AirlocError as error:
        return Found(name, place, "damaged", remark=str(error))


def _others(place: Path) -> Iterator[Found]:
    """What a folder of no known name holds."""
    if is_prepared(place):
        yield _prepared(place)
    elif (place / WINDOWS).is_file():
        yield _windows(place.name, place)
    elif count := sum(1 for path in place.iterdir() if path.suffix.lower() in SUFFIXES):
        yield Found(place.name, place, "pictures", {"pictures": count}, f"folder --path {quote(str(place))}")


def _windows(name: str, place: Path) -> Found:
    pictures = place / "images" if (place / "images").is_dir() else place
    try:
        windows = read_windows(pictures)
    except AirlocError as error:
        return Found(name, place, "damaged", remark=str(error))
    splits = _tally(window.split for image, window in windows.items() if (pictures / image).is_file())
    masks = sum(window.mask is not None for window in windows.values())
    source = f"folder --path {quote(str(pictures))}"
    return Found(name, place, "windows", splits, source, f"{masks} with building masks")


def _prepared(place: Path) -> Found:
    try:
        opened = open_prepared(place)
    except AirlocError as error:
        return Found(place.name, place, "damaged", remark=str(error))
    splits = _tally(entry["split"] for entry in opened.entries)
    source = f"prepared --path {quote(str(place))}"
    return Found(place.name, place, "prepared", splits, source, f"for a grid of {opened.grid}")


def _tally(splits: Iterable[str]) -> dict[str, int]:
    """Count areas by split, train first."""
    found = Counter(splits)
    known = {name: found.pop(name) for name in NAMES if name in found}
    return known | {name or "without split": count for name, count in sorted(found.items())}
