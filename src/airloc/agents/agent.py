"""What every agent is: two verbs over batches, and a state that is an explicit value.

Legend: B episodes in step, T budget, S side of a cell.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.rules import inside, moves_allowed, moves_on


@dataclass(frozen=True)
class AgentOptions:
    """What an agent may be made with."""

    seed: int = 0
    """Decides choices that are made once per agent."""
    device: str = "cpu"
    """Where a learned agent computes."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""
    exact: bool = False
    """Compute in full precision even where the CPU is faster with less, so that all machines give the same answers."""


class EpisodeBatch(NamedTuple):
    """What agents are told before their episodes begin. The goal's cell is not part of it."""

    goal: torch.Tensor
    """The pictures of the goals, (B, S, S, 3) uint8."""
    grid: Grid
    budget: int
    noise: torch.Tensor
    """Uniform numbers in [0, 1), (B, T, 8): the one source of chance, so that neither batch nor device changes play."""


class Agent(Protocol):
    """Searches for goals, a batch of episodes at a time; a single drone is a batch of one.

    The state is whatever the agent remembers: recurrent state, visited cells, belief. It is handed over, never kept
    in the agent.
    """

    @property
    def name(self) -> str:
        """What the agent is called in tables."""
        ...

    def reset(self, episodes: EpisodeBatch) -> Any:
        """Give the state before the first move."""
        ...

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Choose moves (B,) from what is seen and remembered; give the state for the next call."""
        ...


# ---------- From logits to moves: the most probable one, or one drawn by its probability.
# ~
# ~ Legend: B episodes.


def choose(logits: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
    """Choose one of eight moves for every episode, (B,).

    Args:
        logits: Of the moves, (B, 8); minus infinity for those that are forbidden.
        noise: Uniform numbers in [0, 1), (B, 8): the move is drawn with softmax probabilities, by adding Gumbel noise.
            Without it the most probable move is taken.
    """
    if noise is not None:
        # Noise of exactly zero would forbid a move; the smallest other number is 2^-24.
        logits = logits - (-noise.clamp(min=2.0**-25).log()).log()
    return logits.argmax(dim=1)


# ---------- Which moves agents may make: those the task has, and privileged ones, never outside and not to visited cells.
# ~
# ~ Legend: B episodes; visited is bool (B, rows, cols).


def unvisited(count: int, grid: Grid, device: torch.device) -> torch.Tensor:
    """A record of visits without any, (count, rows, cols)."""
    return torch.zeros(count, grid.rows, grid.cols, dtype=torch.bool, device=device)


def visit(visited: torch.Tensor, position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Give the record with the current cells added; positions outside leave no trace."""
    cells = visited.flatten(1)
    row, col = position[:, 0].clamp(0, grid.rows - 1), position[:, 1].clamp(0, grid.cols - 1)
    here = (row * grid.cols + col)[:, None]
    now = cells.gather(1, here) | inside(position, grid)[:, None]
    return cells.scatter(1, here, now).view_as(visited)


def task_moves(position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Which of the eight moves the task has here, bool (B, 8): all, or of four those that the border lets through."""
    return moves_allowed(position, grid, moves_on(position.device))


def keep_to_task(logits: torch.Tensor, position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Forbid, in the logits (B, 8) of an agent that knows eight moves, those that the task has not."""
    return logits if grid.moves == 8 else logits.masked_fill(~task_moves(position, grid), -torch.inf)


def privileged_moves(position: torch.Tensor, visited: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Which of the eight moves are allowed, bool (B, 8).

    Moves that end inside on an unvisited cell; where there is none (a dead end), every move that ends inside; far
    outside, where no move leads back at once, every move.
    """
    target = position[:, None] + moves_on(position.device)  # (B, 8, 2)
    within = inside(target, grid) & task_moves(position, grid)
    row, col = target[..., 0].clamp(0, grid.rows - 1), target[..., 1].clamp(0, grid.cols - 1)
    episode = torch.arange(len(position), device=position.device)[:, None]
    fresh = within & ~visited[episode, row, col]
    allowed = torch.where(fresh.any(dim=1, keepdim=True), fresh, within)
    return allowed | ~allowed.any(dim=1, keepdim=True)
