"""Lobbies: visitors of free play, and participants of a study in the order of its stages."""

import resource
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airloc.game import PlayLobby, Study
from game_server import Answer, Client, joined, move_away, noise_sampler, play_room, serving_study, small_study


def test_the_number_of_visitors_and_of_their_games_is_limited(monkeypatch: pytest.MonkeyPatch):
    room = play_room(noise_sampler(2, "2x2"))
    monkeypatch.setattr(room, "max_games", 4)
    lobby = PlayLobby(room, max_visitors=3)
    visitors = [lobby.admit(None) for _ in range(4)]
    assert [lobby.is_player(visitor) for visitor in visitors] == [False, True, True, True]
    for _ in range(7):
        lobby.begin(visitors[-1], recorded=False)
    assert len(room.store.games_of(visitors[-1])) == 4
    for _ in range(3):
        lobby.admit(None)
    assert room.store.games_of(visitors[-1]) == [], "deleted with the visitor"


@pytest.fixture
def served(tmp_path: Path):
    """A running study: its URL and the study."""
    study = small_study(tmp_path / "s.db")
    with serving_study(study, ("lawnmower",)) as (url, _):
        yield url, study


def test_nobody_plays_without_a_link(served):
    url, _ = served
    client = Client(url)
    for method, path, body in [("GET", "/api/me", None), ("POST", "/api/games", {}), ("POST", "/api/consent", {})]:
        answer = client.ask(method, path, body)
        assert (answer.status, answer.json["error"]) == (401, "no-link")
    client.ask("GET", "/join/guessed")
    assert client.ask("GET", "/api/me").status == 401
    client.close()


def test_a_wrong_link_does_not_continue_as_the_previous_participant(served):
    url, study = served
    client = joined(url, study.participants()[0].token)
    assert client.ask("GET", "/api/me").status == 200
    client.ask("GET", "/join/mistyped")
    assert client.ask("GET", "/api/me").status == 401
    client.close()


def test_the_stages_follow_each_other_and_none_comes_again(served):
    url, study = served
    client = joined(url, study.participants()[0].token)

    def stage() -> str:
        return client.ask("GET", "/api/me").json["stage"]

    assert stage() == "consent"
    assert client.ask("POST", "/api/games", {"kind": "free"}).status == 409
    assert client.ask("POST", "/api/games", {"kind": "recorded"}).status == 409
    assert client.ask("POST", "/api/consent", {"age": 200}).status == 422
    assert client.ask("POST", "/api/consent", {"name": "x"}).status == 422
    assert client.ask("POST", "/api/consent", {"age": 33, "gender": "woman"}).status == 200
    assert client.ask("POST", "/api/consent", {"age": 34}).status == 409
    assert stage() == "practice"
    practice = client.begin("free")
    assert client.ask("GET", "/api/me").json["current"] == practice["game"]
    assert client.ask("POST", "/api/games", {"kind": "recorded"}).status == 409
    assert client.ask("POST", "/api/practised").status == 200
    assert client.ask("POST", "/api/practised").status == 409
    assert stage() == "games"
    assert client.ask("POST", "/api/games", {"kind": "free"}).status == 409
    game = client.begin("recorded")
    assert game["slot"] == 0
    again = client.ask("POST", "/api/games", {"kind": "recorded"})
    assert (again.status, again.json["error"]) == (409, "game-in-progress")
    person = study.participants()[0]
    assert (person.age, person.gender, person.agreed, person.practised) == (33, "woman", True, True)
    client.close()


