"""Play a suite of episodes with an agent and log what happens.

`rollout` is the only way to play. It returns a `RolloutLog`; recorders passed as `record` add what the agent's state
holds at every decision, without changing the play:

| recorder         | value                                                 | shape       |
|------------------|-------------------------------------------------------|-------------|
| `BELIEF`         | probability of every cell of being the goal           | (E, T, C)   |
| `LOGITS`         | logits of the eight moves                             | (E, T, 8)   |
| `PRIOR_FOLLOWED` | True if AiRLoc makes the move its prior favours        | (E, T)      |
| `MATCH`          | probability that the glimpse shows the goal           | (E, T + 1)  |

Legend: E episodes of the suite, B of a batch, T budget, C cells, S side of a cell in pixels.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, EpisodeBatch, belief_of, check_device, logits_of
from airloc.agents.airloc import AirlocState
from airloc.agents.matching import MatchingAgent, with_match
from airloc.areas.area import Pixels, SearchArea, fit
from airloc.errors import AirlocError
from airloc.grid import MOVES, Cell
from airloc.seeding import derive
from airloc.task.batch import BatchEnv
from airloc.task.photos import FlightConditions
from airloc.task.rules import check_integer
from airloc.task.suites import Suite

__all__ = [
    "BELIEF",
    "LOGITS",
    "MATCH",
    "PRIOR_FOLLOWED",
    "DiagonalError",
    "EpisodeRecord",
    "GoalPatches",
    "Recorder",
    "RolloutLog",
    "check_play",
    "rollout",
]

GoalPatches = Callable[[torch.Tensor], torch.Tensor]
"""Returns the goal patches (B, S, S, 3) of the episodes with these indices (B,)."""


class DiagonalError(AirlocError):
    """The agent moves diagonally, but the task has four moves."""


@dataclass(frozen=True)
class Recorder:
    """A quantity to record during a rollout."""

    name: str
    read: Callable[[torch.Tensor, Any], torch.Tensor | None] = field(compare=False)
    """Returns the values (B, ...) to keep, or None if the agent has none.

    The arguments are the chosen moves (B,), or at a glimpse the match probabilities (B,), and the agent's state.
    """
    at: Literal["move", "glimpse"] = "move"
    """`move`: after every choice of a move, T times. `glimpse`: before every choice and at the end, T + 1 times."""
    required: bool = field(default=False, compare=False)
    """Raise an error at the first move if the agent has no such quantity."""


def _part_of_state(read: Callable[[Any], torch.Tensor | None]) -> Callable[[torch.Tensor, Any], torch.Tensor | None]:
    def value(_: torch.Tensor, state: Any) -> torch.Tensor | None:
        part = read(state)
        return None if part is None else part.float()

    return value


def _prior_followed(action: torch.Tensor, state: Any) -> torch.Tensor | None:
    if not isinstance(state, AirlocState) or state.prior is None:
        return None
    return action == state.prior.argmax(dim=1)


BELIEF = Recorder("belief", _part_of_state(belief_of))
LOGITS = Recorder("logits", _part_of_state(logits_of))
PRIOR_FOLLOWED = Recorder("prior_followed", _prior_followed)
MATCH = Recorder("match", lambda probability, state: probability.float(), at="glimpse")


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeRecord:
    """One episode of a rollout, with the images it was played on."""

    agent: str
    area: SearchArea
    path: list[Cell]
    """Cells from the start on."""
    goal: Cell
    goal_patch: Pixels
    """The goal patch that the agent received, (S, S, 3)."""
    found: bool
    beliefs: npt.NDArray[np.float32] | None
    """The belief before every move, (moves, rows, cols); None if it was not recorded."""

    @property
    def moves(self) -> int:
        """Number of moves."""
        return len(self.path) - 1

    @property
    def last_belief(self) -> npt.NDArray[np.float32] | None:
        """The belief before the last move, with the cell that this move ruled out set to zero, (rows, cols)."""
        if self.beliefs is None or self.found:
            return None if self.beliefs is None else self.beliefs[-1]
        row, col = self.path[-1]
        left: npt.NDArray[np.float32] = self.beliefs[-1].copy()
        if 0 <= row < left.shape[0] and 0 <= col < left.shape[1]:
            left[row, col] = 0
        left /= max(float(left.sum()), 1e-12)
        return left

    @property
    def goal_probability(self) -> float | None:
        """Probability of the goal cell in the last belief."""
        return None if self.last_belief is None else float(self.last_belief[self.goal])

    @property
    def goal_rank(self) -> int | None:
        """Rank of the goal cell in the last belief: 1 if no cell has a higher probability."""
        belief = self.last_belief
        return None if belief is None else 1 + int((belief > belief[self.goal]).sum())


@dataclass(frozen=True, slots=True, eq=False)
class RolloutLog:
    """What an agent did in every episode of a suite."""

    agent: str
    """Name of the agent."""
    suite: Suite
    path: npt.NDArray[np.int64]
    """Cells from the start on, (E, T + 1, 2); the last cell repeats after the end of an episode."""
    found: npt.NDArray[np.bool_]
    """True if the goal was reached, or correctly declared in a suite that ends by declaration, (E,)."""
    steps: npt.NDArray[np.int64]
    """Number of moves, (E,)."""
    seconds: float = 0.0
    """Wall time spent in the agent."""
    declared: npt.NDArray[np.bool_] | None = None
    """True if the agent declared the goal, (E,); None unless the suite ends by declaration."""
    team: npt.NDArray[np.int64] | None = None
    """Cells of all drones, (E, K, T + 1, 2); None unless there are several drones or the goal moves."""
    last_goal: npt.NDArray[np.int64] | None = None
    """Last cell of a goal that moves, (E, 2)."""
    recorded: Mapping[Recorder, npt.NDArray[Any]] = field(default_factory=dict)
    """Recorded values (E, T or T + 1, ...), zero after the end of an episode. Quantities that the agent does not have
    are missing."""

    @property
    def moved(self) -> npt.NDArray[np.bool_]:
        """Mask of the moves that were made, (E, T)."""
        moved: npt.NDArray[np.bool_] = np.arange(self.suite.budget) < self.steps[:, None]
        return moved

    def episode(
        self, index: int, areas: Sequence[SearchArea], goal_areas: Sequence[SearchArea] | None = None
    ) -> EpisodeRecord:
        """Return one episode with its images.

        Args:
            index: Index of the episode in the suite.
            areas: The areas of the rollout, in the order of the suite.
            goal_areas: The areas that the goal patches were cut from, if they were others.
        """
        suite, moves = self.suite, int(self.steps[index])
        path = [(int(row), int(col)) for row, col in self.path[index, : moves + 1]]
        row, col = suite.goal[index].tolist()
        beliefs = self.recorded.get(BELIEF)
        if beliefs is not None:
            beliefs = beliefs[index, :moves].reshape(moves, *suite.grid.shape)
        left, top, right, bottom = suite.grid.box((row, col))
        goal_patch = fit((goal_areas or areas)[suite.area[index]], suite.grid).image[top:bottom, left:right]
        area = fit(areas[suite.area[index]], suite.grid)
        return EpisodeRecord(self.agent, area, path, (row, col), goal_patch, bool(self.found[index]), beliefs)


def rollout(
    agent: Agent,
    suite: Suite,
    areas: Sequence[SearchArea] | BatchEnv,
    *,
    record: Sequence[Recorder] = (),
    goal_areas: Sequence[SearchArea] | None = None,
    goal_patches: GoalPatches | None = None,
    goal_texts: torch.Tensor | None = None,
    goal_prior: torch.Tensor | None = None,
    flight: FlightConditions | None = None,
    matcher: Callable[[Agent], MatchingAgent] = with_match,
    goal_centres: torch.Tensor | None = None,
    threshold: float = 0.5,
    seed: int = 0,
    batch: int = 1024,
    device: str = "cpu",
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> RolloutLog:
    """Play all episodes of a suite.

    Args:
        agent: The agent.
        suite: The episodes.
        areas: The areas in the order of the suite, or an environment that already holds them.
        record: Quantities to record.
        goal_areas: Other images of the same places to cut the goal patches from, one per area.
        goal_patches: Returns the goal patches instead of cutting them from the areas.
        goal_texts: Embedded descriptions of the goals, (E, 8, 384).
        goal_prior: Probability of the goal in every cell that agents know before the first glimpse, (E, C).
        flight: Glimpses and goals are photos, of the first variant, unless `areas` is an environment.
        matcher: Gives the agent `match`, if it declares or is recorded at glimpses.
        goal_centres: Row and column of the centre of every goal, in cells, (E, 2). A declaration whose state reports a
            position within half a cell of it is a find too.
        threshold: Match probability from which on the agent declares the goal, in a suite that ends by declaration.
            `math.inf` never declares, so that every episode uses its whole budget.
        seed: Random seed for the agent's noise. The noise does not depend on the batch size.
        batch: Number of episodes played in parallel.
        device: Device for the areas, unless `areas` is an environment.
        on_batch: Called with the number of episodes after every batch.

    Raises:
        DiagonalError: If the agent moves diagonally in a task of four moves.
        AirlocError: If the agent lacks a required quantity, or as for `check_play`.
    """
    check_play(suite, batch, device)
    if isinstance(areas, BatchEnv):
        env = areas
    else:
        suite.check_areas([area.name for area in areas])
        env = BatchEnv.from_areas(
            areas,
            suite.grid,
            suite.budget,
            goal_areas=goal_areas,
            flight=flight,
            device=device,
            by_declaration=suite.by_declaration,
        )
    player = _Player(
        agent, suite, env, record, goal_patches, matcher, goal_centres, threshold, seed, goal_texts, goal_prior
    )
    batches = []
    for first in range(0, len(suite), batch):
        batches.append(player.play(slice(first, min(first + batch, len(suite)))))
        on_batch(len(batches[-1].path))
    return _join(agent.name, suite, record, batches)


def check_play(suite: Suite, batch: int, device: str) -> None:
    """Raise an error if a suite has no episodes, a batch has none, or this machine does not have the device."""
    if not len(suite):
        raise AirlocError("The suite has no episodes", "Use a suite with at least one")
    if check_integer("batch", batch) < 1:
        raise AirlocError(f"A batch of {batch} episodes is too small", "Use a batch of 1 or more")
    check_device(device)


class _Batch(NamedTuple):
    """A played batch, as arrays on the CPU; `recorded` has one list of values per recorder."""

    path: npt.NDArray[np.int64]
    found: npt.NDArray[np.bool_]
    steps: npt.NDArray[np.int64]
    declared: npt.NDArray[np.bool_]
    seconds: float
    recorded: dict[Recorder, npt.NDArray[Any]]


class _Player:
    """Plays batches of a suite."""

    def __init__(
        self,
        agent: Agent,
        suite: Suite,
        env: BatchEnv,
        record: Sequence[Recorder],
        goal_patches: GoalPatches | None,
        matcher: Callable[[Agent], MatchingAgent],
        goal_centres: torch.Tensor | None,
        threshold: float,
        seed: int,
        goal_texts: torch.Tensor | None,
        goal_prior: torch.Tensor | None,
    ) -> None:
        self.matches = suite.by_declaration or any(recorder.at == "glimpse" for recorder in record)
        self.agent: Any = matcher(agent) if self.matches else agent
        self.wrapped = self.agent is not agent
        self.suite, self.env, self.record = suite, env, record
        self.goal_patches, self.threshold, self.seed = goal_patches, threshold, seed
        self.goal_texts, self.goal_prior, self.goal_centres = goal_texts, goal_prior, goal_centres

    @torch.inference_mode()
    def play(self, these: slice) -> _Batch:
        """Play some episodes in parallel."""
        suite, env, device = self.suite, self.env, self.env.cells.device
        area, start, goal = (torch.from_numpy(part[these]).to(device) for part in (suite.area, suite.start, suite.goal))
        observation = env.reset(area, start, goal)
        clock = AgentClock(device)
        tape: dict[Recorder, list[torch.Tensor]] = {recorder: [] for recorder in self.record}
        with clock:
            state = self.agent.reset(self._episodes(these))
        found = declared = ended = torch.zeros_like(area, dtype=torch.bool)
        path = [observation.position]
        while True:
            if self.matches:
                with clock:
                    probability, state = self.agent.match(observation, state)
                self._record(tape, "glimpse", probability, state)
            if suite.by_declaration:
                outcome = env.declare(probability >= self.threshold, self._error(state, these))
                found, ended = found | outcome.found, outcome.ended
                declared = declared | outcome.found | outcome.false_alarm
            if ended.all():
                break
            with clock:
                action, state = self.agent.act(observation, state)
            _check_moves(self.agent.name, action, suite)
            self._record(tape, "move", action, state)
            observation, _, reached, ended = env.step(action)
            found = found | reached
            path.append(observation.position)
        path += path[-1:] * (suite.budget + 1 - len(path))
        recorded = {
            recorder: _padded(values, suite.budget + (recorder.at == "glimpse"))
            for recorder, values in tape.items()
            if values
        }
        return _Batch(
            path=torch.stack(path, dim=1).cpu().numpy(),
            found=found.cpu().numpy(),
            steps=(suite.budget - observation.moves_left).cpu().numpy(),
            declared=declared.cpu().numpy(),
            seconds=clock.seconds,
            recorded=recorded,
        )

    def _error(self, state: Any, these: slice) -> torch.Tensor | None:
        """Return how far the reported positions are from the goals, in cells, (B,); None if none are reported."""
        reported: torch.Tensor | None = getattr(state, "reported", None)
        if reported is None or self.goal_centres is None:
            return None
        error: torch.Tensor = (reported - self.goal_centres[these].to(reported)).norm(dim=1)
        return error

    def _episodes(self, these: slice) -> EpisodeBatch:
        suite, device = self.suite, self.env.cells.device
        if self.goal_patches is None:
            goals = self.env.goal_patches()
        else:
            goals = self.goal_patches(torch.arange(these.start, these.stop, device=device))
        noise = torch.from_numpy(agent_noise(self.seed, these, suite.budget)).to(device)
        prior, text = (None if part is None else part[these].to(device) for part in (self.goal_prior, self.goal_texts))
        return EpisodeBatch(goals, suite.grid, suite.budget, noise, prior, text)

    def _record(self, tape: dict[Recorder, list[torch.Tensor]], at: str, value: torch.Tensor, state: Any) -> None:
        """Append what the recorders read; they see the agent's own state, not that of its matcher."""
        for recorder, values in tape.items():
            if recorder.at != at:
                continue
            read = recorder.read(value, state.inner if self.wrapped else state)
            if read is not None:
                values.append(read.cpu())
            elif recorder.required:
                raise AirlocError(
                    f"The agent {self.agent.name!r} has no {recorder.name}",
                    f"Use an agent whose state has a {recorder.name}, or its checkpoint folder",
                )


