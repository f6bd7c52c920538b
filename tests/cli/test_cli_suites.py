"""`airloc suites`: one page of all agents, computed once, and errors."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from small_suites import write_data

pytestmark = pytest.mark.long

AGENTS = ("--agent", "random", "--agent", "lawnmower")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    return write_data(tmp_path / "data")


def test_the_page_is_printed_and_written_and_a_second_run_computes_nothing(data: Path, airloc, tmp_path: Path):
    arguments = ("masa-5x5", "xbd-pre-post", *AGENTS, "--data", data, "--out", tmp_path / "out")
    outcome = airloc("suites", *arguments)
    assert outcome.code == 0, outcome
    assert outcome.err.count("evaluation:") == 4
    assert "| agent | Massachusetts |" in outcome.out
    assert "airloc evaluate AGENT --areas $AIRLOC_DATA/masa/images --split val" in outcome.out
    page = (tmp_path / "out" / "suites.md").read_text(encoding="utf-8")
    assert outcome.out.strip() == page.strip()
    assert len(json.loads((tmp_path / "out" / "suites.json").read_bytes())) == 4

    results = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").rglob("*")}
    again = airloc("suites", *arguments)
    assert (again.code, again.out) == (0, outcome.out)
    assert "evaluation:" not in again.err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").rglob("*")} == results

    more = airloc("suites", *arguments, "--agent", "spiral")
    assert (more.code, more.err.count("evaluation:"), more.err.count("spiral on")) == (0, 2, 2)


def test_a_suite_without_data_is_skipped_and_the_page_says_so(data: Path, airloc, tmp_path: Path):
    (data / "xbd").rename(data / "elsewhere")
    arguments = ("masa-blur", "xbd-pre-post", *AGENTS, "--limit", 1, "--data", data, "--out", tmp_path / "out")
    outcome = airloc("suites", *arguments)
    assert outcome.code == 0, outcome
    assert "'xbd/images'" in outcome.out
    assert "| agent | xBD (no data) |" in outcome.out
    assert json.loads((tmp_path / "out" / "suites.json").read_bytes())[0]["record"]["areas"] == 1


def test_the_data_folder_is_that_of_the_environment(
    data: Path, airloc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AIRLOC_DATA", str(data))
    outcome = airloc("suites", "masa-blur", "--agent", "random", "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    assert "`random`" in outcome.out
    assert str(data) in outcome.err, "long work says what it does"


def test_suites_are_listed_with_their_commands(airloc, tmp_path: Path):
    outcome = airloc("suites", "--list", "--out", tmp_path / "out")
    assert outcome.code == 0
    assert outcome.out.startswith("masa-5x5: ")
    assert "    airloc data prepare --grid 7x7 --out dubai-7x7 dubai\n" in outcome.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["masa-5x6"], "'masa-5x6'"),
        (["--agent", "belif"], "'belif'"),
        (["--limit", "0"], "--limit 1"),
        (["--data", "nowhere"], "nowhere"),
        (["masa-5x5", "dubai-5x5"], "'masa'"),
        (["--device", "abacus"], "'abacus'"),
        pytest.param(["procedural", "--ray", "127.0.0.1:1"], "'127.0.0.1:1'", marks=pytest.mark.ray),
    ],
)
def test_bad_options_are_errors_before_anything_is_written(
    arguments: list[str], fact: str, airloc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    assert airloc("suites", *arguments, "--out", tmp_path / "out").refused(fact)
    assert not (tmp_path / "out").exists()


def test_a_damaged_result_is_an_error_with_its_folder(data: Path, airloc, tmp_path: Path):
    arguments = ("masa-blur", *AGENTS, "--data", data, "--out", tmp_path / "out")
    assert airloc("suites", *arguments).code == 0
    score = next((tmp_path / "out" / "results").glob("evaluation-*/score.json"))
    score.write_text("{}")
    outcome = airloc("suites", *arguments)
    assert outcome.code == 2
    assert str(score) in outcome.err
    assert f"Delete the folder {str(score.parent)!r}" in outcome.err


def test_after_a_kill_the_same_command_continues(data: Path, airloc, tmp_path: Path):
    out = tmp_path / "out"
    arguments = ["suites", "masa-blur", *AGENTS, "--data", data, "--out", out]
    command = [sys.executable, "-m", "airloc.cli.main", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith(b"1/"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {path.parent: path.stat().st_mtime_ns for path in (out / "results").glob("*/done.json")}
    assert done
    assert airloc(*arguments).code == 0
    assert {folder: (folder / "done.json").stat().st_mtime_ns for folder in done} == done
    assert (out / "suites.md").is_file()


def test_a_data_folder_that_does_not_exist_is_refused(airloc, tmp_path: Path):
    outcome = airloc("suites", "masa-5x5", *AGENTS, "--data", tmp_path / "nosuch", "--out", tmp_path / "out")
    assert outcome.refused("nosuch", "--data")
    assert not (tmp_path / "out").exists()
