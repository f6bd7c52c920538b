"""Runs an exported belief searcher with NumPy and onnxruntime alone.

    from runner import Agent
    agent = Agent("folder")                             # int8=True for the smaller graphs
    state = agent.reset(goal, rows=5, cols=5, budget=10, prior="anywhere")  # goal: its picture, uint8 (48, 48, 3)
    move, state = agent.act(patch, (2, 2), state)       # 0 to 7: N, NE, E, SE, S, SW, W, NW
    state.here, state.belief                            # is this glimpse the goal; the probability of every other cell

`python runner.py` checks the graphs beside it against what they gave when they were written, and times a move.

Legend: C = rows x cols cells, P paths looked ahead at, H their length, E their ends, N = (2 H + 3)^2 cells around the
agent.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from airloc.export.runners.base import MOVES, Graphs, centre_of, check, correlation


class State(NamedTuple):
    """What the agent knows in an episode; never changed in place."""

    centre: Any
    """The middle of the goal's picture, to compare glimpses with."""
    goal: dict[str, Any]
    """What the picture is to the network, by part."""
    flat: bool
    """Whether the goal's picture shows nothing."""
    rows: int
    cols: int
    left: int
    """Moves left."""
    prior: str
    """How goals are thought to lie: `per-distance`, `uniform` (not at the start) or `anywhere`."""
    before: Any
    """Logarithm of the probability of goals before the first glimpse, (C,); None until then."""
    evidence: Any
    """Logarithm of prior and likelihood of all glimpses for the goal in each cell, (C,); None before the first."""
    visited: Any
    """Cells seen, bool (C,)."""
    belief: Any
    """Probability of every cell of being the goal, (C,), by row; the last glimpse was not of the goal."""
    here: float
    """Probability that the last glimpse showed the goal."""


class Agent(Graphs):
    """An agent in a folder: `Agent(folder, int8=False, threads=1)`."""

    def reset(self, goal: Any, rows: int, cols: int, budget: int | None = None, prior: str | None = None) -> State:
        """Look at the goal; give the state before the first glimpse of an area of rows x cols cells.

        Args:
            goal: Its picture, uint8 (48, 48, 3).
            rows: Rows of cells.
            cols: Columns of cells.
            budget: Moves allowed; twice the longer side unless given.
            prior: How goals lie; as the agent was exported unless given. In the field it is `anywhere`.
        """
        cells, left = rows * cols, 2 * max(rows, cols) if budget is None else budget
        blank, even = np.zeros(cells, dtype=np.bool_), np.full(cells, 1 / cells, dtype=np.float32)
        encoded = self._encode(goal, "goal_")
        prior = prior or self.config["prior"]
        centre = centre_of(goal, self.config["witness"])
        return State(centre, encoded, self._is_flat(goal), rows, cols, left, prior, None, None, blank, even, 0.0)

    def act(self, patch: Any, position: tuple[int, int], state: State) -> tuple[int, State]:
        """Look, update the belief and plan; give the move and the state for the next call."""
        state = self.look(patch, position, state)
        worth = _worth_of_moves(self.config["planner"], state, position)
        return int(worth.argmax()), state._replace(left=state.left - 1)

    def look(self, patch: Any, position: tuple[int, int], state: State) -> State:
        """Take a glimpse into account, without moving."""
        row, col = (int(part) for part in position)
        cell = row * state.cols + col
        before = _prior(state.prior, row, col, state) if state.before is None else state.before
        said: Any = np.zeros(len(before), dtype=np.float32)
        calibration = self.config["witness"]
        if not (state.visited[cell] or state.flat or self._is_flat(patch)):
            (logits,) = self.run("relate", self._encode(patch, "glimpse_") | state.goal)
            said = logits[0][_offsets(row, col, state, self.config["radius"])]
            # Whether this is the goal itself is judged by the likeness of the two too.
            said[cell] += calibration["weight"] * (
                correlation(patch, state.centre, calibration) - calibration["neutral"]
            )
        evidence = (before if state.evidence is None else state.evidence) + said
        visited = state.visited.copy()
        # Where nobody tells of an arrival, a cell seen before may have been the goal: it counts as it looked.
        here = 0.0 if visited[cell] else float(_softmax(calibration["temper"] * evidence)[cell])
        visited[cell] = True
        trusted = before + self.config["trust"] * (evidence - before) if self.config["memory"] else said
        belief = _normalised(trusted, visited)
        return state._replace(before=before, evidence=evidence, visited=visited, belief=belief, here=here)

    def _encode(self, patch: Any, whose: str) -> dict[str, Any]:
        parts = self.run("encode", {"patch": patch[None]})
        return {whose + name: value for name, value in zip(self.outputs("encode"), parts, strict=True)}

    def _is_flat(self, patch: Any) -> bool:
        """Whether a picture shows nothing."""
        spread = patch.reshape(-1, 3).astype(np.float32).std(axis=0, ddof=1)
        return bool(spread.max() < self.config["flat"])


