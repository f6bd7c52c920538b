"""Files and checks shared by the tests of the verbs that play."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from browser_pages import chromium, open_report  # noqa: F401


def _draw_image(seed: int, height: int = 120, width: int = 120) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, size=(height, width, 3), dtype=np.uint8))


@pytest.fixture
def draw_image() -> Callable[..., Image.Image]:
    """Draw a random image from a seed, a height and a width."""
    return _draw_image


@pytest.fixture
def score(airloc, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Evaluate and return the JSON."""
    numbers = itertools.count()

    def run(*arguments: object) -> dict[str, Any]:
        out = tmp_path / "scores" / f"{next(numbers)}.json"
        outcome = airloc("evaluate", *arguments, "--json", out)
        assert outcome.code == 0, outcome
        record: dict[str, Any] = json.loads(out.read_text(), parse_constant=pytest.fail)
        return record

    return run


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Two pairs of images in one folder, and one image without its partner."""
    folder = tmp_path / "pairs"
    folder.mkdir()
    for number, when in enumerate(("pre", "post", "pre", "post")):
        _draw_image(number).save(folder / f"fire_0000000{number // 2}_{when}_disaster.png")
    _draw_image(9).save(folder / "fire_00000007_pre_disaster.png")
    return folder


def listing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.fixture
def refuses(airloc, tmp_path: Path) -> Callable[..., None]:
    """Check that an evaluation is refused and leaves nothing behind."""

    def check(arguments: list[object], *facts: str) -> None:
        before = listing(tmp_path)
        out = ["--json", tmp_path / "out" / "deep" / "score.json", "--trajectories", tmp_path / "out" / "paths.jsonl"]
        assert airloc("evaluate", "random", *arguments, *out).refused(*facts)
        assert listing(tmp_path) == before

    return check
