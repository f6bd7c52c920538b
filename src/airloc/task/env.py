"""The Gymnasium environment of aerial view goal localization. The docstring of `SearchEnv` is its specification."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from airloc.areas.area import Pixels
from airloc.drawing.trajectory import draw_trajectory
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid, MoveCount
from airloc.task.anywhere import GoalsAnywhere
from airloc.task.cells import ORIENTATIONS, flip_cells, flip_image
from airloc.task.goal_texts import TEXT_SHAPE, check_text_table
from airloc.task.photos import FlightConditions, Role
from airloc.task.rules import FALSE_ALARM_COST, Actions, RewardFunction, load_reward
from airloc.task.sampling import Areas, EpisodeSampler

Obs: TypeAlias = dict[str, Any]


class SearchEnv(gym.Env[Obs, np.int64]):
    """Find a goal that is known by its image only, one glimpse at a time, within a budget of moves.

    The agent is above a cell of a grid on an aerial image, and observes this cell only. It receives the patch of the
    goal, another cell of the same area, and moves until it is above the goal or the budget is used up.

    ## Action space
    `Discrete(8)`, the moves of the king in chess, clockwise from north:

    | index | 0 | 1  | 2 | 3  | 4 | 5  | 6 | 7  |
    |-------|---|----|---|----|---|----|---|----|
    | move  | N | NE | E | SE | S | SW | W | NW |

    A move may leave the area. It counts like any other move.

    With `moves=4` the space is `Discrete(4)`: N, E, S, W. The border is closed: a move across it counts, but does not
    change the position. Distance is the Manhattan distance.

    With `declare=True` there is one more action, the last one: the declaration, 8 (or 4). See Declarations.

    ## Observation space
    `Dict` with the keys

    | key          | space                                | meaning                                                  |
    |--------------|--------------------------------------|----------------------------------------------------------|
    | `patch`      | `Box(0, 255, (S, S, 3), uint8)`      | RGB image of the current cell, S = 48; black outside     |
    | `goal`       | `Box(0, 255, (S, S, 3), uint8)`      | the goal patch, constant during the episode              |
    | `position`   | `Box(-T, side - 1 + T, (2,), int64)` | row and column of the current cell                       |
    | `moves_left` | `Box(0, T, (1,), int64)`             | moves left of the budget T                               |

    The goal cell is never observed.

    ## Goals in words
    `goal_texts` has the embedded description of every cell of every area, float32 (areas, cells, 8, 384), as
    `airloc.vision.sentences.embed_descriptions` returns it. There is one more key then, and `goal` is black unless
    `goal_pictures=True`:

    | key          | space                                | meaning                                                  |
    |--------------|--------------------------------------|----------------------------------------------------------|
    | `goal_text`  | `Box(-1, 1, (8, 384), float32)`      | rows of the description: the whole, then its clauses     |

    ## Rewards
    `3 * found - 1` for each move: 2 for the move that reaches the goal, -1 for any other. A function may replace it:
    `reward=lambda found, distance, next_distance: 3 * found + distance - next_distance - 1`, with arrays of whether the
    move reaches the goal, and of the distances to the goal before and after it. Text such as `"my_rewards:closer"`
    names a function of a module; `airloc train --reward` takes the same.

    ## Starting state
    An area is sampled uniformly, and a start and a different goal from `prior`: `uniform` over all pairs;
    `per-distance` or `pairs-per-distance`, in which all distances are equally probable; `far-pairs`, in which all
    distances from half the largest one on are equally probable; or a fixed `distance`.
    `reset(options={"area": ..., "start": ..., "goal": ..., "distance": ...})` fixes any of these for one episode.

    ## Episode end
    `terminated` is True when the goal is reached. `truncated` is True when the budget is used up before: by default
    twice the longer side of the grid, 10 moves on 5 x 5 and 14 on 7 x 7.

    ## Declarations
    In a real search, the agent does not know when it has reached the goal. With `declare=True`, reaching the goal has
    no effect. The agent ends the episode by a declaration, which is not a move. It may declare at every glimpse,
    including the first and the last:

    | action                                   | reward                | end          | info at the end |
    |------------------------------------------|-----------------------|--------------|-----------------|
    | a move                                   | -1                    |              |                 |
    | declaration at the goal                  | 3                     | `terminated` | `found`         |
    | declaration elsewhere                    | -3 `false_alarm_cost` | `terminated` | `false_alarm`   |
    | a move when no moves are left            | 0                     | `truncated`  | `missed`        |

    A find after n moves has the return 3 - n, as without declarations, and an episode has up to T + 1 steps. A false
    alarm costs 4 finds by default. If 3 `false_alarm_cost` is less than T, an immediate false alarm costs less than a
    search without success.

    ## Flight conditions
    In a real flight, every glimpse is a photo of its own. With `flight=FlightConditions(strength)`, `patch` and `goal`
    are photos with their own errors of position, heading, height, exposure, white balance, sharpness and compression;
    the goal and the glimpse of one cell are different photos. The class `airloc.task.FlightConditions` has the sizes of
    the errors. A cell has `variants` photos as a glimpse and as many as a goal, which depend on the seed of `flight`.
    `reset` draws one variant for the episode, so that a cell shows the same photo at each visit of an episode. Beyond
    the border of an area, photos show its mirror image. The patch outside the area stays black.

    ## Goals anywhere
    With `goals=GoalsAnywhere()`, the goal is a square of ground anywhere in the area, of any heading, up to 1.5 times
    as wide or narrow as a cell. `heading="known"` turns and scales its image like the cells, as if its heading and
    width were known; `heading="unknown"` shows it as its camera took it. The goal's cell is the one that contains its
    centre; rewards and ends are as before. A cell has `variants` goals, and `reset` draws one of them.

    ## Info
    `action_mask` (int8, one value per action) is 1 for the moves that stay in the area and for the declaration;
    `action_masks()` returns the same as bool, for `MaskablePPO` of sb3-contrib. `area`
    is the name of the area. At the end, `distance` is the distance from start to goal; during the episode it would
    reveal a part of the goal's position. With `declare=True`, one of `found`, `false_alarm` and `missed` is True at the
    end.

    ## Arguments
    * `areas`: a list of search areas, a dataset (`load_dataset("masa", split="train")`), or the name or path of one.
      Default: 64 procedural areas.
    * `grid`: a `Grid` or a text such as `"5x7"`.
    * `budget`: maximum number of moves.
    * `moves`: 8 or 4. Default: the moves of the grid.
    * `prior`, `distance`: see Starting state.
    * `declare`, `false_alarm_cost`: see Declarations.
    * `reward`: see Rewards.
    * `flight`: see Flight conditions. Default: exact cells.
    * `goals`: see Goals anywhere; not together with `flight`. Default: goals are cells.
    * `flips`: flip areas at random, as augmentation.
    * `render_mode`: `rgb_array` or None.

    ## Version history
    * v0: initial release, as `airloc/Search-5x5-v0`, `airloc/Search-7x7-v0` and, with arguments, `airloc/Search-v0`.

    ## Example
    ```pycon
    >>> import airloc, gymnasium as gym
    >>> env = gym.make("airloc/Search-5x5-v0")
    >>> observation, info = env.reset(seed=0)
    >>> observation["patch"].shape, info["action_mask"].shape
    ((48, 48, 3), (8,))
    >>> observation, reward, terminated, truncated, info = env.step(2)

    ```

    A false alarm at the start:

    ```pycon
    >>> env = gym.make("airloc/Search-5x5-v0", declare=True)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(8)
    >>> reward, terminated, info["found"], info["false_alarm"], info["missed"]
    (-12.0, True, False, True, False)

    ```

    Eight photos of every cell, for training:

    ```pycon
    >>> from airloc.areas import load_dataset
    >>> from airloc.grid import Grid
    >>> from airloc.task import FlightConditions
    >>> areas = list(load_dataset("synthetic", count=2).areas(Grid(5, 5)))
    >>> env = gym.make("airloc/Search-5x5-v0", areas=areas, flight=FlightConditions(strength=1.0, variants=8))
    >>> observation, info = env.reset(seed=0)

    ```

    Goals between the cells, photographed with an unknown heading:

    ```pycon
    >>> from airloc.task import GoalsAnywhere
    >>> env = gym.make("airloc/Search-5x5-v0", areas=areas, goals=GoalsAnywhere(heading="unknown"))
    >>> observation, info = env.reset(seed=0)

    ```
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
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
        render_mode: str | None = None,
    ) -> None:
        self.sampler = EpisodeSampler.build(areas, grid, budget, prior, distance, moves, flight, goals)
        self.grid, self.budget = self.sampler.grid, self.sampler.budget
        self.flips = flips
        if goal_texts is not None:
            check_text_table(goal_texts, len(self.sampler.names), self.grid, flips=flips)
        self.goal_texts = goal_texts
        self.goal_pictures = goal_texts is None if goal_pictures is None else goal_pictures
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise AirlocError(f"There is no render_mode {render_mode!r}", 'Use "rgb_array" or None')
        self.render_mode = render_mode
        self.actions = Actions(self.grid, self.budget, declare, false_alarm_cost, load_reward(reward))
        self.action_space = spaces.Discrete(self.actions.count)
        self.observation_space: spaces.Space[Obs] = observation_space(
            self.grid, self.budget, texts=goal_texts is not None
        )
        self._path: list[Cell] = []
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Start an episode. The class docstring describes the options."""
        super().reset(seed=seed)
        rng = self.np_random
        self._area, self._position, self._goal = self.sampler.sample_one(rng, options or {})
        self._orientation = int(rng.integers(ORIENTATIONS)) if self.flips else 0
        self._variant = int(self.sampler.sample_variants(rng, 1)[0])
        self._steps = np.array(0)
        self._goal_patch = self._patch(self._goal, "goal") * np.uint8(self.goal_pictures)
        self._path = [self._cell()]
        self._over = False
        return self._observe(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Move to an adjacent cell, or declare that the current cell is the goal."""
        if self._over:
            raise AirlocError("No episode is running", "Call reset before step")
        if not self.action_space.contains(action):
            raise AirlocError(f"{action!r} is not an action", f"Use an integer from 0 to {self.actions.count - 1}")
        outcome = self.actions.step(self._position, self._steps, self._goal, np.asarray(action))
        if outcome.steps > self._steps:
            self._path.append((int(outcome.position[0]), int(outcome.position[1])))
        self._position, self._steps = outcome.position, outcome.steps
        terminated, truncated = bool(outcome.found | outcome.false_alarm), bool(outcome.missed)
        self._over = terminated | truncated
        info = self._info()
        if self._over:
            info |= {name: bool(value) for name, value in self.actions.end_info(outcome).items()}
            info["distance"] = int(self.grid.moves_between(np.array(self._path[0]), self._goal))
        return self._observe(), float(outcome.reward), terminated, truncated, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return True for the actions that stay in the area, bool (A,), as MaskablePPO of sb3-contrib asks."""
        if not self._path:
            raise AirlocError("No episode has started", "Call reset before action_masks")
        return self.actions.mask(self._position).astype(np.bool_)

    def render(self) -> Pixels | None:
        """Draw the path so far on the area, with unvisited cells dimmed and the goal patch at the right."""
        if self.render_mode is None or not self._path:
            return None
        image = flip_image(self.sampler.image(self._area), self._orientation)
        return _render_search(image, self.grid, self._path, self._goal_patch)

    def _cell(self) -> Cell:
        row, col = self._position.tolist()
        return row, col

    def _patch(self, position: npt.NDArray[np.int64], role: Role) -> Pixels:
        """Return the patch at a position of the area as flipped in this episode."""
        original = flip_cells(position, self._orientation, self.grid)
        patch = self.sampler.patches(np.array(self._area), original, self._variant, role)
        return flip_image(patch, self._orientation)

    def _observe(self) -> Obs:
        texts = {}
        if self.goal_texts is not None:
            texts["goal_text"] = self.goal_texts[self._area, self.grid.index(tuple(self._goal.tolist()))].copy()
        return {
            "patch": self._patch(self._position, "glimpse").copy(),
            "goal": self._goal_patch.copy(),
            "position": self._position.copy(),
            "moves_left": np.array([self.budget - self._steps]),
            **texts,
        }

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.actions.mask(self._position),
            "area": self.sampler.names[self._area],
        }


def observation_space(grid: Grid, budget: int, *, texts: bool = False) -> spaces.Dict[Any]:
    """Return the space of single observations on a grid, with the embedding of a goal text if there are `texts`."""
    patch = spaces.Box(0, 255, (grid.cell, grid.cell, 3), np.uint8)
    far = np.array(grid.shape, dtype=np.int64) - 1 + budget
    return spaces.Dict(
        {
            "patch": patch,
            "goal": patch,
            "position": spaces.Box(np.full(2, -budget, dtype=np.int64), far, dtype=np.int64),
            "moves_left": spaces.Box(0, budget, (1,), np.int64),
            **({"goal_text": spaces.Box(-1, 1, TEXT_SHAPE, np.float32)} if texts else {}),
        }
    )


def _render_search(image: Pixels, grid: Grid, path: Sequence[Cell], goal_patch: Pixels) -> Pixels:
    """Draw the path on the area, with unvisited cells dimmed and the goal patch at the right."""
    search = draw_trajectory(image, grid, path, goal=None, dim_unvisited=True, margin=1)
    height = search.shape[0]
    side = min(height, max(grid.cell, height // 4))
    column = np.zeros((height, side + 16, 3), dtype=np.uint8)
    pixel = np.arange(side) * grid.cell // side
    column[:side, 16:] = goal_patch[pixel][:, pixel]
    return np.concatenate([search, column], axis=1)
