"""A picture of a search under way."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from airloc.areas.area import Pixels, SearchArea
from airloc.drawing.trajectory import draw_trajectory
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid, MoveCount
from airloc.task.cells import ORIENTATIONS, flip_cells, flip_image
from airloc.task.rules import FALSE_ALARM_COST, Actions
from airloc.task.world import World


def render_search(image: Pixels, grid: Grid, path: Sequence[Cell], goal_patch: Pixels) -> Pixels:
    """Draw the path over the area, unvisited cells dimmed, with the goal's picture at the right."""
    search = draw_trajectory(image, grid, path, goal=None, dim_unvisited=True, margin=1)
    height = search.shape[0]
    side = min(height, max(grid.cell, height // 4))
    column = np.zeros((height, side + 16, 3), dtype=np.uint8)
    shown = goal_patch[np.arange(side) * grid.cell // side][:, np.arange(side) * grid.cell // side]
    column[:side, 16:] = shown
    return np.concatenate([search, column], axis=1)


# ---------- The Gymnasium environment of aerial view goal localization.
# ~

Obs: TypeAlias = dict[str, Any]


class SearchEnv(gym.Env[Obs, np.int64]):
    """Find the place shown in a picture, one glimpse at a time, within a budget of moves.

    The agent stands over a cell of a grid laid on an aerial image and sees that cell alone. It is given the picture
    of the goal, another cell of the same area, and moves until it stands over it or the budget is spent.

    ## Actions
    `Discrete(8)`, the king's moves, clockwise from north:

    | number | 0 | 1  | 2 | 3  | 4 | 5  | 6 | 7  |
    |--------|---|----|---|----|---|----|---|----|
    | move   | N | NE | E | SE | S | SW | W | NW |

    Moves may leave the area; that is allowed, counted, and never of use.

    With `moves=4` it is `Discrete(4)`: N, E, S, W. The border is then closed: a move across it is counted and leads
    nowhere, and distance is Manhattan's.

    With `declare=True` there is one more action, the last: "here", 8 (4 with four moves). See Declaring.

    ## Observations
    `Dict` with

    | key          | space                         | meaning                                                       |
    |--------------|-------------------------------|---------------------------------------------------------------|
    | `patch`      | `Box(0, 255, (S, S, 3), uint8)` | the current cell in RGB, S = 48 px; black outside the area  |
    | `goal`       | `Box(0, 255, (S, S, 3), uint8)` | the picture of the goal, the same throughout the episode    |
    | `position`   | `Box(-T, side - 1 + T, (2,), int64)` | row and column of the current cell                     |
    | `moves_left` | `Box(0, T, (1,), int64)`      | what is left of the budget T                                  |

    The goal's cell is never observed.

    ## Reward
    `3 * found - 1` for each move: 2 for the one that reaches the goal, -1 for every other.

    ## Start
    An area is drawn, and a start and a different goal from `prior`: `uniform` over all pairs, `per-distance` or
    `pairs-per-distance` with every distance equally often, `far-pairs` with every one from half the largest on, or a
    fixed `distance`. `reset(options={"area": ..., "start": ..., "goal": ..., "distance": ...})` fixes any of these for
    one episode.

    ## End
    `terminated` when the goal is reached, `truncated` when the budget is spent without it (10 moves on 5 x 5, 14 on
    7 x 7, twice the longer side by default).

    ## Declaring
    In the field nobody tells the agent that it has arrived. With `declare=True` reaching the goal changes nothing;
    the episode ends by "here", which is no move and may be said at every glimpse, the first and the last included:

    | what was done                                | reward                 | ends         | info at the end |
    |----------------------------------------------|------------------------|--------------|-----------------|
    | a move                                       | -1                     |              |                 |
    | "here" over the goal                         | 3                      | `terminated` | `found`         |
    | "here" elsewhere                             | -3 `false_alarm_cost`  | `terminated` | `false_alarm`   |
    | anything but "here" with no move left        | 0                      | `truncated`  | `missed`        |

    So a find after n moves returns 3 - n, as it does without declaring, and an episode has up to T + 1 steps. A false
    alarm costs 4 finds unless told otherwise; where 3 `false_alarm_cost` is less than T, crying at once costs less than
    searching in vain.

    ## Info
    `action_mask` int8, one for each action: 1 for the moves that stay in the area, and for "here". `area`: its name. At
    the end `distance`: from start to goal, for reports by distance; before, it would give part of the goal away. With
    `declare=True` at the end also `found`, `false_alarm` and `missed`, of which one is true.

    ## Arguments
    `areas`: search areas, 64 procedural ones unless given. `grid`: a `Grid` or a text such as `"5x7"`. `budget`.
    `moves`: 8, or 4 (see Actions); by default the grid's own. `declare`, `false_alarm_cost`: see Declaring.
    `prior`, `distance`: see Start. `flips`: turn areas over at random, as augmentation. `render_mode`: `rgb_array`.

    ## Versions
    `airloc/Search-5x5-v0`, `airloc/Search-7x7-v0` and, with arguments, `airloc/Search-v0`. v0: first release.

    ## Example
    ```pycon
    >>> import airloc, gymnasium as gym
    >>> env = gym.make("airloc/Search-5x5-v0")
    >>> observation, info = env.reset(seed=0)
    >>> observation["patch"].shape, info["action_mask"].shape
    ((48, 48, 3), (8,))
    >>> observation, reward, terminated, truncated, info = env.step(2)

    ```

    Nobody tells of the arrival, and the agent says "here" where it is not:

    ```pycon
    >>> env = gym.make("airloc/Search-5x5-v0", declare=True)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(8)
    >>> reward, terminated, info["found"], info["false_alarm"], info["missed"]
    (-12.0, True, False, True, False)

    ```
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        areas: Sequence[SearchArea] | None = None,
        grid: Grid | str = "5x5",
        budget: int | None = None,
        *,
        moves: MoveCount | None = None,
        prior: str = "uniform",
        distance: int | None = None,
        declare: bool = False,
        false_alarm_cost: float = FALSE_ALARM_COST,
        flips: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.world = World.build(areas, grid, budget, prior, distance, moves)
        self.grid, self.budget = self.world.grid, self.world.budget
        self.flips = flips
        self.render_mode = render_mode
        self.actions = Actions(self.grid, self.budget, declare, false_alarm_cost)
        self.action_space = spaces.Discrete(self.actions.count)
        self.observation_space: spaces.Space[Obs] = observation_space(self.grid, self.budget)
        self._path: list[Cell] = []
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Begin an episode; see the class for the options."""
        super().reset(seed=seed)
        rng = self.np_random
        self._area, self._position, self._goal = self.world.draw_one(rng, options or {})
        self._orientation = int(rng.integers(ORIENTATIONS)) if self.flips else 0
        self._steps = np.array(0)
        self._goal_patch = self._see(self._goal)
        self._path = [self._cell()]
        self._over = False
        return self._observe(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Move to a neighbouring cell, or say that this is the goal's."""
        if self._over:
            raise AirlocError("There is no episode to step in: none has begun, or it has ended", "Call reset first")
        if not self.action_space.contains(action):
            raise AirlocError(f"{action!r} is no move", f"Give a whole number from 0 to {self.actions.count - 1}")
        turn = self.actions.play(self._position, self._steps, self._goal, np.asarray(action))
        if turn.steps > self._steps:
            self._path.append((int(turn.position[0]), int(turn.position[1])))
        self._position, self._steps = turn.position, turn.steps
        terminated, truncated = bool(turn.found | turn.false_alarm), bool(turn.missed)
        self._over = terminated | truncated
        info = self._info()
        if self._over:
            info |= {how: bool(is_so) for how, is_so in self.actions.ending(turn).items()}
            info["distance"] = int(self.grid.apart(np.array(self._path[0]), self._goal))
        return self._observe(), float(turn.reward), terminated, truncated, info

    def render(self) -> Pixels | None:
        """Draw the search so far: what has been seen in the light, the rest dimmed, the goal's picture beside."""
        if self.render_mode is None or not self._path:
            return None
        image = flip_image(self.world.image(self._area), self._orientation)
        return render_search(image, self.grid, self._path, self._goal_patch)

    def _cell(self) -> Cell:
        row, col = self._position.tolist()
        return row, col

    def _see(self, position: npt.NDArray[np.int64]) -> Pixels:
        """The patch at a position of the area as it is turned in this episode."""
        original = flip_cells(position, self._orientation, self.grid)
        return flip_image(self.world.patches(np.array(self._area), original), self._orientation)

    def _observe(self) -> Obs:
        return {
            "patch": self._see(self._position).copy(),
            "goal": self._goal_patch.copy(),
            "position": self._position.copy(),
            "moves_left": np.array([self.budget - self._steps]),
        }

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.actions.mask(self._position),
            "area": self.world.names[self._area],
        }


def observation_space(grid: Grid, budget: int) -> spaces.Dict[Any]:
    """The space of single observations on a grid."""
    patch = spaces.Box(0, 255, (grid.cell, grid.cell, 3), np.uint8)
    far = np.array(grid.shape, dtype=np.int64) - 1 + budget
    return spaces.Dict(
        {
            "patch": patch,
            "goal": patch,
            "position": spaces.Box(np.full(2, -budget, dtype=np.int64), far, dtype=np.int64),
            "moves_left": spaces.Box(0, budget, (1,), np.int64),
        }
    )
