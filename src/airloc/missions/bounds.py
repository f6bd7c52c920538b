"""What a request may cost: bytes, seconds, and how long a client may take to say what it wants."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_BYTES = 40_000_000
SECONDS = 30.0
"""For a request to come in whole."""


class Bounded:
    """Refuses requests that are too large or never end; gives the others to an application whole.

    Args:
        app: The application.
        max_bytes: Largest body.
        seconds: Longest time for a body to come in.
    """

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BYTES, seconds: float = SECONDS) -> None:
        self._app, self._max_bytes, self._seconds = app, max_bytes, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._body(receive)
        except ConnectionResetError:
            return  # half a photo is none, and nobody waits for an answer
        except TimeoutError:
            await _refuse(send, 408, "The request did not come in whole in time", "Send it again over a better link")
            return
        if body is None:
            problem = f"The request is larger than {self._max_bytes / 1e6:.0f} MB"
            await _refuse(send, 413, problem, "Send a smaller picture")
            return
        await self._app(scope, _replay(body, receive), send)

    async def _body(self, receive: Receive) -> bytes | None:
        """Read the body; None when it is too large.

        Raises:
            ConnectionResetError: When the client hangs up before the end.
        """
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > self._max_bytes:
                return None
        return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read already, then what else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(send: Send, status: int, problem: str, cure: str) -> None:
    body = json.dumps({"problem": problem, "cure": cure}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    start: MutableMapping[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})


class ImpatientProtocol(H11Protocol):
    """HTTP that hangs up on a client which does not finish the head of its request."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and go on waiting while the head is not whole."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(SECONDS, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hang_up(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.close()
