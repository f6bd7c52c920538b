"""Networks optimised for inference compute the same function, and nearly the same with bfloat16."""

import pytest
import torch
from torch import nn

from airloc.agents.agent import AgentOptions
from airloc.agents.belief import BeliefAgent
from airloc.agents.inference import optimize_for_inference, supports_bfloat16
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from untrained import untrained_encoder, untrained_relation

CAPABLE = pytest.mark.skipif(not supports_bfloat16("cpu"), reason="this CPU has no instructions for bfloat16")


def with_instructions(monkeypatch: pytest.MonkeyPatch, has: bool) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has})


@pytest.mark.parametrize("blocks", [0, 2])
@torch.inference_mode()
def test_an_optimised_network_computes_the_same_logits(blocks: int):
    network = untrained_relation(8, blocks=blocks)
    pair = torch.randn(2, 5, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(optimize_for_inference(network)(*pair), network(*pair), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("blocks", [0, 2])
@torch.inference_mode()
def test_with_bfloat16_an_optimised_network_computes_nearly_the_same_logits(monkeypatch, blocks: int):
    with_instructions(monkeypatch, True)
    network = untrained_relation(8, blocks=blocks)
    pair = torch.randn(2, 5, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    full, half = network(*pair), optimize_for_inference(network, bfloat16=True)(*pair)
    assert half.dtype == torch.float32
    assert 0 < float((full - half).square().mean().sqrt() / full.std()) < 0.03


def test_the_original_network_does_not_change(monkeypatch):
    with_instructions(monkeypatch, True)
    network = untrained_relation()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    optimize_for_inference(network, bfloat16=True)
    after = network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


@torch.inference_mode()
def test_layers_of_nested_sequences_keep_their_precision(monkeypatch):
    with_instructions(monkeypatch, True)
    inner = nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU())
    nested = nn.ModuleDict({"outer": nn.Sequential(nn.Conv2d(3, 4, 1), inner, nn.Conv2d(4, 4, 1), nn.Flatten())})
    features = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    frozen = optimize_for_inference(nested, bfloat16=True)
    convolutions = [layer for layer in frozen.modules() if isinstance(layer, nn.Conv2d)]
    assert [layer.weight.dtype for layer in convolutions] == [torch.float32, torch.bfloat16, torch.bfloat16]
    torch.testing.assert_close(frozen["outer"](features), nested["outer"](features), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("blocks", [0, 2])
def test_only_convolutions_of_features_use_bfloat16(monkeypatch, blocks: int):
    with_instructions(monkeypatch, True)
    frozen = optimize_for_inference(untrained_relation(blocks=blocks), bfloat16=True)
    convolutions = [layer for layer in frozen.modules() if isinstance(layer, nn.Conv2d) and layer is not frozen.place]
    assert {layer.weight.dtype for layer in convolutions if layer.in_channels == 3} == {torch.float32}
    assert {layer.weight.dtype for layer in convolutions if layer.in_channels > 3} == {torch.bfloat16}
    dense = [layer for layer in frozen.modules() if isinstance(layer, nn.Linear)]
    assert {layer.weight.dtype for layer in dense} == {torch.float32}


@pytest.mark.parametrize(("requested", "has", "device"), [(False, True, "cpu"), (True, False, "cpu")])
def test_bfloat16_is_used_only_on_request_and_if_the_cpu_supports_it(monkeypatch, requested, has, device):
    with_instructions(monkeypatch, has)
    frozen = optimize_for_inference(untrained_relation(), device, bfloat16=requested)
    assert {parameter.dtype for parameter in frozen.parameters()} == {torch.float32}


def test_other_devices_and_an_older_torch_do_not_support_bfloat16(monkeypatch):
    with_instructions(monkeypatch, True)
    assert supports_bfloat16("cpu")
    assert not supports_bfloat16("cuda")
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not supports_bfloat16("cpu")


@pytest.fixture(scope="module")
def cells() -> torch.Tensor:
    """All patches of a procedural area."""
    grid = Grid(5, 5)
    return torch.from_numpy(cut_patches(next(iter(Synthetic(count=1, seed=9).areas(grid))).image, grid))


def logits(exact: bool, cells: torch.Tensor) -> torch.Tensor:
    """Offset logits of the pretrained network for all pairs."""
    agent = make_agent("belief", AgentOptions(full_precision=exact))
    assert isinstance(agent, BeliefAgent)
    seen, every = agent.network.encode_patches(cells), torch.arange(len(cells))
    return agent.network.relate(seen.at(every.repeat_interleave(len(cells))), seen.at(every.repeat(len(cells))))


@CAPABLE
@torch.inference_mode()
def test_the_pretrained_network_is_nearly_the_same_with_bfloat16(cells: torch.Tensor):
    some = cells[::3]
    full, half = logits(True, some), logits(False, some)
    error = (full - half).square().mean().sqrt() / full.std()
    assert 0 < float(error) < 0.01


@CAPABLE
@torch.inference_mode()
def test_with_bfloat16_an_encoding_does_not_depend_on_the_batch(cells: torch.Tensor):
    agent = make_agent("belief")
    assert isinstance(agent, BeliefAgent)
    together = agent.network.encode_patches(cells)
    for number in range(3):
        for part, whole in zip(agent.network.encode_patches(cells[number : number + 1]), together, strict=True):
            torch.testing.assert_close(part[0], whole[number], rtol=1e-4, atol=1e-4)


def test_an_optimised_encoder_leaves_batch_norm_and_gradients_of_the_original():
    encoder = untrained_encoder().train()
    optimize_for_inference(encoder)
    assert encoder.training
    assert any(isinstance(module, nn.BatchNorm2d) for module in encoder.embedder.current_first)
    assert all(parameter.requires_grad for parameter in encoder.parameters())
