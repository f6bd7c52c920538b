"""Bodies: read whole however they come in, given on unchanged, refused beyond their bounds."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.web import TooLargeError, answer, read_body, replayed


def coming(messages: list[dict[str, Any]]):
    """A connection on which these messages come in, and then nothing."""
    left = list(messages)

    async def receive() -> dict[str, Any]:
        if left:
            return left.pop(0)
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")

    return receive


def parts(chunks: list[bytes]) -> list[dict[str, Any]]:
    more = [True] * (len(chunks) - 1) + [False]
    return [{"type": "http.request", "body": chunk, "more_body": on} for chunk, on in zip(chunks, more, strict=True)]


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=8), st.integers(0, 60))
def test_a_body_comes_whole_or_is_too_large_however_it_is_cut(chunks: list[bytes], limit: int):
    async def read() -> bytes:
        return await read_body(coming(parts(chunks)), limit)

    whole = b"".join(chunks)
    if len(whole) > limit:
        with pytest.raises(TooLargeError):
            asyncio.run(read())
    else:
        assert asyncio.run(read()) == whole


def test_a_body_that_never_ends_or_is_broken_off_is_none():
    first = {"type": "http.request", "body": b"x", "more_body": True}

    async def read(messages: list[dict[str, Any]]) -> bytes:
        return await read_body(coming(messages), 100, seconds=0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(read([first]))
    with pytest.raises(ConnectionResetError):
        asyncio.run(read([first, {"type": "http.disconnect"}]))


def test_what_was_read_is_given_on_once_and_then_what_else_comes():
    gone = {"type": "http.disconnect"}

    async def work() -> list[Any]:
        receive = replayed(b"body", coming([gone]))
        return [await receive(), await receive()]

    assert asyncio.run(work()) == [{"type": "http.request", "body": b"body", "more_body": False}, gone]


@pytest.mark.parametrize(("status", "closes"), [(408, True), (413, True), (421, False), (429, False)])
def test_an_answer_hangs_up_only_where_more_of_the_request_may_come(status: int, closes: bool):
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(answer(send, status, {"problem": "é"}, {"retry-after": "1"}))
    start, body = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert start["status"] == status
    assert ("connection" in headers) == closes
    assert headers["retry-after"] == "1"
    assert int(headers["content-length"]) == len(body["body"])
    assert json.loads(body["body"]) == {"problem": "é"}
