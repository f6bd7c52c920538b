"""Runs an exported belief agent with NumPy and onnxruntime alone.

    from runner import Agent
    agent = Agent("folder")                             # int8=True for the quantised graphs
    state = agent.reset(goal, rows=5, cols=5, budget=10)    # goal: the goal patch, uint8 (48, 48, 3)
    state = agent.reset(goal, 5, 5, prior="anywhere", between=True)     # in the field: the goal may lie anywhere
    move, state = agent.act(patch, (2, 2), state)       # 0 to 7: N, NE, E, SE, S, SW, W, NW
    state.match, state.belief                           # does this glimpse show the goal; probability of every cell
    agent = AnyHeading(agent)                           # for a goal picture of unknown heading, with the same methods
    agent.judge(agent.views(picture, (-6, 6)), view, seen, state.match)     # does the whole photo show it, and where

`python runner.py` checks the graphs beside it against the outputs of the network and times a move.

Legend: C = rows x cols cells, K turns.
"""

from typing import Any, NamedTuple

import numpy as np

from airloc.agents.between import cell_belief, position_likelihood
from airloc.agents.planner import Planner, move_values
from airloc.export.runners.base import Graphs, check
from airloc.task.goal_prior import goal_prior
from airloc.vision.offsets import NUM_NEAR, NUM_OFFSETS, ZERO_OFFSET, offset_table
from airloc.vision.turning import turn_patch


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
    between: bool = False
    """Goals may lie between cells."""
    positions: Any = 0.0
    """Log-likelihood of all glimpses for the goal at positions half a cell apart, (2 rows - 1, 2 cols - 1)."""


