import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.images import read_image, read_mask
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training import data as data_module
from airloc.training.data import (
    CHUNK,
    SYNTHETIC_FIRST,
    Atlas,
    Data,
    large_validation_areas,
    load_atlas,
    resample,
    terms,
    validation_areas,
)

CPU = torch.device("cpu")


def picture(folder: Path, name: str, colour: int, side: int = 200) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((side, side, 3), colour, dtype=np.uint8)).save(folder / name)


def shares(atlas: Atlas) -> dict[int, float]:
    """How often each colour is drawn, for pictures of one colour."""
    each = torch.diff(atlas.share, prepend=torch.zeros(1)).tolist()
    found: dict[int, float] = {}
    for share, first in zip(each, atlas.first.tolist(), strict=True):
        colour = int(atlas.pixels[first, 0])
        found[colour] = found.get(colour, 0.0) + share
    return found


def sizes(atlas: Atlas) -> list[tuple[int, int]]:
    return list(zip(atlas.height.tolist(), atlas.width.tolist(), strict=True))


def test_a_folder_of_pictures_is_used_at_its_own_and_coarser_resolutions(tmp_path):
    picture(tmp_path, "a.png", 10)
    (tmp_path / "notes.txt").write_text("no picture")
    atlas = load_atlas(Data(root=tmp_path, synthetic=0), 48, CPU)
    assert sizes(atlas) == [(200, 200), (150, 150), (100, 100), (70, 70)]
    assert sizes(load_atlas(Data(root=tmp_path, synthetic=0), 152, CPU)) == [(200, 200)]


def test_sets_are_drawn_by_their_weights_whatever_their_size(tmp_path):
    for n in range(3):
        picture(tmp_path / "naip", f"{n}.png", 10)
    picture(tmp_path / "masa" / "images", "a.png", 20)
    picture(tmp_path / "elsewhere", "a.png", 30)
    atlas = load_atlas(
        Data(root=tmp_path, sets=("masa", "naip", "absent"), weights=(3.0, 1.0, 9.0), synthetic=0), 48, CPU
    )
    assert shares(atlas) == pytest.approx({20: 0.75, 10: 0.25})


def test_pictures_of_known_ground_size_are_brought_to_cells_around_100_m(world):
    atlas = load_atlas(Data(root=world, synthetic=0), 152, CPU)
    expected = [round(640 * 52 / (100 * share)) for share in (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)]
    assert sizes(atlas) == [(side, side) for side in expected] * 2


def test_a_ground_size_counts_without_a_split_too(tmp_path):
    picture(tmp_path, "a.png", 10)
    (tmp_path / "windows.csv").write_text("image,side_m\na.png,400\n")
    atlas = load_atlas(Data(root=tmp_path, synthetic=0), 152, CPU)
    assert sizes(atlas)[3] == (208, 208)


def test_what_is_validated_on_is_never_trained_on(world):
    data = Data(root=world, synthetic=0)
    atlas = load_atlas(data, 256, CPU)
    grid = Grid(5, 5)
    (checked,) = validation_areas(data, grid)
    assert checked.name == "2.png"
    assert checked.ground_m == (500.0, 500.0)
    assert checked.image.shape == (256, 256, 3)
    trained = [read_image(world / "masa" / "images" / f"{n}.png") for n in range(2)]
    whole = {resample(image, size).tobytes() for image in trained for size in sizes(atlas)}
    rows = np.split(atlas.pixels.numpy(), atlas.first[1:].numpy())
    assert {row.tobytes() for row in rows} <= whole


def test_a_larger_grid_is_checked_on_ground_that_is_known_to_hold_it(tmp_path):
    for name in ("small.png", "large.png", "unknown.png"):
        picture(tmp_path, name, 10, side=400)
    (tmp_path / "windows.csv").write_text(
        "image,side_m,split\nsmall.png,600,val\nlarge.png,800,val\nunknown.png,,val\n"
    )
    (found,) = large_validation_areas(Data(root=tmp_path), Grid(7, 7))
    assert (found.name, found.ground_m, found.image.shape) == ("large.png", (700.0, 700.0), (360, 360, 3))
    assert len(validation_areas(Data(root=tmp_path), Grid(5, 5))) == 3
    assert large_validation_areas(Data(), Grid(7, 7)) == []


def test_eight_validation_windows_of_massachusetts_hold_7_by_7(data_root):
    assert len(large_validation_areas(Data(root=data_root), Grid(7, 7))) == 8


def test_masks_are_laid_out_with_their_pictures(world):
    atlas = load_atlas(Data(root=world, synthetic=0), 48, CPU, masks=True)
    at = sizes(atlas)[0]
    mask = resample(read_mask(world / "masa" / "masks" / "0.png").astype(np.uint8) * 255, at) >= 128
    assert np.array_equal(atlas.pixels[: at[0] * at[1], 3].numpy().reshape(at) > 0, mask)
    assert mask.any()


