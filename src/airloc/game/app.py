"""The game server as a FastAPI application.

`airloc play` serves a `PlayLobby` with the routes of watching agents, `airloc study serve` a `StudyLobby` with the
routes of a study.
"""

import asyncio
import gc
import logging
import socket
import sqlite3
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from airloc import web
from airloc.game.lobby import Lobby
from airloc.game.match import RefusedError
from airloc.game.middleware import Limits, make_middleware
from airloc.game.routes import PRIVATE, STATIC, game_routes, result_routes

MAX_CONNECTIONS = 2000
_CLOCK_SECONDS = 1.0
"""Interval at which late games are ended."""


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
    """End late games while the server runs."""

    async def end_late_games() -> None:
        while True:
            await asyncio.sleep(_CLOCK_SECONDS)
            for room in lobby.rooms:
                with suppress(sqlite3.Error):  # the player's next request ends the game, or reports the error
                    room.end_late_games()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(end_late_games())
        yield
        task.cancel()

    return lifespan


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
    logging.getLogger("uvicorn.error").error(
        "The games cannot be stored: %s. Check the disk and its free space.", error
    )
    return _error(503, "storage", "The server cannot save games at the moment. Nothing is lost: try again in a moment.")


def _error(status: int, reason: str, message: str) -> Response:
    return JSONResponse({"error": reason, "message": message}, status, headers=PRIVATE)