def _normalised(evidence: Any, visited: Any) -> Any:
    """The belief: evidence over the cells not visited, normalised; flat where all have been visited."""
    if visited.all():
        return np.full_like(evidence, 1 / len(evidence))
    return _softmax(np.where(visited, -np.inf, evidence))


def _softmax(odds: Any) -> Any:
    weight = np.exp(odds - odds.max())
    return weight / weight.sum()


def _prior(kind: str, row: int, col: int, state: State) -> Any:
    """Logarithm of the probability of goals for a search that starts in a cell, (C,)."""
    rows, cols = np.arange(state.rows)[:, None], np.arange(state.cols)
    away = np.maximum(abs(rows - row), abs(cols - col)).ravel()
    if kind == "anywhere":
        return np.zeros(len(away), dtype=np.float32)
    if kind == "uniform":
        return np.where(away == 0, -30, 0).astype(np.float32)
    if kind != "per-distance":
        raise ValueError(f"There is no prior {kind!r}; give per-distance, uniform or anywhere")
    farthest = max(state.rows, state.cols)
    reach = np.maximum(np.maximum(rows, state.rows - 1 - rows), np.maximum(cols, state.cols - 1 - cols))
    starts = (reach.ravel() >= np.arange(farthest)[:, None]).sum(axis=1)
    weight = 1 / np.maximum(np.bincount(away, minlength=farthest) * starts, 1)
    weight[0] = 0  # the goal is not where one starts
    return np.log(weight[away] + 1e-12).astype(np.float32)


def _offsets(row: int, col: int, state: State, radius: int) -> Any:
    """Number of the offset from a cell to every cell, (C,); one beyond the radius is drawn in towards zero."""
    down, across = np.meshgrid(np.arange(state.rows) - row, np.arange(state.cols) - col, indexing="ij")
    reach = np.maximum(np.maximum(abs(down), abs(across)), radius)
    down, across = (np.rint(part * radius / reach).astype(np.int64) for part in (down, across))
    return ((down + radius) * (2 * radius + 1) + across + radius).ravel()


def _worth_of_moves(planner: dict[str, Any], state: State, position: tuple[int, int]) -> Any:
    """Worth of each first move under the best path that begins with it, (8,); minus infinity where it ends outside.

    For cells beside a path the path as such matters, for all others its end does, and many paths share an end.
    """
    (row, col), rows, cols, left = position, state.rows, state.cols, state.left
    length = max(1, min(planner["horizon"], left))
    steps, reach = _paths(length), length + 1
    ends, end_of = _ends(length)
    settings = tuple(sorted(planner.items()))
    # More moves than lead anywhere change nothing, so that those cases share a table.
    after = _after_table(settings, length, min(left, max(rows, cols) - 1 + 2 * length), rows, cols)
    windows = np.lib.stride_tricks.sliding_window_view(after, (rows, cols))  # by where they begin
    window = windows[rows - 1 + length - row - ends[:, 0], cols - 1 + length - col - ends[:, 1]]  # (E, rows, cols)
    around = np.pad(state.belief.reshape(rows, cols), reach)[row : row + 2 * reach + 1, col : col + 2 * reach + 1]
    beside = _beside_table(settings, length, min(left, 2 * length + 1))
    value = (window.reshape(len(ends), -1) @ state.belief)[end_of] + beside @ around.ravel()  # (P,)
    cells = steps + np.array([row, col])
    inside = ((cells >= 0) & (cells < (rows, cols))).all(axis=(1, 2))
    best = np.where(inside, value, -np.inf).reshape(len(MOVES), -1).max(axis=1)
    # Several moves often lead to the same cells equally soon: the straight ones come first.
    return best * (1 - planner["tie"] * np.array([0, 4, 1, 5, 2, 6, 3, 7]))


