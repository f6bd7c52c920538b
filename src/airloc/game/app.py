"""The server of the game, as an application: pages, games, and what a study or the watching adds.

| route                          | answer                                                                     |
|--------------------------------|----------------------------------------------------------------------------|
| GET /                          | the page                                                                   |
| GET /api/me                    | who plays, what can be played, the game under way                          |
| POST /api/games                | begin a game                                                               |
| GET /api/games/ID              | all that was seen of a game, for a page that was loaded anew               |
| POST /api/games/ID/moves       | make a move: `{"turn": 3, "move": 0}`                                      |
| GET /api/games/ID/reveal       | after the end: the goal, the shortest path, the agents' paths              |
| GET /api/games/ID/area.png     | after the end: the whole area                                              |
"""

import asyncio
import gc
import socket
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from airloc.errors import AirlocError
from airloc.game.lobby import Lobby
from airloc.game.match import RefusedError
from airloc.game.messages import PRIVATE
from airloc.game.middleware import Guard, Limits, page_files, respond
from airloc.game.routes import ending_routes, playing_routes
from airloc.web import TimeoutProtocol, is_loopback, take_address

_SWEEP_SECONDS = 1.0


def make_app(
    lobby: Lobby,
    *,
    limits: Limits | None = None,
    hosts: Sequence[str] | None = None,
    more: Sequence[APIRouter] = (),
) -> FastAPI:
    """Make the application.

    Args:
        desk: Who plays, and what.
        limits: What one client may ask for.
        hosts: Names that the server answers to; None for any.
        more: Further routes.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan(lobby))
    for router in (_pages(), playing_routes(lobby), ending_routes(lobby), *more):
        app.include_router(router)
    app.add_middleware(Guard, knows=lobby.knows, limits=limits or Limits(), hosts=hosts)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RefusedError, _refused)
    return app


def _pages() -> APIRouter:
    """The page and its files."""
    router, files = APIRouter(), page_files()

    @router.get("/")
    async def page(request: Request) -> Response:
        return respond(files["index.html"], request)

    @router.get("/static/{name}")
    async def file(name: str, request: Request) -> Response:
        if name not in files:
            raise RefusedError(404, "no-file", "There is no such file")
        return respond(files[name], request)

    return router


def _lifespan(lobby: Lobby) -> Any:
    """End games by time while the server runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async def sweep() -> None:
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                for table in lobby.tables():
                    table.referee.expire()

        task = asyncio.create_task(sweep())
        yield
        task.cancel()

    return lifespan


async def _malformed(request: Request, error: Exception) -> Response:
    return _error(422, "malformed", "The request is not what this address takes")


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 400:
        return await _malformed(request, error)
    return _error(status, "no-such-thing", "There is nothing at this address, or not in this way")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _error(error.status, error.reason, error.message)


def _error(status: int, reason: str, message: str) -> Response:
    return JSONResponse({"error": reason, "message": message}, status, headers=PRIVATE)


# ---------- Running the server: the address, the port, the browser, the end.
# ~

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def listen(host: str, port: int, *, public: bool) -> socket.socket:
    """Take an address, before anything else is done.

    Args:
        host: The address; anything but loopback only where `public` says so.
        port: The port; 0 takes any that is free.
        public: Whether others than this machine may reach it.

    Raises:
        AirlocError: When the address cannot be taken.
    """
    if not public and not is_loopback(host):
        raise AirlocError(f"The address {host} can be reached from other machines", "Add --public if that is meant")
    return take_address(host, port)


def serve(app: FastAPI, taken: socket.socket, *, on_ready: Callable[[], None] = lambda: None) -> None:
    """Serve until interrupted, which is how a server ends; requests under way are answered first."""
    server = make_server(app)
    ready = threading.Thread(target=_when_started, args=(server, on_ready), daemon=True)
    ready.start()
    # What the start left behind stays: the collector need not go through it while people wait.
    gc.collect()
    gc.freeze()
    with suppress(KeyboardInterrupt):
        server.run(sockets=[taken])


def make_server(app: FastAPI) -> uvicorn.Server:
    """The server, quiet: no addresses of people are written anywhere."""
    config = uvicorn.Config(
        app,
        http=TimeoutProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=True,  # of a proxy on this machine alone, which is uvicorn's default
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
        limit_concurrency=2000,
        h11_max_incomplete_event_size=16 * 1024,
    )
    return uvicorn.Server(config)


def open_browser(url: str) -> None:
    """Open a page in the person's browser; without one nothing happens."""
    webbrowser.open(url)


def _when_started(server: uvicorn.Server, then: Callable[[], None]) -> None:
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.01)
    then()
