"""`airloc data` lists, downloads, prepares and shows datasets; bad input is an error that names the problem."""

import io
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas import DATASETS
from airloc.areas.masa import PAGES
from airloc.areas.prepared import Prepared, open_prepared
from airloc.cli.data import main
from airloc.errors import AirlocError
from airloc.grid import Grid


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The published site with one tile per folder, served from loopback."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for page in PAGES:
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
    assert "6 files" in capsys.readouterr().out
    main(["list"])
    listed = capsys.readouterr().out
    assert "-829 train, -178 val, -178 test" in listed
    assert "airloc data fetch xbd" in listed
    main(["prepare", "masa", "--grid", "5x5", "--out", str(tmp_path / "data" / "cache")])
    assert "3 areas for a grid of 5x5, 3 with masks" in capsys.readouterr().out
    main(["show", "prepared", "--path", str(tmp_path / "data" / "cache"), "--out", str(tmp_path / "sheet.png")])
    assert "3 areas on a grid of 5x5" in capsys.readouterr().out
    assert Image.open(tmp_path / "sheet.png").format == "PNG"


def test_procedural_areas_are_shown_without_any_data(tmp_path: Path) -> None:
    main(["show", "synthetic", "--count", "2", "--out", str(tmp_path / "deep" / "sheet.png")])
    assert np.asarray(Image.open(tmp_path / "deep" / "sheet.png")).std() > 10


def test_a_folder_is_shown_up_to_the_limit(areas_folder: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "sheet.png"
    main(["show", "--out", str(out), "--limit", "3", "--plain", "folder", "--path", str(areas_folder)])
    assert "3 areas" in capsys.readouterr().out


def test_prepared_areas_record_their_dataset(areas_folder: Path, tmp_path: Path) -> None:
    main(["prepare", "folder", "--path", str(areas_folder), "--only", "c d.png", "--out", str(tmp_path / "cache")])
    opened = open_prepared(tmp_path / "cache")
    assert (opened.source["name"], opened.source["path"], len(opened)) == ("folder", str(areas_folder), 1)
    assert next(iter(Prepared(tmp_path / "cache").areas(Grid()))).name == "c d.png"


def test_prepared_areas_are_overwritten_only_on_request(areas_folder: Path, tmp_path: Path) -> None:
    command = ["prepare", "folder", "--path", str(areas_folder), "--out", str(tmp_path / "cache")]
    main(command)
    with pytest.raises(AirlocError, match="--overwrite"):
        main(command)
    main([*command, "--overwrite"])


@pytest.mark.parametrize(("dataset", "address"), [("dubai", "humansintheloop.org"), ("xbd", "xview2.org")])
def test_datasets_that_need_a_form_name_the_address(
    dataset: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    with pytest.raises(AirlocError, match=address):
        main(["fetch", dataset])


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["list", "--root", "/nowhere"], "/nowhere"),
        (["list"], "AIRLOC_DATA"),
        (["fetch", "masa"], "AIRLOC_DATA"),
        (["fetch", "masa", "--timeout", "nan"], "--timeout"),
        (["fetch", "masa", "--timeout", "-1"], "--timeout"),
        (["fetch", "masa", "--pause", "nan"], "--pause"),
        (["fetch", "masa", "--attempts", "0"], "--attempts"),
        (["show", "folder", "--path", "/nowhere"], "/nowhere"),
        (["show", "masa", "--root", "/nowhere"], "airloc data fetch masa"),
        (["show", "synthetic", "--grid", "5"], "'5'"),
        (["show", "synthetic", "--limit", "0"], "--limit"),
        (["show", "synthetic", "--columns", "0"], "--columns"),
        (["show", "synthetic", "--tile", "1"], "--tile"),
        (["show", "synthetic", "--tile", "1000000"], "--tile"),
        (["show", "synthetic", "--count", "1000000", "--limit", "1000000"], "--limit"),
        (["show", "synthetic", "--split", "val"], "--split"),
        (["show", "folder", "--path", "/tmp", "--cell-metres", "nan"], "--cell-metres"),
        (["show", "prepared", "--path", "/nowhere"], "/nowhere"),
        (["prepare", "synthetic", "--count", "1", "--out", "/proc/cache"], "/proc/cache"),
        (["show", "synthetic", "--count", "1", "--out", "/proc/no/sheet.png"], "/proc/no/sheet.png"),
    ],
)
def test_bad_input_is_an_error_that_names_it(arguments: list[str], fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    with pytest.raises(AirlocError) as error:
        main(arguments)
    assert fact in str(error.value)


@pytest.mark.parametrize("arguments", [["bogus"], ["show", "bogus"], ["fetch", "bogus"], ["prepare", "synthetic"]])
def test_unknown_words_exit_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_an_interrupted_prepare_leaves_nothing(
    areas_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airloc.areas.dataset.fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        main(["prepare", "folder", "--path", str(areas_folder), "--out", str(tmp_path / "out" / "cache")])
    assert list((tmp_path / "out").iterdir()) == []


def test_help_names_every_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", "--help"])
    said = capsys.readouterr().out
    assert [name for name in DATASETS if name not in said] == []


def test_a_sheet_that_is_too_large_is_refused_before_anything_is_read_or_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("airloc.areas.synthetic.source.generate", lambda *args: pytest.fail("an area was rendered"))
    with pytest.raises(AirlocError, match="1000000 x 1000000 px"):
        main(["show", "synthetic", "--tile", "1000000", "--out", str(tmp_path / "deep" / "sheet.png")])
    assert list(tmp_path.iterdir()) == []


def test_photos_are_a_sheet_of_one_cell_of_each_area_in_every_strength(areas_folder: Path, tmp_path: Path) -> None:
    folder = ["folder", "--path", str(areas_folder)]
    main(["photos", *folder, "--tile", "64", "--out", str(tmp_path / "all.png")])
    main(["photos", *folder, "--tile", "64", "--limit", "2", "--strengths", "1", "--out", str(tmp_path / "few.png")])
    with Image.open(tmp_path / "all.png") as every, Image.open(tmp_path / "few.png") as few:
        assert every.width > 7 * 64
        assert every.height > 4 * 64
        assert (few.width < 4 * 80, few.height < 3 * 80) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [(["--strengths", "-1"], "to 5"), (["--strengths", "nan"], "to 5"), (["--limit", "0"], "--limit")],
)
def test_photos_that_cannot_be_taken_are_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], fact: str
) -> None:
    monkeypatch.setattr("airloc.areas.synthetic.source.generate", lambda *args: pytest.fail("an area was rendered"))
    with pytest.raises(AirlocError, match=fact):
        main(["photos", "synthetic", *arguments, "--out", str(tmp_path / "deep" / "sheet.png")])
    assert list(tmp_path.iterdir()) == []


def test_areas_are_selected_by_name_and_split(areas_folder: Path, tmp_path: Path) -> None:
    (areas_folder / "windows.csv").write_text("image,split\na.png,val\nb.png,val\ne.png,train\n")
    options = ["--split", "val", "--except", "b*"]
    main(["prepare", "folder", "--path", str(areas_folder), *options, "--out", str(tmp_path / "cache")])
    assert [entry["name"] for entry in open_prepared(tmp_path / "cache").entries] == ["a.png"]
