"""What both servers share: the socket, limits on requests, security headers, the cookie and the uvicorn server.

Needs the extra `web` (FastAPI and uvicorn). Only `airloc.game`, `airloc.missions` and the commands that start them
import this module.
"""

import asyncio
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from airloc.errors import AirlocError

HEADER_TIMEOUT = 30.0
"""Seconds for the head of a request to arrive."""
BODY_TIMEOUT = 30.0
"""Seconds for the body of a request to arrive."""
COOKIE_SECONDS = 30 * 86400
PRIVATE = {"cache-control": "no-store"}
"""Header of responses that are for one person only."""
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every response: nothing from other sites, no inline scripts, no content sniffing, no frames."""


def bind(host: str, port: int, *, public: bool = True) -> socket.socket:
    """Bind a TCP socket, so that a wrong address is an error before any other work.

    Args:
        host: Host name or IP address.
        port: Port number; 0 takes any free port.
        public: Allow addresses that other machines can reach.

    Raises:
        AirlocError: If the address is invalid, in use, or public without `public`.
    """
    if not public and not is_loopback(host):
        raise AirlocError(f"Other machines can reach the address {host}", "Add --public to allow that")
    if not 0 <= port <= 65535:
        raise AirlocError(f"Port {port} does not exist", "Give a --port from 1 to 65535, or 0 for any free port")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that cannot be encoded for DNS
        reason = getattr(error, "strerror", None) or error
        cure = "Give another --port or --host; port 0 takes any free port"
        raise AirlocError(f"Cannot listen on {host}, port {port}: {reason}", cure) from error
    return bound


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_of(bound: socket.socket) -> str:
    """Return the URL under which a client on this machine reaches the server."""
    host, port = bound.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def cookie_name(request: HTTPConnection) -> str:
    """Return the name of the cookie, which has the port: browsers send a cookie to all ports of a host."""
    return f"airloc-{request.scope['server'][1]}"


def set_cookie(response: Response, value: str, request: Request) -> None:
    """Set the cookie, for this site only and out of reach of scripts."""
    secure = request.url.scheme == "https"
    response.set_cookie(
        cookie_name(request), value, max_age=COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure, path="/"
    )


def make_server(
    app: ASGIApp, *, max_connections: int, keep_alive: int = 75, on_shutdown: Callable[[], object] = lambda: None
) -> uvicorn.Server:
    """Make a uvicorn server that logs no client addresses and drops idle or stalled connections.

    Args:
        app: The application.
        max_connections: Open connections; further requests are answered with 503.
        keep_alive: Seconds that an idle connection stays open.
        on_shutdown: Called before the server waits for open connections, to end streams.
    """
    config = uvicorn.Config(
        app,
        http=TimeoutProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=True,  # uvicorn trusts only a proxy on this machine by default
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=5,
        limit_concurrency=max_connections,
        h11_max_incomplete_event_size=16 * 1024,
    )
    return _Server(config, on_shutdown)


class _Server(uvicorn.Server):
    """A server that ends its streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, on_shutdown: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_shutdown = on_shutdown

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, and shut down."""
        self._on_shutdown()
        await super().shutdown(sockets)


def serve(server: uvicorn.Server, bound: socket.socket, *, on_ready: Callable[[], object] | None = None) -> None:
    """Run a server until Ctrl-C or SIGTERM; requests in progress are answered first.

    Args:
        server: The server.
        bound: The socket to listen on.
        on_ready: Called from another thread once the server accepts connections.
    """
    if on_ready is not None:
        threading.Thread(target=_call_when_started, args=(server, on_ready), daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.run(sockets=[bound])


def _call_when_started(server: uvicorn.Server, callback: Callable[[], object]) -> None:
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.01)
    callback()


class BodyLimitMiddleware:
    """ASGI middleware that reads a request body within limits before it calls the application.

    The application sees the whole body or is not called. A body that is too large is answered with 413, a body that
    does not arrive in time with 408; the connection closes then, because the rest of the body is not read.

    Args:
        app: The application.
        max_bytes: Largest body in bytes.
        errors: Returns the JSON content of a response with status 408 or 413.
        timeout: Seconds for the body to arrive.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int,
        errors: Callable[[Scope, int], Mapping[str, Any]],
        timeout: float = BODY_TIMEOUT,
    ) -> None:
        self._app, self._max_bytes, self._errors, self._timeout = app, max_bytes, errors, timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if int(Headers(scope=scope).get("content-length", 0)) > self._max_bytes:
                raise _TooLargeError
            async with asyncio.timeout(self._timeout):
                body = await _read_body(receive, self._max_bytes)
        except ConnectionResetError:
            return  # the client is gone
        except (TimeoutError, _TooLargeError) as error:
            status = 413 if isinstance(error, _TooLargeError) else 408
            headers = {"cache-control": "no-store", "connection": "close"}
            await JSONResponse(self._errors(scope, status), status, headers)(scope, receive, send)
        else:
            await self._app(scope, _replay(body, receive), send)


class _TooLargeError(Exception):
    """The body exceeds the limit."""


async def _read_body(receive: Receive, max_bytes: int) -> bytes:
    """Read a body that arrives in parts."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionResetError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > max_bytes:
            raise _TooLargeError
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the whole body first."""
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class SecurityHeadersMiddleware:
    """Adds `SECURITY_HEADERS` to every response; browsers revalidate whatever has no cache header of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("cache-control", "no-cache")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class SameOriginMiddleware:
    """Answers 403 to requests that change something and that a page of another site, or of another port, has sent.

    Args:
        app: The application.
        error: JSON content of the response.
        hosts: Host names of the server besides that in the request, such as that of a proxy in front of it.
    """

    def __init__(self, app: ASGIApp, *, error: Mapping[str, Any], hosts: Collection[str] = ()) -> None:
        self._app, self._error, self._hosts = app, error, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if (
            scope["type"] != "http"
            or scope["method"] in ("GET", "HEAD", "OPTIONS")
            or self._allows(Headers(scope=scope))
        ):
            await self._app(scope, receive, send)
        else:
            await JSONResponse(self._error, 403, PRIVATE)(scope, receive, send)

    def _allows(self, headers: Headers) -> bool:
        """Browsers say whether the page is of the same origin, or, over plain HTTP, only which origin it is of."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None or origin is None:
            return site in ("same-origin", "none", None)
        host = origin.partition("://")[2]
        return host == headers.get("host") or host.partition(":")[0] in self._hosts


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 protocol that closes a connection whose request head does not arrive within `HEADER_TIMEOUT`."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timer once the head is complete; start it again for the next request."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._timer is None:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEADER_TIMEOUT, self._close_if_idle)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_if_idle(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.close()