def test_pictures_without_masks_are_left_out_of_segmentation_or_refused(tmp_path, world):
    picture(tmp_path / "naip", "a.png", 10)
    with pytest.raises(AirlocError, match=r"has a building mask.*--synthetic 500"):
        load_atlas(Data(root=tmp_path, synthetic=0), 48, CPU, masks=True)
    both = shutil.copytree(world, tmp_path / "both")
    picture(both / "naip", "a.png", 10)
    assert len(sizes(load_atlas(Data(root=both, synthetic=0), 48, CPU))) == 14 + 4
    assert len(sizes(load_atlas(Data(root=both, synthetic=0), 48, CPU, masks=True))) == 14


def test_only_files_of_a_name_are_read(tmp_path):
    for n, name in enumerate(("michael_1_pre", "michael_1_post", "fire_1_pre")):
        picture(tmp_path / "xbd" / "images", f"{name}.png", 10 * n + 10)
    (tmp_path / "xbd" / "images" / "fire_2_pre.png").write_text("broken, and never opened")
    data = Data(root=tmp_path, sets=("xbd",), weights=(1.0,), only="michael_*_pre*", synthetic=0)
    assert set(shares(load_atlas(data, 48, CPU))) == {10}
    with pytest.raises(AirlocError, match=r"is called like 'flood\*' and is in the split 'train'.*--only"):
        load_atlas(replace(data, only="flood*"), 48, CPU)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (("masa", "naip"), ""),
        (("masa", "xbd"), "CC BY-NC-SA 4.0"),
        (("xbd", "deepglobe"), "CC BY-NC-SA 4.0 and the terms of DeepGlobe 2018 (research only)"),
        (("masa", "absent"), ""),
    ],
)
def test_terms_are_those_of_the_sets_that_are_there(tmp_path, sets, said):
    for name in ("masa", "naip", "deepglobe"):
        picture(tmp_path / name, "a.png", 10)
    picture(tmp_path / "xbd" / "images", "a.png", 10)
    assert terms(Data(root=tmp_path, sets=sets, weights=(1.0,) * len(sets))) == said
    assert terms(Data(root=tmp_path / "xbd")) == "CC BY-NC-SA 4.0"
    assert terms(Data()) == ""


def test_a_folder_without_an_index_is_checked_on_unseen_procedural_areas(tmp_path):
    picture(tmp_path, "a.png", 10)
    grid = Grid(1, 2)
    checked = validation_areas(Data(root=tmp_path), grid)
    assert len(checked) == 40
    expected = generate(SYNTHETIC_FIRST - 40, grid.size, metres_per_px=100 / grid.pitch)
    assert np.array_equal(checked[0].image, expected.image)
    assert validation_areas(Data(), grid) == checked


def test_synthetic_areas_alone_need_no_pool_when_few(monkeypatch):
    monkeypatch.setattr(data_module, "ProcessPoolExecutor", None)
    atlas = load_atlas(Data(synthetic=2), 152, CPU)
    assert sizes(atlas) == [(320, 320), (240, 240), (160, 160)] * 2
    expected = generate(SYNTHETIC_FIRST, (320, 320), metres_per_px=2.0).image
    assert np.array_equal(atlas.pixels[: 320 * 320].numpy().reshape(320, 320, 3), expected)


def test_many_synthetic_areas_are_made_by_several_processes():
    script = (
        "from airloc.training.data import _procedural_areas\n"
        f"areas = _procedural_areas({CHUNK + 1})\n"
        "print(len(areas), areas[-1].name, areas[-1].image.sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    last = generate(SYNTHETIC_FIRST + CHUNK, (320, 320), metres_per_px=2.0)
    assert done.stdout.split() == [str(CHUNK + 1), last.name, str(last.image.sum())]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (Data(root=Path("/no/such/folder")), "no data folder /no/such/folder"),
        (Data(sets=("a", "b"), weights=(1.0,)), r"2 sets \(a, b\) and 1 weights.*--weights"),
        (Data(synthetic=0), "no pictures to train on"),
    ],
)
def test_data_that_cannot_be_is_refused(data, said):
    with pytest.raises(AirlocError, match=said):
        load_atlas(data, 48, CPU)


def test_folders_with_nothing_to_train_on_are_refused(tmp_path, world):
    with pytest.raises(AirlocError, match=r"neither pictures nor a set named masa, naip, austin.*--sets"):
        load_atlas(Data(root=tmp_path), 48, CPU)
    with pytest.raises(AirlocError, match=r"is in the split 'trian'.*--split"):
        load_atlas(Data(root=world, split="trian"), 48, CPU)
    picture(tmp_path, "small.png", 10, side=40)
    with pytest.raises(AirlocError, match="no pictures to train on"):
        load_atlas(Data(root=tmp_path, synthetic=0), 48, CPU)
