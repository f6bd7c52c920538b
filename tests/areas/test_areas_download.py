"""One file over HTTP, from a server on loopback that breaks off, lies, refuses and falls silent."""

import hashlib
from pathlib import Path

import pytest

from airloc.areas.download import Timeouts, download, get_text
from airloc.errors import AirlocError

CONTENT = bytes(range(256)) * 1200
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = Timeouts(timeout=0.2, attempts=3, pause=0.01)
PATH = "/sat/a.tiff"


def anything(path: Path) -> None:
    """Accept any content."""


def only_content(path: Path) -> None:
    if path.read_bytes() != CONTENT:
        raise AirlocError(f"{path} is not the content", "Mend it")


@pytest.fixture
def url(site) -> str:
    site.files[PATH] = CONTENT
    return site.url + PATH


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_whole_with_its_checksum(url: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    report = lambda done, total: seen.append((done, total))  # noqa: E731
    assert download(url, tmp_path / "deep" / "a.tiff", check=anything, timeouts=QUICK, on_bytes=report) == SHA256
    assert (tmp_path / "deep" / "a.tiff").read_bytes() == CONTENT
    assert left_over(tmp_path / "deep") == ["a.tiff"]
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_broken_connection_goes_on_where_it_broke(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 100000", "break 50000"]
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256
    assert site.ranges(PATH) == ["", "bytes=100000-", "bytes=150000-"]


def test_progress_renews_the_patience(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 30000"] * 9
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256


def test_a_server_that_ignores_ranges_starts_over(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 100000", "ignore range"]
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256


def test_another_range_than_asked_for_is_not_taken(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["break 100000", "other range"]
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256


@pytest.mark.parametrize("fault", ["500", "503", "429", "hang"])
def test_passing_trouble_is_tried_again(site, url: str, tmp_path: Path, fault: str) -> None:
    site.faults[PATH] = [fault, fault]
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256


@pytest.mark.parametrize("fault", ["500", "hang", "break 0"])
def test_lasting_trouble_ends_in_a_sentence(site, url: str, tmp_path: Path, fault: str) -> None:
    site.faults[PATH] = [fault] * 9
    with pytest.raises(AirlocError, match=r"Cannot fetch .*a\.tiff: .*tried 3 times.*goes on where it broke off"):
        download(url, tmp_path / "a.tiff", check=anything, timeouts=QUICK)
    assert len(site.asked) == 3
    assert not (tmp_path / "a.tiff").exists()


@pytest.mark.parametrize("code", ["403", "404", "410"])
def test_a_refusal_is_taken_at_once(site, url: str, tmp_path: Path, code: str) -> None:
    site.faults[PATH] = [code] * 9
    with pytest.raises(AirlocError, match=rf"The server refused .*a\.tiff \({code}"):
        download(url, tmp_path / "a.tiff", check=anything, timeouts=QUICK)
    assert len(site.asked) == 1
    assert left_over(tmp_path) == []


def test_a_page_in_place_of_a_file_is_refused(site, url: str, tmp_path: Path) -> None:
    site.faults[PATH] = ["page"]
    with pytest.raises(AirlocError, match="is a web page, not a file"):
        download(url, tmp_path / "a.tiff", check=anything, timeouts=QUICK)
    assert left_over(tmp_path) == []


def test_wrong_bytes_are_deleted_and_the_old_file_stays(site, url: str, tmp_path: Path) -> None:
    (tmp_path / "a.tiff").write_bytes(b"old")
    site.faults[PATH] = ["wrong bytes"]
    with pytest.raises(AirlocError, match=rf"recorded is {SHA256}; the file .*a\.tiff from before was kept"):
        download(url, tmp_path / "a.tiff", check=anything, sha256=SHA256, timeouts=QUICK)
    assert left_over(tmp_path) == ["a.tiff"]
    assert (tmp_path / "a.tiff").read_bytes() == b"old"


@pytest.mark.parametrize("fault", ["wrong bytes", "no length"])
def test_content_that_fails_its_check_is_deleted(site, url: str, tmp_path: Path, fault: str) -> None:
    site.faults[PATH] = [fault]
    with pytest.raises(AirlocError, match=r"sent something else than expected .*is not the content.*nothing was kept"):
        download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK)
    assert left_over(tmp_path) == []


def test_an_interrupted_download_is_resumed_by_the_next(site, url: str, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK, on_bytes=interrupt)
    assert left_over(tmp_path) == ["a.tiff.part"]
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256
    assert site.ranges(PATH)[-1].startswith("bytes=")
    assert left_over(tmp_path) == ["a.tiff"]


def test_a_part_that_is_whole_already_is_taken(url: str, tmp_path: Path) -> None:
    (tmp_path / "a.tiff.part").write_bytes(CONTENT)
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256


def test_a_part_that_is_too_long_is_started_over(url: str, tmp_path: Path) -> None:
    (tmp_path / "a.tiff.part").write_bytes(CONTENT + b"more")
    assert download(url, tmp_path / "a.tiff", check=only_content, timeouts=QUICK) == SHA256


def test_a_folder_that_cannot_be_written_is_named(url: str) -> None:
    with pytest.raises(AirlocError, match="Cannot write /proc/nowhere"):
        download(url, Path("/proc/nowhere/a.tiff"), check=anything, timeouts=QUICK)


def test_nobody_at_the_address_ends_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=r"Cannot fetch http://127.0.0.1:9/a: .*refused"):
        download("http://127.0.0.1:9/a", tmp_path / "a", check=anything, timeouts=QUICK)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://x/y", "nonsense"])
def test_only_the_web_is_read(tmp_path: Path, address: str) -> None:
    with pytest.raises(AirlocError, match="is no web address"):
        download(address, tmp_path / "a", check=anything, timeouts=QUICK)


def test_a_page_that_breaks_off_is_read_again(site) -> None:
    site.files["/index.html"] = b"<a href='x'>"
    site.faults["/index.html"] = ["break 3"]
    assert get_text(site.url + "/index.html", QUICK) == "<a href='x'>"
