"""A game of one player: an episode, the moves so far, and the path that follows from them by the rules of the task.

A game stores moves, not positions. Positions are replayed from the start, so that they always agree with
`airloc.task.rules`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from airloc.errors import AirlocError
from airloc.grid import MOVES, Cell
from airloc.task import rules

Ending = Literal["found", "moves", "time"]
"""Why a game ended: the goal was found, no moves were left, or no time was left."""


class RefusedError(Exception):
    """A request that the server refuses; nothing has changed.

    Args:
        status: HTTP status, 4xx, or 503 if a later request may succeed.
        reason: Short identifier that the page understands.
        message: Explanation for the player.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class UnknownGameError(RefusedError):
    """The game does not exist or belongs to another player; both get the same response."""

    def __init__(self) -> None:
        super().__init__(404, "no-game", "This game does not exist.")


def check_seconds(seconds: float) -> float:
    """Return a time limit if it is valid: above 0, or infinite for no limit.

    Raises:
        AirlocError: If the time limit is not a number, or not above 0.
    """
    if not seconds > 0:  # NaN compares as False
        raise AirlocError(f"A time limit of {seconds} seconds is invalid", "Give --seconds above 0, or 0 for no limit")
    return seconds


class Episode(NamedTuple):
    """The episode of a game."""

    area: int
    """Index of the area in the episode sampler."""
    start: Cell
    goal: Cell


@dataclass(frozen=True)
class Game:
    """The state of a game."""

    id: str
    """Random identifier, known only to the player."""
    player: str
    """The player's token."""
    episode: Episode
    budget: int
    seconds: float
    """Time limit; infinite for none."""
    moves: tuple[int, ...] = ()
    ending: Ending | None = None
    """None while the game is in progress."""
    elapsed: float = 0.0
    """Seconds played at the last recorded event."""
    slot: int | None = None
    """Index among a participant's recorded games; None for free play and practice."""

    @property
    def turn(self) -> int:
        """Number of moves made, which is also the number of the next move."""
        return len(self.moves)

    @property
    def position(self) -> Cell:
        """The current cell, which may lie outside the area."""
        return self.path[-1]

    @cached_property
    def path(self) -> tuple[Cell, ...]:
        """Cells from the start to the current position."""
        return replay(self.episode, self.moves, self.budget)[0]

    def ending_after(self, move: int) -> Ending | None:
        """Return how the game ends with one more move, or None if it continues. Time is not considered."""
        return replay(self.episode, (*self.moves, move), self.budget)[1]


def replay(episode: Episode, moves: tuple[int, ...], budget: int) -> tuple[tuple[Cell, ...], Ending | None]:
    """Return the path of a sequence of moves, and how the episode ends after the last one.

    >>> replay(Episode(0, (0, 0), (2, 2)), (3, 3), budget=10)
    (((0, 0), (1, 1), (2, 2)), 'found')
    """
    position, goal, steps = np.array(episode.start), np.array(episode.goal), np.array(0)
    path, ending = [episode.start], None
    for action in moves:
        out = rules.move(position, steps, goal, np.array(action), moves=MOVES, budget=budget)
        position, steps = out.position, out.steps
        path.append((int(position[0]), int(position[1])))
        ending = _ENDINGS[bool(out.found), bool(out.truncated)]
    return tuple(path), ending


_ENDINGS: dict[tuple[bool, bool], Ending | None] = {
    (True, False): "found",
    (False, True): "moves",
    (False, False): None,
}
