"""Files are downloaded from a server on loopback that breaks connections, sends wrong bytes, refuses and hangs."""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.download import Downloaded, Progress, Timeouts, fetch_file, list_links
from airloc.areas.masa import PAGES, Masa
from airloc.errors import AirlocError
from airloc.grid import Grid

QUICK = Timeouts(timeout=0.2, attempts=3, pause=0.01)
PATH = "/sat/a.tiff"


def tiff(seed: int, side: int = 200) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 200, (side, side, 3), dtype=np.uint8)).save(buffer, "TIFF")
    return buffer.getvalue()


CONTENT = tiff(0, 320)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def url(site) -> str:
    site.files[PATH] = CONTENT
    return site.url + PATH


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_complete_with_its_checksum(url: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    report = lambda done, total: seen.append((done, total))  # noqa: E731
    assert fetch_file(url, tmp_path / "deep" / "a.tiff", timeouts=QUICK, on_bytes=report) == SHA256
    assert (tmp_path / "deep" / "a.tiff").read_bytes() == CONTENT
    assert left_over(tmp_path / "deep") == ["a.tiff"]
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_broken_connection_is_resumed(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 100000", "break 50000"]
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256
    first, second, third = site.ranges(PATH)
    assert first == ""
    assert 90_000 < int(second[6:-1]) <= 100_000
    assert 130_000 < int(third[6:-1]) <= 150_000


def test_progress_renews_the_attempts(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 30000"] * 9
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256


def test_a_server_that_ignores_ranges_starts_over(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 100000", "ignore range"]
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256


def test_another_range_than_requested_is_discarded(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 100000", "other range"]
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256


@pytest.mark.parametrize("fault", ["500", "503", "429", "hang"])
def test_a_transient_error_is_retried(site, url: str, tmp_path: Path, fault: str) -> None:
    site.faults[PATH] = [fault, fault]
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256


@pytest.mark.parametrize("fault", ["500", "hang", "break 0"])
def test_a_lasting_error_is_reported_after_all_attempts(site, url: str, tmp_path: Path, fault: str) -> None:
    site.faults[PATH] = [fault] * 9
    with pytest.raises(AirlocError, match=r"a\.tiff.*3 attempts"):
        fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK)
    assert len(site.asked) == 3
    assert not (tmp_path / "a.tiff").exists()


@pytest.mark.parametrize("code", ["403", "404", "410"])
def test_a_refusal_is_not_retried(site, url: str, tmp_path: Path, code: str) -> None:
    site.faults[PATH] = [code] * 9
    with pytest.raises(AirlocError, match=rf"a\.tiff.*{code}"):
        fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK)
    assert len(site.asked) == 1
    assert left_over(tmp_path) == []


def test_a_page_in_place_of_a_file_is_refused(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["page"]
    with pytest.raises(AirlocError, match=r"a\.tiff"):
        fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK)
    assert left_over(tmp_path) == []


def test_wrong_bytes_are_deleted_and_the_old_file_stays(site, url: str, tmp_path: Path) -> None:
    (tmp_path / "a.tiff").write_bytes(b"old")
    site.faults[PATH] = ["wrong bytes"]
    with pytest.raises(AirlocError, match=rf"{SHA256}(.|\n)*checksums\.json"):
        fetch_file(url, tmp_path / "a.tiff", sha256=SHA256, timeouts=QUICK)
    assert left_over(tmp_path) == ["a.tiff"]
    assert (tmp_path / "a.tiff").read_bytes() == b"old"


@pytest.mark.parametrize("fault", ["wrong bytes", "no length"])
def test_content_that_is_no_image_is_deleted(site, url: str, tmp_path: Path, fault: str) -> None:
    site.faults[PATH] = [fault]
    with pytest.raises(AirlocError, match=r"a\.tiff.*unexpected content"):
        fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK)
    assert left_over(tmp_path) == []


def test_an_interrupted_download_is_resumed_by_the_next(site, url: str, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK, on_bytes=interrupt)
    assert left_over(tmp_path) == ["a.tiff.part"]
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256
    assert site.ranges(PATH)[-1].startswith("bytes=")
    assert left_over(tmp_path) == ["a.tiff"]


def test_a_complete_part_file_is_used(url: str, tmp_path: Path) -> None:
    (tmp_path / "a.tiff.part").write_bytes(CONTENT)
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256


def test_a_part_file_that_is_too_long_is_started_over(url: str, tmp_path: Path) -> None:
    (tmp_path / "a.tiff.part").write_bytes(CONTENT + b"more")
    assert fetch_file(url, tmp_path / "a.tiff", timeouts=QUICK) == SHA256


def test_a_folder_that_cannot_be_written_is_named(url: str) -> None:
    with pytest.raises(AirlocError, match="/proc/nowhere"):
        fetch_file(url, Path("/proc/nowhere/a.tiff"), timeouts=QUICK)


def test_an_address_without_a_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=r"http://127\.0\.0\.1:9/a.*refused"):
        fetch_file("http://127.0.0.1:9/a", tmp_path / "a", timeouts=QUICK)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://x/y", "nonsense"])
def test_only_web_addresses_are_read(tmp_path: Path, address: str) -> None:
    with pytest.raises(AirlocError, match="https://"):
        fetch_file(address, tmp_path / "a", timeouts=QUICK)


def test_a_page_that_breaks_off_is_read_again(site) -> None:
    site.files["/index.html"] = b"<a href='x.tif'>"
    site.faults["/index.html"] = ["break 3"]
    assert list_links(site.url + "/index.html", QUICK) == ["x.tif"]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        *(({"timeout": seconds}, "--timeout") for seconds in (0.0, -1.0, float("nan"), float("inf"))),
        *(({"pause": seconds}, "--pause") for seconds in (-1.0, float("nan"), float("inf"))),
        ({"attempts": 0}, "--attempts"),
    ],
)
def test_impossible_timeouts_are_refused(options: dict[str, float], option: str) -> None:
    with pytest.raises(AirlocError, match=option):
        Timeouts(**options)  # type: ignore[arg-type]


