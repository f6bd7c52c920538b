import errno
import hashlib
import itertools
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from airloc import __version__
from airloc.agents.checkpoint import Checkpoint, load_checkpoint, load_into, save_checkpoint
from airloc.errors import AirlocError

pytestmark = pytest.mark.long

FILES = ["card.md", "config.json", "weights.safetensors"]

STAMP = ["format", "airloc", "weights_sha256"]


def save_again_and_again(folder: Path, saved: Connection) -> None:
    """Save checkpoint after checkpoint, and send the number of each."""
    for number in itertools.count(1):
        tensors = {"a": torch.full((50_000,), float(number)), "b": torch.tensor(number)}
        save_checkpoint(folder, tensors, {"number": number}, str(number))
        saved.send(number)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))


def save(folder: Path, number: int = 1) -> None:
    save_checkpoint(folder, {"a": torch.full((40,), float(number))}, {"number": number}, f"# Card {number}\r\né")


def assert_is(folder: Path, number: int) -> None:
    checkpoint = load_checkpoint(folder)
    assert checkpoint.config["number"] == number
    assert checkpoint.card == f"# Card {number}\r\né"
    assert torch.equal(checkpoint.tensors["a"], torch.full((40,), float(number)))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@settings(max_examples=40, deadline=None)
@given(
    tensors=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(lambda name: name != "__metadata__"),
        arrays.arrays(
            st.sampled_from([np.float32, np.float64, np.float16, np.int64, np.uint8, np.bool_]),
            arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ).filter(lambda array: np.isfinite(array).all()),
        max_size=4,
    ),
    config=st.dictionaries(
        st.text(max_size=5), st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    ),
    card=st.text(st.characters(codec="utf-8")),
)
def test_whatever_is_saved_comes_back_bit_by_bit(tmp_path_factory, tensors, config, card):
    folder = tmp_path_factory.getbasetemp() / "any checkpoint"
    given_tensors = {name: torch.from_numpy(np.array(array)) for name, array in tensors.items()}
    save_checkpoint(folder, given_tensors, config, card)
    loaded = load_checkpoint(folder)
    assert loaded.card == card
    assert {**config, **{key: loaded.config[key] for key in STAMP}} == loaded.config
    assert loaded.tensors.keys() == tensors.keys()
    for name, tensor in given_tensors.items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert loaded.tensors[name].numpy().tobytes() == tensor.numpy().tobytes()


def test_the_folder_holds_three_files_and_the_config_says_format_version_and_hash(tmp_path):
    save(tmp_path / "deep" / "best")
    assert names(tmp_path / "deep" / "best") == FILES
    assert names(tmp_path / "deep") == ["best"]
    config = json.loads((tmp_path / "deep" / "best" / "config.json").read_text())
    assert (config["format"], config["airloc"], len(config["weights_sha256"])) == (1, __version__, 64)


def test_saving_what_was_loaded_gives_the_same_files(tmp_path):
    save(tmp_path / "a")
    first = load_checkpoint(tmp_path / "a")
    assert isinstance(first, Checkpoint)
    save_checkpoint(tmp_path / "b", first.tensors, first.config, first.card)
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_tensors_that_share_memory_or_are_parameters_or_strided_can_be_saved(tmp_path):
    base = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4))
    save_checkpoint(tmp_path / "x", {"a": base, "b": base.T, "c": base[:, 1]}, {}, "")
    tensors = load_checkpoint(tmp_path / "x").tensors
    assert torch.equal(tensors["b"], base.T)
    assert torch.equal(tensors["c"], base[:, 1])


def test_a_checkpoint_behind_a_link_is_replaced_where_it_lies(tmp_path):
    save(tmp_path / "real", 1)
    (tmp_path / "link").symlink_to("real")
    save(tmp_path / "link", 2)
    assert (tmp_path / "link").is_symlink()
    assert_is(tmp_path / "real", 2)


