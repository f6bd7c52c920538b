"""The datasets of the paper's experiments, and how much of them a preset uses.

The data is real if the user has it. Otherwise procedural areas stand in, which shows that everything runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airloc.areas import DATASETS, load_dataset
from airloc.errors import AirlocError
from airloc.experiments.datasets import IMAGES_SET, areas_task, images_task
from airloc.experiments.graph import Task, folder_digest
from airloc.training.atlas import CELL_METRES
from airloc.training.data import DataConfig
from airloc.training.pipeline import PRESETS as TRAINING_PRESETS
from airloc.training.runs import plain_settings

_VALIDATION_LIMIT = 40
"""Largest number of images to validate a training on."""

_PLANNED = ("data", "variant", "encoder", "segmenter", "table_bytes", "seeds", "seed")
"""Settings of a training that the plan sets, not the preset."""


@dataclass(frozen=True)
class Preset:
    """How much is computed."""

    training: Mapping[str, Any]
    """Settings of `airloc.training.pipeline.AirlocConfig` as JSON values, without those that the plan sets."""
    training_images: int
    """Number of procedural images to train on."""
    validation_images: int
    """Number of procedural images to validate on."""
    areas: int
    """Number of procedural areas of an evaluation."""
    area_limit: int | None
    """Largest number of real areas of an evaluation."""
    threads: int | None = None
    """CPU threads of a task; None for PyTorch's default."""
    data: DataConfig | None = None
    """Datasets and procedural areas to train on together with Massachusetts; None for Massachusetts alone."""


def _training(name: str) -> dict[str, Any]:
    settings = plain_settings(TRAINING_PRESETS[name])
    return {option: value for option, value in settings.items() if option not in _PLANNED}


PRESETS: dict[str, Preset] = {
    "smoke": Preset(
        training={
            **_training("fast"),
            "segmenter_steps": 8,
            "embedder_steps": 40,
            "embedder_blocks": 4,
            "areas": 2,
            "episodes": 1024,
            "batch": 64,
            "learning_rate": 1e-3,
            "validate_every": 8,
        },
        training_images=4,
        validation_images=2,
        areas=6,
        area_limit=6,
        threads=1,
    ),
    "fast": Preset(_training("fast"), training_images=60, validation_images=8, areas=40, area_limit=40),
    "paper": Preset(_training("paper"), training_images=832, validation_images=40, areas=178, area_limit=None),
    "tuned": Preset(
        _training("tuned"),
        training_images=832,
        validation_images=40,
        areas=178,
        area_limit=None,
        data=TRAINING_PRESETS["tuned"].data,
    ),
}
"""`smoke` takes minutes on two CPU cores and shows that everything runs; its numbers mean nothing. `fast` has trainings
for two cores. `paper` trains as the paper does, `tuned` as the shipped weights were trained; both need a GPU."""


@dataclass(frozen=True)
class Role:
    """A dataset as the paper uses it."""

    dataset: str
    """Name in `airloc.areas.DATASETS`, and folder under the data root."""
    seeds: Mapping[str, int]
    """Seed of the procedural areas that stand in for each split. No two splits share areas."""
    stand_in: Mapping[str, Any] = field(default_factory=dict)
    """Other options of these procedural areas."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the dataset."""
    suffix: str = ""
    """What the paper adds to the title of the dataset."""
    training_side: int | None = None
    """Side of the training images in pixels; None for their own size."""

    @property
    def title(self) -> str:
        """Name in the paper."""
        return DATASETS[self.dataset].title + self.suffix


ROLES: dict[str, Role] = {
    "masa": Role("masa", {"train": 900, "val": 901, "test": 902}),
    "dubai": Role("dubai", {"test": 903}, {"regime": "desert"}),
    "xbd-pre": Role(
        "xbd",
        {"train": 904, "val": 905},
        options={"subset": "pre", "validation_every": 10},
        suffix="-pre",
        training_side=512,
    ),
    "xbd-disaster": Role(
        "xbd", {"test": 906}, {"disaster": "burnt"}, options={"subset": "disaster"}, suffix="-disaster"
    ),
}
"""The datasets of the paper by the names that its tables use here."""


