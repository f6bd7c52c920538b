"""What all runners share: graphs in a folder, their check, and the time of a move. `export` writes it into each."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

MOVES = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


class Graphs:
    """The graphs of an exported agent.

    Args:
        folder: What `airloc export` wrote.
        int8: Use the quantised graphs.
        threads: Threads to compute with.
    """

    def __init__(self, folder: str | Path, int8: bool = False, threads: int = 1) -> None:
        self.folder = Path(folder)
        self.config: dict[str, Any] = json.loads((self.folder / "agent.json").read_text(encoding="utf-8"))
        ending = ".int8.onnx" if int8 else ".onnx"
        self._graphs = {name: _session(self.folder / (name + ending), threads) for name in self.config["graphs"]}
        self.watch: Callable[[str, dict[str, Any]], None] | None = None
        """Called before every run with the graph's name and what it is fed with, where wanted."""

    def run(self, graph: str, feed: dict[str, Any]) -> list[Any]:
        """Run one of the graphs."""
        if self.watch is not None:
            self.watch(graph, feed)
        outputs: list[Any] = self._graphs[graph].run(None, feed)
        return outputs

    def outputs(self, graph: str) -> list[str]:
        """Names of what a graph gives."""
        return [output.name for output in self._graphs[graph].get_outputs()]


def _session(path: Path, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def correlation(glimpse: Any, centre: Any, how: dict[str, Any]) -> float:
    """How alike a picture (48, 48, 3) and a goal's centre are: the largest correlation over small shifts, -1 to 1."""
    half, steps = int(np.sqrt(centre.shape[1] // 3)), 2 * how["shift"] + 1
    views = np.lib.stride_tricks.sliding_window_view(_shapes(glimpse, how), (half, half), axis=(0, 1))
    corners = ((row, col) for row in (0, half) for col in (0, half))
    total = np.zeros(steps**2)
    for wanted, (row, col) in zip(centre, corners, strict=True):
        windows = views[row : row + steps, col : col + steps].reshape(steps**2, -1)
        spread = np.einsum("nd,nd->n", windows, windows) - windows.sum(axis=1) ** 2 / windows.shape[1]
        total += windows @ wanted / np.maximum(np.sqrt(np.maximum(spread, 0)), how["faint"])
    return float(total.max()) / len(centre)


def centre_of(goal: Any, how: dict[str, Any]) -> Any:
    """The middle of a goal's picture by quarter, (4, values): zero mean and unit length, shorter where it is faint."""
    shapes = _shapes(goal, how)[how["shift"] : -how["shift"], how["shift"] : -how["shift"]]
    half = len(shapes) // 2
    quarters = shapes.reshape(2, half, 2, half, 3).transpose(0, 2, 4, 1, 3).reshape(4, -1)
    centred = quarters - quarters.mean(axis=1, keepdims=True)
    return centred / np.maximum(np.sqrt((centred**2).sum(axis=1, keepdims=True)), how["faint"])


def _shapes(picture: Any, how: dict[str, Any]) -> Any:
    """A picture at half the size without its blur, (24, 24, 3), zero where it has no data."""
    pixels = picture.reshape(24, 2, 24, 2, 3)
    small = pixels.mean(axis=(1, 3), dtype=np.float32)
    shown = (pixels.max(axis=4) > how["dark"]).all(axis=(1, 3))[..., None].astype(np.float32)
    around = _box(np.concatenate([small * shown, shown], axis=2), how["blur"])
    return ((small - around[..., :3] / np.maximum(around[..., 3:], 1)) * shown).astype(np.float32)


def _box(values: Any, side: int) -> Any:
    """Sums over squares of this side around every pixel, zero outside."""
    half = side // 2
    for axis in (0, 1):
        padding = [(half + 1, half) if at == axis else (0, 0) for at in range(3)]
        total = np.cumsum(np.pad(values, padding), axis=axis, dtype=np.float64)
        count = values.shape[axis]
        values = total.take(range(side, side + count), axis=axis) - total.take(range(count), axis=axis)
    return values


def largest_difference(graphs: Graphs, expected: Any) -> float:
    """How far the graphs are from what the network gave for the same inputs: `graph/number/in|out/name` in a file."""
    cases: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for key in expected:
        graph, number, side, name = key.split("/")
        cases.setdefault((graph, number), {"in": {}, "out": {}})[side][name] = expected[key]
    worst = 0.0
    for (graph, _), case in cases.items():
        for given, wanted in zip(graphs.run(graph, case["in"]), case["out"].values(), strict=True):
            worst = max(worst, float(np.abs(given - wanted).max()))
    return worst


def check(kind: Any) -> None:
    """Check the graphs beside this file, and time a move of the agent that runs them."""
    folder = Path(__file__).parent
    began = time.perf_counter()
    agent = kind(folder, int8="--int8" in sys.argv)
    picture = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    state = agent.reset(picture, 5, 5)
    ready = time.perf_counter() - began
    worst = largest_difference(agent, np.load(folder / "check.npz"))
    agent.act(picture, (2, 2), state)
    began = time.perf_counter()
    for _ in range(100):
        agent.act(picture, (2, 2), state)
    move = 1000 * (time.perf_counter() - began) / 100
    print(f"{agent.config['name']}: largest difference {worst:.2e}, ready in {ready:.2f} s, {move:.2f} ms a move")
