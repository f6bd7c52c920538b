"""A client that does not finish the head of its request is hung up on; one that does is not."""

import asyncio
from typing import Any

import uvicorn

from airloc import web as patience


async def _app(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0.3)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _say(*heads: bytes) -> list[bytes]:
    """What the server answers to each of these beginnings of requests before it hangs up."""
    config = uvicorn.Config(_app, http=patience.TimeoutProtocol, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    answers = []
    for head in heads:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        answers.append(await asyncio.wait_for(reader.read(), 5))
        writer.close()
    server.should_exit = True
    await task
    return answers


def test_a_head_that_never_ends_is_hung_up_on_and_a_slow_answer_is_not(monkeypatch):
    monkeypatch.setattr(patience, "SECONDS", 0.1)
    silent, half, whole = asyncio.run(
        _say(b"", b"GET / HTTP/1.1\r\nHost", b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    )
    assert (silent, half) == (b"", b"")
    assert b" 204 " in whole.split(b"\r\n")[0]
