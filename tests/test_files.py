import errno
import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from airloc.drawing.sheet import save_gif
from airloc.errors import AirlocError
from airloc.files import check_writable, encode_png, replacing_together, save_png, write_atomically


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing(number: int):
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_text_is_written_in_utf8_with_its_line_ends_and_creates_folders(tmp_path):
    path = write_atomically(tmp_path / "a" / "b" / "file.txt", "é\r\nb\n")
    assert path.read_bytes() == "é\r\nb\n".encode()
    assert files(path.parent) == ["file.txt"]


@settings(max_examples=30)
@given(content=st.binary() | st.text(st.characters(codec=None)))
def test_any_content_is_written(tmp_path_factory, content):
    path = write_atomically(tmp_path_factory.getbasetemp() / "any.file", content)
    if isinstance(content, bytes):
        assert path.read_bytes() == content
    else:
        path.read_text(encoding="utf-8")


def test_a_new_file_is_as_readable_as_any_other(tmp_path):
    (tmp_path / "other").touch()
    path = write_atomically(tmp_path / "file", b"1")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_failure_keeps_the_old_file_leaves_nothing_behind_and_names_path_and_cure(
    tmp_path, monkeypatch, number, call
):
    path = tmp_path / "result.json"
    path.write_text("old")
    monkeypatch.setattr(os, call, failing(number))
    with pytest.raises(AirlocError, match=r"result\.json") as caught:
        write_atomically(path, "new")
    assert "space" in caught.value.cure if number == errno.ENOSPC else "folder" in caught.value.cure
    assert path.read_text() == "old"
    assert files(tmp_path) == ["result.json"]


def test_files_replace_others_together_or_not_at_all(tmp_path):
    out = tmp_path / "out"

    def write(content: str, *names: str) -> None:
        with replacing_together(out) as stage:
            for name in names:
                write_atomically(stage / name, content)

    write("old", "a")
    with pytest.raises(AirlocError, match="null"):
        write("new", "a", "no\0name")
    assert (files(out), (out / "a").read_text()) == (["a"], "old")
    (out / "b").mkdir()
    with pytest.raises(AirlocError, match="b"):
        write("new", "a", "b")
    assert (files(out), (out / "a").read_text()) == (["a", "b"], "old")
    write("new", "a", "c")
    assert (files(out), (out / "a").read_text()) == (["a", "b", "c"], "new")


def test_of_files_that_are_links_the_ones_behind_are_replaced_also_on_another_file_system(tmp_path, monkeypatch):
    out, disk = tmp_path / "out", tmp_path / "disk"
    rename = Path.replace

    def rename_on_one_disk(path: Path, to: Path) -> Path:
        if path.is_relative_to(disk) != Path(to).is_relative_to(disk):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(path, to)

    monkeypatch.setattr(Path, "replace", rename_on_one_disk)
    for folder in (out, disk):
        folder.mkdir()
    for name in ("b", "c/b"):
        (out / "b").unlink(missing_ok=True)
        (out / "b").symlink_to(disk / name)
        with replacing_together(out) as stage:
            for file in ("a", "b"):
                write_atomically(stage / file, name)
        assert ((out / "a").read_text(), (disk / name).read_text()) == (name, name)
        assert (out / "b").is_symlink()
    assert (files(out), files(disk), files(disk / "c")) == (["a", "b"], ["b", "c"], ["b"])


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", "new")
    assert files(tmp_path) == []


@pytest.mark.parametrize("write", [lambda path: write_atomically(path, b""), check_writable])
@pytest.mark.parametrize(
    "name", ["file/below", "file/far/below", "folder", "x" * 300, "nul\0", "/proc/none/file", "/sys/file"]
)
def test_paths_that_cannot_be_written_are_refused_by_name(tmp_path, name, write):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(AirlocError, match=re.escape(repr(name)[1:-1][-20:])):
        write(tmp_path / name)
    assert files(tmp_path) == ["file", "folder"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_device_is_written_to_directly():
    write_atomically("/dev/null", "gone")
    check_writable("/dev/null")
    assert not Path("/dev/null").is_file()


def test_checking_writes_nothing_and_keeps_what_is_there(tmp_path):
    (tmp_path / "old").write_text("old")
    check_writable(tmp_path / "old")
    check_writable(tmp_path / "new" / "file")
    assert (tmp_path / "old").read_text() == "old"
    assert files(tmp_path) == ["new", "old"]
    assert files(tmp_path / "new") == []


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (4, 5, 3), (4, 5, 4)])
def test_a_png_is_read_back_as_it_was(tmp_path, shape):
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    path = save_png(pixels, tmp_path / "p.png")
    assert np.array_equal(np.asarray(Image.open(path)), pixels.squeeze())


@pytest.mark.parametrize("pixels", [np.zeros((4, 5, 2), np.uint8), np.zeros((4, 5)), np.zeros((0, 5, 3), np.uint8)])
def test_arrays_that_are_not_images_are_refused(pixels):
    with pytest.raises(AirlocError):
        encode_png(pixels)


def test_an_animation_has_all_frames_and_lingers_on_the_last(tmp_path):
    frames = [np.full((8, 9, 3), value, dtype=np.uint8) for value in (0, 120, 255)]
    path = save_gif(frames, tmp_path / "a.gif", 100)
    times, values = [], []
    with Image.open(path) as gif:
        for index in range(gif.n_frames):
            gif.seek(index)
            times.append(gif.info["duration"])
            values.append(int(np.asarray(gif.convert("RGB"))[0, 0, 0]))
    assert times == [100, 100, 300]
    assert values == [0, 120, 255]


@pytest.mark.parametrize(
    ("shapes", "ms"), [([], 100), ([(8, 8, 3), (8, 9, 3)], 100), ([(8, 8, 3)], 5), ([(8, 8)], 100)]
)
def test_animations_that_cannot_be_written_are_refused(tmp_path, shapes, ms):
    with pytest.raises(AirlocError):
        save_gif([np.zeros(shape, np.uint8) for shape in shapes], tmp_path / "a.gif", ms)
    assert files(tmp_path) == []
