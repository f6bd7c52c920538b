"""The command itself: verbs, help, interrupts, missing packages, closed pipes."""

import importlib
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from airloc import __version__
from airloc.cli.console import EXTRAS
from airloc.cli.main import VERBS, main
from airloc_cli import STOPPED
from field_files import ground, write_projected

pytestmark = pytest.mark.long

AIRLOC = [sys.executable, "-m", "airloc_cli"]
BEGIN = """
import signal, airloc_cli
signal.signal(signal.SIGINT, airloc_cli.stop)  # the first thing that main does
print("begun", flush=True)
airloc_cli.main()
"""


def test_without_a_verb_it_lists_the_verbs(airloc):
    for arguments in ((), ("--help",), ("-h",), ("help",)):
        outcome = airloc(*arguments)
        assert outcome.code == 0
        assert [verb for verb in VERBS if verb not in outcome.out] == []


def test_it_prints_its_version(airloc):
    assert airloc("--version").out == airloc("-V").out == f"airloc {__version__}\n"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("evaluate", ["--areas", "--goals", "--episodes", "--grid", "--budget", "--device", "--seed", "--json"]),
        ("evaluate", ["--control", "--against", "--sample", "--batch", "--no-timing", "--trajectories", "--split"]),
        ("demo", ["--out", "--areas", "--seed"]),
        ("show", ["--areas", "--area", "--start", "--goal", "--grid", "--seed", "--strip", "--gif"]),
        ("analyse", ["failures", "calibration", "exploitation", "folds"]),
        ("analyse failures", ["--areas", "--goals", "--split", "--cell-metres", "--count", "--sheet", "--json"]),
        ("analyse calibration", ["--areas", "--split", "--cell-metres", "--episodes", "--chart", "--json"]),
        ("data", ["list", "prepare", "show"]),
    ],
)
def test_help_lists_the_options(airloc, command: str, options: list[str]):
    outcome = airloc(*command.split(), "--help")
    assert outcome.code == 0
    assert [option for option in options if option not in outcome.out] == []


@pytest.mark.parametrize("command", ["evaluate", "search", "serve", "suites", "train belief"])
def test_an_option_that_may_be_left_out_does_not_offer_the_word_none_as_its_value(airloc, command: str):
    assert "{None}" not in airloc(*command.split(), "--help").out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_module_with_a_main_function(verb: str):
    assert callable(importlib.import_module(f"airloc.cli.{verb}").main)


def test_an_unknown_verb_is_refused_with_the_nearest_one(airloc):
    assert airloc("evalute").refused("'evalute'", "'evaluate'")
    assert airloc("xyz").refused("'xyz'", ", ".join(VERBS))


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
    assert airloc("evaluate", "random").refused("memory", "--batch")


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "random", "--areas", "{}"),
        ("evaluate", "random", "--episodes", "{}"),
        ("evaluate", "random", "--json", "{}/score.json"),
        ("search", "--area", "a.tif", "--goal", "a.tif", "--out", "{}"),
        ("export", "airloc", "--onnx", "{}"),
        ("study", "results", "{}"),
    ],
)
def test_a_name_that_is_too_long_is_one_sentence(airloc, tmp_path: Path, monkeypatch, arguments: tuple[str, ...]):
    monkeypatch.chdir(tmp_path)
    write_projected(tmp_path / "a.tif", ground(9))
    long = "x" * 300
    assert airloc(*(argument.format(long) for argument in arguments)).refused(long)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ImportError("numpy failed to load")])
def test_an_interrupt_is_one_sentence(airloc, error: BaseException, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*arguments: object) -> None:
        raise error from KeyboardInterrupt()

    monkeypatch.setattr("airloc.cli.evaluate.run", interrupt)
    assert airloc("evaluate", "random").refused(STOPPED)


def test_a_closed_pipe_is_no_error_message(monkeypatch: pytest.MonkeyPatch, capfd):
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


@pytest.mark.parametrize(
    ("seconds", "arguments"),
    [
        (0.0, ("--help",)),
        (0.0, ("evaluate", "random")),
        (0.05, ("train", "belief")),
        (0.1, ("play",)),
        (0.2, ("data", "list")),
        (0.3, ("search", "--area", "a.tif")),
        (0.4, ("export", "belief")),
        (0.5, ("suites",)),
        (0.7, ("evaluate", "random", "--episodes", "all-pairs", "--batch", "1")),
        (1.5, ("evaluate", "random", "--episodes", "all-pairs", "--batch", "1")),
        (3.0, ("evaluate", "random", "--episodes", "all-pairs", "--batch", "1")),
    ],
)
def test_ctrl_c_at_any_moment_is_one_sentence_and_leaves_no_file(
    tmp_path: Path, seconds: float, arguments: tuple[str, ...]
):
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, *arguments, *(["--json", "new/score.json"] if "--batch" in arguments else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    if process.returncode != 0 and "--batch" in arguments:
        assert (process.returncode, err.replace("\r", "").strip()) == (2, f"airloc: {STOPPED}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("module", "extra"), [("fastapi", "web"), ("rasterio.enums", "field"), ("ray", "cluster")])
def test_a_missing_package_is_one_sentence_with_its_extra(airloc, module: str, extra: str, monkeypatch):
    def import_missing(*arguments: object) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("airloc.cli.evaluate.run", import_missing)
    assert airloc("evaluate", "random").refused(module.split(".")[0], f"pip install 'airloc[{extra}]'")


def test_a_missing_package_of_no_extra_is_an_error_to_report(airloc, monkeypatch: pytest.MonkeyPatch):
    def import_missing(*arguments: object) -> None:
        raise ModuleNotFoundError("No module named 'nosuch'", name="nosuch")

    monkeypatch.setattr("airloc.cli.evaluate.run", import_missing)
    with pytest.raises(ModuleNotFoundError):
        airloc("evaluate", "random")


def test_the_extras_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, modules in EXTRAS.items():
        listed = {
            re.split(r"[>=]", requirement)[0].replace("-", "_")
            for requirement in project["optional-dependencies"][extra]
        }
        assert set(modules) == {name for name in listed if "[" not in name}


def test_a_pipe_that_closes_early_costs_neither_the_result_nor_a_traceback(areas_folder: Path, tmp_path: Path):
    score = tmp_path / "score.json"
    evaluate = [*AIRLOC, "evaluate", "random", "--areas", str(areas_folder), "--json", str(score)]
    with subprocess.Popen(evaluate, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert err == ""
    assert score.is_file()


def test_terminals_without_unicode_show_the_table(areas_folder: Path):
    done = subprocess.run(
        [*AIRLOC, "evaluate", "lawnmower", "--areas", str(areas_folder), "--budget", "1"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "lawnmower" in done.stdout
