"""The game server as a FastAPI application, with its middleware: security headers, hosts, origins, rate, body limits.

`airloc play` serves a `PlayLobby` with the routes of watching agents, `airloc study serve` a `StudyLobby` with the
routes of a study. The middleware is plain ASGI: it runs on every request and adds microseconds.
"""

import asyncio
import gc
import logging
import socket
import sqlite3
import time
import webbrowser
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from airloc import web
from airloc.game.lobby import Lobby
from airloc.game.routes import STATIC, game_routes, result_routes, token_of
from airloc.game.store import RefusedError
from airloc.web import (
    BODY_TIMEOUT,
    PRIVATE,
    SECURITY_HEADERS,
    BodyLimitMiddleware,
    SameOriginMiddleware,
    SecurityHeadersMiddleware,
)

MAX_CONNECTIONS = 2000
_CLOCK_SECONDS = 1.0
"""Interval at which late games are ended and games are written to the file."""
_LOG = logging.getLogger("uvicorn.error")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")

_BODY_ERRORS = {
    408: {"error": "timeout", "message": "The request did not arrive in time."},
    413: {"error": "size", "message": "The request is too large."},
}
_ORIGIN_ERROR = {"error": "origin", "message": "This request comes from a page of another site."}
_RATE_ERROR = {"error": "rate", "message": "Too many requests. Wait a moment."}


@dataclass(frozen=True)
class Limits:
    """Limits on the requests of one client."""

    max_body: int = 2048
    """Largest request body in bytes."""
    body_timeout: float = BODY_TIMEOUT
    """Seconds for a body to arrive."""
    player_rate: float = 20.0
    """Requests per second of a player, on average."""
    player_burst: int = 60
    """Requests of a player at once."""
    visitor_rate: float = 50.0
    """Requests per second from one address without a player's cookie."""
    visitor_burst: int = 1000
    """Such requests at once; a whole class may share one address."""
    max_clients: int = 50_000
    """Players and addresses whose rates are tracked; the longest idle is dropped first."""


def make_app(
    lobby: Lobby,
    *,
    routers: Sequence[APIRouter] = (),
    limits: Limits | None = None,
    hosts: Sequence[str] | None = None,
) -> FastAPI:
    """Make the application.

    Args:
        lobby: Admits players and begins their games.
        routers: Routes of a study or of watching agents.
        limits: Limits on the requests of one client.
        hosts: Host names that the server answers to; None for any.
    """
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan(lobby),
        middleware=make_middleware(lobby.is_player, limits or Limits(), hosts),
        exception_handlers={
            RequestValidationError: _invalid_request,
            HTTPException: _http_error,
            RefusedError: _refused,
            sqlite3.Error: _storage_failed,
            Exception: _failed,
        },
    )
    for router in (game_routes(lobby), result_routes(lobby), *routers):
        app.include_router(router)
    app.mount("/static", STATIC)
    return app


def serve(app: FastAPI, bound: socket.socket, *, open_url: str | None = None) -> None:
    """Serve on a bound socket until Ctrl-C; open `open_url` in the browser once the server is ready."""
    # Keep the garbage collector from scanning what was loaded at the start: it would delay responses.
    gc.collect()
    gc.freeze()
    server = web.make_server(app, max_connections=MAX_CONNECTIONS)
    web.serve(server, bound, on_ready=None if open_url is None else lambda: webbrowser.open(open_url))


def _lifespan(lobby: Lobby) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Run the clock of the lobby's games while the server runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(_run_clock(lobby))
        yield
        task.cancel()

    return lifespan


async def _run_clock(lobby: Lobby) -> None:
    """End late games and write ended games to the file, whatever happens; log when that fails and works again."""
    works = True
    while True:
        await asyncio.sleep(_CLOCK_SECONDS)
        try:
            for room in lobby.rooms:
                await lobby.run(room.end_late_games)
                await asyncio.to_thread(room.store.checkpoint)
        except Exception as error:  # without this clock abandoned games would never end
            if works:
                _LOG.error("Late games cannot be ended: %s. The server tries again every second.", error)
            works = False
        else:
            if not works:
                _LOG.warning("Late games are ended again.")
            works = True


