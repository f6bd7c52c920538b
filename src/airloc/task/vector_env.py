"""The vector environment: many independent episodes in one NumPy step."""

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from airloc.areas.area import Pixels
from airloc.errors import AirlocError
from airloc.grid import Grid, MoveCount
from airloc.task.anywhere import GoalsAnywhere
from airloc.task.cells import ORIENTATIONS, flip_cells, flip_image
from airloc.task.env import Obs, observation_space
from airloc.task.goal_texts import check_text_table
from airloc.task.photos import FlightConditions, Role
from airloc.task.rules import FALSE_ALARM_COST, Actions, RewardFunction, check_integer, load_reward
from airloc.task.sampling import Areas, EpisodeSampler


class SearchVectorEnv(gym.vector.VectorEnv[Obs, npt.NDArray[Any], npt.NDArray[Any]]):
    """Many instances of `SearchEnv`: the same spaces, rewards and ends, and the same arguments except `render_mode`.

    `reset(options=...)` takes complete episodes only: the arrays `area` (indices), `start` and `goal`, or one of each
    for all environments. At the end of an episode, `infos` has `distance` and, with `declare=True`, `found`,
    `false_alarm` and `missed`; as in Gymnasium, `infos["_distance"]` is the mask of the environments that have the
    value.

    Autoreset mode: `NEXT_STEP`. The step after the last step of an episode ignores its action and returns the first
    observation of the next episode with a reward of zero.

    ```pycon
    >>> import airloc, gymnasium as gym
    >>> envs = gym.make_vec("airloc/Search-5x5-v0", num_envs=3)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations["patch"].shape, infos["action_mask"].shape
    ((3, 48, 48, 3), (3, 8))

    ```
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        num_envs: int = 1,
        areas: Areas = None,
        grid: Grid | str = "5x5",
        budget: int | None = None,
        *,
        moves: MoveCount | None = None,
        prior: str = "uniform",
        distance: int | None = None,
        declare: bool = False,
        false_alarm_cost: float = FALSE_ALARM_COST,
        reward: RewardFunction | str | None = None,
        flight: FlightConditions | None = None,
        goal_texts: npt.NDArray[np.float32] | None = None,
        goal_pictures: bool | None = None,
        goals: GoalsAnywhere | None = None,
        flips: bool = False,
    ) -> None:
        self.sampler = EpisodeSampler.build(areas, grid, budget, prior, distance, moves, flight, goals)
        self.grid, self.budget = self.sampler.grid, self.sampler.budget
        self.flips = flips
        if goal_texts is not None:
            check_text_table(goal_texts, len(self.sampler.names), self.grid, flips=flips)
        self.goal_texts = goal_texts
        self.goal_pictures = goal_texts is None if goal_pictures is None else goal_pictures
        if check_integer("num_envs", num_envs) < 1:
            raise AirlocError(f"The argument num_envs = {num_envs} is too small", "Use 1 or more environments")
        self.num_envs = num_envs
        self.actions = Actions(self.grid, self.budget, declare, false_alarm_cost, load_reward(reward))
        self.single_action_space = spaces.Discrete(self.actions.count)
        self.single_observation_space = observation_space(self.grid, self.budget, texts=goal_texts is not None)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._area = np.zeros(num_envs, dtype=np.int64)
        self._position = np.zeros((num_envs, 2), dtype=np.int64)
        self._goal = np.zeros((num_envs, 2), dtype=np.int64)
        self._start = np.zeros((num_envs, 2), dtype=np.int64)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._orientation = np.zeros(num_envs, dtype=np.int64)
        self._variant = np.zeros(num_envs, dtype=np.int64)
        self._goal_patch = np.zeros((num_envs, self.grid.cell, self.grid.cell, 3), dtype=np.uint8)
        self._over: npt.NDArray[np.bool_] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Start an episode in every environment; the options `area`, `start` and `goal` fix all episodes."""
        super().reset(seed=seed)
        everywhere = np.ones(self.num_envs, dtype=bool)
        self._begin(everywhere)
        if options:
            if options.keys() != {"area", "start", "goal"}:
                raise AirlocError("The reset options do not fix complete episodes", "Use area, start and goal together")
            self._place(
                everywhere,
                *self.sampler.check_episodes(self.num_envs, *(options[what] for what in ("area", "start", "goal"))),
            )
        self._over = np.zeros(self.num_envs, dtype=bool)
        return self._observe(), self._info()

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Obs, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Apply the actions; an environment whose episode has ended starts the next one instead."""
        if self._over is None:
            raise AirlocError("No episode has started", "Call reset before step")
        actions = np.asarray(actions)
        if actions.dtype.kind not in "iu" or not self.action_space.contains(actions):
            raise AirlocError(
                f"{actions.tolist()} are not actions of {self.num_envs} environments",
                f"Use one integer from 0 to {self.actions.count - 1} for each",
            )
        playing = ~self._over
        outcome = self.actions.step(self._position, self._steps, self._goal, actions)
        self._position, self._steps = outcome.position, outcome.steps
        terminated, truncated = (outcome.found | outcome.false_alarm) & playing, outcome.missed & playing
        if self._over.any():
            self._begin(self._over)
        ended = terminated | truncated
        infos = self._info()
        if ended.any():
            final = {**self.actions.end_info(outcome), "distance": self.grid.moves_between(self._start, self._goal)}
            for name, value in final.items():
                infos |= {name: np.where(ended, value, np.zeros_like(value)), f"_{name}": ended}
        self._over = ended
        return self._observe(), (outcome.reward * playing).astype(np.float64), terminated, truncated, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return True for the actions that stay in the area, bool (num_envs, A)."""
        if self._over is None:
            raise AirlocError("No episode has started", "Call reset before action_masks")
        return self.actions.mask(self._position).astype(np.bool_)

    def _begin(self, where: npt.NDArray[np.bool_]) -> None:
        """Sample new episodes for these environments."""
        rng, count = self.np_random, int(where.sum())
        if self.flips:
            self._orientation[where] = rng.integers(ORIENTATIONS, size=count)
        self._variant[where] = self.sampler.sample_variants(rng, count)
        self._place(where, *self.sampler.sample(rng, count))

    def _place(
        self,
        where: npt.NDArray[np.bool_],
        area: npt.NDArray[np.int64],
        start: npt.NDArray[np.int64],
        goal: npt.NDArray[np.int64],
    ) -> None:
        self._area[where], self._position[where], self._start[where], self._goal[where] = area, start, start, goal
        self._steps[where] = 0
        self._goal_patch[where] = self._patches(self._goal, "goal")[where] * np.uint8(self.goal_pictures)

    def _patches(self, position: npt.NDArray[np.int64], role: Role) -> Pixels:
        """Return the patches at positions of the areas as flipped in these episodes, (B, S, S, 3)."""
        if not self.flips:
            return self.sampler.patches(self._area, position, self._variant, role)
        patches = np.empty_like(self._goal_patch)
        for orientation in range(ORIENTATIONS):
            these = self._orientation == orientation
            original = flip_cells(position[these], orientation, self.grid)
            found = self.sampler.patches(self._area[these], original, self._variant[these], role)
            patches[these] = flip_image(found, orientation)
        return patches

    def _observe(self) -> Obs:
        texts = {}
        if self.goal_texts is not None:
            texts["goal_text"] = self.goal_texts[self._area, self._goal @ np.array([self.grid.cols, 1])]
        return {
            "patch": self._patches(self._position, "glimpse"),
            "goal": self._goal_patch.copy(),
            "position": self._position.copy(),
            "moves_left": (self.budget - self._steps)[:, None],
            **texts,
        }

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.actions.mask(self._position)}
