import pytest
import torch
from torch import nn

from airloc.agents.policy import HIDDEN, Policy, Variant, fused_lstm, plain_lstm


def by_hand(policy: Policy, k: int, embedding: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
    """The logits of policy k over steps (T, B, ...), with the LSTM of torch."""
    cell = nn.LSTMCell(embedding.shape[2] + prior.shape[2], HIDDEN)
    with torch.no_grad():
        cell.weight_ih.copy_(policy.read[k].T)
        cell.weight_hh.copy_(policy.recall[k].T)
        cell.bias_ih.copy_(policy.bias[k, 0])
        cell.bias_hh.zero_()
    state, logits = None, []
    for seen, u in zip(embedding, prior, strict=True):
        state = cell(torch.cat([seen, u], dim=1), state)
        logits.append(state[0] @ policy.decide[k] + policy.offset[k] + u)
    return torch.stack(logits)


@pytest.mark.parametrize("count", [1, 3])
def test_on_a_cpu_every_policy_is_an_lstm_of_its_own(count):
    torch.manual_seed(0)
    policy = Policy(Variant(), count)
    embedding, prior = torch.randn(4, count, 5, 256), torch.randn(4, count, 5, 8)
    memory, logits = policy.initial_state(5), []
    for seen, u in zip(embedding, prior, strict=True):
        out, memory = policy(seen, u, memory)
        logits.append(out)
    for k in range(count):
        torch.testing.assert_close(torch.stack(logits)[:, k], by_hand(policy, k, embedding[:, k], prior[:, k]))


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("began", [True, False])
def test_the_fused_cell_gives_the_plain_one_s_values_and_gradients(count, began):
    torch.manual_seed(0)
    seen, recalled = torch.randn(2, count, 7, 4 * HIDDEN, device="cuda", dtype=torch.float64)
    cell = torch.randn(count, 7, HIDDEN, device="cuda", dtype=torch.float64) * began
    weigh = torch.randn(2, count, 7, HIDDEN, device="cuda", dtype=torch.float64)
    found = []
    for fused in (True, False):
        parts = [part.clone().requires_grad_() for part in (seen, recalled, cell)]
        out = fused_lstm(*parts) if fused else plain_lstm(parts[0] + parts[1], parts[2])
        (out.hidden * weigh[0] + out.cell * weigh[1]).sum().backward()
        found.append([out.hidden, out.cell, *(part.grad for part in parts)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.gpu
def test_a_policy_decides_and_learns_on_a_gpu_as_on_a_cpu():
    torch.manual_seed(0)
    embedding, prior = torch.randn(4, 3, 5, 256), torch.randn(4, 3, 5, 8)
    slow = Policy(Variant(), 3)
    fast = Policy(Variant(), 3).cuda()
    fast.load_state_dict(slow.state_dict())
    outs = []
    for policy, device in ((slow, "cpu"), (fast, "cuda")):
        memory, total = policy.initial_state(5), torch.zeros((), device=device)
        for seen, u in zip(embedding.to(device), prior.to(device), strict=True):
            logits, memory = policy(seen, u, memory)
            total = total + logits.log_softmax(dim=2)[..., 0].sum()
        total.backward()
        outs.append(logits.cpu())
    torch.testing.assert_close(outs[0], outs[1], rtol=1e-3, atol=1e-3)
    for one, other in zip(slow.parameters(), fast.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad.cpu(), rtol=1e-2, atol=1e-2)
