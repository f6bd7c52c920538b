"""What requests are made of: bodies of exactly the fields they need, and the player's token as a cookie."""

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Request, Response
from pydantic import BaseModel, ConfigDict

from airloc.game.match import Game, RefusedError
from airloc.game.middleware import COOKIE
from airloc.game.referee import seconds_or_none
from airloc.grid import Cell
from airloc.task.world import World

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


# ---------- What players are told during a game: the visited patches, the goal's picture, the counts; nothing else.
# ~
# ~ Every answer of a kind has one fixed number of bytes, whatever it says, and patches are raw pixels, because the size of
# ~ a compressed picture tells about its content.

_ROOM = 600
"""Bytes for everything but patches and cells."""
_CELL = 12
"""Bytes for a cell with its comma: room for positions far outside."""


class Answers:
    """Writes the answers about games on a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._patch = len(self._pixels(0, (0, 0))) + 3
        cells = _CELL * (world.budget + 1)
        self.move_bytes = _ROOM + self._patch + cells
        """Size of the answer to a move, also of one that is refused."""
        self.state_bytes = _ROOM + self._patch * (world.budget + 2) + cells
        """Size of the answer that tells all about a game under way."""

    def state(self, game: Game, seconds_left: float) -> bytes:
        """All that the player has seen of a game, for a page that was loaded anew."""
        area = game.episode.area
        seen = {
            **self._counts(game, seconds_left),
            "rows": self._world.grid.rows,
            "cols": self._world.grid.cols,
            "cell": self._world.grid.cell,
            "budget": game.budget,
            "seconds": seconds_or_none(game.seconds),
            "slot": game.slot,
            "path": game.path,
            "goal": self._pixels(area, game.episode.goal),
            "patches": [self._pixels(area, cell) for cell in game.path],
        }
        return padded(seen, self.state_bytes)

    def move(self, game: Game, seconds_left: float) -> bytes:
        """What the last move led to."""
        seen = {**self._counts(game, seconds_left), "patch": self._pixels(game.episode.area, game.position)}
        return padded(seen, self.move_bytes)

    def refusal(self, refused: RefusedError) -> bytes:
        """Why nothing was done."""
        return padded({"error": refused.reason, "message": refused.message}, self.move_bytes)

    def _counts(self, game: Game, seconds_left: float) -> dict[str, Any]:
        return {
            "game": game.id,
            "turn": game.turn,
            "position": game.position,
            "moves_left": game.budget - game.turn,
            "seconds_left": seconds_or_none(seconds_left),
            "ending": game.ending,
        }

    def _pixels(self, area: int, cell: Cell) -> str:
        """The patch of a cell as RGB bytes in base 64; black outside."""
        patch = self._world.patches(np.array(area), np.array(cell))
        return base64.b64encode(patch.tobytes()).decode("ascii")


def padded(payload: Mapping[str, Any], size: int) -> bytes:
    """Write JSON and fill it up with spaces to exactly `size` bytes.

    >>> padded({"turn": 1}, 12)
    b'{"turn":1}  '
    """
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(text) > size:
        raise ValueError(f"an answer of {len(text)} bytes does not fit into {size}")
    return text.ljust(size)
