"""What a flight leaves behind for learning: the log-probabilities of its moves, and their gradients, in one go.

Flying needs no gradients, only what it saw and remembered; all of it is recorded on a tape. The LSTM's gradient then
goes back over the steps with one product each, and what does not depend on the step before (decisions and the gradients
of weights) is a single product over all steps. Written out by automatic differentiation, the same takes several times
as many operations, and on a GPU their number is what an update costs.

Legend: T steps, K policies, B episodes, I inputs (264, or 256 without the prior), H = 256.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from airloc.agents.policy import LSTMState, Policy
from airloc.vision.embedder import EMBEDDING


class Step(NamedTuple):
    """One step of the LSTM."""

    inputs: torch.Tensor
    """(K, B, I + H): what was read, and the hidden state from before."""
    cell: torch.Tensor
    """(K, B, H): the cell state from before."""
    memory: LSTMState
    """After the step."""
    acted: tuple[torch.Tensor, ...]
    """How the gates acted, see `policy.lstm`."""


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """The steps of a flight, to learn from."""

    steps: list[Step] = field(default_factory=list)
    forbidden: list[torch.Tensor] = field(default_factory=list)
    """Moves that privileges forbade, bool (K, B, 8) a step; empty without privileges."""

    def log_prob(self, policy: Policy, action: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of the moves (K, B, T) that were made, as functions of the policy's weights."""
        hidden = _Remembered.apply(policy.read, policy.recall, policy.bias, self.steps)  # type: ignore[no-untyped-call]
        logits = torch.baddbmm(policy.offset, hidden.flatten(1, 2), policy.decide).view(*action.shape, -1)
        if policy.variant.residual:
            logits = logits + torch.stack([step.inputs[..., EMBEDDING : EMBEDDING + 8] for step in self.steps], dim=2)
        if self.forbidden:
            logits = logits.masked_fill(torch.stack(self.forbidden, dim=2), -1e9)
        return logits.log_softmax(dim=3).gather(3, action[..., None]).squeeze(3)


class _Remembered(torch.autograd.Function):
    """The hidden states of all steps, (K, B, T, H), as a function of the LSTM's weights."""

    @staticmethod
    def forward(
        ctx: Any, read: torch.Tensor, recall: torch.Tensor, bias: torch.Tensor, steps: list[Step]
    ) -> torch.Tensor:
        ctx.save_for_backward(read, recall)
        ctx.steps = steps
        return torch.stack([step.memory.hidden for step in steps], dim=2)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        read, recall = ctx.saved_tensors
        steps: list[Step] = ctx.steps
        by_hidden = gradients[0].movedim(2, 0).clone(memory_format=torch.contiguous_format)  # (T, K, B, H)
        by_cell = torch.zeros_like(by_hidden[0])
        by_gates: list[torch.Tensor] = []
        for number in reversed(range(len(steps))):
            by_step, by_cell = lstm_gradient(by_hidden[number], by_cell, steps[number])
            by_gates.append(by_step)
            if number:
                by_hidden[number - 1].baddbmm_(by_step, recall.transpose(1, 2))
        inputs = torch.cat([step.inputs for step in steps], dim=1)  # (K, T B, I + H)
        by_all = torch.cat(by_gates[::-1], dim=1)  # (K, T B, 4 H)
        by_weights = torch.bmm(inputs.transpose(1, 2), by_all)
        by_read, by_recall = torch.split(by_weights, [read.shape[1], recall.shape[1]], dim=1)
        return by_read, by_recall, by_all.sum(dim=1, keepdim=True), None


def lstm_gradient(by_hidden: torch.Tensor, by_cell: torch.Tensor, step: Step) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients by a step's gates (K, B, 4 H) and its earlier cell state, given those by its later states (K, B, H)."""
    return (fused_gradient if by_hidden.is_cuda else plain_gradient)(by_hidden, by_cell, step)


def plain_gradient(by_hidden: torch.Tensor, by_cell: torch.Tensor, step: Step) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients in plain operations."""
    enter, forget, candidate, leave, squashed = step.acted
    by_cell = by_cell + _tanh_gradient(by_hidden * leave, squashed)
    parts = (
        _sigmoid_gradient(by_cell * candidate, enter),
        _sigmoid_gradient(by_cell * step.cell, forget),
        _tanh_gradient(by_cell * enter, candidate),
        _sigmoid_gradient(by_hidden * squashed, leave),
    )
    return torch.cat(parts, dim=2), by_cell * forget


def fused_gradient(by_hidden: torch.Tensor, by_cell: torch.Tensor, step: Step) -> tuple[torch.Tensor, torch.Tensor]:
    """The same on a GPU, as one kernel."""
    parts = (part.flatten(0, 1) for part in (by_hidden, by_cell, step.cell, step.memory.cell))
    by_gates, by_earlier, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(*parts, *step.acted, False)
    return by_gates.view(*by_cell.shape[:2], -1), by_earlier.view_as(by_cell)


_sigmoid_gradient = torch.ops.aten.sigmoid_backward
_tanh_gradient = torch.ops.aten.tanh_backward
