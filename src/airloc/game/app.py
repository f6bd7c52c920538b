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
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from airloc.game.desk import Desk
from airloc.game.files import page_files, respond
from airloc.game.game_routes import ending_routes, playing_routes
from airloc.game.guard import Guard, Limits
from airloc.game.refusal import RefusedError
from airloc.game.requests import PRIVATE

_SWEEP_SECONDS = 1.0


def make_app(
    desk: Desk,
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
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan(desk))
    for router in (_pages(), playing_routes(desk), ending_routes(desk), *more):
        app.include_router(router)
    app.add_middleware(Guard, knows=desk.knows, limits=limits or Limits(), hosts=hosts)
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


def _lifespan(desk: Desk) -> Any:
    """End games by time while the server runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async def sweep() -> None:
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                for table in desk.tables():
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
