"""The temporal and the decision unit of AiRLoc, for one policy or several of the same kind at once.

An LSTM (256) reads [c + p ; u] at every step, where c is the embedding of the pair, p the encoded position and u the
exploitation prior. Its output is projected to eight logits and u is added: the policy learns when to deviate from
the prior. Variants leave parts out.

Several policies (seeds) are stacked along a first axis and computed together.

Legend: K policies, B episodes, E = 256 size of c and p, H = 256 hidden size.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from airloc.errors import AirlocError
from airloc.vision.embedder import DIRECTIONS, EMBEDDING

HIDDEN = 256


@dataclass(frozen=True)
class Variant:
    """Which parts of AiRLoc are kept."""

    residual: bool = True
    """Add the exploitation prior u to the logits."""
    prior: bool = True
    """Let the temporal unit see u; without it u is not used at all."""
    sem_seg: bool = True
    """Let the embedder see building masks."""
    priv: bool = False
    """Forbid moves that leave the area or go to a visited cell, while there is another."""

    def __post_init__(self) -> None:
        if self.residual and not self.prior:
            raise AirlocError("Without the prior there is no residual to add", "Leave the residual out too")

    @property
    def name(self) -> str:
        """The agent's name: airloc[-no-residual|-no-prior][-no-sem-seg][-priv]."""
        part = "" if self.residual else "-no-residual" if self.prior else "-no-prior"
        return f"airloc{part}{'' if self.sem_seg else '-no-sem-seg'}{'-priv' if self.priv else ''}"


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for priv in (False, True)
    for sem_seg in (True, False)
    for residual, prior in ((True, True), (False, True), (False, False))
    for variant in [Variant(residual, prior, sem_seg, priv)]
}
"""The paper's twelve agents by name."""


class Memory(NamedTuple):
    """What the LSTM remembers: hidden and cell state, each (K, B, H)."""

    hidden: torch.Tensor
    cell: torch.Tensor


class Policy(nn.Module):
    """K policies of one variant.

    Args:
        variant: Which parts to use.
        count: How many policies (K).
    """

    def __init__(self, variant: Variant, count: int = 1) -> None:
        super().__init__()
        self.variant = variant
        inputs = EMBEDDING + (DIRECTIONS if variant.prior else 0)
        bound = HIDDEN**-0.5
        self.read = _uniform(count, inputs, 4 * HIDDEN, bound=bound)
        self.recall = _uniform(count, HIDDEN, 4 * HIDDEN, bound=bound)
        self.bias = _uniform(count, 1, 4 * HIDDEN, bound=bound)
        self.decide = _uniform(count, HIDDEN, DIRECTIONS, bound=bound)
        self.offset = _uniform(count, 1, DIRECTIONS, bound=bound)

    def begin(self, batch: int) -> Memory:
        """An empty memory for a batch of episodes."""
        blank = self.bias.new_zeros(len(self.bias), batch, HIDDEN)
        return Memory(blank, blank)

    def forward(self, embedding: torch.Tensor, prior: torch.Tensor, memory: Memory) -> tuple[torch.Tensor, Memory]:
        """Read one step and decide.

        Args:
            embedding: c + p, (K, B, E).
            prior: u, (K, B, 8).
            memory: What is remembered.

        Returns:
            Logits of the eight moves, (K, B, 8), and the new memory.
        """
        seen = torch.cat([embedding, prior], dim=2) if self.variant.prior else embedding
        read = torch.baddbmm(self.bias, seen, self.read)
        recalled = torch.bmm(memory.hidden, self.recall)
        memory, _ = lstm(read, recalled, memory.cell)
        logits = torch.baddbmm(self.offset, memory.hidden, self.decide)
        return (logits + prior if self.variant.residual else logits), memory


def lstm(gates: torch.Tensor, more: torch.Tensor, cell: torch.Tensor) -> tuple[Memory, tuple[torch.Tensor, ...]]:
    """Update the cell state (K, B, H) by gates that are the sum of two (K, B, 4 H): input, forget, candidate, output.

    Returns:
        The new memory, and what a gradient needs: the gates as they acted and the squashed cell state, or one tensor on
        a GPU.
    """
    return fused_lstm(gates, more, cell) if gates.is_cuda else plain_lstm(gates + more, cell)


def plain_lstm(gates: torch.Tensor, cell: torch.Tensor) -> tuple[Memory, tuple[torch.Tensor, ...]]:
    """Update the cell state by gates (K, B, 4 H), in plain operations."""
    enter, forget, candidate, leave = gates.chunk(4, dim=2)
    enter, forget, candidate, leave = enter.sigmoid(), forget.sigmoid(), candidate.tanh(), leave.sigmoid()
    cell = torch.addcmul(forget * cell, enter, candidate)
    squashed = cell.tanh()
    return Memory(leave * squashed, cell), (enter, forget, candidate, leave, squashed)


def fused_lstm(gates: torch.Tensor, more: torch.Tensor, cell: torch.Tensor) -> tuple[Memory, tuple[torch.Tensor, ...]]:
    """The same on a GPU, as one kernel, by gates that are the sum of two."""
    parts = (part.flatten(0, 1) for part in (gates, more, cell))  # without weights, policies are a batch
    hidden, after, acted = torch.ops.aten._thnn_fused_lstm_cell(*parts)
    return Memory(hidden.view_as(cell), after.view_as(cell)), (acted,)


def _uniform(*shape: int, bound: float) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
