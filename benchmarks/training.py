"""Episodes a second of policy training at the batch of 64, against the same LSTM's bare forward, backward and Adam."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from airloc.grid import Grid
from airloc.training.features import PAIR, Features
from airloc.training.reinforce import PolicyConfig, train_policy
from airloc.vision.position import encode_position

BATCH, BUDGET, UPDATES, AREAS, ROUNDS = 64, 10, 300, 40, 3


def run() -> list[tuple[str, str, str, str]]:
    torch.manual_seed(0)
    features, checked = (made_features(areas, torch.device("cpu")) for areas in (AREAS, 1))
    lstm = nn.LSTM(PAIR, 256, batch_first=True)
    optimizer = torch.optim.Adam(lstm.parameters(), 1e-4)
    seen = torch.randn(BATCH, BUDGET, PAIR)

    def bare() -> None:
        for _ in range(UPDATES):
            optimizer.zero_grad()
            lstm(seen)[0].sum().backward()
            optimizer.step()

    def train() -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = PolicyConfig(episodes=UPDATES * BATCH, validate_every=UPDATES + 1)
            train_policy(Path(folder) / "run", config, features, checked, on_step=lambda *_: None)

    speed, floor = (UPDATES * BATCH / seconds for seconds in _best_in_turns(train, bare))
    return [
        ("policy training, episodes/s", f"{speed:,.0f}", "60 % of the bare LSTM", f"{speed / floor:.2f}"),
        ("bare LSTM, episodes/s", f"{floor:,.0f}", "", "1"),
    ]


def made_features(areas: int, device: torch.device) -> Features:
    """A table of chance, as large and of the same kind as a real one."""
    grid, reach = Grid(), BUDGET
    line = torch.arange(-reach, grid.rows + reach, device=device)
    places = encode_position(torch.cartesian_prod(line, line).reshape(len(line), len(line), 2))
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    table = torch.randn(areas * (grid.count + 1) * grid.count, PAIR, dtype=dtype, device=device)
    return Features(grid, areas, table, places, reach)


def _best_in_turns(*works: Callable[[], None]) -> list[float]:
    """Seconds of the fastest round of each; in turns, so that what else the machine does befalls all alike."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            began = time.perf_counter()
            work()
            best[number] = min(best[number], time.perf_counter() - began)
    return best
