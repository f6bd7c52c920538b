"""The parts that both servers share: addresses, body limits, header timeouts."""

import asyncio
import json
from typing import Any

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from airloc import web
from airloc.errors import AirlocError
from airloc.web import BodyLimitMiddleware, bind, is_loopback, url_of

ERRORS = {408: {"error": "slow"}, 413: {"error": "larg\u00e9"}}


def test_port_0_binds_any_free_port():
    with bind("127.0.0.1", 0) as bound:
        assert url_of(bound) == f"http://127.0.0.1:{bound.getsockname()[1]}/"


@pytest.mark.parametrize(
    ("host", "port", "fact"),
    [
        ("127.0.0.1", 70000, "70000"),
        ("127.0.0.1", -1, "-1"),
        ("192.0.2.1", 0, "192.0.2.1"),
        ("no.such.host.invalid", 0, "no.such.host.invalid"),
        ("a" * 70 + ".example", 0, "aaa"),
        ("." + "ä" * 70, 0, "ääää"),
    ],
)
def test_an_invalid_address_is_an_airloc_error_that_names_it(host: str, port: int, fact: str):
    with pytest.raises(AirlocError, match=fact) as caught:
        bind(host, port)
    assert "--port" in caught.value.cure


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_an_address_that_other_machines_can_reach_needs_public(host: str):
    with pytest.raises(AirlocError, match="--public"):
        bind(host, 0, public=False)


def test_a_public_server_is_reached_as_localhost():
    with bind("0.0.0.0", 0, public=True) as bound:
        assert url_of(bound).startswith("http://localhost:")


def test_a_port_in_use_is_an_airloc_error():
    with bind("127.0.0.1", 0) as bound:
        bound.listen()
        port = bound.getsockname()[1]
        with pytest.raises(AirlocError, match=str(port)):
            bind("127.0.0.1", port)


def test_loopback_addresses_are_those_of_this_machine_only():
    assert all(is_loopback(host) for host in ("127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "192.0.2.1", "example.org"))


def parts(chunks: list[bytes]) -> list[dict[str, Any]]:
    more = [True] * (len(chunks) - 1) + [False]
    return [{"type": "http.request", "body": chunk, "more_body": on} for chunk, on in zip(chunks, more, strict=True)]


def send_through(messages: list[dict[str, Any]], max_bytes: int = 100, timeout: float = 5.0) -> tuple[Any, list[Any]]:
    """Return what the application received, and what the middleware sent."""
    received, sent, left = [], [], list(messages)

    async def receive() -> dict[str, Any]:
        if left:
            return left.pop(0)
        await asyncio.sleep(60)
        raise AssertionError("the timeout did not fire")

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        received.append(await receive())
        if left:
            received.append(await receive())

    middleware = BodyLimitMiddleware(
        app, max_bytes=max_bytes, errors=lambda scope, status: ERRORS[status], timeout=timeout
    )
    asyncio.run(middleware({"type": "http", "headers": []}, receive, send))
    return received, sent


def status_and_content(sent: list[Any]) -> tuple[int, Any]:
    start, body = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert headers["connection"] == "close", "the rest of the body is not read"
    assert int(headers["content-length"]) == len(body["body"])
    return start["status"], json.loads(body["body"])


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=8), st.integers(0, 60))
def test_the_application_gets_the_whole_body_or_the_client_gets_413(chunks: list[bytes], limit: int):
    received, sent = send_through(parts(chunks), max_bytes=limit)
    whole = b"".join(chunks)
    if len(whole) > limit:
        assert received == []
        assert status_and_content(sent) == (413, ERRORS[413])
    else:
        assert (received, sent) == ([{"type": "http.request", "body": whole, "more_body": False}], [])


def test_a_body_that_does_not_arrive_in_time_is_answered_with_408():
    received, sent = send_through(parts([b"x", b""])[:1], timeout=0.05)
    assert received == []
    assert status_and_content(sent) == (408, ERRORS[408])


def test_a_client_that_disconnects_in_the_middle_gets_no_answer_and_reaches_no_application():
    assert send_through([*parts([b"x", b""])[:1], {"type": "http.disconnect"}]) == ([], [])


def test_after_the_body_the_application_receives_the_following_messages():
    gone = {"type": "http.disconnect"}
    received, _ = send_through([*parts([b"body"]), gone])
    assert received[1:] == [gone]


async def _slow_app(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0.3)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _responses_to(*heads: bytes) -> list[bytes]:
    """Send each request head on its own connection; return what arrives before the server closes it."""
    config = uvicorn.Config(_slow_app, http=web.TimeoutProtocol, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    responses = []
    for head in heads:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        responses.append(await asyncio.wait_for(reader.read(), 5))
        writer.close()
    server.should_exit = True
    await task
    return responses


def test_a_head_that_never_ends_closes_the_connection_and_a_slow_response_does_not(monkeypatch):
    monkeypatch.setattr(web, "HEADER_TIMEOUT", 0.1)
    silent, half, whole = asyncio.run(
        _responses_to(b"", b"GET / HTTP/1.1\r\nHost", b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    )
    assert (silent, half) == (b"", b"")
    assert b" 204 " in whole.split(b"\r\n")[0]
