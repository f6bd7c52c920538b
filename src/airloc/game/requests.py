"""What requests are made of: bodies of exactly the fields they need, and the player's token as a cookie."""

from typing import Annotated

from fastapi import Depends, Request, Response
from pydantic import BaseModel, ConfigDict

from airloc.game.guard import COOKIE

PRIVATE = {"cache-control": "no-store"}
"""Header of every answer that is one person's."""


class Strict(BaseModel):
    """A request's body: no other fields, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


async def token_of(request: Request) -> str | None:
    """The player's token, as the cookie has it."""
    return request.cookies.get(COOKIE)


Token = Annotated[str | None, Depends(token_of)]


def set_token(response: Response, token: str, request: Request) -> None:
    """Hand a player the token, for this site alone and out of reach of scripts."""
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, token, max_age=30 * 86400, httponly=True, samesite="strict", secure=secure, path="/")
