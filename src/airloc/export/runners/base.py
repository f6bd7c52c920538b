"""What all runners share: ONNX sessions, the check of the graphs, and the time of a move."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from airloc.vision.feature_map import FeatureMap
from airloc.vision.locator import GoalViews, SightingCalibration, Verdict, judge


class Graphs:
    """The ONNX graphs of an exported agent.

    Args:
        folder: Output folder of `airloc export`.
        int8: Use the quantised graphs.
        threads: Number of threads.

    Raises:
        FileNotFoundError: If a file of the agent is not in the folder.
    """

    def __init__(self, folder: str | Path, int8: bool = False, threads: int = 1) -> None:
        self.folder = Path(folder)
        self.config: dict[str, Any] = json.loads(self.file("agent.json").read_text(encoding="utf-8"))
        quantised = set(self.config["quantised"]) if int8 else set()
        self._graphs = {
            name: _session(self.file(name + (".int8.onnx" if name in quantised else ".onnx")), threads)
            for name in self.config["graphs"]
        }
        with np.load(self.file("locator.npz")) as weights:
            self._features = FeatureMap(weights)
        self.on_run: Callable[[str, dict[str, Any]], None] | None = None
        """Called before every run with the name of the graph and its inputs."""

    def file(self, name: str) -> Path:
        """Return the path of a file of the agent, or raise an error if the folder does not have it."""
        if not (self.folder / name).is_file():
            raise FileNotFoundError(
                f"The folder {self.folder} has no {name}. Give the output folder of 'airloc export'."
            )
        return self.folder / name

    def run(self, graph: str, inputs: dict[str, Any]) -> list[Any]:
        """Run one of the graphs."""
        if self.on_run is not None:
            self.on_run(graph, inputs)
        outputs: list[Any] = self._graphs[graph].run(None, inputs)
        return outputs

    def views(
        self, picture: Any, turn: tuple[float, float] = (-180.0, 180.0), scale: tuple[float, float] = (1.0, 1.0)
    ) -> GoalViews:
        """Prepare the picture of a goal for `judge`.

        Args:
            picture: The picture at 48 px a cell, uint8 (H, W, 3).
            turn: Range of its heading relative to the grid, in degrees; all headings by default.
            scale: Range of its true width, in units of the assumed one.
        """
        return GoalViews(picture, self._features, turn, scale)

    def judge(self, goal: GoalViews, view: Any, seen: Any, match: float) -> Verdict:
        """Say whether a photo shows the goal, and where, as the searcher of `airloc search` and `airloc serve` does.

        Args:
            goal: The goal, from `views`.
            view: The photo around the cell, two cells wide, centred on it and turned like the grid, uint8 (96, 96, 3).
            seen: Pixels of the view that the photo shows, bool (96, 96).
            match: Probability of a match of the cell's glimpse alone.
        """
        calibration = SightingCalibration(**self.config["sighting"])
        return judge(goal, calibration, self.compare, view, seen, match)

    def compare(self, photo: Any, goal: Any) -> float:
        """Return the log-probability that an aligned pair shows the same place; zero without a network for it."""
        del photo, goal
        return 0.0

    def outputs(self, graph: str) -> list[str]:
        """Return the names of a graph's outputs."""
        return [output.name for output in self._graphs[graph].get_outputs()]


def _session(path: Path, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def largest_difference(graphs: Graphs, expected: Any) -> float:
    """Return the largest difference between the graphs and expected outputs: `graph/number/in|out/name` to array."""
    cases: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for key in expected:
        graph, number, side, name = key.split("/")
        cases.setdefault((graph, number), {"in": {}, "out": {}})[side][name] = expected[key]
    worst = 0.0
    for (graph, _), case in cases.items():
        for output, wanted in zip(graphs.run(graph, case["in"]), case["out"].values(), strict=True):
            worst = max(worst, float(np.abs(output.astype(np.float32) - wanted.astype(np.float32)).max()))
    return worst


def check(agent_class: Any) -> None:
    """Check the graphs beside this file and time a move."""
    folder = Path(__file__).parent
    began = time.perf_counter()
    try:
        agent = agent_class(folder, int8="--int8" in sys.argv)
        expected = np.load(agent.file("check.npz"))
    except FileNotFoundError as error:
        sys.exit(str(error))
    patch = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    state = agent.reset(patch, 5, 5)
    ready = time.perf_counter() - began
    worst = largest_difference(agent, expected)
    agent.act(patch, (2, 2), state)
    began = time.perf_counter()
    for _ in range(100):
        agent.act(patch, (2, 2), state)
    move = 1000 * (time.perf_counter() - began) / 100
    print(f"{agent.config['name']}: largest difference {worst:.2e}, ready in {ready:.2f} s, {move:.2f} ms a move")
