"""`airloc serve` says where it listens, makes a token where there is none, and refuses what cannot work."""

import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest


def test_a_new_token_is_made_and_works(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("AIRLOC_TOKEN", raising=False)
    command = [sys.executable, "-u", "-m", "airloc.cli.main", "serve", "--port", "0", "--store", str(tmp_path / "s")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().split()[2].rstrip(",")
            token = server.stdout.readline().split()[1]
            patient = httpx.HTTPTransport(retries=5)
            with httpx.Client(base_url=url, transport=patient) as client:
                assert client.get("/searches").status_code == 401
                answer = client.get("/searches", headers={"Authorization": f"Bearer {token}"})
            assert (answer.status_code, answer.json()) == (200, {"searches": []})
        finally:
            server.terminate()
            server.wait(10)


def test_what_cannot_work_is_said_at_once(airloc, tmp_path: Path, monkeypatch):
    store = ("--store", tmp_path / "s.sqlite")
    monkeypatch.setenv("AIRLOC_TOKEN", "short")
    assert airloc("serve", *store).refused("shorter than 8")
    monkeypatch.setenv("AIRLOC_TOKEN", "long enough for a token")
    assert airloc("serve", *store, "--agent", "nobody").refused("There is no agent")
    assert airloc("serve", *store, "--token-file", tmp_path / "none").refused("Cannot read the token")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert airloc("serve", *store, "--port", taken.getsockname()[1]).refused("Cannot listen")
    (tmp_path / "words").write_text("these are only words " * 100)
    assert airloc("serve", "--store", tmp_path / "words").refused("Cannot open the store")


@pytest.mark.parametrize("verb", ["search", "serve"])
def test_a_missing_extra_is_named_with_the_command_that_brings_it(airloc, tmp_path: Path, monkeypatch, verb: str):
    monkeypatch.setattr("airloc.cli.console.find_spec", lambda name: None)
    options = {"search": ("--area", "a.tif", "--goal", "b.jpg", "--out", tmp_path / "out"), "serve": ()}[verb]
    assert airloc(verb, *options).refused("not installed", "pip install 'airloc[field]'")
