"""A dataset that only lists its images gets selection, areas, images, pairs and a status from the base class."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas import DATASETS, Dataset, ImageRecord, load_dataset
from airloc.areas.area import list_images
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(5, 5)


@dataclass(frozen=True)
class Lakes(Dataset):
    """A new dataset: one class. Names are LAKE_SEASON; the winter images are for testing."""

    name = "lakes"
    title = "Lakes"
    terms = "CC0"
    obtain = "write to lakes@example.org"
    expected = {"train": 2, "test": 3}  # noqa: RUF012

    root: Path | None = None
    """The folder of images."""

    def scan(self) -> list[ImageRecord]:
        """List the images."""
        return [self._record(path) for path in list_images(self.require_location())]

    @staticmethod
    def _record(path: Path) -> ImageRecord:
        lake, season = path.stem.split("_")
        split, day = ("test", 1) if season == "winter" else ("train", 0)
        return ImageRecord(path.name, path, metres_per_pixel=4.0, split=split, place=lake, day=day)


@pytest.fixture
def lakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The dataset under the data folder, and its one line in the registry."""
    folder = tmp_path / "data" / "lakes"
    folder.mkdir(parents=True)
    for number, name in enumerate(("siljan_summer", "siljan_winter", "vanern_summer", "vanern_winter")):
        image = np.random.default_rng(number).integers(0, 256, (150, 200, 3), dtype=np.uint8)
        Image.fromarray(image).save(folder / f"{name}.png")
    monkeypatch.setitem(DATASETS, "lakes", Lakes)
    monkeypatch.setenv("AIRLOC_DATA", str(tmp_path / "data"))
    return folder


def test_a_dataset_of_ones_own_is_one_class_and_one_line(lakes: Path) -> None:
    areas = list(load_dataset("lakes", split="test").areas(GRID))
    assert [area.name for area in areas] == ["siljan_winter.png", "vanern_winter.png"]
    assert all(area.image.shape == (256, 256, 3) and area.ground_m == (600.0, 600.0) for area in areas)


def test_an_agent_is_evaluated_on_a_dataset_of_ones_own(lakes: Path, airloc, tmp_path: Path) -> None:
    out = tmp_path / "score.json"
    outcome = airloc("evaluate", "spiral", "--dataset", "lakes", "--cell-metres", 100, "--json", out)
    assert outcome.code == 0, outcome
    assert json.loads(out.read_text())["areas"] == 4


def test_images_are_whole(lakes: Path) -> None:
    assert {image.image.shape for image in load_dataset("lakes").images()} == {(150, 200, 3)}
    record = load_dataset("lakes").records()[1]
    assert load_dataset("lakes").read(record).ground_m == (600.0, 800.0)


def test_pairs_are_the_images_of_a_place_on_two_days(lakes: Path) -> None:
    found = list(load_dataset("lakes").pairs(GRID))
    assert [(area.name, goal.name) for area, goal in found] == [
        ("siljan_winter.png", "siljan_summer.png"),
        ("vanern_winter.png", "vanern_summer.png"),
    ]
    assert all(area.image.shape == goal.image.shape == (256, 256, 3) for area, goal in found)
    ((earlier, later),) = load_dataset("lakes", only=("siljan*",)).record_pairs()
    assert (earlier.name, later.name) == ("siljan_summer.png", "siljan_winter.png")


def test_a_dataset_without_pairs_is_named(lakes: Path) -> None:
    (lakes / "siljan_winter.png").unlink()
    with pytest.raises(AirlocError, match="lakes"):
        load_dataset("lakes", only=("siljan*",)).record_pairs()


def test_areas_on_too_little_ground_are_left_out_of_areas_and_pairs(lakes: Path) -> None:
    for method in ("areas", "pairs"):
        with pytest.raises(AirlocError, match="1000 x 1000 m"):
            list(getattr(load_dataset("lakes", cell_metres=200), method)(GRID))


def test_the_status_compares_with_the_paper(lakes: Path) -> None:
    status = load_dataset("lakes").status()
    assert (status.state, status.areas, status.differences) == (
        "published layout",
        {"train": 2, "test": 2},
        {"test": -1},
    )
    assert status.command == f"lakes --root {lakes}"


def test_a_missing_folder_names_the_command(tmp_path: Path, lakes: Path) -> None:
    with pytest.raises(AirlocError, match=r"nowhere.*airloc data fetch lakes"):
        Lakes(tmp_path / "nowhere").records()
    assert Lakes(tmp_path / "nowhere").status().state == "absent"


def test_a_dataset_to_be_asked_for_says_where_and_how(tmp_path: Path) -> None:
    for dataset, facts in {
        Lakes(): ("lakes@example.org", "lakes"),
        DATASETS["dubai"](): ("humansintheloop.org", "CC0", "Tile 1/images", "$AIRLOC_DATA/dubai"),
        DATASETS["xbd"](root=tmp_path): ("xview2.org", "images", str(tmp_path)),  # type: ignore[call-arg]
        DATASETS["naip"](): ("CITY_YEAR_NUMBER",),
    }.items():
        with pytest.raises(AirlocError) as error:
            dataset.download()
        assert [fact for fact in facts if fact not in str(error.value)] == []
