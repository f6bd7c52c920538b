"""Puzzles to train the relation network on: areas cut into cells, goals seen as on another day, walks over them.

An area is drawn from the atlas and cut into cells. Its goals are either the cells themselves, or what they look like
on another day: as an atlas of pairs shows them, or changed by chance (`temporal_change`); then two pictures do not lie on
each other to the pixel either. In some areas goals are cut off the grid and turned a little.

Legend: A areas, C cells of the grid, G goals of an area, S side of a cell, W walks, T length of a walk.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.functional import affine_grid, grid_sample

from airloc.grid import Grid
from airloc.task.rules import inside, moves_on
from airloc.training.augment import recolour, temporal_change
from airloc.training.data import Atlas
from airloc.vision.embedder import standardise


@dataclass(frozen=True)
class Change:
    """How the goal's picture may differ from what the flight sees."""

    shared_jitter: float = 0.6
    """Strength of photometric change that glimpses and goal share, 0 to 1."""
    goal_jitter: float = 0.8
    """Strength of photometric change between glimpses and goal, where they differ."""
    goal_jitter_probability: float = 0.5
    """Share of areas where glimpses and goal differ in looks."""
    misregistration: float = 3.0
    """How far pictures of different days may lie beside each other, in pixels."""
    off_grid_probability: float = 0.1
    """Share of areas where goals are cut off the grid and turned."""
    shift: float = 0.5
    """Farthest cut off the grid, in cells."""
    turn: float = 10.0
    """Largest turn, in degrees."""


class Puzzle(NamedTuple):
    """Some areas in cells, and some of their cells as goals."""

    glimpses: torch.Tensor
    """Standardised, (A, C, 3, S, S)."""
    goals: torch.Tensor
    """Standardised, (A, G, 3, S, S)."""
    cell: torch.Tensor
    """The cell of every goal, (A, G)."""


def draw_puzzles(atlas: Atlas, grid: Grid, areas: int, goals: int, change: Change) -> Puzzle:
    """Cut areas at random places, each mirrored or not, and draw their goals."""
    device, side = atlas.first.device, grid.size[0]
    images = atlas.cut(*atlas.draw(areas, side), side).permute(0, 3, 1, 2).float() / 255
    flipped, swapped, changed = torch.rand(3, areas, 1, 1, 1, device=device)
    differs = changed < change.goal_jitter_probability
    images = torch.where(flipped < 0.5, images.flip(3), images)
    twice = torch.stack([images[:, :3], images[:, -3:]], dim=1)  # of an atlas without pairs, one day twice
    one, other = recolour(twice, change.shared_jitter).unbind(dim=1)
    days = torch.where(swapped < 0.5, one, other), torch.where(swapped < 0.5, other, one)
    seen, asked = (torch.where(differs, temporal_change(day, change.goal_jitter), day) for day in days)
    cell = torch.rand(areas, grid.count, device=device).argsort(dim=1)[:, :goals]
    pictures = _cut_goals(asked, grid, cell, change, differs.view(areas, 1))
    return Puzzle(standardise(_cut_cells(seen, grid)), standardise(pictures), cell)


def _cut_cells(images: torch.Tensor, grid: Grid) -> torch.Tensor:
    """All cells of images (A, 3, H, W), (A, C, 3, S, S)."""
    cells = images.unfold(2, grid.cell, grid.pitch).unfold(3, grid.cell, grid.pitch)  # (A, 3, rows, cols, S, S)
    return cells.flatten(2, 3).transpose(1, 2)


def _cut_goals(
    images: torch.Tensor, grid: Grid, cell: torch.Tensor, change: Change, differs: torch.Tensor
) -> torch.Tensor:
    """The goals' pictures, (A, G, 3, S, S): cells, or in some areas cuts off the grid and turned.

    Where days differ, (A, 1), all goals of an area may have slipped together.
    """
    areas, goals = cell.shape
    device, height = images.device, images.shape[2]
    level = torch.rand(4, areas, goals, device=device)
    off_grid_probability = (torch.rand(areas, 1, device=device) < change.off_grid_probability).float()
    misregistration = (2 * torch.rand(2, areas, 1, device=device) - 1) * change.misregistration * differs
    row, col = (
        (
            place * grid.pitch
            + misregistration[n]
            + off_grid_probability * (2 * level[n] - 1) * change.shift * grid.pitch
        ).clamp(0, height - grid.cell)
        for n, place in enumerate((cell // grid.cols, cell % grid.cols))
    )
    angle = off_grid_probability * (2 * level[2] - 1) * math.radians(change.turn)
    share = grid.cell / height
    centre = [(place + grid.cell / 2) * 2 / height - 1 for place in (col, row)]
    rows = [
        torch.stack([angle.cos() * share, -angle.sin() * share, centre[0]], dim=2),
        torch.stack([angle.sin() * share, angle.cos() * share, centre[1]], dim=2),
    ]
    where = affine_grid(
        torch.stack(rows, dim=2).flatten(0, 1), [areas * goals, 3, grid.cell, grid.cell], align_corners=False
    )
    where = where.view(areas, goals * grid.cell, grid.cell, 2)  # all cuts of an area at once
    cuts = grid_sample(images, where, mode="bilinear", padding_mode="border", align_corners=False)
    return cuts.view(areas, 3, goals, grid.cell, grid.cell).transpose(1, 2)


def random_walks(grid: Grid, count: int, length: int, device: torch.device) -> torch.Tensor:
    """Cells in the order of the visit on random walks that prefer what they have not visited, (W, T) numbers."""
    cells = torch.tensor(list(grid.cells()), device=device)
    here = torch.randint(grid.count, (count,), device=device)
    visited = torch.zeros(count, grid.count, dtype=torch.bool, device=device)
    walk = [here]
    for _ in range(length - 1):
        visited[torch.arange(count, device=device), here] = True
        to = cells[here][:, None] + moves_on(device)  # (W, 8, 2)
        inner = inside(to, grid)
        number = (to[..., 0] * grid.cols + to[..., 1]).clamp(0, grid.count - 1)
        liking = torch.rand(count, len(moves_on(device)), device=device) - visited.gather(1, number).float()
        here = number.gather(1, liking.masked_fill(~inner, -9.0).argmax(dim=1, keepdim=True))[:, 0]
        walk.append(here)
    return torch.stack(walk, dim=1)
