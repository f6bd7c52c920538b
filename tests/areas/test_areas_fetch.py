"""The published site, faked on loopback, is fetched once, checked from then on and read by the loader."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.download import MASA_PAGES, Fetched, Timeouts, fetch_by_hand, fetch_masa, list_links
from airloc.areas.masa import Masa
from airloc.errors import AirlocError
from airloc.grid import Grid

QUICK = Timeouts(timeout=0.3, attempts=3, pause=0.01)
TILE = "/train/sat/1_train.tiff"


def tiff(seed: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 200, (200, 200, 3), dtype=np.uint8)).save(buffer, "TIFF")
    return buffer.getvalue()


@pytest.fixture
def mirror(site):
    """A site of one tile a folder, whose links point to where the files once were."""
    for seed, page in enumerate(MASA_PAGES):
        name = f"1_{page.split('/')[0]}.tif" + ("f" if page.endswith("sat") else "")
        site.files[f"/{page}/{name}"] = tiff(seed)
        links = f'<a href="http://old.example/~v/{page}/{name}">x</a><A HREF="../">up</A><a name="n">n</a>'
        site.files[f"/{page}/index.html"] = f"<html><body>{links}{links}<a href='readme.txt'>".encode()
    return site


def fetch(site, root: Path, **more: object) -> Fetched:
    return fetch_masa(root, mirror=site.url, timeouts=QUICK, **more)  # type: ignore[arg-type]


def test_the_site_is_fetched_into_the_published_layout(mirror, tmp_path: Path) -> None:
    listed, files = [], []
    assert fetch(mirror, tmp_path, on_listed=listed.append, on_file=files.append) == Fetched(new=6, kept=0)
    assert (listed, len(files)) == ([6], 6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checksums.json", *sorted(MASA_PAGES.values())]
    assert len(list(Masa(tmp_path).areas(Grid(2, 2)))) == 3
    assert len(json.loads((tmp_path / "checksums.json").read_text())) == 6


def test_a_second_fetch_downloads_nothing(mirror, tmp_path: Path) -> None:
    fetch(mirror, tmp_path)
    mirror.asked.clear()
    assert fetch(mirror, tmp_path) == Fetched(new=0, kept=6)
    assert all(path.endswith("index.html") for path, _ in mirror.asked)


def test_a_file_damaged_on_the_disk_is_fetched_again(mirror, tmp_path: Path) -> None:
    fetch(mirror, tmp_path)
    (tmp_path / "train" / "1_train.tiff").write_bytes(b"damaged")
    assert fetch(mirror, tmp_path) == Fetched(new=1, kept=5)
    assert (tmp_path / "train" / "1_train.tiff").read_bytes() == mirror.files[TILE]


def test_other_bytes_than_the_first_time_are_refused(mirror, tmp_path: Path) -> None:
    fetch(mirror, tmp_path)
    (tmp_path / "train" / "1_train.tiff").unlink()
    mirror.files[TILE] = tiff(99)
    with pytest.raises(AirlocError, match=r"not the file that was first fetched.*checksums\.json"):
        fetch(mirror, tmp_path)
    assert list((tmp_path / "train").iterdir()) == []


def test_wrong_bytes_are_refused_the_first_time_too(mirror, tmp_path: Path) -> None:
    mirror.faults[TILE] = ["wrong bytes"]
    with pytest.raises(AirlocError, match=r"sent something else than expected"):
        fetch(mirror, tmp_path)
    assert list((tmp_path / "train").iterdir()) == []
    assert not (tmp_path / "checksums.json").exists()


def test_an_interrupted_fetch_goes_on(mirror, tmp_path: Path) -> None:
    def interrupt(name: str) -> None:
        if name.startswith("val/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(mirror, tmp_path, on_file=interrupt)
    assert fetch(mirror, tmp_path) == Fetched(new=3, kept=3)


def test_files_put_there_by_hand_are_kept_and_get_no_checksum(mirror, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1_train.tiff").write_bytes(tiff(7))
    assert fetch(mirror, tmp_path) == Fetched(new=5, kept=1)
    assert "train/1_train.tiff" not in json.loads((tmp_path / "checksums.json").read_text())


def test_half_a_file_put_there_by_hand_is_replaced(mirror, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1_train.tiff").write_bytes(tiff(7)[:5000])
    assert fetch(mirror, tmp_path) == Fetched(new=6, kept=0)


def test_links_cannot_lead_out_of_the_folder(site) -> None:
    site.files["/index.html"] = b"<a href='../../%2e%2e%2Fetc%2Fa%20b.tif'><a href='/x/c.png?q=1'><a href='d.exe'>"
    assert list_links(site.url + "/index.html", QUICK) == ["a b.tif", "c.png"]


def test_a_page_without_pictures_is_refused(site) -> None:
    site.files["/index.html"] = b"<html>moved</html>"
    with pytest.raises(AirlocError, match="lists no pictures"):
        list_links(site.url + "/index.html", QUICK)


@pytest.mark.parametrize("text", ["{", "[1]", "7"])
def test_broken_checksums_are_refused(mirror, tmp_path: Path, text: str) -> None:
    (tmp_path / "checksums.json").write_text(text)
    with pytest.raises(AirlocError, match=r"Cannot read .*checksums\.json"):
        fetch(mirror, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(mirror) -> None:
    with pytest.raises(AirlocError, match="Cannot write /proc/masa"):
        fetch(mirror, Path("/proc/masa"))


@pytest.mark.parametrize(
    ("dataset", "words"),
    [("dubai", ("humansintheloop.org", "CC0", "Tile 1/images")), ("xbd", ("xview2.org", "images"))],
)
def test_datasets_to_be_asked_for_come_with_address_and_layout(dataset: str, words: tuple[str, ...]) -> None:
    said = str(fetch_by_hand(dataset, Path("/data") / dataset))
    assert all(word in said for word in (*words, f"/data/{dataset}"))
