"""`airloc suites`: one table of all agents, made from what is missing alone, and clear words when things go wrong."""

import json
from pathlib import Path

import pytest

from small_suites import write_data

PLAYERS = ("--agent", "random", "--agent", "lawnmower")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    return write_data(tmp_path / "data")


def test_the_table_is_printed_and_written_and_a_second_run_plays_nothing(data: Path, airloc, tmp_path: Path):
    arguments = ("masa-5x5", "xbd-pre-post", *PLAYERS, "--data", data, "--out", tmp_path / "out")
    outcome = airloc("suites", *arguments)
    assert outcome.code == 0, outcome
    assert outcome.err.count("trial:") == 4
    assert "| agent | Massachusetts |" in outcome.out
    assert "airloc evaluate AGENT --areas $AIRLOC_DATA/masa/images --split val" in outcome.out
    page = (tmp_path / "out" / "suites.md").read_text(encoding="utf-8")
    assert outcome.out.strip() == page.strip()
    assert len(json.loads((tmp_path / "out" / "suites.json").read_bytes())) == 4

    results = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").rglob("*")}
    again = airloc("suites", *arguments)
    assert (again.code, again.out) == (0, outcome.out)
    assert "trial:" not in again.err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").rglob("*")} == results

    more = airloc("suites", *arguments, "--agent", "spiral")
    assert (more.code, more.err.count("trial:"), more.err.count("spiral on")) == (0, 2, 2)


def test_a_suite_whose_data_is_not_there_is_skipped_and_the_table_says_so(data: Path, airloc, tmp_path: Path):
    (data / "xbd").rename(data / "elsewhere")
    arguments = ("masa-blur", "xbd-pre-post", *PLAYERS, "--most", 1, "--data", data, "--out", tmp_path / "out")
    outcome = airloc("suites", *arguments)
    assert outcome.code == 0, outcome
    assert "xbd-pre-post was not played: there is no folder 'xbd/images' in the data folder" in outcome.out
    assert "| agent | xBD (no data) |" in outcome.out
    assert "At most 1 areas" in outcome.out
    assert json.loads((tmp_path / "out" / "suites.json").read_bytes())[0]["record"]["areas"] == 1


def test_data_is_where_the_environment_says(data: Path, airloc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AIRLOC_DATA", str(data))
    outcome = airloc("suites", "masa-5x5", "--agent", "random", "--out", tmp_path / "out")
    assert outcome.code == 0, outcome
    assert "`random`" in outcome.out


def test_suites_can_be_listed_with_their_commands(airloc, tmp_path: Path):
    outcome = airloc("suites", "--list", "--out", tmp_path / "out")
    assert outcome.code == 0
    assert outcome.out.startswith("masa-5x5: ")
    assert "    airloc data prepare --grid 7x7 --out dubai-7x7 dubai\n" in outcome.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["masa-5x6"], "There is no suite 'masa-5x6'"),
        (["--agent", "belif"], "No agent is called 'belif'"),
        (["--most", "0"], "Give --most 1 or more"),
        (["--data", "nowhere"], "There is no data folder nowhere"),
        (["masa-5x5", "dubai-5x5"], "There is nothing to play"),
        (["--device", "abacus"], "Cannot use the device 'abacus'"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is(
    arguments: list[str], said: str, airloc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("AIRLOC_DATA", raising=False)
    assert airloc("suites", *arguments, "--out", tmp_path / "out").refused(said)
    assert not (tmp_path / "out").exists()


def test_a_damaged_result_is_told_and_the_others_are_kept(data: Path, airloc, tmp_path: Path):
    arguments = ("masa-blur", *PLAYERS, "--data", data, "--out", tmp_path / "out")
    assert airloc("suites", *arguments).code == 0
    score = next((tmp_path / "out" / "results").glob("trial-*/score.json"))
    score.write_text("{}")
    assert airloc("suites", *arguments).refused(str(score), "its checksum differs", "Delete the folder")
