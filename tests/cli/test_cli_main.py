"""The command itself: verbs, help, interrupts, closed pipes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airloc import __version__
from airloc.cli import main as command
from airloc.cli.main import STOPPED, VERBS, main

AIRLOC = [sys.executable, "-m", "airloc.cli.main"]


def test_without_a_verb_it_tells_the_verbs(airloc):
    for arguments in ((), ("--help",), ("-h",), ("help",)):
        outcome = airloc(*arguments)
        assert outcome.code == 0
        assert [verb for verb in VERBS if verb not in outcome.out] == []


def test_it_tells_its_version(airloc):
    assert airloc("--version").out == airloc("-V").out == f"airloc {__version__}\n"


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("evaluate", ["--areas", "--goals", "--episodes", "--grid", "--budget", "--device", "--seed", "--json"]),
        ("evaluate", ["--control", "--against", "--sample", "--batch", "--no-timing", "--trajectories", "--split"]),
        ("demo", ["--out", "--areas", "--seed"]),
        ("show", ["--areas", "--area", "--start", "--goal", "--grid", "--seed", "--strip", "--gif"]),
        ("failures", ["--areas", "--goals", "--split", "--cell-metres", "--count", "--sheet", "--json"]),
        ("calibration", ["--areas", "--split", "--cell-metres", "--episodes", "--chart", "--json"]),
        ("exploitation", ["--areas", "--episodes", "--grid", "--chart", "--json"]),
        ("folds", ["--json"]),
        ("data", ["list", "fetch", "prepare", "show"]),
    ],
)
def test_every_verb_has_a_help_text(airloc, verb: str, words: list[str]):
    outcome = airloc(verb, "--help")
    assert outcome.code == 0
    assert [word for word in words if word not in outcome.out] == []


def test_an_unknown_verb_is_refused_with_the_nearest_one(airloc):
    assert airloc("evalute").refused("There is no verb 'evalute'", "Did you mean 'evaluate'?")
    assert airloc("xyz").refused(f"Verbs are: {', '.join(VERBS)}")


@pytest.mark.parametrize("arguments", [("evaluate", "random", "--bogus"), ("demo", "--areas", "many")])
def test_unknown_or_ill_formed_options_exit_with_2(airloc, arguments: tuple[str, ...]):
    outcome = airloc(*arguments)
    assert outcome.code == 2
    assert outcome.err
    assert "Traceback" not in outcome.err


def test_running_out_of_memory_is_one_sentence(airloc, monkeypatch: pytest.MonkeyPatch):
    def starve(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("airloc.cli.evaluate.run", starve)
    assert airloc("evaluate", "random").refused("not enough memory", "--batch")


def test_an_interrupt_is_one_sentence(airloc, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airloc.cli.evaluate.run", interrupt)
    assert airloc("evaluate", "random").refused(STOPPED)


def test_a_reader_that_has_gone_is_no_error_to_talk_about(monkeypatch: pytest.MonkeyPatch, capfd):
    def gone(*arguments: object) -> None:
        raise BrokenPipeError

    dup2 = []
    monkeypatch.setattr(os, "dup2", lambda *numbers: dup2.append(numbers))
    monkeypatch.setattr("airloc.cli.evaluate.run", gone)
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", "random"])
    assert stop.value.code == 2
    assert len(dup2) == 1
    assert capfd.readouterr().err == ""


def test_a_process_of_its_own_handles_interrupts_and_odd_terminals(monkeypatch: pytest.MonkeyPatch, capsys):
    before = signal.getsignal(signal.SIGINT)
    try:
        monkeypatch.setattr(sys, "argv", ["airloc", "--version"])
        main()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert __version__ in capsys.readouterr().out


def test_an_interrupt_during_imports_leaves_at_once(monkeypatch: pytest.MonkeyPatch, capfd):
    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    command._stop_at_once(signal.SIGINT, None)
    assert codes == [2]
    assert capfd.readouterr().err == f"airloc: {STOPPED}\n"


def begin_long_evaluation(json: Path) -> subprocess.Popen[str]:
    long = ["evaluate", "random", "--episodes", "all-pairs", "--batch", "1", "--json", str(json)]
    return subprocess.Popen([*AIRLOC, *long], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_import(process: subprocess.Popen[str], library: str) -> None:
    """Wait until the process has begun to load a library."""
    maps, until = Path(f"/proc/{process.pid}/maps"), time.monotonic() + 30
    while library not in maps.read_text():
        assert process.poll() is None
        assert time.monotonic() < until, f"{library} was not loaded within 30 s"
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux to see what a process has loaded")
@pytest.mark.parametrize("seconds", [0.0, 0.7, 1.5, 3.0])
def test_ctrl_c_at_any_moment_ends_with_one_sentence_and_leaves_nothing(tmp_path: Path, seconds: float):
    process = begin_long_evaluation(tmp_path / "new" / "score.json")
    wait_for_import(process, "libtorch")
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.replace("\r", "").strip()) == (2, "", f"airloc: {STOPPED}")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_that_closes_early_costs_neither_the_result_nor_a_traceback(areas_folder: Path, tmp_path: Path):
    score = tmp_path / "score.json"
    evaluate = [*AIRLOC, "evaluate", "random", "--areas", str(areas_folder), "--json", str(score)]
    with subprocess.Popen(evaluate, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert err == ""
    assert score.is_file()


def test_poor_terminals_get_the_table_too(areas_folder: Path):
    done = subprocess.run(
        [*AIRLOC, "evaluate", "lawnmower", "--areas", str(areas_folder), "--budget", "1"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "lawnmower" in done.stdout
