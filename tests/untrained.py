"""Untrained networks and agents with reproducible play, and a suite to play them on."""

import torch

from airloc.agents.airloc import AirlocAgent
from airloc.agents.inference import optimize_for_inference
from airloc.agents.policy import VARIANTS, Policy
from airloc.areas.area import SearchArea
from airloc.grid import Grid
from airloc.rollout import RolloutLog, rollout
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.suites import Suite, per_distance
from airloc.vision.embedder import PatchEncoder
from airloc.vision.relation import RelationNetwork
from airloc.vision.text import TextNetwork

GRID = Grid(5, 5)


def untrained_encoder(sem_seg: bool = True, seed: int = 0) -> PatchEncoder:
    """Return a patch encoder with random weights and batch statistics, in eval mode, and a sharp exploitation prior."""
    torch.manual_seed(seed)
    encoder = PatchEncoder(sem_seg)
    with torch.no_grad():
        for module in encoder.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.uniform_(-0.2, 0.2)
                module.running_var.uniform_(0.5, 1.5)
        encoder.embedder.prior.weight *= 30
    return encoder.eval()


def untrained_airloc(name: str = "airloc", *, sample: bool = False, seed: int = 0) -> AirlocAgent:
    """Return an untrained agent of a variant. The policies of all variants come from the same random numbers."""
    encoder = untrained_encoder(VARIANTS[name].sem_seg, seed)
    torch.manual_seed(seed + 1)
    policy = Policy(VARIANTS[name]).requires_grad_(False)
    policy.read *= 5
    policy.decide *= 5
    return AirlocAgent(name, optimize_for_inference(encoder), policy, sample=sample)


class Stage:
    """Areas and a suite to play agents on."""

    def __init__(self, areas: list[SearchArea]) -> None:
        self.areas = areas
        self.suite: Suite = per_distance([area.name for area in areas], GRID)
        self.env = BatchEnv(CellTable.from_areas(areas, GRID), self.suite.budget)

    def play(self, agent, *, seed: int = 3, batch: int = 1024) -> RolloutLog:
        return rollout(agent, self.suite, self.env, seed=seed, batch=batch)


def untrained_relation(width: int = 4, seed: int = 0, blocks: int = 0) -> RelationNetwork:
    """Return a small relation network with random weights and batch statistics, in eval mode, and sharp logits."""
    torch.manual_seed(seed)
    network = RelationNetwork(width, blocks)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
                module.running_mean.uniform_(-0.2, 0.2)
                module.running_var.uniform_(0.5, 1.5)
        for block in (*network.side_blocks, *network.map_blocks):
            block.layers[-1].weight.fill_(1.0)  # zero at first
        network.judge[-1].weight *= 30
    return network.eval()


def earlier_weights(network: RelationNetwork) -> dict[str, torch.Tensor]:
    """Return the weights as versions without rings, and with 1D convolutions along seams, stored them."""

    def convert(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name.startswith("judge.2."):
            return tensor[:20].clone()
        return tensor.squeeze(2) if name.startswith("along.") and tensor.dim() == 4 else tensor

    return {name: convert(name, tensor) for name, tensor in network.state_dict().items()}


def untrained_text(seed: int = 0) -> TextNetwork:
    """Return a small text network with random weights, in eval mode, and sharp logits."""
    torch.manual_seed(seed)
    network = TextNetwork(8, 32)
    with torch.no_grad():
        network.judge[-1].weight *= 30
    return network.eval()
