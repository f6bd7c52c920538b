"""A small data folder that all units can be trained on, with masks, splits and ground sizes."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from airloc.areas.synthetic import generate
from airloc.training import embedder

TILES = ("11_0_0", "11_5_0", "22_0_0", "33_0_0", "44_0_0")


@pytest.fixture(scope="module", autouse=True)
def short_normalisation() -> Iterator[None]:
    """Every training of an embedder ends with its normalisation, here over few patches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedder, "NORMALISED_BLOCKS", 2)
        yield


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the dataset `masa`: two images for training, one for validation, all with masks."""
    root = tmp_path_factory.mktemp("world")
    folder = root / "masa"
    (folder / "images").mkdir(parents=True)
    (folder / "masks").mkdir()
    lines = ["image,mask,side_m,split"]
    for seed, split in enumerate(("train", "train", "val")):
        area = generate(seed, (320, 320), metres_per_px=2.0, regime="suburb")
        Image.fromarray(area.image).save(folder / "images" / f"{seed}.png")
        Image.fromarray(area.mask).save(folder / "masks" / f"{seed}.png")
        lines.append(f"{seed}.png,{seed}.png,640,{split}")
    (folder / "windows.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="session")
def tiles(world, tmp_path_factory) -> Path:
    """Five windows of four tiles, all with masks; the index has one for validation and none for testing."""
    root = tmp_path_factory.mktemp("tiles")
    for part, source in (("images", "0.png"), ("masks", "0.png")):
        (root / "masa" / part).mkdir(parents=True)
        for name in TILES:
            shutil.copy(world / "masa" / part / source, root / "masa" / part / f"{name}.png")
    rows = [f"{name}.png,{name}.png,640,{'val' if name.startswith('44') else 'train'}" for name in TILES]
    (root / "masa" / "windows.csv").write_text("\n".join(["image,mask,side_m,split", *rows]))
    return root