async def _invalid_request(request: Request, error: Exception) -> Response:
    return _error(422, "invalid", "The request is invalid.")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return await _invalid_request(request, error)
    return _error(error.status_code, "not-found", "This address does not exist, or does not allow this method.")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _error(error.status, error.reason, error.message)


async def _storage_failed(request: Request, error: Exception) -> Response:
    """Tell the player to try again: a failed transaction has changed nothing."""
    _LOG.error("The games cannot be stored: %s. Check the disk, and whether another program uses the file.", error)
    return _error(503, "storage", "The server cannot save games at the moment. Nothing is lost: try again in a moment.")


async def _failed(request: Request, error: Exception) -> Response:
    """Answer outside the middleware, which an unexpected error has left."""
    response = _error(500, "failed", "The server made an error. Nothing is lost: try again in a moment.")
    response.headers.update(SECURITY_HEADERS)
    return response


def _error(status: int, reason: str, message: str) -> Response:
    return JSONResponse({"error": reason, "message": message}, status, headers=PRIVATE)


def make_middleware(
    is_player: Callable[[str], bool], limits: Limits, hosts: Sequence[str] | None = None
) -> list[Middleware]:
    """Return the middleware of the game server, outermost first.

    Args:
        is_player: Returns True for the token of a known player.
        limits: Limits on the requests of one client.
        hosts: Host names that the server answers to; None for any. A list protects a server on loopback from DNS
            rebinding.
    """
    return [
        Middleware(SecurityHeadersMiddleware),
        *([] if hosts is None else [Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)]),
        Middleware(SameOriginMiddleware, error=_ORIGIN_ERROR, hosts=set(hosts or ()) - set(LOOPBACK_HOSTS)),
        Middleware(RateLimitMiddleware, is_player=is_player, limits=limits),
        Middleware(BodyLimitMiddleware, max_bytes=limits.max_body, errors=_body_error, timeout=limits.body_timeout),
    ]


def _body_error(scope: Scope, status: int) -> Mapping[str, str]:
    return _BODY_ERRORS[status]


class RateLimitMiddleware:
    """Answers 429 to players and addresses that send too many requests."""

    def __init__(self, app: ASGIApp, is_player: Callable[[str], bool], limits: Limits) -> None:
        self._app = app
        self._is_player = is_player
        self._players = TokenBuckets(limits.player_rate, limits.player_burst, limits.max_clients)
        self._visitors = TokenBuckets(limits.visitor_rate, limits.visitor_burst, limits.max_clients)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or self._allows(HTTPConnection(scope)):
            await self._app(scope, receive, send)
        else:
            headers = {"retry-after": "1", "cache-control": "no-store"}
            await JSONResponse(_RATE_ERROR, 429, headers)(scope, receive, send)

    def _allows(self, request: HTTPConnection) -> bool:
        token = token_of(request)
        if token is not None and self._is_player(token):
            return self._players.take(token)
        return self._visitors.take(request.client.host if request.client else "")


class TokenBuckets:
    """One token bucket per key: `burst` requests at once, `rate` requests per second on average.

    Args:
        rate: Tokens per second.
        burst: Capacity of a bucket.
        max_keys: Number of buckets; the longest unused is dropped first.
        clock: Monotonic time in seconds.
    """

    def __init__(self, rate: float, burst: int, max_keys: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._max_keys, self._clock = rate, burst, max_keys, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        """Take one token; return False if the bucket is empty."""
        now = self._clock()
        level, since = self._buckets.get(key, (float(self._burst), now))
        level = min(float(self._burst), level + (now - since) * self._rate)
        allowed = level >= 1
        self._buckets[key] = (level - 1 if allowed else level, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return allowed
