"""Episodes per second of policy training with batches of 64, against forward, backward and Adam of a bare LSTM."""

import tempfile
from pathlib import Path

import torch
from torch import nn

from airloc.grid import Grid
from airloc.training.features import PAIR_SIZE, FeatureTable
from airloc.training.reinforce import PolicyConfig, train_policy
from airloc.vision.position import encode_position
from benchmarks.timing import best_of_each

BATCH, BUDGET, UPDATES, AREAS, ROUNDS = 64, 10, 300, 40, 3


def run() -> list[tuple[str, str, str, str]]:
    torch.manual_seed(0)
    features, validation = (random_features(areas, torch.device("cpu")) for areas in (AREAS, 1))
    lstm = nn.LSTM(PAIR_SIZE, 256, batch_first=True)
    optimizer = torch.optim.Adam(lstm.parameters(), 1e-4)
    inputs = torch.randn(BATCH, BUDGET, PAIR_SIZE)

    def bare() -> None:
        for _ in range(UPDATES):
            optimizer.zero_grad()
            lstm(inputs)[0].sum().backward()
            optimizer.step()

    def train() -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = PolicyConfig(episodes=UPDATES * BATCH, validate_every=UPDATES + 1)
            train_policy(Path(folder) / "run", config, features, validation, on_step=lambda *_: None)

    speed, floor = (UPDATES * BATCH / seconds for seconds in best_of_each([train, bare], ROUNDS))
    return [
        ("policy training, episodes/s", f"{speed:,.0f}", "60 % of the bare LSTM", f"{speed / floor:.2f}"),
        ("bare LSTM, episodes/s", f"{floor:,.0f}", "", "1"),
    ]


def random_features(areas: int, device: torch.device) -> FeatureTable:
    """Return a table of random features, of the size and type of a real one."""
    grid, reach = Grid(), BUDGET
    line = torch.arange(-reach, grid.rows + reach, device=device)
    places = encode_position(torch.cartesian_prod(line, line).reshape(len(line), len(line), 2))
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    table = torch.randn(areas * (grid.count + 1) * grid.count, PAIR_SIZE, dtype=dtype, device=device)
    return FeatureTable(grid, areas, table, places, reach)
