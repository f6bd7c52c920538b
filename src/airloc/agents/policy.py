"""AiRLoc's temporal and decision unit, for one policy or for several of the same variant at once.

At every step an LSTM (256) reads [c + p ; u], where c is the embedding of the pair, p the encoded position and u the
exploitation prior. Its output is projected to eight logits and u is added: the policy learns when to deviate from the
prior. Variants leave parts out.

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
    """The parts of AiRLoc that are in use."""

    residual: bool = True
    """Add the exploitation prior u to the logits."""
    prior: bool = True
    """Let the temporal unit read u. Without it u is not used at all."""
    sem_seg: bool = True
    """Let the embedder use building masks."""
    priv: bool = False
    """Restrict moves to unvisited cells inside the area; see `privileged_moves`."""

    def __post_init__(self) -> None:
        if self.residual and not self.prior:
            raise AirlocError("Without the prior there is no residual to add", "Leave the residual out too")

    @property
    def name(self) -> str:
        """Name of the agent: airloc[-no-residual|-no-prior][-no-sem-seg][-priv]."""
        part = "" if self.residual else "-no-residual" if self.prior else "-no-prior"
        return f"airloc{part}{'' if self.sem_seg else '-no-sem-seg'}{'-priv' if self.priv else ''}"


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for priv in (False, True)
    for sem_seg in (True, False)
    for residual, prior in ((True, True), (False, True), (False, False))
    for variant in [Variant(residual, prior, sem_seg, priv)]
}
"""The twelve variants of the paper by name."""


class LSTMState(NamedTuple):
    """Hidden and cell state of the LSTM, each (K, B, H)."""

    hidden: torch.Tensor
    cell: torch.Tensor


class Policy(nn.Module):
    """K policies of one variant.

    Args:
        variant: The parts in use.
        count: Number of policies (K).

    Attributes:
        read: Input-to-hidden weights, (K, inputs, 4 H).
        recall: Hidden-to-hidden weights, (K, H, 4 H).
        bias: Bias of the gates, (K, 1, 4 H).
        decide: Output weights, (K, H, 8).
        offset: Output bias, (K, 1, 8).
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

    def initial_state(self, batch: int) -> LSTMState:
        """Return the zero state for a batch of episodes."""
        blank = self.bias.new_zeros(len(self.bias), batch, HIDDEN)
        return LSTMState(blank, blank)

    def forward(
        self, embedding: torch.Tensor, prior: torch.Tensor, memory: LSTMState
    ) -> tuple[torch.Tensor, LSTMState]:
        """Compute one step.

        Args:
            embedding: c + p, (K, B, E).
            prior: u, (K, B, 8).
            memory: State of the LSTM.

        Returns:
            Logits of the eight moves, (K, B, 8), and the new state of the LSTM.
        """
        inputs = torch.cat([embedding, prior], dim=2) if self.variant.prior else embedding
        read = torch.baddbmm(self.bias, inputs, self.read)
        recalled = torch.bmm(memory.hidden, self.recall)
        memory = lstm(read, recalled, memory.cell)
        logits = torch.baddbmm(self.offset, memory.hidden, self.decide)
        return (logits + prior if self.variant.residual else logits), memory


def lstm(gates: torch.Tensor, more: torch.Tensor, cell: torch.Tensor) -> LSTMState:
    """Apply an LSTM cell; differentiable.

    On a GPU the cell is one kernel of PyTorch, where plain operations would launch about ten.

    Args:
        gates: Input-to-hidden activations of the gates (input, forget, candidate, output), (K, B, 4 H).
        more: Hidden-to-hidden activations of the gates, (K, B, 4 H).
        cell: Cell state, (K, B, H).
    """
    return fused_lstm(gates, more, cell) if gates.is_cuda else plain_lstm(gates + more, cell)


def plain_lstm(gates: torch.Tensor, cell: torch.Tensor) -> LSTMState:
    """Apply an LSTM cell to summed gate activations (K, B, 4 H), in plain tensor operations."""
    enter, forget, candidate, leave = gates.chunk(4, dim=2)
    cell = torch.addcmul(forget.sigmoid() * cell, enter.sigmoid(), candidate.tanh())
    return LSTMState(leave.sigmoid() * cell.tanh(), cell)


def fused_lstm(gates: torch.Tensor, more: torch.Tensor, cell: torch.Tensor) -> LSTMState:
    """Apply an LSTM cell on a GPU as one kernel; see `lstm`."""
    # The kernel has no weights, so that policies are part of the batch.
    parts = (part.flatten(0, 1) for part in (gates, more, cell))
    hidden, after, _ = torch.ops.aten._thnn_fused_lstm_cell(*parts)
    return LSTMState(hidden.view_as(cell), after.view_as(cell))


def _uniform(*shape: int, bound: float) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
