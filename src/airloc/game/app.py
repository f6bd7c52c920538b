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

The handlers of games run on the event loop without ever waiting in the middle, so each request is one step.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from airloc.game.answers import Answers
from airloc.game.desk import Desk, Table
from airloc.game.files import page_files, respond
from airloc.game.guard import COOKIE, Guard, Limits
from airloc.game.match import Game
from airloc.game.refusal import RefusedError, no_such_game
from airloc.grid import distance

PUBLIC_CACHE = {"cache-control": "no-store"}
_SWEEP_SECONDS = 1.0


class Strict(BaseModel):
    """A request's body: no other fields, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Begin(Strict):
    """Which kind of game to begin."""

    kind: Literal["free", "recorded"] = "free"


class Move(Strict):
    """A move, and the turn that it is for."""

    turn: int = Field(ge=0, le=4096)
    move: int = Field(ge=0, le=7)


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
    app.include_router(_pages())
    app.include_router(_games(desk))
    for router in more:
        app.include_router(router)
    app.add_middleware(Guard, knows=desk.knows, limits=limits or Limits(), hosts=hosts)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RefusedError, _refused)
    return app


async def token_of(request: Request) -> str | None:
    """The player's token, as the cookie has it."""
    return request.cookies.get(COOKIE)


Token = Annotated[str | None, Depends(token_of)]


def set_token(response: Response, token: str, request: Request) -> None:
    """Hand a player the token, for this site alone and out of reach of scripts."""
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, token, max_age=30 * 86400, httponly=True, samesite="strict", secure=secure, path="/")


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


def _games(desk: Desk) -> APIRouter:
    """Games: begin, see, move, and what is told at the end."""
    router = APIRouter(prefix="/api")
    answers = {id(table): Answers(table.referee.world) for table in desk.tables()}

    def answered(table: Table, content: bytes, status: int = 200) -> Response:
        return Response(content, status, media_type="application/json", headers=PUBLIC_CACHE)

    def seat(game: str, token: str | None) -> tuple[Table, str]:
        if token is None or not desk.knows(token):
            raise no_such_game()
        return desk.table_of(game), token

    @router.get("/me")
    async def me(token: Token, request: Request) -> Response:
        admitted = desk.admit(token)
        response = JSONResponse(desk.about(admitted), headers=PUBLIC_CACHE)
        if admitted != token:
            set_token(response, admitted, request)
        return response

    @router.post("/games")
    async def begin(what: Begin, token: Token, request: Request) -> Response:
        admitted = desk.admit(token)
        table, game = desk.begin(admitted, what.kind == "recorded")
        response = answered(table, answers[id(table)].state(game, table.referee.seconds_left(game)), 201)
        if admitted != token:
            set_token(response, admitted, request)
        return response

    @router.get("/games/{game}")
    async def state(game: str, token: Token) -> Response:
        table, player = seat(game, token)
        found = table.referee.look(game, player)
        return answered(table, answers[id(table)].state(found, table.referee.seconds_left(found)))

    @router.post("/games/{game}/moves")
    async def move(game: str, wanted: Move, token: Token) -> Response:
        table, player = seat(game, token)
        try:
            moved = table.referee.move(game, player, wanted.turn, wanted.move)
        except RefusedError as refused:
            return answered(table, answers[id(table)].refusal(refused), refused.status)
        return answered(table, answers[id(table)].move(moved, table.referee.seconds_left(moved)))

    @router.get("/games/{game}/reveal")
    async def reveal(game: str, token: Token) -> Response:
        table, player = seat(game, token)
        over = _ended(table.referee.look(game, player))
        flights = await table.rivals.flights(over.episode)
        content: dict[str, Any] = {
            "ending": over.ending,
            "area": table.referee.world.names[over.episode.area],
            "start": over.episode.start,
            "goal": over.episode.goal,
            "distance": distance(over.episode.start, over.episode.goal),
            "path": over.path,
            "elapsed": round(over.elapsed, 3),
            "agents": [flight._asdict() for flight in flights],
        }
        return JSONResponse(content, headers=PUBLIC_CACHE)

    @router.get("/games/{game}/area.png")
    async def area(game: str, token: Token) -> Response:
        table, player = seat(game, token)
        over = _ended(table.referee.look(game, player))
        picture = await table.rivals.picture(over.episode.area)
        return Response(picture, media_type="image/png", headers=PUBLIC_CACHE)

    return router


def _ended(game: Game) -> Game:
    if game.ending is None:
        raise RefusedError(409, "under-way", "This game is not over yet")
    return game


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
    return JSONResponse({"error": reason, "message": message}, status, headers=PUBLIC_CACHE)
