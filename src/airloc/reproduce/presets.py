"""How much is computed: a look, a try, or all that the paper did."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airloc.training.pipeline import PRESETS as TRAININGS
from airloc.training.pipeline import AirlocConfig

SIZES = (
    "segmenter_steps",
    "embedder_steps",
    "embedder_blocks",
    "areas",
    "episodes",
    "batch",
    "rate",
    "validate_every",
)
"""The settings of a training that presets decide."""


@dataclass(frozen=True)
class Preset:
    """How much is computed."""

    training: Mapping[str, Any]
    """`SIZES` of the training."""
    pictures: int
    """Procedural pictures to train on, where there is no data."""
    checked: int
    """Procedural pictures to check training on."""
    worlds: int
    """Procedural areas to fly over."""
    most: int | None
    """Areas of real data to fly over, at most."""


def _sizes(config: AirlocConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in SIZES}


PRESETS: dict[str, Preset] = {
    "smoke": Preset(
        training={
            "segmenter_steps": 8,
            "embedder_steps": 40,
            "embedder_blocks": 4,
            "areas": 2,
            "episodes": 1024,
            "batch": 64,
            "rate": 1e-3,
            "validate_every": 8,
        },
        pictures=4,
        checked=2,
        worlds=6,
        most=6,
    ),
    "fast": Preset(_sizes(TRAININGS["fast"]), pictures=60, checked=8, worlds=40, most=40),
    "paper": Preset(_sizes(TRAININGS["paper"]), pictures=832, checked=40, worlds=178, most=None),
}
"""`smoke`: minutes on two CPU cores, to see that everything runs; its numbers mean nothing. `fast`: trainings that two
cores can do. `paper`: the paper's numbers, for a GPU."""
