import errno
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents.checkpoint import load_checkpoint, save_checkpoint
from airloc.errors import AirlocError
from airloc.training import runs as runs_module
from airloc.training.data import DataConfig
from airloc.training.pipeline import PRESETS, AirlocConfig
from airloc.training.relation import RelationConfig
from airloc.training.runs import (
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Probability,
    Run,
    check_finite,
    check_settings,
    read_settings,
    write_settings,
)

pytestmark = pytest.mark.long

TRAIN = """
import sys
from dataclasses import dataclass
from pathlib import Path
import torch
from airloc.agents.checkpoint import save_checkpoint
from airloc.training.runs import Run, check_finite
from airloc.training.runs import restore_rng, rng_state

@dataclass(frozen=True)
class Toy:
    steps: int = 120
    rate: float = 1e-2

config = Toy()
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Dropout(0.1), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), config.rate)
with Run.open(Path(sys.argv[1]), config) as run:
    if run.state:
        model.load_state_dict(run.state["model"])
        optimizer.load_state_dict(run.state["optimizer"])
        restore_rng(run.state["rng"])
    print(run.step, flush=True)
    for step in range(run.step + 1, config.steps):
        x = torch.randn(32, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        check_finite(loss.item(), step, run)
        run.log(step, loss=loss.item())
        print(step, flush=True)
        if step % 3 == 0 or step == config.steps - 1:
            save_checkpoint(run.folder / "checkpoints" / "last", model.state_dict(), {"step": step}, "")
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            run.save_state(step, {**state, "rng": rng_state("cpu")})
"""

HOLD = """
import sys
from pathlib import Path
from dataclasses import dataclass
from airloc.training.runs import Run

@dataclass(frozen=True)
class Settings:
    learning_rate: float = 0.1

run = Run.open(Path(sys.argv[1]), Settings())
print("held", flush=True)
sys.stdin.read()
"""


class Mode(Enum):
    FAST = 1


@dataclass(frozen=True)
class Inner:
    momentum: float = 0.9


@dataclass(frozen=True)
class Settings:
    learning_rate: Probability = 0.1


@dataclass(frozen=True)
class Nested:
    inner: Inner = field(default_factory=Inner)
    data: Path = Path("areas")
    mode: Mode = Mode.FAST
    sides: tuple[int, ...] = (5, 7)
    limit: float = float("inf")