def _padded(values: list[torch.Tensor], length: int) -> npt.NDArray[Any]:
    """Stack values (B, ...) along the second axis and pad it with zeros to a length."""
    stacked = torch.stack(values, dim=1).numpy()
    return np.pad(stacked, [(0, 0), (0, length - stacked.shape[1]), *[(0, 0)] * (stacked.ndim - 2)])


def _join(agent: str, suite: Suite, record: Sequence[Recorder], batches: Sequence[_Batch]) -> RolloutLog:
    """Concatenate batches; leave out quantities that were not recorded in every batch."""
    steps = np.concatenate([part.steps for part in batches])
    recorded = {}
    for recorder in record:
        if all(recorder in part.recorded for part in batches):
            values = np.concatenate([part.recorded[recorder] for part in batches])
            values[np.arange(values.shape[1]) >= steps[:, None] + (recorder.at == "glimpse")] = 0
            recorded[recorder] = values
    return RolloutLog(
        agent,
        suite,
        np.concatenate([part.path for part in batches]),
        np.concatenate([part.found for part in batches]),
        steps,
        seconds=sum(part.seconds for part in batches),
        declared=np.concatenate([part.declared for part in batches]) if suite.by_declaration else None,
        recorded=recorded,
    )


def _check_moves(agent: str, action: torch.Tensor, suite: Suite) -> None:
    """Raise an error if the agent moves diagonally in a task of four moves."""
    if suite.grid.moves == 4 and bool((action % 2 != 0).any()):
        raise DiagonalError(
            f"The agent {agent!r} moves diagonally, but the task has four moves",
            "Mask its logits with airloc.agents.agent.mask_task_moves, or play it with eight moves",
        )


def agent_noise(seed: int, these: slice, budget: int) -> npt.NDArray[np.float32]:
    """Return the uniform numbers of some episodes, (B, T, 8).

    They are a window of one random stream, so that they do not depend on the batch size.
    """
    per_episode = budget * len(MOVES)
    bits = np.random.Philox(key=derive(seed, "noise"))
    bits.advance(these.start * per_episode // 4)  # one Philox step yields four numbers, and 8 moves take two steps
    numbers = np.random.Generator(bits).random((these.stop - these.start, budget, len(MOVES)))
    # Truncate to 24 bits, which a float32 represents exactly, so that no number is rounded up to one.
    return (np.floor(numbers * 2.0**24) / 2.0**24).astype(np.float32)


class AgentClock:
    """Accumulates the wall time spent inside its context, including the wait for the device."""

    def __init__(self, device: torch.device) -> None:
        self.seconds = 0.0
        self._cuda = device.type == "cuda"

    def __enter__(self) -> None:
        self._wait()
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._wait()
        self.seconds += time.perf_counter() - self._began

    def _wait(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()