@lru_cache(maxsize=64)
def _beside_table(settings: tuple[tuple[str, Any], ...], length: int, left: int) -> Any:
    """What every path is worth for a goal at every place near the agent, beyond what its end is, (P, N)."""
    planner, near = dict(settings), np.arange(-length - 1, length + 2)
    if "beyond" not in planner:  # greedy: a path is worth what its end is
        return np.zeros((len(_paths(length)), near.size**2), dtype=np.float32)
    worth, unknown = np.zeros((1, near.size, near.size)), np.ones((1, near.size, near.size))
    for made in range(1, length + 1):
        # Paths that begin alike stand together and have shared a row until now.
        worth, unknown = worth.repeat(len(MOVES), axis=0), unknown.repeat(len(MOVES), axis=0)
        cell = _paths(made)[:, -1, :, None, None]  # (P, 2, 1, 1)
        down, across = abs(near[:, None] - cell[:, 0]), abs(near - cell[:, 1])
        away, straight = np.maximum(down, across), down + across  # (P, Y, X)
        side, corner = straight == 1, (straight == 2) & (away == 1)
        told = (straight == 0) + planner["at_side"] * side + planner["at_corner"] * corner  # by this glimpse
        found = unknown * told * (made + away <= left)
        worth, unknown = worth + found * _power(planner["discount"], made + away), unknown - found
    worth -= (1 - unknown) * _after(planner, away, length, left)
    return worth.astype(np.float32).reshape(len(worth), -1)


@lru_cache(maxsize=64)
def _after_table(settings: tuple[tuple[str, Any], ...], length: int, left: int, rows: int, cols: int) -> Any:
    """What a path's end is worth for a goal at every place around it, (2 (rows + H) - 1, 2 (cols + H) - 1)."""
    down, across = (abs(np.arange(1 - side - length, side + length)) for side in (rows, cols))
    return _after(dict(settings), np.maximum(down[:, None], across), length, left).astype(np.float32)


def _after(planner: dict[str, Any], last: Any, length: int, left: int) -> Any:
    """What a path is worth for goals so far away from its end; greedy ones count the distance after the move alone."""
    if "beyond" in planner:
        return planner["discount"] ** length * _power(planner["beyond"], last) * (last + length <= left)
    return _power(planner["discount"], last) * (last + length <= left)


def _power(base: float, exponent: Any) -> Any:
    """Powers of a number, from a short list of them: tables have millions of entries and few different ones."""
    return (base ** np.arange(exponent.max() + 1))[exponent]


@lru_cache(maxsize=8)
def _ends(length: int) -> tuple[Any, Any]:
    """Where paths may end, as steps from the start, (E, 2), and which of these every path's end is, (P,)."""
    ends, which = np.unique(_paths(length)[:, -1], axis=0, return_inverse=True)
    return ends, which.ravel()


@lru_cache(maxsize=8)
def _paths(length: int) -> Any:
    """Every sequence of so many moves as steps from the start, (P, H, 2), ordered by the first."""
    choices = np.indices([len(MOVES)] * length).reshape(length, -1).T
    return np.array(MOVES)[choices].cumsum(axis=1)


if __name__ == "__main__":
    check(Agent)
