"""Datasets are frozen dataclasses of documented options; load_dataset finds them by name or by the layout of a path."""

import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas import DATASETS, Dataset, SearchArea, Status, all_datasets, list_datasets, load_dataset, weight_terms
from airloc.areas.dubai import Dubai
from airloc.areas.folder import Folder
from airloc.areas.geotiff import GeoTiff
from airloc.areas.masa import Masa
from airloc.areas.prepared import Prepared, write_prepared
from airloc.areas.synthetic import Synthetic
from airloc.areas.xbd import Xbd
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import SearchEnv
from airloc.training.data import DataConfig, load_atlas

GRID = Grid(5, 5)
LISTED = [name for name, kind in DATASETS.items() if kind.location_option == "root"]


def write(path: Path, side: int = 500) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side)).save(path)


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_are_frozen_options_with_facts(name: str) -> None:
    kind = DATASETS[name]
    assert kind.name == name
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    required = [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    assert required == (["path"] if kind.location_option == "path" else [])
    assert kind.title
    assert kind.terms


@pytest.mark.parametrize("name", DATASETS)
def test_every_option_is_documented_below_its_line(name: str) -> None:
    for field in dataclasses.fields(DATASETS[name]):
        owner = next(kind for kind in DATASETS[name].__mro__ if field.name in inspect.get_annotations(kind))
        following = inspect.getsource(owner).split(f"    {field.name}:", 1)[1].split("\n", 2)[1]
        assert following.strip().startswith('"""'), field.name


def test_procedural_areas_need_no_data() -> None:
    grid = Grid(2, 3)
    (area,) = islice(load_dataset("synthetic").areas(grid), 1)
    assert area.image.shape == (*grid.size, 3)
    assert load_dataset("synthetic", count=3, seed=4) == Synthetic(count=3, seed=4)


@pytest.mark.parametrize("options", [{"split": "val"}, {"cell_metres": 100.0}, {"root": Path("x")}])
def test_procedural_areas_have_no_splits_and_no_location(options: dict[str, object]) -> None:
    with pytest.raises(AirlocError):
        load_dataset("synthetic", **options)  # type: ignore[arg-type]


def test_a_path_is_read_by_its_layout(areas_folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    write_prepared(Folder(areas_folder).areas(GRID), GRID, cache, source={})
    write(tmp_path / "masa" / "train" / "1_15.png")
    write(tmp_path / "masa" / "train_labels" / "1_15.png")
    write(tmp_path / "dubai" / "Tile 1" / "images" / "image_part_001.jpg")
    write(tmp_path / "xbd" / "tier1" / "images" / "hurricane-michael_00000000_pre_disaster.png")
    (tmp_path / "ortho.tif").touch()
    for path, kind in (
        (cache, Prepared),
        (tmp_path / "masa", Masa),
        (tmp_path / "dubai", Dubai),
        (tmp_path / "xbd", Xbd),
        (tmp_path / "xbd" / "tier1" / "images", Folder),
        (areas_folder, Folder),
        (tmp_path / "ortho.tif", GeoTiff),
    ):
        assert type(load_dataset(path)) is kind
        assert load_dataset(str(path)).location == path


def test_a_folder_with_images_of_its_own_is_read_as_such(areas_folder: Path) -> None:
    write(areas_folder / "Tile 1" / "images" / "image_part_001.jpg")
    write(areas_folder / "images" / "hurricane-michael_00000000_pre_disaster.png")
    assert [record.name for record in load_dataset(areas_folder).records()] == ["a.png", "b.png", "c d.png", "e.png"]


def test_options_reach_the_dataset(areas_folder: Path) -> None:
    folder = load_dataset(areas_folder, split="val", cell_metres=100, only=["a*"], names=("a.png",))
    assert folder == Folder(areas_folder, split="val", cell_metres=100, only=("a*",), names=("a.png",))
    assert load_dataset("folder", root=areas_folder) == Folder(areas_folder)


def test_names_select_procedural_areas() -> None:
    names = [record.name for record in Synthetic(count=3).records()]
    assert [area.name for area in load_dataset("synthetic", count=3, names=(names[1],)).areas(Grid(1, 2))] == [names[1]]


@pytest.mark.parametrize(
    ("source", "options", "facts"),
    [
        ("massa", {}, ("'massa'", "masa")),
        ("/nowhere", {}, ("/nowhere",)),
        ("masa", {"subset": "pre"}, ("masa", "'subset'", "scheme")),
        ("folder", {}, ("folder",)),
        (Path("/tmp"), {"root": Path("/tmp")}, ("/tmp",)),
    ],
)
def test_unknown_datasets_and_options_are_named(
    source: str, options: dict[str, object], facts: tuple[str, ...]
) -> None:
    with pytest.raises(AirlocError) as error:
        load_dataset(source, **options)  # type: ignore[arg-type]
    assert [fact for fact in facts if fact not in str(error.value)] == []


@pytest.fixture
def lakes(install_package, areas_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example of docs/data.md as a package, and its images under the data folder."""
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    code, project = (
        re.search(rf'```\w+ title="{title}"\n(.*?)```', page, re.DOTALL)[1]  # type: ignore[index]
        for title in ("lakes.py", "pyproject.toml")
    )
    about = tomllib.loads(project)["project"]
    folder: Path = install_package(about["name"], about["version"], about["entry-points"], lakes=code)
    (folder / "data").mkdir()
    areas_folder.rename(folder / "data" / "lakes")
    monkeypatch.setenv("AIRLOC_DATA", str(folder / "data"))
    return folder


def test_a_dataset_of_another_package_is_loaded_listed_evaluated_and_trained_on(lakes: Path, airloc) -> None:
    assert [type(load_dataset("lakes")).__name__, len(load_dataset("lakes", split="test").records())] == ["Lakes", 4]
    assert len(SearchEnv("lakes").sampler.names) == 4
    assert "lakes" in [status.name for status in list_datasets(lakes / "data")]
    assert airloc("evaluate", "spiral", "--dataset", "lakes").code == 0
    assert airloc("evaluate", "spiral", "--dataset", "lake").refused("'lake'", "lakes")
    config = DataConfig(root=lakes / "data", datasets=("lakes",), weights=(1.0,), split="test", synthetic=0)
    assert len(load_atlas(config, 48, torch.device("cpu")).height) >= 4


@pytest.mark.long
def test_a_dataset_of_another_package_is_shown(lakes: Path) -> None:
    path = os.pathsep.join([str(lakes), *sys.path])
    command = [sys.executable, "-m", "airloc_cli", "data", "show", "lakes", "--out", str(lakes / "sheet.png")]
    shown = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert "4 areas" in shown.stdout


@pytest.mark.parametrize(
    "code", ["raise OSError('no')", "class Rivers: pass", "from airloc.areas.masa import Masa as Rivers"]
)
def test_a_dataset_of_another_package_that_fails_is_named_and_stops_no_other(
    install_package, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    entries = {"rivers": "rivers:Rivers", "masa": "rivers:Rivers"}
    install_package("airloc-rivers", "1", {"airloc.datasets": entries}, rivers=code)
    with pytest.raises(AirlocError, match=r"'rivers' of airloc-rivers"):
        load_dataset("rivers")
    assert all_datasets() == DATASETS
    assert "airloc-rivers" in caplog.text


def test_weights_carry_the_terms_of_their_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert weight_terms(load_dataset("xbd", root=tmp_path)) == Xbd.weight_terms != ""
    write(tmp_path / "xbd" / "images" / "a.png")
    write(tmp_path / "deepglobe" / "a.png")
    write(tmp_path / "own" / "a.png")
    assert weight_terms(load_dataset(tmp_path / "xbd" / "images")) == Xbd.weight_terms
    assert weight_terms(load_dataset(tmp_path / "deepglobe")) == DATASETS["deepglobe"].weight_terms != ""
    for source in ({"name": "xbd"}, {"name": "folder", "path": str(tmp_path / "xbd" / "images")}):
        areas = Folder(tmp_path / "own").areas(GRID)
        write_prepared(areas, GRID, tmp_path / "cache", source=source, overwrite=True)
        assert weight_terms(load_dataset(tmp_path / "cache")) == Xbd.weight_terms
    monkeypatch.chdir(tmp_path / "xbd")
    assert weight_terms(load_dataset(tmp_path / "own")) == weight_terms(load_dataset("synthetic")) == ""


def statuses(root: Path) -> dict[str, Status]:
    return {status.name: status for status in list_datasets(root)}


def test_absent_datasets_are_listed_with_the_command(tmp_path: Path) -> None:
    found = statuses(tmp_path)
    assert {name: status.state for name, status in found.items()} == dict.fromkeys(LISTED, "absent")
    assert "airloc data fetch masa" in found["masa"].remark
    assert found["masa"].location == tmp_path / "masa"


def test_differences_from_the_paper_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "dubai" / "Tile 1" / "images" / "image_part_001.jpg")
    write(tmp_path / "xbd" / "images" / "hurricane-michael_00000000_pre_disaster.png")
    write(tmp_path / "masa" / "train" / "1_15.png")
    found = statuses(tmp_path)
    assert found["dubai"].differences == {"test": -195}
    assert found["xbd"].differences == {"pre": -901, "disaster": -1303}
    assert found["masa"].differences == {"train": -831, "val": -178, "test": -178}


def test_other_folders_are_listed_with_the_command_that_reads_them(tmp_path: Path) -> None:
    write(tmp_path / "own town" / "a.png")
    write(tmp_path / "cut" / "images" / "b.png")
    (tmp_path / "cut" / "windows.csv").write_text("image,split\nb.png,val\nmissing.png,val\n")
    (tmp_path / "empty").mkdir()
    area = SearchArea("a", np.zeros((*Grid().size, 3), dtype=np.uint8))
    write_prepared(iter([area]), Grid(), tmp_path / "cache", source={})
    found = statuses(tmp_path)
    assert set(found) == {*LISTED, "own town", "cut", "cache"}
    assert (found["own town"].areas, found["own town"].command) == (
        {"images": 1},
        f"folder --path '{tmp_path}/own town'",
    )
    assert (found["cut"].state, found["cut"].areas) == ("windows", {"val": 1})
    assert (found["cache"].state, found["cache"].areas) == ("prepared", {"without split": 1})


def test_damaged_data_is_listed_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "xbd").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "index.json").write_text(json.dumps({"version": 0}))
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "windows.csv").write_text("nonsense")
    found = statuses(tmp_path)
    assert {found[name].state for name in ("xbd", "cache", "cut")} == {"damaged"}
    assert all(found[name].remark for name in ("xbd", "cache", "cut"))


def test_a_missing_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=r"nowhere.*AIRLOC_DATA"):
        list(list_datasets(tmp_path / "nowhere"))


def test_the_real_data_is_counted(data_root: Path) -> None:
    def status(name: str) -> Status:
        dataset: Dataset = load_dataset(name, root=data_root / name)
        return dataset.status()

    assert status("masa").areas == {"train": 76, "val": 20}
    assert status("dubai").differences == {"test": -42}
    assert status("xbd").areas == {"pre": 101, "disaster": 42}
    assert status("naip").areas == {"2016": 474, "2018": 474, "2020": 505}
