"""Losses of the relation network, and of the text network, whose captions take the place of goals.

Logits (A, V, G, O) name the offset from every glimpse to every goal; by cell they are (A, V, G, C). A walk is a list of
glimpses in the order of the visits.

Legend: A areas, C cells, V glimpses and G goals of an area, O offsets, W walks, T length of a walk.
"""

import torch
from torch.nn.functional import cross_entropy

from airloc.grid import Grid
from airloc.vision.relation import adjacent_offsets, offsets_between_cells

POWER = 0.75
"""Power of the likelihood of the glimpses of a walk: where a belief is calibrated on the same day."""
ANCHOR = 0.1
"""Weight of the squared difference of all logits, which holds offsets that the grid does not have."""


def logits_by_cell(logits: torch.Tensor, observed: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Select the logit of every cell from the logits (A, V, G, O) of glimpses of `observed` (A, V): (A, V, G, C)."""
    offsets = offsets_between_cells(grid, logits.device)[observed][:, :, None]
    return logits.gather(3, offsets.expand(*logits.shape[:3], -1))


def pair_loss(by_cell: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the goal's cell (A, G) given single glimpses, by_cell (A, C, G, C)."""
    target = goal[:, None].expand(by_cell.shape[:3])
    return cross_entropy(by_cell.flatten(0, 2), target.flatten())


def direction_loss(logits: torch.Tensor, goal: torch.Tensor, observed: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Cross-entropy of the goal's direction given glimpses beside it; logits (A, V, G, O), goal (A, G)."""
    directions = adjacent_offsets(logits.device)
    offset = offsets_between_cells(grid, logits.device)[observed[:, :, None], goal[:, None]]  # (A, V, G)
    target = offset[..., None] == directions  # (A, V, G, 8)
    beside = target.any(dim=3).float()
    log_probs = logits[..., directions].log_softmax(dim=3)
    return -(log_probs * target).sum() / beside.sum().clamp(min=1)


def walk_loss(
    by_cell: torch.Tensor, goal: torch.Tensor, observed: torch.Tensor, walks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the goal's cell among the unvisited cells given all glimpses of a walk, and the accuracy.

    Args:
        by_cell: Logits of the cells, (A, V, G, C).
        goal: Index of the cell of every goal, (A, G).
        observed: Index of the cell of every glimpse, (A, V).
        walks: Indices of glimpses in the order of the visits, (W, T).
    """
    walk, length = _draw_walks(walks, goal.shape)
    steps = torch.arange(walk.shape[2], device=walk.device)
    place = observed[:, None].expand(-1, goal.shape[1], -1)  # (A, G, V)
    when = steps.expand_as(walk).masked_fill(place.gather(2, walk) != goal[..., None], len(steps))
    length = torch.minimum(length, when.amin(dim=2))  # the walk ends before the goal
    used, visited = _walked(walk, length, observed, by_cell.shape[3])
    belief = torch.einsum("agv,avgc->agc", used, by_cell).masked_fill(visited, -torch.inf)
    weight = (length > 0).float()  # a walk that starts at the goal does not count
    loss = cross_entropy(belief.flatten(0, 1), goal.flatten(), reduction="none").view_as(weight)
    correct = (belief.argmax(dim=2) == goal).float()
    count = weight.sum().clamp(min=1)
    return (loss * weight).sum() / count, (correct * weight).sum() / count


def consistency_loss(
    answers: torch.Tensor, logits: torch.Tensor, observed: torch.Tensor, walks: torch.Tensor, grid: Grid
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return how far the network is from its teacher, for single glimpses and for walks.

    Args:
        answers: Logits of the teacher, (A, V, G, O).
        logits: Logits of the network, (A, V, G, O).
        observed: Index of the cell of every glimpse, (A, V).
        walks: Indices of glimpses in the order of the visits, (W, T).
        grid: The grid.
    """
    taught, learned = (logits_by_cell(table, observed, grid) for table in (answers, logits))
    centred = [table - table.mean(dim=3, keepdim=True) for table in (answers, logits)]
    pair = _divergence(taught, learned) + ANCHOR * (centred[0] - centred[1]).square().mean()
    walk, length = _draw_walks(walks, (len(answers), answers.shape[2]))
    used, visited = _walked(walk, length, observed, grid.count)
    beliefs = [
        (POWER * torch.einsum("agv,avgc->agc", used, table)).masked_fill(visited, -1e4) for table in (taught, learned)
    ]
    return pair, _divergence(*beliefs)


def _draw_walks(walks: torch.Tensor, shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a walk for every goal, (A, G, T), and the number of its glimpses that count, (A, G)."""
    walk = walks[torch.randint(len(walks), shape, device=walks.device)]
    return walk, torch.randint(1, walk.shape[2] + 1, shape, device=walks.device)


def _walked(
    walk: torch.Tensor, length: torch.Tensor, observed: torch.Tensor, cells: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which glimpses the first steps of walks use, ones and zeros (A, G, V), and the visited cells (A, G, C)."""
    made = (torch.arange(walk.shape[2], device=walk.device) < length[..., None]).float()
    place = observed[:, None].expand(-1, walk.shape[1], -1)  # (A, G, V)
    used = torch.zeros(place.shape, device=walk.device).scatter_reduce(2, walk, made, "amax")
    visited = torch.zeros(*walk.shape[:2], cells, device=walk.device).scatter_reduce(2, place, used, "amax")
    return used, visited > 0


def _divergence(taught: torch.Tensor, learned: torch.Tensor) -> torch.Tensor:
    """Return the mean Kullback-Leibler divergence of the last axis."""
    target = taught.log_softmax(dim=-1)
    return (target.exp() * (target - learned.log_softmax(dim=-1))).sum(dim=-1).mean()
