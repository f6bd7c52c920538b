"""Runs an exported agent with NumPy and onnxruntime alone.

    from runner import Agent
    agent = Agent("folder")                         # int8=True for the smaller graphs
    state = agent.reset(goal, rows=5, cols=5)       # goal: the picture to be found, uint8 (48, 48, 3)
    probability = agent.match(patch, state)          # that this glimpse, uint8 (48, 48, 3), is the goal
    move, state = agent.act(patch, (2, 2), state)   # 0 to 7: N, NE, E, SE, S, SW, W, NW

`python runner.py` checks the graphs beside it against what they gave when they were written, and times a move.
"""

from typing import Any, NamedTuple

import numpy as np

from airloc.export.runners.base import MOVES, Graphs, centre_of, check, correlation


class State(NamedTuple):
    """What the agent remembers of an episode; never changed in place."""

    centre: Any
    """The middle of the goal's picture, to compare glimpses with."""
    maps: Any
    """What the goal's picture is to the network."""
    memory: dict[str, Any]
    """The recurrent state by name, where there is one."""
    visited: frozenset[tuple[int, int]]
    rows: int
    cols: int


class Agent(Graphs):
    """An agent in a folder: `Agent(folder, int8=False, threads=1)`."""

    def reset(self, goal: Any, rows: int, cols: int, budget: int | None = None) -> State:
        """Look at the goal; give the state before the first glimpse of an area of rows x cols cells.

        This agent flies the same whatever the budget is.
        """
        (maps,) = self.run("goal", {"patch": goal[None]})
        memory = {name: np.zeros(shape, dtype=np.float32) for name, shape in self.config["memory"].items()}
        return State(centre_of(goal, self.config["likeness"]), maps, memory, frozenset(), rows, cols)

    def act(self, patch: Any, position: tuple[int, int], state: State) -> tuple[int, State]:
        """Choose a move from what is seen and remembered; give the state for the next call."""
        feed = {"patch": patch[None], "goal": state.maps, **state.memory}
        if state.memory:
            feed["position"] = _as_trained(position, (state.rows, state.cols), self.config["trained"])
        outputs = self.run("step", feed)
        logits, memory = outputs[0][0], dict(zip(state.memory, outputs[1:], strict=True))
        visited = state.visited | {(int(position[0]), int(position[1]))}
        if self.config["privileged"]:
            logits = np.where(_privileged(position, visited, state), logits, -np.inf)
        return int(logits.argmax()), state._replace(memory=memory, visited=visited)

    def match(self, patch: Any, state: State) -> float:
        """The probability that a glimpse is the goal's, by likeness."""
        curve = self.config["likeness"]
        best = correlation(patch, state.centre, curve)
        return float(1 / (1 + np.exp(-curve["slope"] * (best - curve["middle"]))))


def _as_trained(position: tuple[int, int], shape: tuple[int, int], trained: tuple[int, int]) -> Any:
    """A position as the grid has it that the agent was trained on: as far from the nearest border, float32 (1, 2)."""
    place, sides, known = np.array(position), np.array(shape), np.array(trained)
    middle = (np.minimum(sides, known) - 1) // 2
    told = np.where(place <= middle, place, np.maximum(place - (sides - known), middle))
    return told[None].astype(np.float32)


def _privileged(position: tuple[int, int], visited: frozenset[tuple[int, int]], state: State) -> Any:
    """Which moves stay inside and go to unvisited cells; while there is none, those that stay inside, or all."""
    cells = [(position[0] + row, position[1] + col) for row, col in MOVES]
    inside = np.array([0 <= row < state.rows and 0 <= col < state.cols for row, col in cells])
    fresh = inside & np.array([cell not in visited for cell in cells])
    return fresh if fresh.any() else inside if inside.any() else ~inside


if __name__ == "__main__":
    check(Agent)
