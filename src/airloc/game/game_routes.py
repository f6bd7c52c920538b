"""The routes of games: begin, see, move; and, after the end, what there was to be found."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from airloc.game.desk import Desk, Table
from airloc.game.match import Game
from airloc.game.refusal import RefusedError, no_such_game
from airloc.game.requests import PRIVATE, Strict, Token, set_token
from airloc.game.rivals import Flight
from airloc.grid import distance


class Begin(Strict):
    """Which kind of game to begin."""

    kind: Literal["free", "recorded"] = "free"


class Move(Strict):
    """A move, and the turn that it is for."""

    turn: int = Field(ge=0, le=4096)
    move: int = Field(ge=0, le=7)


def playing_routes(desk: Desk) -> APIRouter:
    """Routes of a game under way; each handler is one step, without waiting in the middle."""
    router = APIRouter(prefix="/api")

    @router.get("/me")
    async def me(token: Token, request: Request) -> Response:
        admitted = desk.admit(token)
        response = JSONResponse(desk.about(admitted), headers=PRIVATE)
        if admitted != token:
            set_token(response, admitted, request)
        return response

    @router.post("/games")
    async def begin(what: Begin, token: Token, request: Request) -> Response:
        admitted = desk.admit(token)
        table, game = desk.begin(admitted, what.kind == "recorded")
        response = _sized(table.answers.state(game, table.referee.seconds_left(game)), 201)
        if admitted != token:
            set_token(response, admitted, request)
        return response

    @router.get("/games/{game}")
    async def state(game: str, token: Token) -> Response:
        table, player = _seat(desk, game, token)
        found = table.referee.look(game, player)
        return _sized(table.answers.state(found, table.referee.seconds_left(found)))

    @router.post("/games/{game}/moves")
    async def move(game: str, wanted: Move, token: Token) -> Response:
        table, player = _seat(desk, game, token)
        try:
            moved = table.referee.move(game, player, wanted.turn, wanted.move)
        except RefusedError as refused:
            return _sized(table.answers.refusal(refused), refused.status)
        return _sized(table.answers.move(moved, table.referee.seconds_left(moved)))

    return router


def ending_routes(desk: Desk) -> APIRouter:
    """Routes of a game that is over; refused before."""
    router = APIRouter(prefix="/api/games/{game}")

    @router.get("/reveal")
    async def reveal(game: str, token: Token) -> Response:
        table, over = _ended(desk, game, token)
        flights = await table.rivals.flights(over.episode)
        area = table.referee.world.names[over.episode.area]
        return JSONResponse(_revealed(over, area, flights), headers=PRIVATE)

    @router.get("/area.png")
    async def area(game: str, token: Token) -> Response:
        table, over = _ended(desk, game, token)
        picture = await table.rivals.picture(over.episode.area)
        return Response(picture, media_type="image/png", headers=PRIVATE)

    return router


def _seat(desk: Desk, game: str, token: str | None) -> tuple[Table, str]:
    """Where a game is played, and by whom."""
    if token is None or not desk.knows(token):
        raise no_such_game()
    return desk.table_of(game), token


def _ended(desk: Desk, game: str, token: str | None) -> tuple[Table, Game]:
    table, player = _seat(desk, game, token)
    found = table.referee.look(game, player)
    if found.ending is None:
        raise RefusedError(409, "under-way", "This game is not over yet")
    return table, found


def _revealed(over: Game, area: str, flights: tuple[Flight, ...]) -> dict[str, Any]:
    """All about a game that is over."""
    start, goal = over.episode.start, over.episode.goal
    return {
        "ending": over.ending,
        "area": area,
        "start": start,
        "goal": goal,
        "distance": distance(start, goal),
        "path": over.path,
        "elapsed": round(over.elapsed, 3),
        "agents": [flight._asdict() for flight in flights],
    }


def _sized(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json", headers=PRIVATE)
