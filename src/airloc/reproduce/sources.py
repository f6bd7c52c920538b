"""Where the data of the paper's experiments comes from: what a folder holds, or procedural stand-ins."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from airloc.areas.windows import INDEX, read_windows
from airloc.errors import AirlocError
from airloc.reproduce.presets import Preset
from airloc.reproduce.store import folder_digest
from airloc.reproduce.tasks import Task

PLACES = {"masa": "masa", "dubai": "dubai", "xbd-pre": "xbd", "xbd-disaster": "xbd"}
"""The folder, under the root, of each role that data has in the paper."""

TITLES = {"masa": "Massachusetts", "dubai": "Dubai", "xbd-pre": "xBD-pre", "xbd-disaster": "xBD-disaster"}

STAND_INS: dict[str, dict[str, Any]] = {
    "masa": {},
    "dubai": {"regime": "desert"},
    "xbd-pre": {},
    "xbd-disaster": {"disaster": "burnt"},
}
"""What procedural areas stand for each role."""

SEEDS = {
    ("masa", "train"): 900,
    ("masa", "val"): 901,
    ("masa", "test"): 902,
    ("dubai", "test"): 903,
    ("xbd-pre", "train"): 904,
    ("xbd-pre", "val"): 905,
    ("xbd-disaster", "test"): 906,
}
"""Procedural worlds of each role and split; none are shared."""


@dataclass(frozen=True)
class Sources:
    """The data of a reproduction."""

    root: Path | None
    """The folder of datasets; None for procedural areas."""
    preset: Preset

    def __post_init__(self) -> None:
        if self.root is None:
            return
        if not self.root.is_dir():
            raise AirlocError(
                f"There is no data folder {self.root}", "Check --data, or leave it out for procedural areas"
            )
        if not any(self.has(role) for role in PLACES):
            raise AirlocError(
                f"The data folder {self.root} holds none of {', '.join(sorted(set(PLACES.values())))}",
                "Run `airloc data list` to see what is there, or leave --data out for procedural areas",
            )

    def has(self, role: str) -> bool:
        """Whether there is data for a role."""
        return self.root is None or (self.root / PLACES[role]).is_dir()

    def require(self, role: str, what: str) -> None:
        """Refuse to go on without the data of a role.

        Raises:
            AirlocError: When it is not there.
        """
        if not self.has(role):
            raise AirlocError(
                f"{what} needs {TITLES[role]}, and there is no folder {PLACES[role]!r} in {self.root}",
                f"Run `airloc data fetch {PLACES[role]}`, or ask for another table or figure",
            )

    def pictures(self, role: str) -> Task:
        """The task that gathers pictures to train on."""
        settings: dict[str, Any]
        name = f"pictures of {TITLES[role]}"
        if self.root is None:
            parts = {"train": self.preset.pictures, "val": self.preset.checked}
            splits = {split: {"seed": SEEDS[role, split], "count": count} for split, count in parts.items()}
            return Task("pictures", name, {"of": "synthetic", "splits": splits, **STAND_INS[role]})
        folder = self.root / PLACES[role]
        settings = {"of": self._kind(role), "data": _digest(folder)}
        if settings["of"] != "windows":
            settings["splits"] = {"train": {"count": None}, "val": {"count": 40}}
        if settings["of"] == "xbd":
            settings["subset"] = "pre"
        return Task("pictures", name, settings, source=folder)

    def areas(self, role: str, split: str, grid: str) -> Task:
        """The task that gathers areas to fly over."""
        name = f"areas of {TITLES[role]} ({split}), {grid}"
        settings: dict[str, Any] = {"split": split, "grid": grid}
        if self.root is None:
            worlds = {"of": "synthetic", "seed": SEEDS[role, split], "count": self.preset.worlds, **STAND_INS[role]}
            return Task("areas", name, settings | worlds)
        folder, kind = self.root / PLACES[role], self._kind(role)
        settings |= {"of": kind, "count": self.preset.most, "data": _digest(folder)}
        if kind == "windows":
            settings["split"] = self._window_split(folder, split)
        if kind == "xbd":
            settings["subset"] = "disaster"
        return Task("areas", name, settings, source=folder)

    def remarks(self) -> list[str]:
        """What differs from the paper's data."""
        if self.root is None:
            return [
                "The areas are procedural ones that stand for the paper's data: the figures show that everything runs, "
                "and nothing about the paper."
            ]
        said = []
        if self.has("masa") and self._kind("masa") == "windows":
            said.append(
                "Massachusetts: windows of its tiles, not the paper's 832 + 178 + 178 areas. Where there is no test "
                "split, the windows to validate on stand for the paper's test set too."
            )
        if self.has("dubai"):
            said.append("Dubai: the areas that the loader finds (154 of 5 x 5 in the whole set), not the paper's 196.")
        if self.has("xbd-disaster"):
            said.append("xBD: the pictures that are there, not all of the paper's 902 (pre) and 1303 (disaster).")
        missing = sorted({TITLES[role] for role in PLACES if not self.has(role)})
        return said + ([f"Not there: {', '.join(missing)}."] if missing else [])

    def _kind(self, role: str) -> str:
        """How the data of a role is read."""
        assert self.root is not None
        place = PLACES[role]
        return "windows" if place == "masa" and (self.root / place / INDEX).is_file() else place

    @staticmethod
    def _window_split(folder: Path, split: str) -> str:
        """The split of windows for one of the paper: those to validate on where there are none to test."""
        there = {window.split for window in _windows(folder).values()}
        return split if split in there else "val"


def _windows(folder: Path) -> Mapping[str, Any]:
    return read_windows(folder / "images" if (folder / "images").is_dir() else folder)


@lru_cache
def _digest(folder: Path) -> str:
    return folder_digest(folder)
