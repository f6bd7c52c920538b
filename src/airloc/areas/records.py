"""Records of the images of a dataset (without pixels), filters of their names, and the status of a dataset."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from airloc.errors import AirlocError

PRE, POST = "pre_disaster", "post_disaster"
"""Parts of file names that distinguish the two images of a place, as in xBD."""

SPLITS = ("train", "val", "test")
"""Names of the splits, in the order in which they are reported."""


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """One image of a dataset, before its pixels are read."""

    name: str
    """Name of the area; for files, the file name."""
    path: Path
    """The image file."""
    mask: Path | None = None
    """File of the building mask, in the format that `Dataset.read_mask` reads."""
    width_m: float | None = None
    """Width of the image on the ground in metres, if known."""
    metres_per_pixel: float | None = None
    """Side of a pixel on the ground in metres, if known; `width_m` takes precedence."""
    tile: str = ""
    """The source image that this image was cut from; empty for an image of its own."""
    split: str = ""
    """`train`, `val` or `test`; empty if the dataset has no splits."""
    place: str = ""
    """Images of the same place on different days have the same value; empty for an image without a partner."""
    day: int = 0
    """Orders the images of a place, the earliest first."""
    corner: tuple[int, int] | None = None
    """Top and left of the piece of the image, in pixels; None for the whole image."""
    size: tuple[int, int] | None = None
    """Height and width of the piece of the image, in pixels."""


@dataclass(frozen=True)
class NameFilter:
    """Shell patterns that select names; by default all names match.

    >>> NameFilter(only=("*-fire_*",), without=("socal*",)).matches("santa-rosa-fire_00000003_post_disaster.png")
    True
    """

    only: tuple[str, ...] = ()
    """Patterns (* ? [abc]); a name must match at least one of them, if there are any."""
    without: tuple[str, ...] = ()
    """Patterns; a name must match none of them."""

    def __bool__(self) -> bool:
        return bool(self.only or self.without)

    def matches(self, name: str) -> bool:
        """Return True if a name is selected; upper and lower case differ."""
        selected = not self.only or any(fnmatchcase(name, pattern) for pattern in self.only)
        return selected and not any(fnmatchcase(name, pattern) for pattern in self.without)

    def select(self, names: Iterable[str], where: object) -> list[str]:
        """Return the names that match, or raise an error, which says `where` they come from, if none does."""
        selected = [name for name in names if self.matches(name)]
        if not selected:
            raise self.no_match_error(where)
        return selected

    def no_match_error(self, where: object) -> AirlocError:
        """Return the error for patterns that no name matches."""
        options = [f"--only {pattern}" for pattern in self.only] + [f"--except {pattern}" for pattern in self.without]
        return AirlocError(
            f"No area of {where} matches {' '.join(options)}", "Check the patterns, and quote them for the shell"
        )


@dataclass(frozen=True)
class Status:
    """What is present of a dataset, for `airloc data list`."""

    name: str
    location: Path
    """Folder or file of the dataset."""
    state: str
    """`published layout`, `windows`, `images`, `prepared`, `absent` or `damaged`."""
    areas: Mapping[str, int] = field(default_factory=dict)
    """Number of areas by split or subset; for plain folders the number of images."""
    expected: Mapping[str, int] = field(default_factory=dict)
    """Number of areas in the paper, by split or subset."""
    command: str = ""
    """Words after `airloc data show` that read the dataset."""
    remark: str = ""
    """A note, or how to get or repair the data."""

    @property
    def differences(self) -> dict[str, int]:
        """Number of areas more (or fewer) than in the paper, where the data has the published layout."""
        if self.state != "published layout":
            return {}
        gaps = {split: self.areas.get(split, 0) - count for split, count in self.expected.items()}
        return {split: gap for split, gap in gaps.items() if gap}


def count_splits(splits: Iterable[str]) -> dict[str, int]:
    """Count areas by split, in the order of `SPLITS`.

    >>> count_splits(["val", "", "train", "val"])
    {'train': 1, 'val': 2, 'without split': 1}
    """
    found = Counter(splits)
    known = {name: found.pop(name) for name in SPLITS if name in found}
    return known | {name or "without split": count for name, count in sorted(found.items())}
