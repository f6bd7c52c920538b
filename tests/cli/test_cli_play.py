"""`airloc play`: starts, opens the page, serves it, and ends when told to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airloc.grid import Grid
from game_server import Client, move_away

AIRLOC = [sys.execuroom, "-m", "airloc.cli.main"]


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


def test_it_opens_the_page_plays_a_game_against_agents_and_ends_with_ctrl_c(areas_folder: Path, tmp_path: Path):
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    process = begin("--areas", str(areas_folder), "--port", "0", "--agents", "spiral", BROWSER=str(browser))
    url = wait_for(opened, process)
    client = Client(url)
    assert b"Find the place" in client.ask("GET", "/").body
    state = client.begin()
    game, turn, position, ending = state["game"], 0, state["position"], None
    while ending is None:
        answer = client.move(game, turn, move_away(tuple(position), (-9, -9), Grid(5, 5))).json
        turn, position, ending = answer["turn"], answer["position"], answer["ending"]
    reveal = client.ask("GET", f"/api/games/{game}/reveal").json
    assert [agent["agent"] for agent in reveal["agents"]] == ["spiral"]
    assert client.ask("GET", f"/api/games/{game}/area.png").body.startswith(b"\x89PNG")
    played, watched = reveal["area"], client.ask("GET", "/api/watch").json["areas"]
    assert played not in watched, "watching shows areas whole, so nobody plays on them"
    assert len(watched) == 2
    track = client.ask("GET", f"/api/watch/search?area={watched[0]}&start=0,0&goal=2,3&agent=blind").json
    assert track["agent"] == "blind"
    client.close()
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert url in out
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until, "a process was left behind"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "Add --public"),
        (["--port", "99999"], "There is no port 99999"),
        (["--grid", "20x20"], "Ask for 12x12 at most"),
        (["--agents", "nobody"], "There is no agent 'nobody'"),
        (["--seconds", "-1"], "0 for no limit"),
        (["--areas", "/no/such/folder"], "There is no folder"),
        (["--budget", "0"], "Give a budget of 1 or more"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_opened(airloc, arguments: list[str], said: str):
    assert airloc("play", "--no-open", "--port", 0, "--agents", "spiral", *arguments).refused(said)


def test_the_help_tells_the_options(airloc):
    told = airloc("play", "--help").out
    assert [
        word for word in ("--areas", "--port", "--open", "--no-open", "--public", "--seconds") if word not in told
    ] == []