@pytest.mark.parametrize("call", ["fsync", "replace", "rename"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("which", range(5))
def test_wherever_saving_fails_the_previous_checkpoint_survives_and_nothing_is_left_behind(
    tmp_path, monkeypatch, call, error, which
):
    save(tmp_path / "best", 1)
    real, calls = getattr(os, call), iter(range(100))

    def fail_once(*args, **kwargs):
        if next(calls) == which:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(os, call, fail_once)
    message = ""
    try:
        save(tmp_path / "best", 2)
    except (AirlocError, KeyboardInterrupt) as caught:
        message = str(caught)
    found = load_checkpoint(tmp_path / "best").config["number"]
    assert_is(tmp_path / "best", found)
    if isinstance(error, OSError):
        assert found == (1 if "best" in message else 2)
        assert (found == 2) == (message == "")
    assert names(tmp_path) == ["best"]


def test_a_disk_that_is_really_full_keeps_the_previous_checkpoint(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting needs rights")
    try:
        save(disk / "best", 1)
        with pytest.raises(AirlocError, match=r"[Nn]o space left.*best"):
            save_checkpoint(disk / "best", {"a": torch.zeros(100_000)}, {"number": 2}, "")
        assert_is(disk / "best", 1)
        assert names(disk) == ["best"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_killed_at_any_moment_while_saving_leaves_the_old_or_the_new_checkpoint(tmp_path):
    folder = tmp_path / "best"
    chance = np.random.default_rng()
    for _ in range(4):
        received, sent = multiprocessing.Pipe(duplex=False)
        # A fork starts at once, where a new process would import PyTorch again.
        writer = multiprocessing.get_context("fork").Process(target=save_again_and_again, args=(folder, sent))
        writer.start()
        sent.close()
        done = received.recv()
        time.sleep(chance.uniform(0, 0.05))
        writer.kill()
        writer.join()
        with suppress(EOFError):
            while True:
                done = received.recv()
        checkpoint = load_checkpoint(folder)
        number = checkpoint.config["number"]
        assert number >= done
        assert checkpoint.card == str(number)
        assert torch.equal(checkpoint.tensors["a"], torch.full((50_000,), float(number)))
    save(folder, 7)
    assert names(tmp_path) == ["best"]


def test_killed_between_the_two_renames_the_old_checkpoint_is_read_and_then_replaced(tmp_path):
    save(tmp_path / "best", 1)
    (tmp_path / "best").rename(tmp_path / ".airloc-best.previous")
    (tmp_path / ".airloc-best.new").mkdir()
    (tmp_path / ".airloc-best.new" / ".airloc-0.tmp").write_text("half")
    assert_is(tmp_path / "best", 1)
    save(tmp_path / "best", 2)
    assert_is(tmp_path / "best", 2)
    assert names(tmp_path) == ["best"]


def test_a_reader_never_sees_a_mixture_while_a_writer_replaces_the_checkpoint(tmp_path):
    save(tmp_path / "best", 0)
    ended = threading.Event()

    def write() -> None:
        for number in range(1, 60):
            save(tmp_path / "best", number)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    last = 0
    while not ended.is_set():
        seen = load_checkpoint(tmp_path / "best").config["number"]
        assert seen >= last
        assert_is_whole(tmp_path / "best")
        last = seen
    writer.join()
    assert_is(tmp_path / "best", 59)


def assert_is_whole(folder: Path) -> None:
    checkpoint = load_checkpoint(folder)
    number = checkpoint.config["number"]
    assert checkpoint.card == f"# Card {number}\r\né"
    assert (checkpoint.tensors["a"] == number).all()


def test_a_folder_of_other_things_is_never_replaced(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    with pytest.raises(AirlocError, match=r"thesis\.tex"):
        save(tmp_path / "home")
    assert names(tmp_path / "home") == ["thesis.tex"]
    with pytest.raises(AirlocError, match="file"):
        save(tmp_path / "home" / "thesis.tex")


def test_weights_that_are_not_finite_do_not_replace_good_ones(tmp_path):
    save(tmp_path / "best", 1)
    with pytest.raises(AirlocError, match="'b'"):
        save_checkpoint(tmp_path / "best", {"a": torch.zeros(1), "b": torch.tensor(float("nan"))}, {}, "")
    assert_is(tmp_path / "best", 1)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path, name):
    save(tmp_path / "best")
    (tmp_path / "best" / name).unlink()
    with pytest.raises(AirlocError, match=rf"best.*{re.escape(name)}"):
        load_checkpoint(tmp_path / "best")


def test_a_missing_folder_or_a_file_in_its_place_is_named(tmp_path):
    save(tmp_path / "best")
    for path in (tmp_path / "none", tmp_path / "best" / "weights.safetensors"):
        with pytest.raises(AirlocError, match=re.escape(str(path))):
            load_checkpoint(path)


def damage(folder: Path, name: str, change) -> None:
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("weights.safetensors", lambda data: data[:-1]),
        ("weights.safetensors", lambda data: b""),
        ("weights.safetensors", lambda data: data[:-1] + b"\x01"),
        ("config.json", lambda data: data[:-9]),
        ("config.json", lambda data: b"\xff"),
        ("config.json", lambda data: b"[" * 100_000),
        ("config.json", lambda data: b"[1]"),
        ("config.json", lambda data: b"{}"),
        ("config.json", lambda data: data.replace(b'"format": 1', b'"format": 2')),
        ("config.json", lambda data: b'{"format": 1}'),
        ("card.md", lambda data: b"\xff\xfe"),
    ],
)
def test_a_damaged_file_is_named_with_a_cure(tmp_path, name, change):
    save(tmp_path / "best")
    damage(tmp_path / "best", name, change)
    with pytest.raises(AirlocError, match=re.escape(name)) as caught:
        load_checkpoint(tmp_path / "best")
    assert caught.value.cure


def test_weights_with_the_right_hash_that_are_no_tensors_run_no_code(tmp_path):
    class Exploit:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "ran",)

    save(tmp_path / "best")
    content = pickle.dumps(Exploit())
    damage(tmp_path / "best", "weights.safetensors", lambda data: content)
    config = {"format": 1, "weights_sha256": hashlib.sha256(content).hexdigest()}
    damage(tmp_path / "best", "config.json", lambda data: json.dumps(config).encode())
    with pytest.raises(AirlocError, match="weights"):
        load_checkpoint(tmp_path / "best")
    assert not (tmp_path / "ran").exists()


def test_a_network_is_given_all_its_weights(tmp_path):
    source, target = network(), network()
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.add_(1.0)
    save_checkpoint(tmp_path / "x", source.state_dict(), {}, "")
    load_into(target, load_checkpoint(tmp_path / "x").tensors, tmp_path / "x")
    for name, tensor in source.state_dict().items():
        assert torch.equal(target.state_dict()[name], tensor)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("0.bias"), "'0.bias'"),
        (lambda tensors: tensors.update(extra=torch.zeros(1), more=torch.zeros(1)), "'extra'"),
        (lambda tensors: tensors.update({"0.bias": torch.zeros(5)}), r"'0.bias'.*\(5,\).*\(4,\)"),
        (lambda tensors: tensors.update({"0.bias": torch.zeros(4, dtype=torch.int64)}), r"'0.bias'.*int64"),
        (lambda tensors: tensors["0.weight"].fill_(float("nan")), "'0.weight'"),
        (lambda tensors: tensors["1.running_var"].fill_(float("inf")), "'1.running_var'"),
        (
            lambda tensors: tensors.update({"0.bias": torch.full((4,), 1e300, dtype=torch.float64)}),
            "'0.bias'",
        ),
    ],
)
def test_weights_of_another_network_are_refused_by_name_and_change_nothing(tmp_path, change, message):
    tensors = {name: tensor.clone() + 1 for name, tensor in network().state_dict().items()}
    change(tensors)
    target = network()
    with pytest.raises(AirlocError, match=message) as caught:
        load_into(target, tensors, tmp_path / "best")
    assert "best/weights.safetensors" in caught.value.problem
    assert caught.value.cure
    for name, tensor in network().state_dict().items():
        assert torch.equal(target.state_dict()[name], tensor)
