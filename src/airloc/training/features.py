"""The outputs of the frozen units for every (cell, goal) pair of every area, tabulated once.

The patch encoder is frozen while policies are trained, so that an update touches the LSTM alone. A step of a rollout is
one lookup in the table of pairs and one in the table of encoded positions. The black patch outside the area counts as
one more cell. A table that exceeds a share of the device's memory is written to a file and mapped; this is slower, and
prevents CUDA graphs, but gives the same numbers.

Rollouts may leave the grid by as many cells as the budget has moves. `PaddedGrid` numbers all positions in that range:
a place is the index of a position, and a move adds a constant to it. Its tables are made from `task.rules`.

Legend: A areas, n cells, P places, E = 256, F = 264 numbers of a pair: the embedding c and the prior u.
"""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from airloc.agents.agent import FREE, OUTSIDE, VISITED, lowest_status
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.task.photos import MARGIN
from airloc.task.rules import inside, moves_on
from airloc.training.photos import photograph_cells
from airloc.vision.embedder import DIRECTIONS, EMBEDDING, PatchEncoder
from airloc.vision.position import PositionEncoding

log = logging.getLogger(__name__)

PAIR_SIZE = EMBEDDING + DIRECTIONS
"""Numbers of a pair (F)."""
MEMORY_SHARE = 0.5
"""Default limit of a table: a share of the free memory of a GPU, or of the memory of the machine."""
AREAS_AT_ONCE = {"cuda": 16}
"""Areas whose features a device computes at once; others compute those of one after another."""


@dataclass(frozen=True, slots=True, eq=False)
class PaddedGrid:
    """All positions within reach of a grid, numbered row by row."""

    width: int
    """Places in a row."""
    positions: torch.Tensor
    """(P, 2): the position of every place."""
    cells: torch.Tensor
    """(P,): index of the cell at every place; n outside the grid."""
    places: torch.Tensor
    """(n,): the place of every cell."""
    strides: torch.Tensor
    """(8,): what each move adds to a place."""
    status: torch.Tensor
    """(P,) uint8: `FREE` in the grid, `OUTSIDE` around it."""

    @classmethod
    def around(cls, grid: Grid, shape: tuple[int, int], reach: int, device: torch.device) -> "PaddedGrid":
        """Number the positions of `shape` (rows, cols), the first of which is (-reach, -reach)."""
        rows, cols = (torch.arange(-reach, side - reach, device=device) for side in shape)
        positions = torch.cartesian_prod(rows, cols)
        within = inside(positions, grid)
        cells = torch.where(within, positions[:, 0] * grid.cols + positions[:, 1], grid.count)
        places = within.nonzero()[:, 0]  # cells and places are both numbered row by row
        strides = moves_on(device)[:, 0] * shape[1] + moves_on(device)[:, 1]
        status = torch.where(within, FREE, OUTSIDE).to(torch.uint8)
        return cls(shape[1], positions, cells, places, strides, status)


