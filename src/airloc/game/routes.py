"""The routes of games: begin, see, move; and, after the end, what there was to be found."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import Field

from airloc.agents.registry import available_agents
from airloc.drawing.palette import heat, hex_of
from airloc.game.baselines import Flight
from airloc.game.lobby import Lobby, Table
from airloc.game.match import Game, RefusedError, no_such_game
from airloc.game.messages import PRIVATE, Strict, Token, set_token
from airloc.game.middleware import page_files, respond
from airloc.game.study_lobby import StudyLobby
from airloc.game.watch import MAX_AGENTS, Watch
from airloc.grid import Cell, distance


class Begin(Strict):
    """Which kind of game to begin."""

    kind: Literal["free", "recorded"] = "free"


class Move(Strict):
    """A move, and the turn that it is for."""

    turn: int = Field(ge=0, le=4096)
    move: int = Field(ge=0, le=7)


def playing_routes(lobby: Lobby) -> APIRouter:
    """Routes of a game under way; each handler is one step, without waiting in the middle."""
    router = APIRouter(prefix="/api")

    @router.get("/me")
    async def me(token: Token, request: Request) -> Response:
        admitted = lobby.admit(token)
        response = JSONResponse(lobby.about(admitted), headers=PRIVATE)
        if admitted != token:
            set_token(response, admitted, request)
        return response

    @router.post("/games")
    async def begin(what: Begin, token: Token, request: Request) -> Response:
        admitted = lobby.admit(token)
        table, game = lobby.begin(admitted, what.kind == "recorded")
        response = _sized(table.answers.state(game, table.referee.seconds_left(game)), 201)
        if admitted != token:
            set_token(response, admitted, request)
        return response

    @router.get("/games/{game}")
    async def state(game: str, token: Token) -> Response:
        table, player = _seat(lobby, game, token)
        found = table.referee.look(game, player)
        return _sized(table.answers.state(found, table.referee.seconds_left(found)))

    @router.post("/games/{game}/moves")
    async def move(game: str, wanted: Move, token: Token) -> Response:
        table, player = _seat(lobby, game, token)
        try:
            moved = table.referee.move(game, player, wanted.turn, wanted.move)
        except RefusedError as refused:
            return _sized(table.answers.refusal(refused), refused.status)
        return _sized(table.answers.move(moved, table.referee.seconds_left(moved)))

    return router


def ending_routes(lobby: Lobby) -> APIRouter:
    """Routes of a game that is over; refused before."""
    router = APIRouter(prefix="/api/games/{game}")

    @router.get("/reveal")
    async def reveal(game: str, token: Token) -> Response:
        table, over = _ended(lobby, game, token)
        flights = await table.baselines.flights(over.episode)
        area = table.referee.world.names[over.episode.area]
        return JSONResponse(_revealed(over, area, flights), headers=PRIVATE)

    @router.get("/area.png")
    async def area(game: str, token: Token) -> Response:
        table, over = _ended(lobby, game, token)
        picture = await table.baselines.picture(over.episode.area)
        return Response(picture, media_type="image/png", headers=PRIVATE)

    return router


def _seat(lobby: Lobby, game: str, token: str | None) -> tuple[Table, str]:
    """Where a game is played, and by whom."""
    if token is None or not lobby.knows(token):
        raise no_such_game()
    return lobby.table_of(game), token


def _ended(lobby: Lobby, game: str, token: str | None) -> tuple[Table, Game]:
    table, player = _seat(lobby, game, token)
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


# ---------- The routes of a study: personal links, consent, the step from practice to the recorded games, and who runs it.
# ~


class Consent(Strict):
    """What a participant chooses to say."""

    age: int | None = Field(default=None, ge=1, le=120)
    gender: Literal["woman", "man", "other"] | None = None


def study_routes(lobby: StudyLobby) -> APIRouter:
    """Make the routes."""
    router, files = APIRouter(), page_files()

    @router.get("/join/{token}")
    async def join(token: str, request: Request) -> Response:
        response = RedirectResponse("/", 303, headers=PRIVATE)
        if lobby.knows(token):
            set_token(response, token, request)
        return response

    @router.post("/api/consent")
    async def consent(said: Consent, token: Token) -> Response:
        lobby.agree(lobby.admit(token), said.age, said.gender)
        return JSONResponse({}, headers=PRIVATE)

    @router.post("/api/practised")
    async def practised(token: Token) -> Response:
        lobby.end_practice(lobby.admit(token))
        return JSONResponse({}, headers=PRIVATE)

    @router.get("/admin")
    async def admin(request: Request) -> Response:
        return respond(files["admin.html"], request)

    @router.get("/api/admin/people")
    async def people(request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), lobby.study.admin.encode()):
            raise RefusedError(401, "token", "This needs the study's token")
        return JSONResponse({"people": lobby.progress()}, headers=PRIVATE)

    return router


# ---------- The routes of watching: areas, searches as data, searches as an animation.
# ~

Name = Annotated[str, Query(max_length=300)]
CellText = Annotated[str, Query(pattern=r"^\d{1,2},\d{1,2}$")]
_COLOURS = 33
"""Steps of the colours of a belief on the page."""
_CACHE = {"cache-control": "private, max-age=3600"}


def watch_routes(watch: Watch, chosen: Sequence[str]) -> APIRouter:
    """Make the routes.

    Args:
        watch: The searches.
        chosen: The agents that the page shows at first.
    """
    router, files = APIRouter(), page_files()
    listing: dict[str, Any] = {
        "areas": watch.world.names,
        "rows": watch.world.grid.rows,
        "cols": watch.world.grid.cols,
        "budget": watch.world.budget,
        "agents": available_agents(),
        "chosen": [name for name in chosen if name in available_agents()][:MAX_AGENTS],
        "most": MAX_AGENTS,
        "heat": [hex_of((r, g, b)) for r, g, b in heat(np.linspace(0, 1, _COLOURS)).tolist()],
    }

    @router.get("/watch")
    async def page(request: Request) -> Response:
        return respond(files["watch.html"], request)

    @router.get("/api/watch")
    async def what() -> Response:
        return JSONResponse(listing)

    @router.get("/api/watch/area.png")
    async def picture(area: Name) -> Response:
        if area not in watch.world.names:
            raise RefusedError(404, "no-area", "There is no area of that name to watch")
        content = await watch.picture(watch.world.names.index(area))
        return Response(content, media_type="image/png", headers=_CACHE)

    @router.get("/api/watch/search")
    async def search(area: Name, start: CellText, goal: CellText, agent: Name) -> Response:
        (name,) = watch.agents(agent)[:1]
        episode = watch.episode(area, _cell(start), _cell(goal))
        track = await watch.track(name, episode)
        return JSONResponse(asdict(track), headers=_CACHE)

    @router.get("/api/watch/search.gif")
    async def animation(
        area: Name, start: CellText, goal: CellText, agents: Name, ms: Annotated[int, Query(ge=100, le=2000)] = 700
    ) -> Response:
        episode = watch.episode(area, _cell(start), _cell(goal))
        content = await watch.animation(watch.agents(agents), episode, ms)
        headers = {**_CACHE, "content-disposition": 'attachment; filename="search.gif"'}
        return Response(content, media_type="image/gif", headers=headers)

    return router


def _cell(text: str) -> Cell:
    row, col = text.split(",")
    return int(row), int(col)
