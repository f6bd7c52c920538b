"""Which moves agents may make: those the task has, and privileged ones, never outside and not to visited cells.

Legend: B episodes; visited is bool (B, rows, cols).
"""

import torch

from airloc.grid import Grid
from airloc.task.rules import inside, moves_allowed, moves_on


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
