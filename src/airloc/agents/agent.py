"""The agent interface: batched `reset` and `act`, explicit state, and the moves that an agent may choose from.

Legend: B episodes in a batch, T budget, C cells, S side of a cell in pixels. `visited` is bool (B, rows, cols).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch

from airloc.errors import AirlocError, reason_of
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.rules import inside, moves_allowed, moves_on

FREE, VISITED, OUTSIDE = 0, 1, 2
"""Status of the cell that a move leads to. Privileged agents choose the lowest status that they can reach."""


@dataclass(frozen=True)
class AgentOptions:
    """Options that every agent can be created with."""

    seed: int = 0
    """Random seed for choices that an agent makes once, when it is created."""
    device: str = "cpu"
    """Device on which a learned agent computes."""
    sample: bool = False
    """Sample moves from the policy instead of taking the most probable move."""
    full_precision: bool = False
    """Compute in float32 even where bfloat16 is faster, so that results do not depend on the CPU."""


def check_device(name: str) -> str:
    """Return the name of a device, or raise an error if this machine does not have it."""
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        problem = f"Cannot use the device {str(name)!r}: {reason_of(error)}"
        raise AirlocError(problem, "Use the device cpu, on the command line --device cpu") from None
    return name


class EpisodeBatch(NamedTuple):
    """What an agent knows before its episodes begin. The goal's cell is not part of it."""

    goal: torch.Tensor
    """Goal patches, (B, S, S, 3) uint8."""
    grid: Grid
    budget: int
    noise: torch.Tensor
    """Uniform random numbers in [0, 1), (B, T, 8). Agents use no other source of randomness, so that results depend on
    neither the batch size nor the device."""
    prior: torch.Tensor | None = None
    """Probability of the goal in every cell before the first glimpse, (B, C). Rows sum to one. None if nothing is
    known. The belief agent and `blind` use it instead of their own prior."""
    text: torch.Tensor | None = None
    """Embedded descriptions of the goals, (B, 8, 384), all zero for none; see `airloc.vision.sentences`. Where there is
    no picture of the goal, its patch is black."""


@runtime_checkable
class AgentState(Protocol):
    """Attributes of an agent's state that recorders and displays read.

    A state can be any value, and both attributes are optional: `belief_of` and `logits_of` return None for a state
    without them.
    """

    @property
    def belief(self) -> torch.Tensor | None:
        """Probability of every cell of being the goal, (B, C), after the last observation."""
        ...

    @property
    def logits(self) -> torch.Tensor | None:
        """Logits of the last decision, (B, 8); minus infinity for forbidden moves."""
        ...


class Agent(Protocol):
    """Searches for goals in a batch of episodes. A single drone is a batch of one.

    The state holds everything that the agent remembers: recurrent state, visited cells, belief. The caller passes it
    from call to call; the agent object itself never changes.
    """

    @property
    def name(self) -> str:
        """Name of the agent in tables."""
        ...

    def reset(self, episodes: EpisodeBatch) -> Any:
        """Return the state before the first move."""
        ...

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Return moves (B,) and the state for the next call."""
        ...


def belief_of(state: Any) -> torch.Tensor | None:
    """Return the belief (B, C) in an agent's state, or None if the agent keeps none."""
    return getattr(state, "belief", None)


def logits_of(state: Any) -> torch.Tensor | None:
    """Return the logits (B, 8) in an agent's state, or None if the agent keeps none."""
    return getattr(state, "logits", None)


def check_patch_side(patches: torch.Tensor, side: int) -> None:
    """Raise an error unless patches (B, S, S, 3) have the side in pixels that a network needs."""
    if patches.shape[1:] != (side, side, 3):
        problem = f"Learned agents need cells of {side} x {side} px, not {patches.shape[1]} x {patches.shape[2]}"
        raise AirlocError(problem, f"Use a grid with cells of {side} px")


def select_action(logits: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
    """Select one of eight moves for every episode, (B,).

    Args:
        logits: Logits of the moves, (B, 8); minus infinity for forbidden moves.
        noise: Uniform random numbers in [0, 1), (B, 8), to sample from the softmax of the logits by the Gumbel-max
            trick. None selects the most probable move.
    """
    if noise is not None:
        # Noise of exactly zero would forbid a move; the smallest other number is 2^-24.
        logits = logits - (-noise.clamp(min=2.0**-25).log()).log()
    return logits.argmax(dim=1)


def unvisited(count: int, grid: Grid, device: torch.device) -> torch.Tensor:
    """Return a visited mask without any visited cell, (count, rows, cols)."""
    return torch.zeros(count, grid.rows, grid.cols, dtype=torch.bool, device=device)


def visit(visited: torch.Tensor, position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Return the visited mask with the current cells (B, 2) added. Positions outside the grid are ignored."""
    cells = visited.flatten(1)
    row, col = position[:, 0].clamp(0, grid.rows - 1), position[:, 1].clamp(0, grid.cols - 1)
    index = (row * grid.cols + col)[:, None]
    return cells.scatter(1, index, cells.gather(1, index) | inside(position, grid)[:, None]).view_as(visited)


def task_moves(position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Return which of the eight moves the task allows, bool (B, 8).

    A task with eight moves allows all of them. A task with four moves allows those that stay inside the grid.
    """
    return moves_allowed(position, grid, moves_on(position.device))


def mask_task_moves(logits: torch.Tensor, position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Set the logits (B, 8) of moves that the task does not allow to minus infinity."""
    return logits if grid.moves == 8 else logits.masked_fill(~task_moves(position, grid), -torch.inf)


def privileged_moves(position: torch.Tensor, visited: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Return which of the eight moves a privileged agent may make, bool (B, 8).

    A privileged agent moves to unvisited cells inside the grid. If there is none (a dead end), every move that ends
    inside is allowed. If there is none of these either, every move is allowed.
    """
    target = position[:, None] + moves_on(position.device)  # (B, 8, 2)
    possible = inside(target, grid) & task_moves(position, grid)
    row, col = target[..., 0].clamp(0, grid.rows - 1), target[..., 1].clamp(0, grid.cols - 1)
    episode = torch.arange(len(position), device=position.device)[:, None]
    status = torch.where(possible, visited[episode, row, col].long() * VISITED, OUTSIDE)
    return lowest_status(status)


def lowest_status(status: torch.Tensor) -> torch.Tensor:
    """Return which moves lead to cells of the lowest reachable status, bool (..., 8).

    Args:
        status: `FREE`, `VISITED` or `OUTSIDE` for the cell that each move leads to, (..., 8).

    >>> lowest_status(torch.tensor([[2, 1, 0, 0], [2, 1, 1, 2], [2, 2, 2, 2]])).int().tolist()
    [[0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]]
    """
    return status == status.amin(dim=-1, keepdim=True)
