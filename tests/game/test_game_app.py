"""The middleware of the application limits every client."""

import socket
from collections.abc import Iterator

import pytest

from airloc.game import Limits
from airloc.game.app import TokenBuckets
from airloc.web import SECURITY_HEADERS
from game_server import Client, play_room, playing


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with playing(play_room()) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    client = Client(url)
    yield client
    client.close()


def test_every_response_carries_the_security_headers(client: Client):
    game = client.begin()["game"]
    paths = ["/", "/static/game.js", "/api/me", f"/api/games/{game}", "/nothing", "/static/../app.py"]
    refused = [client.move(game, 7, 7), client.ask("GET", "/", headers={"Host": "evil.example"})]
    for answer in [client.ask("GET", path) for path in paths] + refused:
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in answer.headers


def test_the_cookie_is_for_this_site_only_and_out_of_reach_of_scripts(client: Client):
    cookie = client.ask("GET", "/api/me").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert len(cookie.split(";")[0].split("=")[1]) >= 32
    assert "set-cookie" not in client.ask("GET", "/api/me").headers


def test_servers_on_two_ports_of_a_host_have_cookies_of_their_own(url: str):
    client = Client(url)
    first = client.ask("GET", "/api/me").headers["set-cookie"]
    with playing(play_room()) as other_url:
        other = Client(other_url)
        other.cookie = client.cookie  # browsers send it to every port
        second = other.ask("GET", "/api/me").headers["set-cookie"]
        other.close()
    client.close()
    assert first.split("=")[0] != second.split("=")[0]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://study.example.org"}, 201),
        ({"Origin": "http://{host}"}, 201),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
    ],
)
def test_a_page_of_another_origin_changes_nothing(url: str, client: Client, headers: dict[str, str], status: int):
    sent = {name: value.format(host=url.split("/")[2]) for name, value in headers.items()}
    assert client.ask("POST", "/api/games", {}, sent).status == status
    assert client.ask("GET", "/", headers=sent).status == 200


def test_an_unexpected_error_is_one_sentence_with_the_security_headers(monkeypatch: pytest.MonkeyPatch):
    room = play_room()
    monkeypatch.setattr(room, "tally", lambda player: 1 / 0)
    with playing(room) as url:
        client = Client(url)
        answer = client.ask("GET", "/api/me")
        client.close()
    assert (answer.status, answer.json["error"]) == (500, "failed")
    assert SECURITY_HEADERS.items() <= answer.headers.items()


def test_only_the_files_of_the_page_are_served(client: Client):
    paths = ("/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/..%2fapp.py", "/static/")
    assert [client.ask("GET", path).status for path in paths] == [404] * len(paths)


def test_an_unchanged_file_is_not_sent_again(client: Client):
    tag = client.ask("GET", "/static/game.js").headers["etag"]
    again = client.ask("GET", "/static/game.js", headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")


def test_a_server_with_a_list_of_hosts_refuses_other_hosts(client: Client):
    for host in ("evil.example", "localhost.evil.example", "evil.example:8765", "", "[::2]:1"):
        assert client.ask("GET", "/", headers={"Host": host}).status == 400
    for host in ("localhost:1", "127.0.0.1", "[::1]:8765"):
        assert client.ask("GET", "/", headers={"Host": host}).status == 200


def test_a_chunked_body_is_limited_too(url: str):
    with socket.create_connection(url.split("/")[2].split(":")) as raw:
        raw.sendall(b"POST /api/games HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        raw.sendall(b"1000\r\n" + b" " * 0x1000 + b"\r\n")
        assert b" 413 " in raw.recv(1000).split(b"\r\n")[0]


def test_a_request_that_never_ends_is_answered_with_408_and_holds_nobody_up():
    limits = Limits(body_timeout=0.2)
    with playing(play_room(), limits) as url, socket.create_connection(url.split("/")[2].split(":")) as raw:
        raw.settimeout(10)
        raw.sendall(b"POST /api/games HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        assert b" 408 " in raw.recv(1000).split(b"\r\n")[0]
        client = Client(url)
        assert client.ask("GET", "/api/me").status == 200
        client.close()


def test_too_many_requests_of_a_player_or_a_visitor_are_answered_with_429():
    limits = Limits(player_rate=1e-3, player_burst=5, visitor_rate=1e-3, visitor_burst=8)
    with playing(play_room(), limits) as url:
        client = Client(url)
        client.ask("GET", "/api/me")
        assert [client.ask("GET", "/api/me").status for _ in range(7)] == [200] * 5 + [429] * 2
        visitor, statuses = Client(url), []
        for _ in range(9):
            visitor.cookie = "airloc=made-up"
            statuses.append(visitor.ask("GET", "/").status)
        assert statuses == [200] * 7 + [429] * 2, "one of eight was the player's first request"
        client.close()
        visitor.close()


def test_a_bucket_refills_with_time_and_the_longest_unused_is_dropped():
    now = [0.0]
    buckets = TokenBuckets(rate=2, burst=3, max_keys=2, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    buckets.take("b")
    buckets.take("c")
    assert buckets.take("a"), "its bucket was dropped"
