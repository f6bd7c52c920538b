"""The frame around a grid in which flights stay, laid out so that a step takes few operations.

A position is one number there, its place; what the rules say of positions is looked up by it. Tables are made from the
rules, which stay the only ones.

Legend: n cells, P places.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from airloc.areas.area import Pixels
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.task.rules import inside, moves_on
from airloc.vision.embedder import EMBEDDING, PatchEncoder
from airloc.vision.position import encode_position, to_training_grid

FRESH, VISITED, OUTSIDE = 0, 1, 2
"""What speaks against flying to a place, for those who are told."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Positions as places."""

    width: int
    """Places in a row."""
    positions: torch.Tensor
    """(P, 2): the position of every place."""
    cells: torch.Tensor
    """(P,): the number of the cell there, n outside."""
    places: torch.Tensor
    """(n,): the place of every cell."""
    strides: torch.Tensor
    """(8,): what each move adds to a place."""
    standing: torch.Tensor
    """(P,) uint8: `FRESH` in the grid, `OUTSIDE` around it."""

    @classmethod
    def around(cls, grid: Grid, shape: tuple[int, int], reach: int, device: torch.device) -> "Frame":
        """A frame of (rows, cols) whose first place lies `reach` rows and columns before the grid."""
        rows, cols = (torch.arange(-reach, side - reach, device=device) for side in shape)
        positions = torch.cartesian_prod(rows, cols)
        within = inside(positions, grid)
        cells = torch.where(within, positions[:, 0] * grid.cols + positions[:, 1], grid.count)
        places = within.nonzero()[:, 0]  # cells and places are both numbered row by row
        strides = moves_on(device)[:, 0] * shape[1] + moves_on(device)[:, 1]
        standing = torch.where(within, FRESH, OUTSIDE).to(torch.uint8)
        return cls(shape[1], positions, cells, places, strides, standing)


class Privileges:
    """Who has been where, and which moves privileged agents may therefore make (see `constraints.privileged_moves`).

    Args:
        frame: Where they fly.
        policies: K.
        batch: B.
    """

    def __init__(self, frame: Frame, policies: int, batch: int) -> None:
        self._strides = frame.strides
        self._standing = frame.standing.repeat(policies, batch, 1)  # (K, B, P)
        self._after_visit = frame.standing.clamp(min=VISITED)

    def forbidden(self, place: torch.Tensor) -> torch.Tensor:
        """Visit places (K, B) and give the moves that are forbidden from there, bool (K, B, 8).

        Allowed are moves to the best there is: to fresh cells, else to visited ones, else anywhere.
        """
        self._standing.scatter_(2, place[..., None], self._after_visit[place][..., None])
        ahead = self._standing.gather(2, place[..., None] + self._strides)
        return ahead > ahead.amin(dim=2, keepdim=True)


# ---------- What the frozen units say of every (cell, goal) pair of every area, computed once.
# ~
# ~ Policy training then touches only the LSTM: a step is one gather from this table, and one of encoded positions. The
# ~ patch that is black, seen outside the area, is one more cell. A table that would take too much of the device's memory is
# ~ kept in a file and mapped, and what a step needs is read from there: slower, and on a GPU not captured, but the same
# ~ numbers.
# ~
# ~ Legend: A areas, n cells, P places of the frame, E = 256, F = 264 numbers of a pair: the embedding c and the prior u.

