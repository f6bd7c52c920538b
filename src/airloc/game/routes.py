"""HTTP routes of games, of a study, and of watching agents.

Games:

| route                      | response                                                          |
|----------------------------|-------------------------------------------------------------------|
| GET /                      | the page                                                          |
| GET /api/me                | the player, the kind of game, and the game in progress            |
| POST /api/games            | begin a game                                                      |
| GET /api/games/ID          | everything seen so far in a game, for a page that reloads         |
| POST /api/games/ID/moves   | make a move: `{"turn": 3, "move": 0}`; the last one reveals       |
| POST /api/games/ID/leave   | the player closes the page                                        |
| GET /api/games/ID/area.png | after the end: the whole area                                     |
| GET /api/games/ID/agents   | after the end: the agents' paths; 202 if they take longer         |

A study adds `/join/TOKEN`, `/api/consent`, `/api/practised`, `/api/withdrawal`, `/admin` and `/api/admin/people`.
Watching adds `/watch`, `/api/watch`, `/api/watch/area.png`, `/api/watch/search` and `/api/watch/search.gif`.
"""

import secrets
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from functools import partial, wraps
from typing import Annotated, Any, ParamSpec, TypeVar

import numpy as np
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.requests import HTTPConnection

from airloc.agents.registry import available_agents
from airloc.drawing.palette import heat, hex_of
from airloc.game.lobby import Lobby, StudyLobby
from airloc.game.messages import BeginRequest, ConsentRequest, MoveRequest
from airloc.game.room import Room
from airloc.game.store import Game, RefusedError, UnknownGameError
from airloc.game.watch import MAX_AGENTS, WatchService
from airloc.game.worker_pool import AgentPath
from airloc.grid import Cell
from airloc.web import PRIVATE, cookie_name, set_cookie

P = ParamSpec("P")
T = TypeVar("T")

STATIC = StaticFiles(packages=[("airloc.game", "static"), ("airloc", "static")])
"""The files of the pages."""
_CACHED = {"cache-control": "private, max-age=3600"}
_AGENTS_SECONDS = 2.0
"""Time that a request for the agents' paths waits for them, so that a page need not ask often."""
_HEAT_COLOURS = 33
"""Number of colours of a belief on the page."""


def token_of(request: HTTPConnection) -> str | None:
    """Return the player's token from the cookie, or None."""
    return request.cookies.get(cookie_name(request))


async def _token(request: Request) -> str | None:
    return token_of(request)


Token = Annotated[str | None, Depends(_token)]
"""The player's token from the cookie."""
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Name = Annotated[str, Query(max_length=300)]
CellText = Annotated[str, Query(pattern=r"^\d{1,2},\d{1,2}$")]
Milliseconds = Annotated[int, Query(ge=100, le=2000)]


