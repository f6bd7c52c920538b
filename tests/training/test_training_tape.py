from collections import Counter
from typing import NamedTuple

import pytest
import torch
from airloc.training.lstm import Step, Tape, fused_gradient, plain_gradient
from torch.utils._python_dispatch import TorchDispatchMode

from airloc.agents.agent import privileged_moves, unvisited, visit
from airloc.agents.policy import HIDDEN, VARIANTS, LSTMState, Policy, lstm, plain_lstm
from airloc.grid import Grid
from airloc.task import rules
from airloc.training.features import Features
from airloc.training.learner import Learner
from airloc.training.reinforce import Episodes, PolicyConfig, discounted, draw_episodes, fly, normalise_by_group, update
from airloc.vision.position import encode_position

GRID, BUDGET, AREAS = Grid(3, 4), 6, 3
REACH = BUDGET + 2
GROUPS = GRID.max_distance + BUDGET + 1


def made_features(device: str = "cpu") -> Features:
    chance = torch.Generator().manual_seed(0)
    table = torch.randn(AREAS * (GRID.count + 1) * GRID.count, 264, generator=chance)
    line = torch.arange(-REACH, max(GRID.shape) + REACH)
    places = encode_position(torch.cartesian_prod(line, line).reshape(len(line), len(line), 2))
    return Features(GRID, AREAS, table.to(device), places.to(device), REACH)


class Plain(NamedTuple):
    """What the plain flight tells, each (T, K, B), and who found the goal."""

    action: torch.Tensor
    log_prob: torch.Tensor
    reward: torch.Tensor
    flying: torch.Tensor
    distance: torch.Tensor
    found: torch.Tensor


def plain_flight(policy: Policy, features: Features, episodes: Episodes, noise: torch.Tensor) -> Plain:
    """Fly as the task says it, by the rules and the units as they are, with gradients by automatic differentiation."""
    area, position, goal = episodes.area, *(torch.tensor([*GRID.cells()])[cell] for cell in episodes[1:])
    memory, steps = policy.initial_state(area.shape[1]), torch.zeros_like(area)
    flying, visited = torch.ones_like(area, dtype=torch.bool), unvisited(area.numel(), GRID, area.device)
    record = []
    for chance in noise:
        inside = rules.inside(position, GRID)
        cell = torch.where(inside, position[..., 0] * GRID.cols + position[..., 1], GRID.count)
        pair = features.table[(area * (GRID.count + 1) + cell) * GRID.count + episodes.goal]
        logits, memory = policy(pair[..., :256] + encode_position(position), pair[..., 256:], memory)
        if policy.variant.priv:
            visited = visit(visited, position.flatten(0, 1), GRID)
            allowed = privileged_moves(position.flatten(0, 1), visited, GRID)
            logits = logits.masked_fill(~allowed.view_as(logits), -1e9)
        action = (logits.detach() + chance).argmax(dim=2)
        log_prob = logits.log_softmax(dim=2).gather(2, action[..., None])[..., 0]
        out = rules.move(position, steps, goal, action, moves=rules.moves_on(area.device), budget=BUDGET)
        record.append((action, log_prob, out.reward * flying, flying, (position - goal).abs().amax(dim=2)))
        position = torch.where(flying[..., None], out.position, position)
        steps, flying = out.steps, flying & ~out.found
    return Plain(*(torch.stack(column) for column in zip(*record, strict=True)), ~flying)


def plain_loss(flight: Plain) -> torch.Tensor:
    returns = [flight.reward[-1].float()]
    for earlier in reversed(flight.reward[:-1].unbind()):
        returns.append(earlier + 0.9 * returns[-1])
    value, group, made, log_prob = (
        column.transpose(0, 1).flatten(1)
        for column in (torch.stack(returns[::-1]), flight.distance, flight.flying.float(), flight.log_prob)
    )
    advantage = normalise_by_group(value, group, made, GROUPS)
    return -((log_prob * advantage * made).sum(dim=1) / made.sum(dim=1)).sum()


