"""Episodes a second of policy training at the batch of 64, against the same LSTM's bare forward, backward and Adam."""

import tempfile
from pathlib import Path

import torch
from torch import nn

from airloc.grid import Grid
from airloc.training.features import Features
from airloc.training.reinforce import PolicyConfig, train_policy
from airloc.vision.position import encode_position
from benchmarks.timing import best_of

BATCH, BUDGET, UPDATES, AREAS = 64, 10, 300, 40


def run() -> list[tuple[str, str, str, str]]:
    torch.manual_seed(0)
    grid = Grid()
    line = torch.arange(-BUDGET, grid.rows + BUDGET)
    places = encode_position(torch.cartesian_prod(line, line).reshape(len(line), len(line), 2))
    table = torch.randn(AREAS * (grid.count + 1) * grid.count, 264)
    features, checked = (Features(grid, areas, table, places, BUDGET) for areas in (AREAS, 1))
    lstm = nn.LSTM(264, 256, batch_first=True)
    optimizer = torch.optim.Adam(lstm.parameters(), 1e-4)
    seen = torch.randn(BATCH, BUDGET, 264)

    def bare() -> None:
        for _ in range(UPDATES):
            optimizer.zero_grad()
            lstm(seen)[0].sum().backward()
            optimizer.step()

    def train() -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = PolicyConfig(episodes=UPDATES * BATCH, validate_every=UPDATES + 1)
            train_policy(Path(folder) / "run", config, features, checked, on_step=lambda *_: None)

    episodes = UPDATES * BATCH
    speed, floor = episodes / best_of(train, runs=2), episodes / best_of(bare, runs=2)
    return [
        ("policy training, episodes/s", f"{speed:,.0f}", "60 % of the bare LSTM", f"{speed / floor:.2f}"),
        ("bare LSTM, episodes/s", f"{floor:,.0f}", "", "1"),
    ]
