"""The routes of a study: personal links, consent, the step from practice to the recorded games, and who runs it."""

import secrets
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import Field

from airloc.game.files import page_files, respond
from airloc.game.refusal import RefusedError
from airloc.game.requests import PRIVATE, Strict, Token, set_token
from airloc.game.study_desk import StudyDesk


class Consent(Strict):
    """What a participant chooses to say."""

    age: int | None = Field(default=None, ge=1, le=120)
    gender: Literal["woman", "man", "other"] | None = None


def study_routes(desk: StudyDesk) -> APIRouter:
    """Make the routes."""
    router, files = APIRouter(), page_files()

    @router.get("/join/{token}")
    async def join(token: str, request: Request) -> Response:
        response = RedirectResponse("/", 303, headers=PRIVATE)
        if desk.knows(token):
            set_token(response, token, request)
        return response

    @router.post("/api/consent")
    async def consent(said: Consent, token: Token) -> Response:
        desk.agree(desk.admit(token), said.age, said.gender)
        return JSONResponse({}, headers=PRIVATE)

    @router.post("/api/practised")
    async def practised(token: Token) -> Response:
        desk.end_practice(desk.admit(token))
        return JSONResponse({}, headers=PRIVATE)

    @router.get("/admin")
    async def admin(request: Request) -> Response:
        return respond(files["admin.html"], request)

    @router.get("/api/admin/people")
    async def people(request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), desk.study.admin.encode()):
            raise RefusedError(401, "token", "This needs the study's token")
        return JSONResponse({"people": desk.progress()}, headers=PRIVATE)

    return router