def gradients(policy: Policy, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    names, parameters = zip(*policy.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


@pytest.mark.parametrize("name", [name for name in VARIANTS if "no-sem-seg" not in name])
def test_a_flight_and_its_gradients_are_those_of_the_plain_one_given_the_same_chance(name):
    torch.manual_seed(0)
    policies, batch = 2, 40
    policy, features = Policy(VARIANTS[name], policies), made_features()
    episodes = draw_episodes(features, policies, batch)
    chance, tape = torch.get_rng_state(), Tape()
    flight = fly(policy, features, episodes, BUDGET, sample=True, tape=tape)
    torch.set_rng_state(chance)
    noise = -torch.empty(BUDGET, policies, batch, 8).exponential_().log()
    plain = plain_flight(policy, features, episodes, noise)

    on = flight.flying  # what is done after the end does not count
    assert 0 < int(flight.found.sum()) < flight.found.numel()
    assert torch.equal(flight.action[on], plain.action.permute(1, 2, 0)[on])
    for column in ("reward", "flying", "distance"):
        assert torch.equal(getattr(flight, column), getattr(plain, column).permute(1, 2, 0)), column
    assert torch.equal(flight.found, plain.found)
    log_prob = tape.log_prob(policy, flight.action)
    torch.testing.assert_close(log_prob[on], plain.log_prob.permute(1, 2, 0)[on], rtol=1e-4, atol=1e-5)

    made = on.float().flatten(1)
    value = discounted(flight.reward, 0.9).flatten(1)
    advantage = normalise_by_group(value, flight.distance.flatten(1), made, GROUPS)
    loss = -(log_prob.flatten(1) * advantage * made / made.sum(dim=1, keepdim=True)).sum()
    expected = plain_loss(plain)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)
    ours, theirs = gradients(policy, loss), gradients(policy, expected)
    for parameter, gradient in theirs.items():
        assert gradient.abs().max() > 0
        torch.testing.assert_close(ours[parameter], gradient, rtol=1e-3, atol=1e-6)


def taped(read: torch.Tensor, recall: torch.Tensor, bias: torch.Tensor, seen: torch.Tensor) -> list[Step]:
    """The steps of an LSTM that sees (T, K, B, I)."""
    blank = seen.new_zeros(*seen.shape[1:3], HIDDEN)
    memory, steps = LSTMState(blank, blank), []
    for now in seen:
        inputs, cell = torch.cat([now, memory.hidden], dim=2), memory.cell
        gates = inputs @ torch.cat([read, recall], dim=1)
        memory, acted = lstm(gates, bias.expand_as(gates).contiguous(), cell)
        steps.append(Step(inputs, cell, memory, acted))
    return steps


def test_gradients_of_log_probabilities_are_exact_in_double_precision():
    torch.manual_seed(0)
    policy = Policy(VARIANTS["airloc"], 2).double()
    seen, action = torch.randn(4, 2, 3, 264, dtype=torch.float64), torch.randint(8, (2, 3, 4))
    weigh = torch.randn(2, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        tape = Tape(taped(policy.read, policy.recall, policy.bias, seen))
    ours = gradients(policy, (tape.log_prob(policy, action) * weigh).sum())
    memory, logits = policy.initial_state(3), []
    for now in seen:
        out, memory = policy(now[..., :256], now[..., 256:], memory)
        logits.append(out)
    log_prob = torch.stack(logits, dim=2).log_softmax(dim=3).gather(3, action[..., None])[..., 0]
    theirs = gradients(policy, (log_prob * weigh).sum())
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 3])
def test_on_a_gpu_the_fused_gradient_is_the_plain_one(count):
    torch.manual_seed(0)
    gates = torch.randn(count, 7, 4 * HIDDEN, device="cuda")
    cell, by_hidden, by_cell = torch.randn(3, count, 7, HIDDEN, device="cuda")
    inputs = gates[..., :0]
    plain = plain_gradient(by_hidden, by_cell, Step(inputs, cell, *plain_lstm(gates, cell)))
    fused = fused_gradient(by_hidden, by_cell, Step(inputs, cell, *lstm(gates, torch.zeros_like(gates), cell)))
    for one, other in zip(plain, fused, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["airloc", "airloc-no-prior-priv"])
def test_on_a_gpu_log_probabilities_and_gradients_are_those_of_a_cpu(name):
    torch.manual_seed(0)
    fast = Policy(VARIANTS[name], 2).cuda()
    slow = Policy(VARIANTS[name], 2)
    slow.load_state_dict(fast.state_dict())
    episodes = draw_episodes(made_features(), 2, 30)
    found = []
    for policy, device in ((slow, "cpu"), (fast, "cuda")):
        tape, here = Tape(), Episodes(*(part.to(device) for part in episodes))
        flight = fly(policy, made_features(device), here, BUDGET, sample=False, tape=tape)
        log_prob = tape.log_prob(policy, flight.action)
        found.append([flight.action, log_prob, *gradients(policy, log_prob.sum()).values()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other.cpu(), rtol=1e-2, atol=1e-2)


class Operations(TorchDispatchMode):
    """Counts what is computed, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count[func.overloadpacket.__name__] += not func.is_view
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("name", "most"), [("airloc", 40), ("airloc-priv", 48)])
def test_an_update_takes_few_operations_a_step(name, most):
    """On a GPU their number is what an update of a small batch costs; differentiated automatically it was about 90."""

    def operations(budget: int) -> int:
        config = PolicyConfig(variant=VARIANTS[name], budget=budget, batch=4)
        policy, features = Policy(config.variant), made_features()
        learner = Learner(policy, config.learning_rate)
        with Operations() as counted:
            update(policy, learner, features, config)
        return sum(counted.count.values())

    for budget in (4, 5):
        operations(budget)  # tables are made once
    assert operations(5) - operations(4) <= most
