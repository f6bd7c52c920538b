"""Runs an exported AiRLoc agent with NumPy and onnxruntime alone.

    from runner import Agent
    agent = Agent("folder")                         # int8=True for the quantised graphs
    state = agent.reset(goal, rows=5, cols=5)       # goal: the goal patch, uint8 (48, 48, 3)
    probability = agent.match(patch, state)         # probability that this glimpse, uint8 (48, 48, 3), shows the goal
    agent.judge(agent.views(picture, (-6, 6)), view, seen, probability) # does the whole photo show it, and where
    move, state = agent.act(patch, (2, 2), state)   # 0 to 7: N, NE, E, SE, S, SW, W, NW

`python runner.py` checks the graphs beside it against the outputs of the network and times a move.
"""

from typing import Any, NamedTuple

import numpy as np

from airloc.export.runners.base import Graphs, check

MOVES = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


class State(NamedTuple):
    """State of the agent in an episode. It is a value and never changes in place."""

    goal: Any
    """The goal patch, uint8 (48, 48, 3)."""
    maps: Any
    """Features of the goal patch."""
    memory: dict[str, Any]
    """The recurrent state by name; empty if the agent has none."""
    visited: frozenset[tuple[int, int]]
    rows: int
    cols: int


class Agent(Graphs):
    """An agent in a folder: `Agent(folder, int8=False, threads=1)`."""

    def reset(self, goal: Any, rows: int, cols: int, budget: int | None = None) -> State:
        """Encode the goal and return the state before the first glimpse of an area of rows x cols cells.

        The budget does not change the decisions of this agent.
        """
        (maps,) = self.run("goal", {"patch": goal[None]})
        memory = {name: np.zeros(shape, dtype=np.float32) for name, shape in self.config["memory"].items()}
        return State(goal, maps, memory, frozenset(), rows, cols)

    def act(self, patch: Any, position: tuple[int, int], state: State) -> tuple[int, State]:
        """Return a move and the state for the next call."""
        inputs = {"patch": patch[None], "goal": state.maps, **state.memory}
        if state.memory:
            inputs["position"] = _to_training_grid(position, (state.rows, state.cols), self.config["training_grid"])
        outputs = self.run("step", inputs)
        logits, memory = outputs[0][0], dict(zip(state.memory, outputs[1:], strict=True))
        visited = state.visited | {(int(position[0]), int(position[1]))}
        if self.config["privileged"]:
            logits = np.where(_privileged_moves(position, visited, state), logits, -np.inf)
        return int(logits.argmax()), state._replace(memory=memory, visited=visited)

    def match(self, patch: Any, state: State) -> float:
        """Return the probability that a glimpse shows the goal, by the similarity of the two patches."""
        (probability,) = self.run("match", {"patch": patch[None], "goal": state.goal[None]})
        return float(probability[0])


def _to_training_grid(position: tuple[int, int], shape: tuple[int, int], trained: tuple[int, int] | None) -> Any:
    """Map a position to the training grid, if any, by its distance to the nearest border, float32 (1, 2)."""
    place, sides, known = np.array(position), np.array(shape), np.array(shape if trained is None else trained)
    middle = (np.minimum(sides, known) - 1) // 2
    mapped = np.where(place <= middle, place, np.maximum(place - (sides - known), middle))
    return mapped[None].astype(np.float32)


def _privileged_moves(position: tuple[int, int], visited: frozenset[tuple[int, int]], state: State) -> Any:
    """Return which moves lead to cells of the lowest status: unvisited (0), visited (1), outside (2)."""
    cells = [(position[0] + row, position[1] + col) for row, col in MOVES]
    inside = [0 <= row < state.rows and 0 <= col < state.cols for row, col in cells]
    status = np.array([int(cell in visited) if within else 2 for cell, within in zip(cells, inside, strict=True)])
    return status == status.min()


if __name__ == "__main__":
    check(Agent)
