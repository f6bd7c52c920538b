"""Runs an exported belief agent with NumPy and onnxruntime alone.

    from runner import Agent, GoalViews
    agent = Agent("folder")                             # int8=True for the quantised graphs
    state = agent.reset(goal, rows=5, cols=5, budget=10, prior="anywhere")  # goal: the goal patch, uint8 (48, 48, 3)
    move, state = agent.act(patch, (2, 2), state)       # 0 to 7: N, NE, E, SE, S, SW, W, NW
    state.match, state.belief                           # does this glimpse show the goal; probability of every cell
    agent.judge(GoalViews(picture, (-6, 6)), view, seen, state.match)       # does the whole photo show it, and where

`python runner.py` checks the graphs beside it against the outputs of the network and times a move.

Legend: C = rows x cols cells.
"""

from typing import Any, NamedTuple

import numpy as np

from airloc.agents.planner import Planner, make_planner, move_values
from airloc.export.runners.base import Graphs, check
from airloc.task.goal_prior import goal_prior
from airloc.vision.offsets import NUM_OFFSETS, ZERO_OFFSET, offset_table


class State(NamedTuple):
    """State of the agent in an episode. It is a value and never changes in place."""

    goal: Any
    """The goal patch, uint8 (48, 48, 3)."""
    encoding: dict[str, Any]
    """Features of the goal patch by input of the graph `relate`."""
    rows: int
    cols: int
    moves_left: int
    prior_kind: str
    """Assumed distribution of goals: `per-distance`, `uniform` (not at the start) or `anywhere`."""
    prior: Any
    """Log-probability of goals before the first glimpse, (C,); None before it."""
    evidence: Any
    """Log of prior times likelihood of all glimpses, (C,); None before the first glimpse."""
    visited: Any
    """Visited cells, bool (C,)."""
    belief: Any
    """Probability of every cell of being the goal, (C,), in row-major order, given that the last glimpse is not."""
    match: float
    """Probability that the last glimpse shows the goal."""


class Agent(Graphs):
    """An agent in a folder: `Agent(folder, int8=False, threads=1)`."""

    def reset(self, goal: Any, rows: int, cols: int, budget: int | None = None, prior: str | None = None) -> State:
        """Encode the goal and return the state before the first glimpse of an area of rows x cols cells.

        Args:
            goal: The goal patch, uint8 (48, 48, 3).
            rows: Rows of cells.
            cols: Columns of cells.
            budget: Number of moves; by default twice the longer side.
            prior: Assumed distribution of goals; by default that of the exported agent. Use `anywhere` in the field.
        """
        moves_left = 2 * max(rows, cols) if budget is None else budget
        return State(
            goal=goal,
            encoding=self._encode(goal, "goal_"),
            rows=rows,
            cols=cols,
            moves_left=moves_left,
            prior_kind=prior or self.config["prior"],
            prior=None,
            evidence=None,
            visited=np.zeros(rows * cols, dtype=np.bool_),
            belief=np.full(rows * cols, 1 / (rows * cols), dtype=np.float32),
            match=0.0,
        )

    def act(self, patch: Any, position: tuple[int, int], state: State) -> tuple[int, State]:
        """Update the belief and plan; return the move and the state for the next call."""
        state = self.observe(patch, position, state)
        belief = state.belief.reshape(state.rows, state.cols)
        values = move_values(self._planner, belief, (int(position[0]), int(position[1])), state.moves_left)
        return int(values.argmax()), state._replace(moves_left=state.moves_left - 1)

    def observe(self, patch: Any, position: tuple[int, int], state: State) -> State:
        """Return the state after a glimpse, without a move."""
        row, col = int(position[0]), int(position[1])
        cell = row * state.cols + col
        prior = state.prior
        if prior is None:
            prior = np.log(goal_prior(state.prior_kind, (row, col), state.rows, state.cols))
        logits = np.zeros((1, NUM_OFFSETS), dtype=np.float32)
        if not state.visited[cell]:
            (logits,) = self.run("relate", self._encode(patch, "glimpse_") | state.encoding)
        reach = max(state.rows, state.cols)
        down, across = np.arange(state.rows) - row + reach - 1, np.arange(state.cols) - col + reach - 1
        inputs = {
            "logits": logits,
            "glimpse": patch[None],
            "goal": state.goal[None],
            "offsets": offset_table(reach)[down[:, None], across].reshape(1, -1),
            "prior": prior[None],
            "evidence": (prior if state.evidence is None else state.evidence)[None],
            "visited": state.visited[None],
            "cell": np.array([[cell]]),
        }
        evidence, visited, belief, match = self.run("update", inputs)
        return state._replace(
            prior=prior, evidence=evidence[0], visited=visited[0], belief=belief[0], match=float(match[0])
        )

    def compare(self, photo: Any, goal: Any) -> float:
        """Return the log-probability that an aligned pair shows the same place."""
        (logits,) = self.run("relate", self._encode(photo, "glimpse_") | self._encode(goal, "goal_"))
        values = logits[0].astype(np.float64)
        return float(values[ZERO_OFFSET] - values.max() - np.log(np.exp(values - values.max()).sum()))

    @property
    def _planner(self) -> Planner:
        return make_planner(**self.config["planner"])

    def _encode(self, patch: Any, prefix: str) -> dict[str, Any]:
        parts = self.run("encode", {"patch": patch[None]})
        return {prefix + name: value for name, value in zip(self.outputs("encode"), parts, strict=True)}


if __name__ == "__main__":
    check(Agent)
