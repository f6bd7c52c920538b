"""A small world on disk that all units can be trained on, with masks, splits and ground sizes."""

from pathlib import Path

import pytest
from PIL import Image

from airloc.areas.synthetic import generate


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the set `masa`: two pictures for training, one for validation, all with masks."""
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
