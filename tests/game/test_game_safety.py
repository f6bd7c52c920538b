"""Bounds, headers, cookies, hosts, addresses."""

import socket

import pytest

from airloc.errors import AirlocError
from airloc.game.app import listen, make_app
from airloc.game.lobby import FreeTable, PlayDesk
from airloc.game.middleware import Buckets, Limits
from airloc.web import is_loopback, url_of
from game_hall import Client, free_table, noise_world, playing


def test_every_answer_carries_the_headers():
    with playing(free_table()) as url:
        client = Client(url)
        game = client.begin()["game"]
        paths = ["/", "/static/game.js", "/api/me", f"/api/games/{game}", "/nothing", "/static/../app.py"]
        for answer in [client.ask("GET", path) for path in paths] + [client.move(game, 7, 7)]:
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "server" not in answer.headers
        client.close()


def test_the_cookie_is_for_this_site_alone_and_out_of_reach_of_scripts():
    with playing(free_table()) as url:
        client = Client(url)
        cookie = client.ask("GET", "/api/me").headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert len(cookie.split(";")[0]) >= len("airloc=") + 32
        assert "set-cookie" not in client.ask("GET", "/api/me").headers
        client.close()


def test_no_path_of_a_request_is_opened():
    with playing(free_table()) as url:
        client = Client(url)
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/..%2fapp.py"):
            assert client.ask("GET", path).status == 404
        client.close()


def test_unchanged_files_are_not_sent_again():
    with playing(free_table()) as url:
        client = Client(url)
        tag = client.ask("GET", "/static/game.js").headers["etag"]
        again = client.ask("GET", "/static/game.js", headers={"If-None-Match": tag})
        assert (again.status, again.body) == (304, b"")
        client.close()


def test_a_body_in_chunks_is_bounded_too():
    with playing(free_table()) as url, socket.create_connection(url.split("/")[2].split(":")) as raw:
        raw.sendall(b"POST /api/games HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        raw.sendall(b"1000\r\n" + b" " * 0x1000 + b"\r\n")
        assert b" 413 " in raw.recv(1000).split(b"\r\n")[0]


def test_a_request_that_never_ends_is_given_up():
    with (
        playing(free_table(), Limits(seconds=0.2)) as url,
        socket.create_connection(url.split("/")[2].split(":")) as raw,
    ):
        raw.settimeout(10)
        raw.sendall(b"POST /api/games HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        assert b" 408 " in raw.recv(1000).split(b"\r\n")[0]
        client = Client(url)
        assert client.ask("GET", "/api/me").status == 200
        client.close()


def test_players_and_strangers_are_slowed_down():
    limits = Limits(rate=1, burst=5, stranger_rate=1, stranger_burst=8)
    with playing(free_table(), limits) as url:
        client = Client(url)
        client.ask("GET", "/api/me")
        statuses = [client.ask("GET", "/api/me").status for _ in range(7)]
        assert statuses == [200] * 5 + [429] * 2
        stranger = Client(url)
        statuses = []
        for _ in range(9):
            stranger.cookie = "airloc=made-up"
            statuses.append(stranger.ask("GET", "/").status)
        assert statuses[0] == 200
        assert statuses[-1] == 429
        client.close()
        stranger.close()


def test_a_bucket_fills_again_with_time_and_only_so_many_are_remembered():
    now = [0.0]
    buckets = Buckets(rate=2, burst=3, remembered=2, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    buckets.take("b")
    buckets.take("c")
    assert buckets.take("a"), "the oldest is forgotten"


def test_only_so_many_visitors_and_games_are_kept():
    plain = free_table(noise_world(2, "2x2"))
    table = FreeTable(plain.referee, plain.baselines, games=4)
    lobby = PlayDesk(table, visitors=3)
    visitors = [lobby.admit(None) for _ in range(4)]
    assert [lobby.knows(visitor) for visitor in visitors] == [False, True, True, True]
    for _ in range(7):
        lobby.begin(visitors[-1], recorded=False)
    assert len(table.referee.store.games_of(visitors[-1])) == 4
    for _ in range(3):
        lobby.admit(None)
    assert table.referee.store.games_of(visitors[-1]) == [], "gone with the visitor"


def test_a_server_on_loopback_answers_to_no_other_name():
    with playing(free_table()) as url:
        client = Client(url)
        assert client.ask("GET", "/", headers={"Host": "evil.example"}).status == 421
        assert client.ask("GET", "/", headers={"Host": "localhost:1"}).status == 200
        client.close()
    assert make_app(PlayDesk(free_table()), hosts=None)


def test_other_addresses_than_loopback_need_a_flag():
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        with pytest.raises(AirlocError, match="--public"):
            listen(host, 0, public=False)
    with listen("0.0.0.0", 0, public=True) as taken:
        assert url_of(taken).startswith("http://localhost:")
    assert is_loopback("127.1.2.3")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("example.org")


def test_a_port_that_is_taken_or_none_is_an_error_for_people():
    with listen("127.0.0.1", 0, public=False) as taken:
        taken.listen()
        with pytest.raises(AirlocError, match="another --port"):
            listen("127.0.0.1", taken.getsockname()[1], public=False)
    with pytest.raises(AirlocError, match="no port 70000"):
        listen("127.0.0.1", 70000, public=False)
