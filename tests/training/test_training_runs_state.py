"""State files of runs: exact, plain and safe to load; random generators."""

import pickle
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.training.runs import (
    Run,
    read_state,
    restore_rng,
    rng_state,
    write_state,
)


@dataclass(frozen=True)
class Settings:
    learning_rate: float = 0.1


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"))
tensors = st.lists(st.floats(width=32), max_size=4).map(torch.tensor)
states = st.recursive(
    scalars | tensors,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def assert_same(a: object, b: object) -> None:
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        assert a.numpy().tobytes() == b.numpy().tobytes()
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        assert repr(a) == repr(b)


@settings(max_examples=60, deadline=None)
@given(state=st.dictionaries(st.text(max_size=3), states, max_size=4))
def test_every_plain_state_comes_back_as_it_was(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "state.pt"
    write_state(path, 7, state)
    step, loaded = read_state(path)
    assert step == 7
    assert_same(loaded, state)


def test_a_state_shares_nothing_with_the_network_it_came_from(tmp_path):
    large = torch.zeros(1_000_000)
    with Run.open(tmp_path, Settings()) as run:
        run.save_state(0, OrderedDict(view=large[:2], number=np.float64(0.5)))
        large[0] = 1.0
        assert torch.equal(run.state["view"], torch.zeros(2))
        assert type(run.state["number"]) is float
    assert (tmp_path / "state.pt").stat().st_size < 10_000


@pytest.mark.parametrize("value", [np.int64(1), np.zeros(2), {1, 2}, object(), b"bytes"])
def test_a_value_that_could_not_be_read_back_is_refused_where_it_is(tmp_path, value):
    with Run.open(tmp_path, Settings()) as run:
        with pytest.raises(TypeError, match=r"deep\.here\[1\]"):
            run.save_state(0, {"deep": {"here": [0, value]}})
        assert not (tmp_path / "state.pt").exists()


class Exploit:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def flip_a_weight(data: bytes) -> bytes:
    at = data.index(np.full(50, 2.5, dtype=np.float32).tobytes())
    return data[: at + 9] + bytes([data[at + 9] ^ 1]) + data[at + 10 :]


@pytest.mark.parametrize(
    "change", [lambda data: b"", lambda data: data[:-1], lambda data: data[: len(data) // 2], flip_a_weight]
)
def test_a_damaged_state_is_named_with_two_cures(tmp_path, change):
    with Run.open(tmp_path, Settings()) as run:
        run.save_state(0, {"a": torch.full((100,), 2.5)})
    (tmp_path / "state.pt").write_bytes(change((tmp_path / "state.pt").read_bytes()))
    with pytest.raises(AirlocError, match=r"state\.pt.*delete it"):
        Run.open(tmp_path, Settings())
    (tmp_path / "state.pt").unlink()
    with Run.open(tmp_path, Settings()) as run:
        assert run.state is None


def test_a_state_with_code_or_of_another_format_is_refused_and_runs_nothing(tmp_path):
    mark = tmp_path / "ran"
    torch.save({"format": 1, "step": 0, "state": Exploit(mark)}, tmp_path / "a.pt")
    torch.save({"format": 2, "step": 0, "state": {}}, tmp_path / "b.pt")
    (tmp_path / "c.pt").write_bytes(pickle.dumps(Exploit(mark)))
    for name in ("a.pt", "b.pt", "c.pt"):
        with pytest.raises(AirlocError, match=name):
            read_state(tmp_path / name)
    assert not mark.exists()


def test_random_numbers_continue_exactly_from_a_saved_state(tmp_path):
    torch.manual_seed(3)
    torch.randn(3)
    write_state(tmp_path / "state.pt", 0, {"rng": rng_state("cpu")})
    expected = torch.randn(9)
    torch.manual_seed(4)
    restore_rng(read_state(tmp_path / "state.pt")[1]["rng"])
    assert torch.equal(expected, torch.randn(9))


def test_random_numbers_of_a_gpu_are_not_restored_without_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(AirlocError, match="'cuda:0'"):
        restore_rng({"torch": torch.get_rng_state(), "device": "cuda:0", "cuda": torch.zeros(16)})


@pytest.mark.gpu
def test_random_numbers_on_a_gpu_continue_exactly_from_a_saved_state(tmp_path):
    write_state(tmp_path / "state.pt", 0, {"rng": rng_state("cuda")})
    expected = torch.randn(9, device="cuda")
    restore_rng(read_state(tmp_path / "state.pt")[1]["rng"])
    assert torch.equal(expected, torch.randn(9, device="cuda"))
