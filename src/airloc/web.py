"""Addresses that servers listen on."""

import asyncio
import ipaddress
import json
import socket
from collections.abc import Mapping
from typing import Any

import h11
from starlette.types import Message, Receive, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from airloc.errors import AirlocError


def take_address(host: str, port: int) -> socket.socket:
    """Take an address, before anything else is done; port 0 takes any that is free.

    Raises:
        AirlocError: When it cannot be taken.
    """
    if not 0 <= port <= 65535:
        raise AirlocError(f"There is no port {port}", "Give a port from 1 to 65535, or 0 for any that is free")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.socket(family, kind, protocol)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except (OSError, UnicodeError) as error:  # a name that no network knows may not even be text for one
        reason = getattr(error, "strerror", None) or error
        cure = "Give another --port or --host; port 0 takes any that is free"
        raise AirlocError(f"Cannot listen on {host}, port {port}: {reason}", cure) from error
    return taken


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_of(taken: socket.socket) -> str:
    """Where a client on this machine finds the server."""
    host, port = taken.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


# ---------- Bodies of requests, read whole within bounds before an application sees them; and answers from before it.
# ~
# ~ Written against ASGI itself: it runs on every request, and adds microseconds.

BODY_SECONDS = 30.0
"""For a request to come in whole."""

CLOSING = frozenset({408, 413})
"""Statuses after which the rest of the request is not worth reading."""


class TooLargeError(Exception):
    """A body that is larger than allowed."""


async def read_body(receive: Receive, max_bytes: int, seconds: float = BODY_SECONDS) -> bytes:
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


# ---------- HTTP that does not wait for ever for what a client wants.
# ~

REQUEST_SECONDS = 30.0
"""For the head of a request to come in whole."""


class TimeoutProtocol(H11Protocol):
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
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hang_up(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.close()