class PrivilegedMoves:
    """The moves that privileged agents may make, by the places that each of K x B episodes has visited."""

    def __init__(self, padded: PaddedGrid, policies: int, batch: int) -> None:
        self._strides = padded.strides
        self._status = padded.status.repeat(policies, batch, 1)  # (K, B, P)
        self._visited = padded.status.clamp(min=VISITED)

    def forbidden(self, place: torch.Tensor) -> torch.Tensor:
        """Visit places (K, B), and return the forbidden moves from there, bool (K, B, 8)."""
        self._status.scatter_(2, place[..., None], self._visited[place][..., None])
        return ~lowest_status(self._status.gather(2, place[..., None] + self._strides))


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """The features of all (cell, goal) pairs, and the encoded positions."""

    grid: Grid
    areas: int
    table: torch.Tensor
    """(A * (n + 1) * n, F), by area, cell (black last) and goal; on the device, or on the CPU mapped from a file."""
    positions: torch.Tensor
    """(rows + 2 reach, cols + 2 reach, E): encoded positions, starting at (-reach, -reach)."""
    reach: int
    """How many cells outside the grid positions are encoded: as many as the budget has moves."""
    padded: PaddedGrid = field(init=False)
    """The same positions as numbered places."""
    _codes: torch.Tensor = field(init=False)
    """(P, F): encoded positions by place, padded with zeros to the size of a pair."""
    _rows: torch.Tensor = field(init=False)
    """(P,): row of the table where the pairs of each place begin, relative to the area."""

    def __post_init__(self) -> None:
        rows, cols, _ = self.positions.shape
        padded = PaddedGrid.around(self.grid, (rows, cols), self.reach, self.device)
        codes = nn.functional.pad(self.positions.flatten(0, 1), (0, PAIR_SIZE - EMBEDDING))
        for name, value in (("padded", padded), ("_codes", codes), ("_rows", padded.cells * self.grid.count)):
            object.__setattr__(self, name, value)

    @property
    def device(self) -> torch.device:
        """The device of rollouts."""
        return self.positions.device

    @property
    def on_device(self) -> bool:
        """True if the table is on the device, so that a rollout never waits for the host."""
        return self.table.device == self.device

    def row_offset(self, area: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        """Return the first row of the pairs of goals (...), which are indices of cells, in areas (...)."""
        return torch.add(goal, area, alpha=(self.grid.count + 1) * self.grid.count)

    def lookup(self, row_offset: torch.Tensor, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Look up the features at places (...): c + p (..., 256) and u (..., 8).

        The method `row_offset` computes the argument of that name from the area and the goal.
        """
        row = (row_offset + self._rows[place]).flatten()
        pair = self.table.index_select(0, row.to(self.table.device)).to(self.device)
        features = (pair + self._codes.index_select(0, place.flatten())).view(*place.shape, PAIR_SIZE)
        return features[..., :EMBEDDING], features[..., EMBEDDING:]


@torch.no_grad()
def tabulate(
    encoder: PatchEncoder,
    images: npt.NDArray[np.uint8],
    grid: Grid,
    budget: int,
    *,
    device: torch.device,
    training_grid: Grid | None = None,
    position: PositionEncoding | None = None,
    photos: float = 0.0,
    folder: Path | None = None,
    limit: int | None = None,
) -> FeatureTable:
    """Compute the table for images (A, height, width, 3) at the grid's size.

    A table of more than `limit` bytes (by default a share of the device's memory) is written to `folder`, if there is
    one. `training_grid` is the grid that the policies are trained on, if it is another one. `position` encodes the
    positions. In a share of the areas,
    `photos`, glimpses and goals are photos with errors of their own; beyond the border they show the mirrored area.
    """
    log.info("Computing the features of %d areas of %s cells", len(images), grid)
    encoder = encoder.to(device).eval()
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    rows = (grid.count + 1) * grid.count

    def parts() -> Iterable[torch.Tensor]:
        at_once = AREAS_AT_ONCE.get(device.type, 1)
        for first in range(0, len(images), at_once):
            with torch.autocast(device.type, torch.float16, enabled=device.type == "cuda"):
                patches = _patches(images[first : first + at_once], grid, photos, device)
                yield _pair_features(encoder, *patches).to(dtype)

    size = len(images) * rows * PAIR_SIZE * dtype.itemsize
    if folder is not None and size > (default_limit(device) if limit is None else limit):
        table = _write_and_map(parts(), folder, size, dtype)
    else:
        table = torch.empty(len(images) * rows, PAIR_SIZE, dtype=dtype, device=device)
        filled = 0
        for part in parts():
            table[filled : filled + len(part)] = part
            filled += len(part)
    line = torch.arange(-budget, max(grid.shape) + budget, device=device)
    places = torch.cartesian_prod(line, line).reshape(len(line), len(line), 2)
    positions = (position or PositionEncoding()).encode(places, grid, training_grid or grid)
    return FeatureTable(grid, len(images), table, positions, reach=budget)


def default_limit(device: torch.device) -> int:
    """Return the default limit of the bytes that a table may take on a device."""
    if device.type == "cuda":
        return int(MEMORY_SHARE * torch.cuda.mem_get_info(device)[0])
    return int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _write_and_map(parts: Iterable[torch.Tensor], folder: Path, size: int, dtype: torch.dtype) -> torch.Tensor:
    """Write the parts of a table to a file, map it, and unlink it, so that it disappears with the process."""
    try:
        with NamedTemporaryFile(dir=folder, prefix=".airloc-", suffix=".tmp") as file:
            for part in parts:
                file.write(part.cpu().numpy().data)
            file.flush()
            mapped = torch.from_file(file.name, shared=False, size=size // dtype.itemsize, dtype=dtype)
            return mapped.view(-1, PAIR_SIZE)
    except OSError as error:
        raise AirlocError(
            f"Cannot write a table of {size / 1e9:.1f} GB to {str(folder)!r}: {error.strerror or error}",
            "Free some space, use fewer --areas, or allow more memory with --table-bytes",
        ) from error


def _patches(
    images: npt.NDArray[np.uint8], grid: Grid, photos: float, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the glimpses and the goals of all cells of areas, each (A, n, S, S, 3) uint8."""
    exact = torch.from_numpy(np.stack([cut_patches(image, grid) for image in images])).to(device)
    chosen = torch.rand(len(images)) < photos
    if not chosen.any():
        return exact, exact
    whole = torch.from_numpy(images[chosen.numpy()]).to(device).permute(0, 3, 1, 2) / 255
    around = nn.functional.pad(whole, [MARGIN] * 4, mode="reflect")
    glimpses, goals = exact, exact.clone()
    for patches in (glimpses, goals):
        taken = photograph_cells(around, grid, share=1.0)
        patches[chosen.to(device)] = (taken * 255).round().byte().permute(0, 1, 3, 4, 2)
    return glimpses, goals


def _pair_features(encoder: PatchEncoder, glimpses: torch.Tensor, goals: torch.Tensor) -> torch.Tensor:
    """Compute the features of all pairs of each area, (A * (n + 1) * n, F)."""
    areas, cells = goals.shape[:2]
    black = torch.zeros_like(glimpses[:, :1])
    inputs = encoder.preprocess(
        torch.cat([glimpses, black, *([] if goals is glimpses else [goals])], dim=1).flatten(0, 1)
    )
    inputs = inputs.reshape(areas, -1, *inputs.shape[1:])
    current = encoder.embedder.current_first(inputs[:, : cells + 1].flatten(0, 1)).unflatten(0, (areas, -1))
    goal_inputs = inputs[:, :cells] if goals is glimpses else inputs[:, cells + 1 :]
    goal = encoder.embedder.goal_first(goal_inputs.flatten(0, 1)).unflatten(0, (areas, -1))
    both = current.repeat_interleave(cells, dim=1), goal.repeat(1, cells + 1, 1, 1, 1)
    return torch.cat(encoder.embedder.relate(*(maps.flatten(0, 1) for maps in both)), dim=1)