def _json(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json", headers=PRIVATE)


def _stored(lobby: Lobby) -> Callable[[Callable[P, T]], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a decorator of handlers that use the store: they run in its thread, each one atomic."""

    def decorate(handler: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(handler)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            return await lobby.run(partial(handler, *args, **kwargs))

        return run

    return decorate


def game_routes(lobby: Lobby) -> APIRouter:
    """Return the routes of a game in progress."""
    router, stored = APIRouter(), _stored(lobby)

    @router.get("/")
    async def page(request: Request) -> Response:
        return await STATIC.get_response("index.html", request.scope)

    @router.get("/api/me")
    @stored
    def me(token: Token, request: Request) -> Response:
        player = lobby.admit(token)
        response = JSONResponse(lobby.info(player), headers=PRIVATE)
        if player != token:
            set_cookie(response, player, request)
        return response

    @router.post("/api/games")
    @stored
    def begin(wanted: BeginRequest, token: Token, request: Request) -> Response:
        player = lobby.admit(token)
        room, game = lobby.begin(player, recorded=wanted.kind == "recorded")
        response = _json(room.messages.state(game, room.seconds_left(game)), 201)
        if player != token:
            set_cookie(response, player, request)
        return response

    @router.get("/api/games/{game_id}")
    @stored
    def state(game_id: str, token: Token) -> Response:
        room, player = _find_room(lobby, game_id, token)
        game = room.game(game_id, player)
        return _json(room.messages.state(game, room.seconds_left(game)))

    @router.post("/api/games/{game_id}/leave", status_code=204)
    @stored
    def leave(game_id: str, token: Token) -> None:
        room, player = _find_room(lobby, game_id, token)
        room.leave(game_id, player)

    @router.post("/api/games/{game_id}/moves")
    @stored
    def move(game_id: str, wanted: MoveRequest, token: Token) -> Response:
        room, player = _find_room(lobby, game_id, token)
        try:
            game = room.move(game_id, player, wanted.turn, wanted.move)
        except RefusedError as error:
            return _json(room.messages.refusal(error), error.status)
        return _json(room.messages.move(game, room.seconds_left(game)))

    return router


def result_routes(lobby: Lobby) -> APIRouter:
    """Return the routes of a game that is over; they refuse a game in progress."""
    router = APIRouter(prefix="/api/games/{game_id}")

    ended_game = _stored(lobby)(partial(_ended_game, lobby))

    @router.get("/area.png")
    async def area(game_id: str, token: Token) -> Response:
        room, game = await ended_game(game_id, token)
        return Response(await room.area_png(game.episode.area), media_type="image/png", headers=PRIVATE)

    @router.get("/agents")
    async def agents(game_id: str, token: Token) -> Response:
        room, game = await ended_game(game_id, token)
        paths = await room.baselines.paths(game.episode, _AGENTS_SECONDS)
        return JSONResponse({"agents": _agents(paths)}, 202 if paths is None else 200, headers=PRIVATE)

    return router


def _find_room(lobby: Lobby, game_id: str, token: str | None) -> tuple[Room, str]:
    """Return the room of a game and the token of its player."""
    if token is None or not lobby.is_player(token):
        raise UnknownGameError
    return lobby.room_of(game_id), token


def _ended_game(lobby: Lobby, game_id: str, token: str | None) -> tuple[Room, Game]:
    room, player = _find_room(lobby, game_id, token)
    game = room.game(game_id, player)
    if game.ending is None:
        raise RefusedError(409, "in-progress", "This game is still in progress.")
    return room, game


def _agents(paths: Sequence[AgentPath] | None) -> list[dict[str, Any]] | None:
    return None if paths is None else [path._asdict() for path in paths]


def study_routes(lobby: StudyLobby) -> APIRouter:
    """Return the routes of a study: personal links, consent, the end of practice, and the admin page."""
    router, stored = APIRouter(), _stored(lobby)

    @router.get("/join/{token}")
    async def join(token: str, request: Request) -> Response:
        response = RedirectResponse("/", 303, headers=PRIVATE)
        if lobby.is_player(token):
            set_cookie(response, token, request)
        else:  # the page says that a link is needed, rather than continue as whoever used this browser before
            response.delete_cookie(cookie_name(request))
        return response

    @router.post("/api/consent")
    @stored
    def consent(given: ConsentRequest, token: Token) -> Response:
        lobby.give_consent(lobby.admit(token), given.age, given.gender)
        return JSONResponse({}, headers=PRIVATE)

    @router.post("/api/practised")
    @stored
    def practised(token: Token) -> Response:
        lobby.end_practice(lobby.admit(token))
        return JSONResponse({}, headers=PRIVATE)

    @router.post("/api/withdrawal")
    @stored
    def withdrawal(token: Token) -> Response:
        lobby.withdraw(lobby.admit(token))
        return JSONResponse({}, headers=PRIVATE)

    @router.get("/admin")
    async def admin(request: Request) -> Response:
        return await STATIC.get_response("admin.html", request.scope)

    @router.get("/api/admin/people")
    @stored
    def people(bearer: Bearer) -> Response:
        token = bearer.credentials if bearer else ""
        if not secrets.compare_digest(token.encode(), lobby.study.admin_token.encode()):
            raise RefusedError(401, "token", "Enter the admin token of this study.")
        return JSONResponse({"people": lobby.progress()}, headers=PRIVATE)

    return router


def watch_routes(watch: WatchService, selected: Sequence[str]) -> APIRouter:
    """Return the routes of watching agents.

    Args:
        watch: Runs the searches.
        selected: Agents that the page shows first.
    """
    router = APIRouter()
    options: dict[str, Any] = {
        "areas": watch.sampler.names,
        "rows": watch.sampler.grid.rows,
        "cols": watch.sampler.grid.cols,
        "budget": watch.sampler.budget,
        "agents": available_agents(),
        "selected": [name for name in selected if name in available_agents()][:MAX_AGENTS],
        "max_agents": MAX_AGENTS,
        "heat": [hex_of((r, g, b)) for r, g, b in heat(np.linspace(0, 1, _HEAT_COLOURS)).tolist()],
    }

    @router.get("/watch")
    async def page(request: Request) -> Response:
        return await STATIC.get_response("watch.html", request.scope)

    @router.get("/api/watch")
    async def describe() -> Response:
        return JSONResponse(options)

    @router.get("/api/watch/area.png")
    async def area_png(area: Name) -> Response:
        png = await watch.area_png(watch.area_number(area))
        return Response(png, media_type="image/png", headers=_CACHED)

    @router.get("/api/watch/search")
    async def search(area: Name, start: CellText, goal: CellText, agent: Name) -> Response:
        name = watch.agents(agent)[0]
        record = await watch.search(name, watch.episode(area, _cell(start), _cell(goal)))
        return JSONResponse(asdict(record), headers=_CACHED)

    @router.get("/api/watch/search.gif")
    async def animation(area: Name, start: CellText, goal: CellText, agents: Name, ms: Milliseconds = 700) -> Response:
        episode = watch.episode(area, _cell(start), _cell(goal))
        gif = await watch.animation(watch.agents(agents), episode, ms)
        headers = {**_CACHED, "content-disposition": 'attachment; filename="search.gif"'}
        return Response(gif, media_type="image/gif", headers=headers)

    return router


def _cell(text: str) -> Cell:
    row, col = text.split(",")
    return int(row), int(col)