TILE = "/train/sat/1_train.tiff"


@pytest.fixture
def mirror(site):
    """The published site with one tile per folder; the addresses of its links are out of date."""
    for seed, page in enumerate(PAGES):
        name = f"1_{page.split('/')[0]}.tif" + ("f" if page.endswith("sat") else "")
        site.files[f"/{page}/{name}"] = tiff(seed)
        links = f'<a href="http://old.example/~v/{page}/{name}">x</a><A HREF="../">up</A><a name="n">n</a>'
        site.files[f"/{page}/index.html"] = f"<html><body>{links}{links}<a href='readme.txt'>".encode()
    return site


def fetch(site, root: Path, progress: Progress | None = None) -> Downloaded:
    return Masa(root).download(mirror=site.url, timeouts=QUICK, progress=progress)


def test_the_site_is_downloaded_into_the_published_layout(mirror, tmp_path: Path) -> None:
    listed: list[int] = []
    files: list[str] = []
    assert fetch(mirror, tmp_path, Progress(listed=listed.append, file=files.append)) == Downloaded(new=6, kept=0)
    assert (listed, len(files)) == ([6], 6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checksums.json", *sorted(PAGES.values())]
    assert len(list(Masa(tmp_path).areas(Grid(2, 2)))) == 3
    assert len(json.loads((tmp_path / "checksums.json").read_text())) == 6


def test_a_second_download_requests_only_the_pages(mirror, tmp_path: Path) -> None:
    fetch(mirror, tmp_path)
    mirror.asked.clear()
    assert fetch(mirror, tmp_path) == Downloaded(new=0, kept=6)
    assert all(path.endswith("index.html") for path, _ in mirror.asked)


def test_a_file_damaged_on_the_disk_is_downloaded_again(mirror, tmp_path: Path) -> None:
    fetch(mirror, tmp_path)
    (tmp_path / "train" / "1_train.tiff").write_bytes(b"damaged")
    assert fetch(mirror, tmp_path) == Downloaded(new=1, kept=5)
    assert (tmp_path / "train" / "1_train.tiff").read_bytes() == mirror.files[TILE]


def test_bytes_that_differ_from_the_pinned_checksum_are_refused(mirror, tmp_path: Path) -> None:
    fetch(mirror, tmp_path)
    (tmp_path / "train" / "1_train.tiff").unlink()
    mirror.files[TILE] = tiff(99)
    with pytest.raises(AirlocError, match=r"1_train\.tiff(.|\n)*checksums\.json"):
        fetch(mirror, tmp_path)
    assert list((tmp_path / "train").iterdir()) == []


def test_wrong_bytes_are_refused_the_first_time_too(mirror, tmp_path: Path) -> None:
    mirror.faults[TILE] = ["wrong bytes"]
    with pytest.raises(AirlocError, match=r"1_train\.tiff"):
        fetch(mirror, tmp_path)
    assert list((tmp_path / "train").iterdir()) == []
    assert not (tmp_path / "checksums.json").exists()


def test_an_interrupted_download_continues_with_the_next_file(mirror, tmp_path: Path) -> None:
    def interrupt(name: str) -> None:
        if name.startswith("val/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(mirror, tmp_path, Progress(file=interrupt))
    assert fetch(mirror, tmp_path) == Downloaded(new=3, kept=3)


def test_files_from_elsewhere_are_kept_without_a_checksum(mirror, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1_train.tiff").write_bytes(tiff(7))
    assert fetch(mirror, tmp_path) == Downloaded(new=5, kept=1)
    assert "train/1_train.tiff" not in json.loads((tmp_path / "checksums.json").read_text())


def test_half_a_file_from_elsewhere_is_replaced(mirror, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1_train.tiff").write_bytes(tiff(7)[:5000])
    assert fetch(mirror, tmp_path) == Downloaded(new=6, kept=0)


def test_links_cannot_lead_out_of_the_folder(site) -> None:
    site.files["/index.html"] = b"<a href='../../%2e%2e%2Fetc%2Fa%20b.tif'><a href='/x/c.png?q=1'><a href='d.exe'>"
    assert list_links(site.url + "/index.html", QUICK) == ["a b.tif", "c.png"]


def test_a_page_without_images_is_refused(site) -> None:
    site.files["/index.html"] = b"<html>moved</html>"
    with pytest.raises(AirlocError, match=r"index\.html"):
        list_links(site.url + "/index.html", QUICK)


@pytest.mark.parametrize("text", ["{", "[1]", "7"])
def test_broken_checksums_are_refused(mirror, tmp_path: Path, text: str) -> None:
    (tmp_path / "checksums.json").write_text(text)
    with pytest.raises(AirlocError, match=r"checksums\.json"):
        fetch(mirror, tmp_path)


def test_a_dataset_folder_that_cannot_be_written_is_named(mirror) -> None:
    with pytest.raises(AirlocError, match="/proc/masa"):
        fetch(mirror, Path("/proc/masa"))
