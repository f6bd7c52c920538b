"""Tiny datasets for every suite, and suites that are made smaller to match."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from airloc.evaluation.benchmarks.suites import SuiteSpec

SMALL = "4x4"


def write_data(root: Path) -> Path:
    """Write images of noise in the layouts of Massachusetts, Dubai, NAIP, xBD and Austin."""
    windows = [("image", "mask", "side_m", "split")]
    for number in range(3):
        name = f"100_{number}_0.png"
        _image(root / "masa" / "images" / name, 150, number)
        mask = np.kron(np.random.default_rng(number).random((15, 15)) < 0.3, np.ones((10, 10), bool))
        _write(root / "masa" / "masks" / name, mask.astype(np.uint8) * 255)
        windows.append((name, name, "750", "val" if number < 2 else "train"))
    with (root / "masa" / "windows.csv").open("w", newline="") as file:
        csv.writer(file).writerows(windows)
    for number in range(2):
        name = f"image_part_{number:03d}.png"
        _image(root / "dubai" / "Tile 1" / "images" / name, 720, number)
        colours = np.array([(132, 41, 246), (254, 221, 58), (226, 169, 41), (110, 193, 228), (60, 16, 152)], np.uint8)
        classes = np.random.default_rng(number).integers(0, 5, (24, 24)).repeat(30, axis=0).repeat(30, axis=1)
        _write(root / "dubai" / "Tile 1" / "masks" / name, colours[classes])
        _image(root / "austin" / f"austin_{number}.png", 250, number)
        for year in (2016, 2018, 2020):
            _image(root / "naip" / f"claremont_{year}_{number}.png", 90, number + year)
        for event in ("hurricane-michael", "socal-fire"):
            for when in ("pre", "post"):
                name = f"{event}_{number:08d}_{when}_disaster.png"
                _image(root / "xbd" / "images" / name, 90, number + 10 * (when == "pre"))
    return root


def smaller(suite: SuiteSpec) -> SuiteSpec:
    """Return the same suite with fewer cells and fewer procedural areas."""
    if suite.prepare is not None:
        small = {"count": 2, "cut": 125}
        options = {name: small.get(name, value) for name, value in suite.prepare.options.items()}
        suite = replace(suite, prepare=replace(suite.prepare, options=options))
    return replace(suite, grid=SMALL)


def _image(path: Path, side: int, seed: int) -> None:
    blocks = np.random.default_rng(seed).integers(0, 200, (-(-side // 10), -(-side // 10), 3), dtype=np.uint8)
    _write(path, blocks.repeat(10, axis=0).repeat(10, axis=1)[:side, :side])


def _write(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