class Agent(Graphs):
    """An agent in a folder: `Agent(folder, int8=False, threads=1)`."""

    def reset(
        self,
        goal: Any,
        rows: int,
        cols: int,
        budget: int | None = None,
        prior: str | None = None,
        *,
        between: bool = False,
    ) -> State:
        """Encode the goal and return the state before the first glimpse of an area of rows x cols cells.

        Args:
            goal: The goal patch, uint8 (48, 48, 3).
            rows: Rows of cells.
            cols: Columns of cells.
            budget: Number of moves; by default twice the longer side.
            prior: Assumed distribution of goals; by default that of the exported agent. Use `anywhere` in the field.
            between: Goals may lie between cells.
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
            between=between,
        )

    def act(self, patch: Any, position: tuple[int, int], state: State) -> tuple[int, State]:
        """Update the belief and plan; return the move and the state for the next call."""
        state = self.observe(patch, position, state)
        move = self.plan(state.belief.reshape(state.rows, state.cols), position, state.moves_left)
        return move, state._replace(moves_left=state.moves_left - 1)

    def plan(self, belief: Any, position: tuple[int, int], moves_left: int) -> int:
        """Return the move of the planner for a belief, (rows, cols)."""
        planner = Planner(**self.config["planner"])
        return int(move_values(planner, belief[None], np.array([position]), moves_left).argmax())

    def observe(self, patch: Any, position: tuple[int, int], state: State) -> State:
        """Return the state after a glimpse, without a move."""
        glimpse = {} if state.visited[self._cell(position, state)] else self._encode(patch, "glimpse_")
        return self._update(patch, glimpse, position, state)[0]

    def _cell(self, position: tuple[int, int], state: State) -> int:
        """Return the number of a cell, or raise an error if it is outside the grid."""
        row, col = int(position[0]), int(position[1])
        if not (0 <= row < state.rows and 0 <= col < state.cols):
            problem = f"The cell {(row, col)} is outside the grid of {state.rows} x {state.cols} cells"
            raise ValueError(f"{problem}. Give its row and column, both from 0.")
        return row * state.cols + col

    def _update(
        self, patch: Any, glimpse: dict[str, Any], position: tuple[int, int], state: State
    ) -> tuple[State, Any]:
        """Return the state after a glimpse with its features, and its logits; without features nothing is learned."""
        row, col = int(position[0]), int(position[1])
        cell, prior = self._cell(position, state), state.prior
        if prior is None:
            prior = np.log(goal_prior(state.prior_kind, (row, col), state.rows, state.cols))
        logits = np.zeros((1, NUM_OFFSETS), dtype=np.float32)
        if glimpse:
            (logits,) = self.run("relate", glimpse | state.encoding)
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
        after = state._replace(
            prior=prior, evidence=evidence[0], visited=visited[0], belief=belief[0], match=float(match[0])
        )
        if state.between:
            after = self._between(after, evidence - inputs["evidence"])
        return after, logits[0]

    def _between(self, state: State, likelihood: Any) -> State:
        """Return the state with the belief for goals between cells, after a glimpse with a likelihood of cells."""
        cells = [
            np.asarray(part).reshape(1, state.rows, state.cols) for part in (likelihood, state.prior, state.visited)
        ]
        positions = position_likelihood(cells[0]) + state.positions
        belief = cell_belief(self.config["likelihood_power"] * positions, cells[1], cells[2])
        return state._replace(positions=positions, belief=belief.reshape(-1))

    def compare(self, photo: Any, goal: Any) -> float:
        """Return the log-probability that an aligned pair shows the same place."""
        (logits,) = self.run("relate", self._encode(photo, "glimpse_") | self._encode(goal, "goal_"))
        values = logits[0].astype(np.float64)
        return float(values[ZERO_OFFSET] - values.max() - np.log(np.exp(values - values.max()).sum()))

    def _encode(self, patch: Any, prefix: str) -> dict[str, Any]:
        parts = self.run("encode", {"patch": patch[None]})
        return {prefix + name: value for name, value in zip(self.outputs("encode"), parts, strict=True)}


class HeadingState(NamedTuple):
    """State of `AnyHeading` in an episode."""

    turned: tuple[State, ...]
    """State for every turn of the goal."""
    unrelated: Any
    """Sum of the logits of distant cells over all glimpses, for every turn, (K,)."""
    belief: Any
    """Probability of every cell of being the goal, (C,)."""
    match: float
    """Probability that the last glimpse shows the goal."""


class AnyHeading:
    """An agent for goals whose picture has an unknown heading: it searches for all of `turns` headings at once."""

    def __init__(self, agent: Agent, turns: int = 16) -> None:
        self.agent, self.turns = agent, turns
        self.views, self.judge = agent.views, agent.judge

    def reset(self, goal: Any, *arguments: Any, **options: Any) -> HeadingState:
        """Encode the goal at every turn; the arguments are those of `Agent.reset`."""
        turned = tuple(self.agent.reset(patch, *arguments, **options) for patch in turn_patch(goal, self.turns))
        return HeadingState(turned, np.zeros(self.turns), turned[0].belief, 0.0)

    def act(self, patch: Any, position: tuple[int, int], state: HeadingState) -> tuple[int, HeadingState]:
        """Update the belief and plan; return the move and the state for the next call."""
        state = self.observe(patch, position, state)
        first = state.turned[0]
        move = self.agent.plan(state.belief.reshape(first.rows, first.cols), position, first.moves_left)
        turned = tuple(one._replace(moves_left=one.moves_left - 1) for one in state.turned)
        return move, state._replace(turned=turned)

    def observe(self, patch: Any, position: tuple[int, int], state: HeadingState) -> HeadingState:
        """Return the state after a glimpse, without a move."""
        agent, first = self.agent, state.turned[0]
        glimpse = {} if first.visited[agent._cell(position, first)] else agent._encode(patch, "glimpse_")
        updated = [agent._update(patch, glimpse, position, one) for one in state.turned]
        turned = tuple(after for after, _ in updated)
        unrelated = state.unrelated + np.array([logits[NUM_NEAR:].mean() for _, logits in updated])
        power = agent.config["likelihood_power"]
        evidence, prior = np.stack([one.evidence for one in turned]), np.stack([one.prior for one in turned])
        tempered = prior + power * (evidence - prior)
        weight = np.log(np.exp(tempered - tempered.max(axis=1, keepdims=True)).sum(axis=1)) + tempered.max(axis=1)
        weight = np.exp(weight - power * unrelated - (weight - power * unrelated).max())
        weight /= weight.sum()
        belief = weight @ np.stack([one.belief for one in turned])
        return HeadingState(turned, unrelated, belief, float(weight @ [one.match for one in turned]))


if __name__ == "__main__":
    check(Agent)
