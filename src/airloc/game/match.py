"""What the server answers when it does not do what it is asked; nothing has changed then."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from airloc.grid import MOVES, Cell
from airloc.task import rules


class RefusedError(Exception):
    """A request that is turned down.

    Args:
        status: The HTTP status, 4xx, or 503 when asking again will help.
        reason: A short name that the page knows.
        message: What to tell the person.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


def no_such_game() -> RefusedError:
    """The same answer for a game of somebody else and for one that never was."""
    return RefusedError(404, "no-game", "There is no such game")


# ---------- A game of one person: an episode, the moves made so far, and where they lead by the task's own rules.
# ~
# ~ Nothing about the position is stored: it is replayed from the start every time, so that it cannot differ from the rules.

Ending = Literal["found", "moves", "time"]
"""How a game ended: the goal was found, the moves were spent, or the time was."""


class Episode(NamedTuple):
    """What a game is about."""

    area: int
    """Number of the area in the world that is played on."""
    start: Cell
    goal: Cell


@dataclass(frozen=True)
class Game:
    """A game as far as it has gone."""

    id: str
    """Known to the player alone: nobody can guess it."""
    player: str
    episode: Episode
    budget: int
    seconds: float
    """The time limit."""
    moves: tuple[int, ...] = ()
    ending: Ending | None = None
    """None while the game goes on."""
    elapsed: float = 0.0
    """Seconds played when the last thing happened."""
    slot: int | None = None
    """Which of a participant's recorded games it is; None for free play and practice."""

    @property
    def turn(self) -> int:
        """How many moves have been made; the next move has this number."""
        return len(self.moves)

    @property
    def position(self) -> Cell:
        """The current cell; outside the area too."""
        return self.path[-1]

    @cached_property
    def path(self) -> tuple[Cell, ...]:
        """Cells from the start on."""
        return replay(self.episode, self.moves, self.budget)[0]

    def ending_after(self, moves: tuple[int, ...]) -> Ending | None:
        """How the game has ended once these moves are made, by the rules; they do not know time."""
        return replay(self.episode, moves, self.budget)[1]


def replay(episode: Episode, moves: tuple[int, ...], budget: int) -> tuple[tuple[Cell, ...], Ending | None]:
    """Make the moves by the rules: give the cells from the start on, and how the episode has ended.

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
