"""`airloc data` lists, fetches, prepares and shows, and says clearly why it cannot."""

import io
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.download import MASA_PAGES
from airloc.areas.prepared import Prepared, open_prepared
from airloc.areas.registry import SOURCES
from airloc.cli.data import main
from airloc.errors import AirlocError
from airloc.grid import Grid


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The published site with one tile a folder, served from loopback."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for page in MASA_PAGES:
        folder = tmp_path / "site" / page
        folder.mkdir(parents=True)
        name = f"{page.split('/')[0]}_15.tif"
        (folder / "index.html").write_text(f"<a href='{name}'>{name}</a>")
        buffer = io.BytesIO()
        Image.new("RGB", (500, 500), "grey").save(buffer, "TIFF")
        (folder / name).write_bytes(buffer.getvalue())
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "site")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_fetch_list_prepare_and_show_work_in_a_row(
    mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRLOC_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "160")
    main(["fetch", "masa", "--mirror", mirror])
    assert "6 files fetched, 0 there already" in capsys.readouterr().out
    main(["list"])
    listed = capsys.readouterr().out
    assert "-829 train, -178 val, -178 test" in listed
    assert "run `airloc data fetch xbd`" in listed
    main(["prepare", "masa", "--grid", "5x5", "--out", str(tmp_path / "data" / "cache")])
    assert "3 areas for a grid of 5x5, 3 with masks" in capsys.readouterr().out
    main(["show", "prepared", "--path", str(tmp_path / "data" / "cache"), "--out", str(tmp_path / "sheet.png")])
    assert "3 areas on a grid of 5x5" in capsys.readouterr().out
    assert Image.open(tmp_path / "sheet.png").format == "PNG"


def test_the_built_in_world_is_shown_without_any_data(tmp_path: Path) -> None:
    main(["show", "synthetic", "--count", "2", "--out", str(tmp_path / "deep" / "sheet.png")])
    assert np.asarray(Image.open(tmp_path / "deep" / "sheet.png")).std() > 10


def test_a_folder_is_shown_up_to_the_limit(areas_folder: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "sheet.png"
    main(["show", "--out", str(out), "--limit", "3", "--plain", "folder", "--path", str(areas_folder)])
    assert "3 areas" in capsys.readouterr().out


def test_prepared_areas_record_their_source(areas_folder: Path, tmp_path: Path) -> None:
    main(["prepare", "folder", "--path", str(areas_folder), "--only", "c d.png", "--out", str(tmp_path / "cache")])
    opened = open_prepared(tmp_path / "cache")
    assert (opened.source["name"], opened.source["path"], len(opened)) == ("folder", str(areas_folder), 1)
    assert next(iter(Prepared(tmp_path / "cache").areas(Grid()))).name == "c d.png"


def test_prepared_areas_are_not_overwritten_unasked(areas_folder: Path, tmp_path: Path) -> None:
    command = ["prepare", "folder", "--path", str(areas_folder), "--out", str(tmp_path / "cache")]
    main(command)
    with pytest.raises(AirlocError, match="--overwrite"):
        main(command)
    main([*command, "--overwrite"])


@pytest.mark.parametrize(("dataset", "address"), [("dubai", "humansintheloop.org"), ("xbd", "xview2.org")])
def test_datasets_to_be_asked_for_name_the_address(dataset: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    with pytest.raises(AirlocError, match=address):
        main(["fetch", dataset])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["list", "--root", "/nowhere"], "There is no folder /nowhere"),
        (["list"], "AIRLOC_DATA is not set"),
        (["fetch", "masa"], "AIRLOC_DATA is not set"),
        (["show", "folder", "--path", "/nowhere"], "There is no folder /nowhere"),
        (["show", "masa", "--root", "/nowhere"], "There is no folder /nowhere"),
        (["show", "synthetic", "--grid", "5"], "'5' is not a grid"),
        (["show", "synthetic", "--limit", "0"], "There is no area to show"),
        (["show", "prepared", "--path", "/nowhere"], "no prepared areas in /nowhere"),
        (["prepare", "synthetic", "--count", "1", "--out", "/proc/cache"], "Cannot write prepared areas"),
        (["show", "synthetic", "--count", "1", "--out", "/proc/no/sheet.png"], "Cannot write '/proc/no/sheet.png'"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    with pytest.raises(AirlocError) as error:
        main(arguments)
    assert problem in str(error.value)


@pytest.mark.parametrize("arguments", [["bogus"], ["show", "bogus"], ["fetch", "bogus"], ["prepare", "synthetic"]])
def test_bad_words_exit_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_an_interrupted_prepare_leaves_nothing(
    areas_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airloc.areas.folder.fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        main(["prepare", "folder", "--path", str(areas_folder), "--out", str(tmp_path / "out" / "cache")])
    assert list((tmp_path / "out").iterdir()) == []


def test_help_names_every_source(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", "--help"])
    said = capsys.readouterr().out
    assert [name for name in SOURCES if name not in said] == []