PAIR = EMBEDDING + 8
SHARE = 0.5
"""Of a GPU's free memory, or of the machine's whole one, that a table may take unless a limit is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The table of all pairs, and encoded positions."""

    grid: Grid
    areas: int
    table: torch.Tensor
    """(A * (n + 1) * n, F), by area, cell (black last) and goal; on the device, or on the CPU mapped from a file."""
    positions: torch.Tensor
    """(rows + 2 reach, cols + 2 reach, E): encoded positions, from -reach on."""
    reach: int
    """How far outside positions are encoded: as far as the budget leads."""
    frame: Frame = field(init=False)
    """The same positions as numbered places."""
    _codes: torch.Tensor = field(init=False)
    """(P, F): encoded positions by place, followed by zeros, ready to be added to pairs."""
    _rows: torch.Tensor = field(init=False)
    """(P,): how far into an area's part of the table the pairs of each place begin."""

    def __post_init__(self) -> None:
        rows, cols, _ = self.positions.shape
        frame = Frame.around(self.grid, (rows, cols), self.reach, self.device)
        codes = nn.functional.pad(self.positions.flatten(0, 1), (0, PAIR - EMBEDDING))
        for name, value in (("frame", frame), ("_codes", codes), ("_rows", frame.cells * self.grid.count)):
            object.__setattr__(self, name, value)

    @property
    def device(self) -> torch.device:
        """Where episodes are flown."""
        return self.positions.device

    @property
    def fits(self) -> bool:
        """Whether the table is on the device, so that flying never waits for the host."""
        return self.table.device == self.device

    def quest(self, area: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        """Where the table speaks of goals, given by the numbers of their cells, in areas: the first rows, (...)."""
        return torch.add(goal, area, alpha=(self.grid.count + 1) * self.grid.count)

    def look(self, quest: torch.Tensor, place: torch.Tensor, out: torch.Tensor) -> None:
        """Write what is seen at places (...) on a quest (...): c + p and u (..., 264), or c + p alone (..., 256).

        Args:
            quest: Of which area and goal.
            place: Where, in the frame.
            out: What to write to; its size says how much.
        """
        row = (quest + self._rows[place]).flatten()
        pair = self.table.index_select(0, row.to(self.table.device)).to(self.device)
        code = self._codes.index_select(0, place.flatten())
        size = out.shape[-1]
        torch.add(pair[:, :size].view(out.shape), code[:, :size].view(out.shape), out=out)


@torch.no_grad()
def tabulate(
    encoder: PatchEncoder,
    images: npt.NDArray[np.uint8],
    grid: Grid,
    budget: int,
    *,
    device: torch.device,
    trained: Grid | None = None,
    folder: Path | None = None,
    limit: int | None = None,
    on_area: Callable[[int], None] = lambda areas: None,
) -> Features:
    """Compute the table for images (A, height, width, 3) at the grid's size.

    Args:
        eyes: Who looks.
        images: The areas.
        grid: What is laid on them.
        budget: Moves in an episode.
        device: Where episodes will be flown.
        trained: The grid that those who fly were trained on, where it is another one.
        folder: Where a table goes that is larger than the limit; without it, the table is on the device in any case.
        limit: Bytes that the table may take on the device; by default a share of its memory.
        on_area: Called with the number of areas just computed.
    """
    encoder = encoder.to(device).eval()
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    rows = (grid.count + 1) * grid.count

    def parts() -> Iterable[torch.Tensor]:
        for image in images:
            with torch.autocast(device.type, torch.float16, enabled=device.type == "cuda"):
                yield _pairs(encoder, image, grid, device).to(dtype)
            on_area(1)

    size = len(images) * rows * PAIR * dtype.itemsize
    if folder is not None and size > (memory_share(device) if limit is None else limit):
        table = _mapped(parts(), folder, size, dtype)
    else:
        table = torch.empty(len(images) * rows, PAIR, dtype=dtype, device=device)
        for number, part in enumerate(parts()):
            table[number * rows : (number + 1) * rows] = part
    line = torch.arange(-budget, max(grid.shape) + budget, device=device)
    places = torch.cartesian_prod(line, line).reshape(len(line), len(line), 2)
    positions = encode_position(to_training_grid(places, grid, trained or grid))
    return Features(grid, len(images), table, positions, reach=budget)


def memory_share(device: torch.device) -> int:
    """Bytes that a table may take on a device."""
    if device.type == "cuda":
        return int(SHARE * torch.cuda.mem_get_info(device)[0])
    return int(SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _mapped(parts: Iterable[torch.Tensor], folder: Path, size: int, dtype: torch.dtype) -> torch.Tensor:
    """Write parts of a table to a file and map it; the file has no name any more, so that it ends with the process."""
    try:
        with NamedTemporaryFile(dir=folder, prefix=".airloc-", suffix=".tmp") as file:
            for part in parts:
                file.write(part.cpu().numpy().data)
            file.flush()
            return torch.from_file(file.name, shared=False, size=size // dtype.itemsize, dtype=dtype).view(-1, PAIR)
    except OSError as error:
        raise AirlocError(
            f"Cannot keep a table of {size / 1e9:.1f} GB in {str(folder)!r}: {error.strerror or error}",
            "Free some space, use fewer --areas, or let it take more memory with --table-bytes",
        ) from error


def _pairs(encoder: PatchEncoder, image: Pixels, grid: Grid, device: torch.device) -> torch.Tensor:
    """All pairs of one area, ((n + 1) * n, F)."""
    patches = torch.from_numpy(cut_patches(image, grid)).to(device)
    seen = encoder.preprocess(torch.cat([patches, torch.zeros_like(patches[:1])]))
    current, goal = encoder.embedder.current_first(seen), encoder.embedder.goal_first(seen[:-1])
    both = current.repeat_interleave(len(goal), dim=0), goal.repeat(len(current), 1, 1, 1)
    return torch.cat(encoder.embedder.relate(*both), dim=1)
