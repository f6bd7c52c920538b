"""The page's own files, read into memory once and served by name: no path of a request is ever opened."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from importlib import resources
from pathlib import PurePath
from typing import NamedTuple

from fastapi import Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airloc.web import BODY_SECONDS, TooLargeError, answer, read_body, replayed

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str
    tag: str


def page_files() -> dict[str, File]:
    """All files of the page by name."""
    files = {}
    for entry in resources.files("airloc.game").joinpath("static").iterdir():
        kind = KINDS.get(PurePath(entry.name).suffix)
        if kind is not None:
            content = entry.read_bytes()
            files[entry.name] = File(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
    return files


def respond(file: File, request: Request) -> Response:
    """Answer with a file, or with the news that the browser has it already."""
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


# ---------- What stands before the server: bounds on sizes and rates, names of hosts, and headers on every answer.
# ~
# ~ Written against ASGI itself: it runs on every request, and adds microseconds.

COOKIE = "airloc"

HEADERS = {
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
"""On every answer: nothing from elsewhere, no inline script, no guessing of types, no frames."""


@dataclass(frozen=True)
class Limits:
    """What one client may ask for."""

    body: int = 2048
    """Bytes of a request's body."""
    seconds: float = BODY_SECONDS
    """For a body to come in whole."""
    rate: float = 20.0
    """Requests a second of a player, on average."""
    burst: int = 60
    """Requests of a player at once."""
    stranger_rate: float = 50.0
    """Requests a second from an address by people who are not known yet."""
    stranger_burst: int = 1000
    """Such requests at once: a class of students, or an audience, behind one address."""
    remembered: int = 50_000
    """Players and addresses whose rates are watched."""


class Buckets:
    """Token buckets: each key may act `burst` times at once and `rate` times a second on average."""

    def __init__(self, rate: float, burst: int, remembered: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._remembered, self._clock = rate, burst, remembered, clock
        self._level: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        """Take one token; False when there is none."""
        now = self._clock()
        level, since = self._level.get(key, (float(self._burst), now))
        level = min(float(self._burst), level + (now - since) * self._rate)
        allowed = level >= 1
        self._level[key] = (level - 1 if allowed else level, now)
        self._level.move_to_end(key)
        if len(self._level) > self._remembered:
            self._level.popitem(last=False)
        return allowed


class Guard:
    """Middleware that turns away what is too large, too fast or meant for another host.

    Args:
        app: What is guarded.
        knows: Whether a cookie is a known player's.
        limits: What one client may ask for.
        hosts: Names that the server answers to; None for any. Keeps web pages elsewhere from reaching a server on
            loopback under a name of their own.
    """

    def __init__(
        self, app: ASGIApp, knows: Callable[[str], bool], limits: Limits, hosts: Collection[str] | None
    ) -> None:
        self._app = app
        self._knows = knows
        self._limits = limits
        self._hosts = hosts
        self._players = Buckets(limits.rate, limits.burst, limits.remembered)
        self._strangers = Buckets(limits.stranger_rate, limits.stranger_burst, limits.remembered)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Guard one connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        try:
            body = await read_body(receive, self._limits.body, self._limits.seconds)
        except ConnectionResetError:
            return
        except TimeoutError:
            await _refuse(send, 408, "time", "The request did not come in whole in time")
        except TooLargeError:
            await _refuse(send, 413, "size", "The request is too large")
        else:
            await self._app(scope, replayed(body, receive), _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        if self._hosts is not None and host_of(headers.get("host", "")) not in self._hosts:
            return 421, "host", "This server does not answer to that name"
        if (
            not headers.get("content-length", "0").isdigit()
            or int(headers.get("content-length", 0)) > self._limits.body
        ):
            return 413, "size", "The request is too large"
        token = cookie_of(headers.get("cookie", ""))
        if token is not None and self._knows(token):
            allowed = self._players.take(token)
        else:
            allowed = self._strangers.take(str((scope.get("client") or ("",))[0]))
        return None if allowed else (429, "rate", "Too many requests; wait a moment")


def host_of(header: str) -> str:
    """The name in a host header, without its port.

    >>> host_of("localhost:8765"), host_of("[::1]:8765")
    ('localhost', '::1')
    """
    name = header.lower()
    return name[1:].split("]")[0] if name.startswith("[") else name.split(":")[0]


def cookie_of(header: str) -> str | None:
    """The player's token in a cookie header."""
    try:
        cookie = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


_HEADER_LINES = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_HEADER_LINES]
        await send(message)

    return send_with_headers


async def _refuse(send: Send, status: int, reason: str, message: str) -> None:
    later = {"retry-after": "1"} if status == 429 else None
    await answer(_with_headers(send), status, {"error": reason, "message": message}, later)
