"""Bodies of requests, read whole within bounds before an application sees them; and answers from before it.

Written against ASGI itself: it runs on every request, and adds microseconds.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.types import Message, Receive, Send

SECONDS = 30.0
"""For a request to come in whole."""

CLOSING = frozenset({408, 413})
"""Statuses after which the rest of the request is not worth reading."""


class TooLargeError(Exception):
    """A body that is larger than allowed."""


async def read_body(receive: Receive, max_bytes: int, seconds: float = SECONDS) -> bytes:
    """Read a body that may come in parts.

    Raises:
        TooLargeError: When it is larger than allowed; the rest is not read.
        TimeoutError: When it is not whole in time.
        ConnectionResetError: When the client hangs up before the end: half a body is none, and nobody waits.
    """
    parts, size, more = [], 0, True
    async with asyncio.timeout(seconds):
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ConnectionResetError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > max_bytes:
                raise TooLargeError
            more = message.get("more_body", False)
    return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read to the application, then what else comes."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def answer(send: Send, status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
    """Answer a request in JSON without the application; hang up where more of the request may come."""
    body = json.dumps(content).encode()
    lines = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **(headers or {}),
        **({"connection": "close"} if status in CLOSING else {}),
    }
    encoded = [(name.encode(), value.encode()) for name, value in lines.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