def lines(folder: Path) -> list[dict[str, float | None]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def train(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", TRAIN, str(folder)], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_with_the_same_weights_and_metrics(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    with train(whole) as process:
        process.communicate()
        assert process.returncode == 0
    chance, resumed = np.random.default_rng(), []
    for _ in range(2):
        with train(broken) as process:
            resumed.append(int(process.stdout.readline()))
            for _ in range(chance.integers(10, 50)):
                process.stdout.readline()
            time.sleep(chance.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
    with train(broken) as process:
        process.communicate()
        assert process.returncode == 0
    assert resumed == sorted(resumed)
    assert resumed[-1] > 0
    for name in ("weights.safetensors", "config.json", "card.md"):
        at = Path("checkpoints") / "last" / name
        assert (broken / at).read_bytes() == (whole / at).read_bytes()
    assert (broken / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
    assert [line["step"] for line in lines(broken)] == list(range(120))
    assert load_checkpoint(broken / "checkpoints" / "last").config["step"] == 119
    assert not list(broken.glob(".airloc-*"))


def test_a_second_process_is_kept_out_until_the_first_ends_even_by_kill(tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AirlocError, match=rf"\({holder.pid}\).*'{folder}'"):
            Run.open(folder, Settings())
        holder.send_signal(signal.SIGKILL)
    Run.open(folder, Settings()).close()


def test_a_folder_is_free_again_after_closing_and_after_a_failure_to_open(tmp_path):
    with Run.open(tmp_path, Settings()) as run:
        with pytest.raises(AirlocError, match=str(os.getpid())):
            Run.open(tmp_path, Settings())
        run.close()
    with pytest.raises(AirlocError, match="rate"):
        Run.open(tmp_path, Settings(0.2))
    Run.open(tmp_path, Settings()).close()


def test_a_new_run_has_no_state_and_a_resumed_one_has_what_was_saved_last(tmp_path):
    with Run.open(tmp_path / "deep" / "run", Settings()) as run:
        assert (run.state, run.step) == (None, -1)
        run.save_state(3, {"a": 1})
        run.save_state(5, {"a": 2})
        assert (run.state, run.step) == ({"a": 2}, 5)
    with Run.open(tmp_path / "deep" / "run", Settings()) as run:
        assert (run.state, run.step) == ({"a": 2}, 5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Nested(inner=Inner(0.5)), r"inner\.momentum = 0\.9 there, 0\.5 here"),
        (Nested(data=Path("other")), 'data = "areas" there, "other" here'),
        (Nested(sides=(5,)), r"sides = \[5, 7\] there, \[5\] here"),
        (Nested(limit=2.0), "limit = Infinity there, 2.0 here"),
        (Settings(), 'kind = "Nested" there, "Settings" here'),
    ],
)
def test_other_settings_are_refused_by_the_first_field_that_differs(tmp_path, config, message):
    Run.open(tmp_path, Nested()).close()
    Run.open(tmp_path, Nested()).close()
    with pytest.raises(AirlocError, match=message) as caught:
        Run.open(tmp_path, config)
    assert str(tmp_path) in caught.value.problem


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"kind": 1, "settings": 2}', "\udcff"])
def test_a_damaged_config_is_named(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(AirlocError, match=r"config\.json"):
        Run.open(tmp_path, Settings())


def test_a_folder_with_metrics_of_something_else_is_not_taken_over(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("mine")
    with pytest.raises(AirlocError, match=r"metrics\.jsonl"):
        Run.open(tmp_path, Settings())
    assert (tmp_path / "metrics.jsonl").read_text() == "mine"


def test_a_folder_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(AirlocError, match="file"):
        Run.open(tmp_path / "file" / "run", Settings())
    (tmp_path / "lock").mkdir()
    with pytest.raises(AirlocError, match="lock"):
        Run.open(tmp_path, Settings())


@pytest.mark.parametrize("error", [AirlocError("No images", "Give some"), KeyboardInterrupt()])
def test_a_new_run_that_fails_before_it_logs_leaves_nothing_behind(tmp_path, error):
    with pytest.raises(type(error)), Run.open(tmp_path / "deep" / "run", Settings()):
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_later_or_in_an_existing_folder_is_kept(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(KeyError), Run.open(tmp_path / "mine", Settings()):
        raise KeyError
    with pytest.raises(ValueError, match="once"), Run.open(tmp_path / "new", Settings()) as run:
        [run.log(0, loss=1.0) for _ in range(2)]
    for name in ("mine", "new"):
        assert (tmp_path / name / "config.json").exists()


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5, 1.5])
def test_settings_out_of_bounds_are_refused_by_field_and_option(value):
    with pytest.raises(AirlocError, match=f"learning_rate = {value}.*--learning-rate"):
        check_settings(Settings(value))
    check_settings(Settings(1.0))


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"), [(PositiveInt, 1, 0), (PositiveFloat, 1e-9, 0.0), (NonNegativeFloat, 0, -1)]
)
def test_bounds_contain_what_their_names_say(bounds, inside, outside):
    (bound,) = bounds.__metadata__
    assert inside in bound
    assert outside not in bound


def test_metrics_are_lines_of_json_in_which_nan_is_null(tmp_path):
    with Run.open(tmp_path, Settings()) as run:
        run.log(0, loss=0.5, episodes=3)
        run.log(7, loss=float("nan"), success=np.float32(0.25), gap=float("-inf"))
    assert (tmp_path / "metrics.jsonl").read_text() == (
        '{"step": 0, "loss": 0.5, "episodes": 3}\n{"step": 7, "loss": null, "success": 0.25, "gap": null}\n'
    )


def test_a_step_cannot_be_logged_twice_or_backwards(tmp_path):
    with Run.open(tmp_path, Settings()) as run:
        run.log(4, loss=1.0)
        for step in (4, 3, -1):
            with pytest.raises(ValueError, match=str(step)):
                run.log(step, loss=1.0)


def test_settings_are_read_back_as_they_were_written(tmp_path):
    path = tmp_path / "config.json"
    for config in (*PRESETS.values(), RelationConfig(), DataConfig(root=tmp_path, weights=(1.0, 2.5, 3.0), fold=2)):
        write_settings(path, config)
        assert read_settings(path, type(config)) == config


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (lambda content: content["settings"].pop("seeds"), ("seeds", "missing")),
        (lambda content: content["settings"].update(petals=3), ("petals", "unknown")),
        (lambda content: content["settings"]["data"].update(petals=3), ("petals", "unknown")),
        (lambda content: content["settings"].update(data=3), ("config.json",)),
        (lambda content: content["settings"].update(seeds=0), ("seeds", "1 or more")),
        (lambda content: content.update(kind="PolicyConfig"), ("PolicyConfig", "AirlocConfig")),
        (lambda content: content.pop("settings"), ("damaged",)),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, change, facts):
    path = tmp_path / "config.json"
    write_settings(path, PRESETS["fast"])
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(AirlocError) as error:
        read_settings(path, AirlocConfig)
    assert [fact for fact in facts if fact not in str(error.value)] == []


