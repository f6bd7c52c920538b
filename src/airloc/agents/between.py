"""A belief for goals between cells: the evidence of glimpses at positions half a cell apart.

The relation network answers in whole cells. If the goal lies between two of them, one glimpse points to the one cell
and the next glimpse to the other, and the product of both excludes the two. The likelihood of a position between cells
is therefore the mean of the likelihoods of the cells beside it, for every glimpse, before glimpses are multiplied. The
probability of a cell is that of its middle and its part of the positions at its border.

A photo without the goal excludes the middle of its cell. It shows the positions at its border only in part, so that
these stay possible; they count for the other cells that they belong to.

This file needs NumPy alone: `airloc export` copies it into the runner of an exported agent.

Legend: B episodes, R, C rows and columns of cells, r = 2 R - 1, c = 2 C - 1 positions.
"""

from typing import Any

import numpy as np


def position_likelihood(cells: Any) -> Any:
    """Return the log-likelihood of all positions (B, r, c) given that of the cells (B, R, C)."""
    return _spread_cells(np.asarray(cells, dtype=np.float64), lambda a, b: np.logaddexp(a, b) - np.log(2))


def position_prior(cells: Any) -> Any:
    """Return the log-probability of all positions (B, r, c) given that of the cells (B, R, C), up to a constant.

    A position stands for the ground up to a quarter of a cell around it, and at the border of the area up to this
    border, so that cells of the same probability stay so.
    """
    extent = [np.r_[1.5, np.ones(2 * side - 3), 1.5] if side > 1 else np.ones(1) for side in cells.shape[1:]]
    return position_likelihood(cells) + np.log(extent[0][:, None] * extent[1])


def cell_belief(likelihood: Any, prior: Any, visited: Any) -> Any:
    """Return the probability of every cell (B, R, C) of being the goal's.

    A position between cells counts for those that are not visited, in proportion to their prior. It counts in full if
    the most probable of its cells is not visited, or another one that is as probable, so that before the first visit
    the cells have their prior.

    Args:
        likelihood: Log-likelihood of all glimpses at all positions, (B, r, c).
        prior: Log-probability of the cells before the first glimpse, up to a constant, (B, R, C).
        visited: Visited cells, bool (B, R, C).

    Returns:
        The probabilities, zero for visited cells; uniform where all cells are visited.
    """
    evidence = position_prior(prior) + likelihood
    weight = np.exp(evidence - evidence.max(axis=(1, 2), keepdims=True))
    probable = np.exp(prior - prior.max(axis=(1, 2), keepdims=True))
    open_cells = probable * ~visited
    share = weight / np.maximum(_spread_cells(open_cells, np.add), _spread_cells(probable, np.maximum))
    cells = _collect_positions(share) * open_cells
    total = cells.sum(axis=(1, 2), keepdims=True)
    even = np.full(visited.shape, 1 / (visited.shape[1] * visited.shape[2]))
    return np.where(total > 0, cells / np.where(total > 0, total, 1), even)


def _spread_cells(cells: Any, combine: Any) -> Any:
    """Return a value of cells (B, R, C) at all positions (B, r, c), each combined over its 1, 2 or 4 cells."""
    for axis in (1, 2):
        shape = list(cells.shape)
        shape[axis] = 2 * shape[axis] - 1
        fine = np.empty(shape)
        along = np.moveaxis(cells, axis, 0)
        np.moveaxis(fine, axis, 0)[::2] = along
        np.moveaxis(fine, axis, 0)[1::2] = combine(along[:-1], along[1:])
        cells = fine
    return cells


def _collect_positions(positions: Any) -> Any:
    """Return the sum of a value over the positions of each cell, (B, R, C)."""
    for axis in (1, 2):
        along = np.moveaxis(positions, axis, 0)
        cells = along[::2].copy()
        cells[:-1] += along[1::2]
        cells[1:] += along[1::2]
        positions = np.moveaxis(cells, 0, axis)
    return positions