@contextmanager
def full_disk(study: Study) -> Iterator[None]:
    """Let no file grow: the write-ahead log of the study cannot take another page."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (study.path.with_name(f"{study.path.name}-wal").stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_requests_are_refused_and_can_be_sent_again(served):
    url, study = served
    client = joined(url, study.participants()[0].token)
    requests = [
        ("/api/consent", {"age": 30}),
        ("/api/practised", {}),
        ("/api/games", {"kind": "recorded"}),
    ]
    for path, body in requests:
        with full_disk(study):
            answer = client.ask("POST", path, body)
            assert (answer.status, answer.json["error"]) == (503, "storage"), path
            assert "again" in answer.json["message"]
        answer = client.ask("POST", path, body)
        assert answer.status in (200, 201, 204), answer
    game = answer.json
    move = move_away(tuple(game["position"]), study.episodes(1)[0].goal, study.grid)
    with full_disk(study):
        assert client.move(game["game"], 0, move).status == 503
        assert client.ask("GET", f"/api/games/{game['game']}").json["turn"] == 0
    assert client.move(game["game"], 0, move).json["turn"] == 1
    assert [played.moves for played in Study(study.path).store.recorded()] == [(move,)]
    client.close()


@contextmanager
def locked(study: Study) -> Iterator[None]:
    """Hold the write lock of the study, as another program may do."""
    other = sqlite3.connect(study.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_locked_file_stops_neither_the_server_nor_its_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("airloc.game.store.BUSY_SECONDS", 0.4)
    monkeypatch.setattr("airloc.game.app._CLOCK_SECONDS", 0.1)
    monkeypatch.setattr("airloc.game.room.ABSENT_SECONDS", 0.1)
    study = small_study(tmp_path / "s.db", seconds=0.5)
    with serving_study(study) as (url, _):
        player, other = joined(url, study.participants()[0].token), Client(url)
        player.ask("POST", "/api/consent", {})
        player.ask("POST", "/api/practised")
        game = player.begin("recorded")["game"]
        with locked(study):
            answers: list[Answer] = []
            mover = threading.Thread(target=lambda: answers.append(player.move(game, 0, 0)))
            mover.start()
            time.sleep(0.1)
            assert other.ask("GET", "/static/game.js").status == 200
            assert answers == [], "the event loop does not wait for the lock"
            mover.join()
            assert (answers[0].status, answers[0].json["error"]) == (503, "storage")
            assert "again" in answers[0].json["message"]
            assert player.ask("GET", f"/api/games/{game}").json["turn"] == 0
            wait_until(lambda: "cannot be ended: database is locked" in capsys.readouterr().err)
        wait_until(lambda: study.store.game(game).ending == "disconnected")
        wait_until(lambda: "ended again" in capsys.readouterr().err)
        player.close()
        other.close()


def test_practice_games_are_not_recorded(served):
    url, study = served
    person = study.participants()[0]
    client = joined(url, person.token)
    client.ask("POST", "/api/consent", {})
    game = client.begin("free")
    client.move(game["game"], 0, 0)
    assert study.store.games_of(person.token) == []
    assert study.store.recorded() == []
    client.close()


def test_a_participant_cannot_reach_the_game_of_another(served):
    url, study = served
    first, second = (joined(url, person.token) for person in study.participants())
    for client in (first, second):
        client.ask("POST", "/api/consent", {})
        client.ask("POST", "/api/practised")
    game = first.begin("recorded")["game"]
    assert second.ask("GET", f"/api/games/{game}").status == 404
    assert second.move(game, 0, 0).status == 404
    first.close()
    second.close()


def test_the_progress_of_participants_needs_the_admin_token(served):
    url, study = served
    client = Client(url)
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {study.admin_token[:-1]}"}):
        assert client.ask("GET", "/api/admin/people", headers=headers).status == 401
    answer = client.ask("GET", "/api/admin/people", headers={"Authorization": f"Bearer {study.admin_token}"})
    assert [(row["stage"], row["played"], row["games"]) for row in answer.json["people"]] == [("consent", 0, 2)] * 2
    assert answer.json["people"][0]["link"] == f"/join/{study.participants()[0].token}"
    client.close()


def test_withdrawal_deletes_what_is_recorded_and_ends_taking_part(served):
    url, study = served
    person, other = study.participants()
    client, neighbour = (joined(url, one.token) for one in (person, other))
    assert client.ask("POST", "/api/withdrawal").status == 409, "nothing is recorded before consent"
    for each in (client, neighbour):
        each.ask("POST", "/api/consent", {"age": 33})
        each.ask("POST", "/api/practised")
    game, kept = (each.begin("recorded")["game"] for each in (client, neighbour))
    client.move(game, 0, 0)
    assert [client.ask("POST", "/api/withdrawal").status for _ in range(2)] == [200, 200]
    assert client.ask("GET", "/api/me").json["stage"] == "withdrawn"
    assert client.ask("GET", f"/api/games/{game}").status == 404
    for path, body in (("/api/games", {"kind": "recorded"}), ("/api/consent", {}), ("/api/practised", {})):
        assert client.ask("POST", path, body).status == 409
    assert [one.age for one in study.participants()] == [None, 33]
    assert [played.id for played in study.store.recorded()] == [kept]
    for each in (client, neighbour):
        each.close()


def test_what_a_participant_withdraws_is_not_left_in_the_file(tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=1)
    (person,) = study.participants()
    study.record_consent(person.token, 33, "a-word-that-occurs-once")
    files = [study.path, study.path.with_name("s.db-wal")]
    assert any(b"a-word-that-occurs-once" in file.read_bytes() for file in files)
    study.record_withdrawal(person.token)
    assert not any(b"a-word-that-occurs-once" in file.read_bytes() for file in files)
