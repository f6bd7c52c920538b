"""Size, time, success and paths of exported agents: `python -m benchmarks.field_export [AGENT ...]`.

Prints the table of `docs/field.md`, for `belief` and `airloc` by default. Success and paths are those of the 200
episodes that `airloc export` compares. Times are processor times on one core. The versions are interleaved episode by
episode, and each episode counts with its best of several rounds, so that other load on the machine affects all versions
alike.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airloc.agents.registry import AgentOptions, make_agent
from airloc.areas.synthetic import Synthetic
from airloc.export.export import Comparison, RunnerAgent, export_agent, load_runner

EPISODES = 24
ROUNDS = 7


def main() -> None:
    torch.set_num_threads(1)
    print("| agent | version | MB | ms per move, one core | relative to torch | success | paths as in torch |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or ["belief", "airloc"]:
        with tempfile.TemporaryDirectory() as folder:
            exact = make_agent(name, AgentOptions(full_precision=True))  # the precision of the graphs
            report = export_agent(exact, Path(folder))
            runner = load_runner(Path(folder))
            agents = [
                exact,
                *(RunnerAgent(kind, runner.Agent(folder, int8=kind == "int8")) for kind in ("onnx", "int8")),
            ]
            times = timed(agents)
            for number, (version, ms) in enumerate(zip(report.versions, times, strict=True)):
                size = f"{version.bytes / 1e6:.2f}" if version.bytes else ""
                same = f"{round(version.same_paths * report.episodes)} of {report.episodes}" if number else ""
                who, ratio = ("", f"{ms / times[0]:.2f}") if number else (f"`{name}`", "")
                row = (who, version.name, size, f"{ms:.1f}", ratio, f"{version.success:.1%}", same)
                print("| " + " | ".join(row) + " |", flush=True)
            ready = best(lambda folder=folder, runner=runner: reset(runner.Agent(folder)))
        print(f"{name}: largest difference {report.difference:.1e}, runner ready in {ready:.2f} s")


def timed(agents: list[Any]) -> list[float]:
    """Return the milliseconds per move of every agent."""
    stage = Comparison.on(list(Synthetic(count=EPISODES // 4, seed=0).areas(Comparison.GRID)), 0)
    seconds, moves = np.full((len(agents), EPISODES), np.inf), np.zeros((len(agents), EPISODES))
    for episode in range(EPISODES):
        one = stage.some(slice(episode, episode + 1))
        for _ in range(ROUNDS):
            for number, agent in enumerate(agents):
                started = time.process_time()
                played = one.play(agent)
                seconds[number, episode] = min(seconds[number, episode], time.process_time() - started)
                moves[number, episode] = played.steps.sum()
    return (1000 * seconds.sum(axis=1) / moves.sum(axis=1)).tolist()


def reset(agent: Any) -> None:
    agent.reset(np.zeros((48, 48, 3), dtype=np.uint8), 5, 5)


def best(work: Callable[[], None]) -> float:
    """Return the shortest time of a function in seconds."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