def test_a_save_is_due_30_seconds_after_the_start_and_after_each_save(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(runs_module.time, "monotonic", lambda: now[0])
    with Run.open(tmp_path, Settings()) as run:
        assert not run.is_due()
        now[0] += 30.0
        assert run.is_due()
        run.save_state(0, {})
        assert not run.is_due()


def test_resuming_drops_the_metrics_after_the_last_save_and_half_a_line(tmp_path):
    with Run.open(tmp_path, Settings()) as run:
        for step in range(6):
            run.log(step, loss=float(step))
            if step == 3:
                run.save_state(step, {})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    with Run.open(tmp_path, Settings()) as run:
        assert [line["step"] for line in lines(tmp_path)] == [0, 1, 2, 3]
        run.log(4, loss=40.0)
    assert lines(tmp_path)[-1] == {"step": 4, "loss": 40.0}


def test_a_run_killed_before_its_first_save_starts_its_metrics_over(tmp_path):
    with Run.open(tmp_path, Settings()) as run:
        run.log(0, loss=1.0)
    with Run.open(tmp_path, Settings()) as run:
        run.log(0, loss=2.0)
    assert lines(tmp_path) == [{"step": 0, "loss": 2.0}]


def test_tensorboard_shows_each_step_once_after_a_resume(tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Run.open(tmp_path, Settings()) as run:
        for step in range(6):
            run.log(step, loss=float(step))
            if step == 3:
                run.save_state(step, {})
    time.sleep(1.1)  # TensorBoard reads its files by the second of their beginning
    with Run.open(tmp_path, Settings()) as run:
        run.log(4, loss=40.0)
        run.log(5, loss=50.0)
    events = event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [
        (0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (4, 40.0), (5, 50.0),
    ]  # fmt: skip


def test_without_tensorboard_the_lines_are_written_all_the_same(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    caplog.set_level("INFO", "airloc.training")
    with Run.open(tmp_path, Settings()) as run:
        run.log(0, loss=1.0)
        run.save_state(0, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "lock", "metrics.jsonl", "state.pt"]
    assert "TensorBoard" in caplog.text


def test_a_full_disk_keeps_the_previous_state_and_leaves_nothing_behind(tmp_path, monkeypatch):
    with Run.open(tmp_path, Settings()) as run:
        run.save_state(3, {"a": 1})
        before = sorted(tmp_path.iterdir())
        real = os.replace

        def full(*args: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(AirlocError, match=r"state\.pt.*step 3"):
            run.save_state(4, {"a": 2})
        monkeypatch.setattr(os, "replace", real)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(AirlocError, match=r"metrics\.jsonl.*step 3"):
            run.save_state(4, {"a": 2})
        assert sorted(tmp_path.iterdir()) == before
        assert (run.step, run.state) == (3, {"a": 1})
    with Run.open(tmp_path, Settings()) as run:
        assert (run.step, run.state) == (3, {"a": 1})


def log_much(run: Run) -> None:
    for step in range(1, 10_000):
        run.log(step, loss=1.0, padding=1e-300)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # TensorBoard's own thread
def test_on_a_disk_that_is_really_full_logging_and_saving_fail_and_the_run_resumes(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting needs rights")
    try:
        with Run.open(disk / "run", Settings()) as run:
            run.log(0, loss=1.0)
            run.save_state(0, {"a": torch.zeros(100)})
            with pytest.raises(AirlocError, match=r"state\.pt.*step 0"):
                run.save_state(1, {"a": torch.zeros(100_000)})
            with pytest.raises(AirlocError, match="step 0"):
                log_much(run)
        subprocess.run(["mount", "-o", "remount,size=256k", str(disk)], check=True)
        with Run.open(disk / "run", Settings()) as run:
            assert (run.step, len(lines(disk / "run"))) == (0, 1)
            run.log(1, loss=1.0)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_last_good_checkpoint(tmp_path):
    with Run.open(tmp_path, Settings()) as run:
        check_finite(0.5, 1, run)
        with pytest.raises(AirlocError, match=r"NaN at step 2"):
            check_finite(float("nan"), 2, run)
        for name in ("first", "second"):
            save_checkpoint(tmp_path / "checkpoints" / name, {"a": torch.zeros(2)}, {}, "")
            time.sleep(0.02)
        with pytest.raises(AirlocError, match=r"infinite at step 3 .*checkpoints/second"):
            check_finite(float("inf"), 3, run)
        assert load_checkpoint(tmp_path / "checkpoints" / "second").tensors.keys() == {"a"}
