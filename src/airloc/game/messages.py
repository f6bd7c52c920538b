"""Requests and responses of a game: request bodies as pydantic models, game states as JSON of fixed size.

During a game a response holds the visited patches, the image or the description of the goal, and the counts. The
response that ends a game also reveals the goal's cell. All responses of one kind have the same number of bytes, and
patches are raw pixels, because the size of a compressed image depends on its content.
"""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from airloc.game.store import Game, RefusedError
from airloc.grid import Cell, distance
from airloc.task.sampling import EpisodeSampler

_ROOM_BYTES = 600
"""Bytes for everything except patches and cells."""
_CELL_BYTES = 12
"""Bytes for a cell with its comma, also for positions far outside the area."""
_OUTSIDE = (-1, -1)
_REVEAL_BYTES = 400
"""Bytes for the reveal except the path and the name of the area."""


class _Request(BaseModel):
    """Body of a request; other fields and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class BeginRequest(_Request):
    """Begin a game."""

    kind: Literal["free", "recorded"] = "free"


class MoveRequest(_Request):
    """Make a move in a given turn."""

    turn: int = Field(ge=0, le=4096)
    move: int = Field(ge=0, le=7)


class ConsentRequest(_Request):
    """Give consent; age and gender are optional."""

    age: int | None = Field(default=None, ge=1, le=120)
    gender: Literal["woman", "man", "other"] | None = None


class GameMessages:
    """Encodes the responses about games.

    Args:
        sampler: The areas with their grid and budget.
        texts: Descriptions of all cells by the name of the area and the cell, if players search by words. The image of
            the goal is black then until the game ends.
    """

    def __init__(self, sampler: EpisodeSampler, texts: Mapping[tuple[str, Cell], str] | None = None) -> None:
        self._sampler, self._texts = sampler, texts
        text_bytes = max((len(json.dumps(text)) for text in (texts or {}).values()), default=4)
        patch_bytes = len(self._patch(0, (0, 0))) + 3
        path_bytes = _CELL_BYTES * (sampler.budget + 1)
        reveal_bytes = _REVEAL_BYTES + path_bytes + max(len(json.dumps(name)) for name in sampler.names)
        self._move_bytes = _ROOM_BYTES + patch_bytes + reveal_bytes
        self._state_bytes = _ROOM_BYTES + text_bytes + patch_bytes * (sampler.budget + 2) + path_bytes + reveal_bytes

    def state(self, game: Game, seconds_left: float) -> bytes:
        """Encode everything that the player has seen, for a page that loads or reloads."""
        area = game.episode.area
        content = {
            **self._counts(game, seconds_left),
            "rows": self._sampler.grid.rows,
            "cols": self._sampler.grid.cols,
            "cell": self._sampler.grid.cell,
            "budget": game.budget,
            "seconds": seconds_or_none(game.seconds),
            "slot": game.slot,
            "path": game.path,
            "goal": self._patch(area, game.episode.goal if game.ending or self._texts is None else _OUTSIDE),
            "text": None if self._texts is None else self._texts[self._sampler.names[area], game.episode.goal],
            "patches": [self._patch(area, cell) for cell in game.path],
        }
        return pad_json(content, self._state_bytes)

    def move(self, game: Game, seconds_left: float) -> bytes:
        """Encode the result of the last move."""
        content = {**self._counts(game, seconds_left), "patch": self._patch(game.episode.area, game.position)}
        return pad_json(content, self._move_bytes)

    def refusal(self, error: RefusedError) -> bytes:
        """Encode why a move was refused, in as many bytes as a move."""
        return pad_json({"error": error.reason, "message": error.message}, self._move_bytes)

    def reveal(self, game: Game) -> dict[str, Any] | None:
        """Return everything about the end of a game except the agents' paths; None while the game is in progress."""
        if game.ending is None:
            return None
        start, goal = game.episode.start, game.episode.goal
        return {
            "ending": game.ending,
            "area": self._sampler.names[game.episode.area],
            "image": f"/api/games/{game.id}/area.png",
            "start": start,
            "goal": goal,
            "distance": distance(start, goal),
            "path": game.path,
            "elapsed": round(game.elapsed, 3),
            "agents": None,
        }

    def _counts(self, game: Game, seconds_left: float) -> dict[str, Any]:
        return {
            "game": game.id,
            "turn": game.turn,
            "position": game.position,
            "moves_left": game.budget - game.turn,
            "seconds_left": seconds_or_none(seconds_left),
            "ending": game.ending,
            "reveal": self.reveal(game),
        }

    def _patch(self, area: int, cell: Cell) -> str:
        """Return a patch as RGB bytes in base 64; black outside the area."""
        patch = self._sampler.patches(np.array(area), np.array(cell))
        return base64.b64encode(patch.tobytes()).decode("ascii")


def pad_json(content: Mapping[str, Any], size: int) -> bytes:
    """Encode as JSON, padded with spaces to exactly `size` bytes.

    >>> pad_json({"turn": 1}, 12)
    b'{"turn":1}  '
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(text) > size:
        raise ValueError(f"a message of {len(text)} bytes does not fit into {size}")
    return text.ljust(size)


def seconds_or_none(seconds: float) -> float | None:
    """Return seconds as JSON can hold them: None for no limit."""
    return round(seconds, 3) if math.isfinite(seconds) else None