@dataclass(frozen=True)
class PaperData:
    """The data of a reproduction.

    Raises:
        AirlocError: If the data root does not exist, or holds none of the datasets.
    """

    root: Path | None
    """The folder of datasets; None for procedural areas."""
    preset: Preset
    _digests: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.root is None:
            return
        if not self.root.is_dir():
            raise AirlocError(f"There is no data folder {self.root}", "Check --data, or omit it for procedural areas")
        if not any(self.has(role) for role in ROLES):
            folders = ", ".join(sorted({role.dataset for role in ROLES.values()}))
            raise AirlocError(
                f"The data folder {self.root} holds none of {folders}",
                "Run `airloc data list` to see what it holds, or omit --data for procedural areas",
            )

    def has(self, role: str) -> bool:
        """Return True if the dataset for this role is present."""
        return self.root is None or (self.root / ROLES[role].dataset).is_dir()

    def require(self, role: str, what: str) -> None:
        """Raise an error if the dataset for this role is absent. It names what needs it, such as `Table 1`."""
        if not self.has(role):
            title, folder = ROLES[role].title, ROLES[role].dataset
            raise AirlocError(
                f"{what} needs {title}, and there is no folder {folder!r} in {self.root}",
                f"Run `airloc data fetch {folder}`, or choose another table or figure",
            )

    def images(self, role: str) -> Task:
        """Return the task that writes the images to train on."""
        name, entry = f"images of {ROLES[role].title}", ROLES[role]
        if self.root is None:
            counts = {"train": self.preset.training_images, "val": self.preset.validation_images}
            splits: dict[str, dict[str, Any]] = {
                split: {"options": {"seed": entry.seeds[split], "count": count, **entry.stand_in}, "limit": None}
                for split, count in counts.items()
            }
            return images_task(name, splits, dataset="synthetic")
        limits = {"train": None, "val": None if self._splits(role) else _VALIDATION_LIMIT}
        splits = {
            split: {"split": split, "options": dict(entry.options), "limit": limit} for split, limit in limits.items()
        }
        source, data = self.root / entry.dataset, self._digest(role)
        more = {other: self._folder_digest(other) for other in self._more(role)}
        return images_task(
            name, splits, dataset=entry.dataset, source=source, data=data, side=entry.training_side, more=more
        )

    def training_data(self, role: str) -> dict[str, Any]:
        """Return the fields of `DataConfig` that train on the images of a role; empty for these images alone."""
        data = self.preset.data
        if data is None or self.root is None or role != "masa":
            return {}
        weights = dict(zip(data.datasets, data.weights, strict=True))
        more = self._more(role)
        return {
            "datasets": [IMAGES_SET, *more],
            "weights": [weights["masa"], *(weights[name] for name in more)],
            "synthetic": data.synthetic,
            "synthetic_weight": data.synthetic_weight,
        }

    def _more(self, role: str) -> list[str]:
        """Return the other datasets that are present and trained on together with the images of a role."""
        if self.preset.data is None or self.root is None or role != "masa":
            return []
        return [name for name in self.preset.data.datasets if name != "masa" and (self.root / name).is_dir()]

    def areas(self, role: str, split: str, grid: str) -> Task:
        """Return the task that writes the areas of an evaluation."""
        name, entry = f"areas of {ROLES[role].title} ({split}), {grid}", ROLES[role]
        if self.root is None:
            options = {"seed": entry.seeds[split], "count": self.preset.areas, **entry.stand_in}
            only = ["*post_disaster"] if "disaster" in entry.stand_in else []
            return areas_task(name, grid, dataset="synthetic", options=options, only=only)
        windows = self._splits(role)
        if windows and split not in windows:
            split = "val"
        return areas_task(
            name,
            grid,
            dataset=entry.dataset,
            source=self.root / entry.dataset,
            options=entry.options,
            data=self._digest(role),
            split=split if role == "masa" else "",  # all areas of the others are for testing
            cell_metres=CELL_METRES if windows else None,
            limit=self.preset.area_limit,
        )

    def remarks(self) -> list[str]:
        """Return how the data differs from the paper's, in sentences."""
        if self.root is None:
            return [
                "Procedural areas stand in for the paper's data. The numbers show that everything runs, and nothing "
                "about the paper."
            ]
        remarks = []
        if self._splits("masa"):
            remarks.append(
                "Massachusetts: windows of its tiles, not the paper's 832 + 178 + 178 areas. Without a test split, the "
                "validation windows also stand in for the paper's test set."
            )
        if self.has("dubai"):
            remarks.append(
                "Dubai: the areas that the loader finds (154 of 5 x 5 in the full dataset), not the paper's 196."
            )
        if self.has("xbd-disaster"):
            remarks.append("xBD: the images that are present, not all of the paper's 902 (pre) and 1303 (disaster).")
        absent = sorted({entry.title for role, entry in ROLES.items() if not self.has(role)})
        return remarks + ([f"Absent: {', '.join(absent)}."] if absent else [])

    def _splits(self, role: str) -> set[str]:
        """Return the splits of Massachusetts as windows of known ground size; empty for a published layout."""
        if self.root is None or role != "masa" or not self.has(role):
            return set()
        dataset = load_dataset("masa", root=self.root / "masa")
        return {record.split for record in dataset.records()} if dataset.state() == "windows" else set()

    def _digest(self, role: str) -> str:
        """Return the digest of the folder of a dataset, computed once."""
        return self._folder_digest(ROLES[role].dataset)

    def _folder_digest(self, name: str) -> str:
        assert self.root is not None
        if name not in self._digests:
            self._digests[name] = folder_digest(self.root / name)
        return self._digests[name]
