"""Pictures of searches: step by step as a strip or an animation, and sheets of failures, changes and photos.

Frames show what the agent knows: visited cells as they are, and the others under its belief, or dark if it has none.
The last frame shows the whole area with the path.

Legend: Pixels: uint8 RGB (H, W, 3).
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from airloc.areas.area import Pixels, SearchArea, fit
from airloc.areas.changes import CHANGES, GoalTransform, cut_goal
from airloc.areas.synthetic import generate
from airloc.drawing.heatmap import belief_strip, draw_belief, percent, stack_vertically
from airloc.drawing.sheet import contact_sheet
from airloc.drawing.trajectory import draw_trajectory
from airloc.grid import Cell, Grid, distance
from airloc.rollout import EpisodeRecord, RolloutLog
from airloc.seeding import stream
from airloc.task.cells import cut_patches
from airloc.task.photos import ROLES, FlightConditions

COLUMNS = 6
"""Largest number of frames in a row of a strip."""

CHANGE_CELLS: tuple[tuple[str, Cell], ...] = (
    ("city", (1, 2)),
    ("suburb", (3, 1)),
    ("coast", (2, 3)),
    ("rural", (0, 0)),
)
"""Regimes of procedural areas, and the cell of each that `changes_sheet` shows. The last one is in a corner."""


def search_strip(searches: Sequence[EpisodeRecord], grid: Grid, *, scale: int = 2) -> Pixels:
    """Lay out the steps of searches for one goal from one start in rows, each search after its goal image."""
    top, margin = _top(searches, grid), _margin(searches, grid)
    strips = []
    for search in searches:
        goal = _goal_image(search, grid, scale)
        frames, captions = _frames(search, grid, scale, top, margin), _captions(search)
        columns = _balanced_columns(len(frames))
        captions[0] = f"{search.agent} at the {captions[0]}"
        for first in range(0, len(frames) + -(-len(frames) // columns), columns + 1):
            frames.insert(first, goal if first == 0 else np.full_like(goal, 255))
            captions.insert(first, "" if first else "goal")
        strips.append(belief_strip(_pad_heights(frames), captions, columns=columns + 1))
    return _add_border(stack_vertically(strips, gap=20 * scale))


def _balanced_columns(frames: int) -> int:
    """Return the number of frames in a row of a strip that gives few rows of about equal length.

    >>> _balanced_columns(2), _balanced_columns(6), _balanced_columns(7), _balanced_columns(11)
    (2, 6, 4, 6)
    """
    return -(-frames // -(-frames // COLUMNS))


def search_animation(searches: Sequence[EpisodeRecord], grid: Grid, *, scale: int = 2) -> list[Pixels]:
    """Return the frames of an animation of searches side by side. A search that ends first waits for the others."""
    top, margin = _top(searches, grid), _margin(searches, grid)
    panels = [_pad_heights(_frames(search, grid, scale, top, margin)) for search in searches]
    captions = [[f"{search.agent}: {caption}" for caption in _captions(search)] for search in searches]
    goal = _goal_image(searches[0], grid, scale)
    frames = []
    for step in range(max(map(len, panels))):
        now = [panel[min(step, len(panel) - 1)] for panel in panels]
        texts = [caption[min(step, len(caption) - 1)] for caption in captions]
        frames.append(_add_border(belief_strip(_pad_heights([goal, *now]), ["goal", *texts])))
    return frames


def failure_sheet(
    log: RolloutLog,
    numbers: Sequence[int],
    areas: Sequence[SearchArea],
    goal_areas: Sequence[SearchArea] | None = None,
    *,
    columns: int = 2,
) -> Pixels:
    """Lay out failed searches: the goal image, the path over the area, and the last belief."""
    suite, failed = log.suite, int((~log.found).sum())
    pictures, captions = [], []
    for number in numbers:
        search = log.episode(number, areas, goal_areas)
        pictures.append(_failure(search, suite.grid))
        captions.append(failure_caption(search, suite.grid))
    title = f"{log.agent}: {len(numbers)} of {failed} failures in {len(suite)} searches ({suite.name}, {suite.grid})"
    return contact_sheet(pictures, captions, columns=columns, tile=900, title=title)


def failure_caption(search: EpisodeRecord, grid: Grid) -> str:
    """Describe a failed search, and the probability and rank of the goal in the last belief."""
    text = f"{search.area.name}, distance {distance(search.path[0], search.goal)}"
    if search.goal_probability is None:
        return text
    unvisited = grid.count - len(set(filter(grid.contains, search.path)))
    probability = percent(search.goal_probability)
    return f"{text}, goal at {probability} in the last belief, rank {search.goal_rank} of {unvisited} cells"


def choose_failures(log: RolloutLog, count: int, seed: int = 0) -> list[int]:
    """Draw the numbers of failed episodes to show, from as many areas as possible."""
    failed = stream(seed, "failures").permutation(np.flatnonzero(~log.found))
    area = log.suite.area[failed]
    earlier = [int((area[:place] == area[place]).sum()) for place in range(len(failed))]
    chosen: list[int] = failed[np.argsort(earlier, kind="stable")][:count].tolist()
    return chosen


def changes_sheet(seed: int = 0, tile: int = 112) -> Pixels:
    """Draw a row for every change of goal images: four procedural cells, each beside its changed image."""
    grid = Grid()
    images = {regime: generate(seed, size=grid.size, regime=regime).image for regime, _ in CHANGE_CELLS}
    pictures, captions = [], []
    for name, change in CHANGES.items():
        for regime, cell in CHANGE_CELLS:
            transform = change(stream(seed, "sheet", name, regime), 1.0)
            pictures += [cut_goal(images[regime], grid, cell, each) for each in (GoalTransform(), transform)]
            captions += ["the cell", name]
    return contact_sheet(pictures, captions, columns=2 * len(CHANGE_CELLS), tile=tile)


def photos_sheet(
    areas: Sequence[SearchArea], grid: Grid, strengths: Sequence[float], *, seed: int = 0, tile: int = 128
) -> Pixels:
    """Draw a row for one cell of each area: the exact cell, and its photos in flight conditions of each strength.

    Args:
        areas: The areas. The seed draws one cell of each.
        grid: The grid.
        strengths: Strengths of the flight conditions. Each has two columns: a glimpse and a goal.
        seed: Random seed for the cells and the photos.
        tile: Side of a photo on the sheet in pixels.
    """
    pictures, captions = [], []
    for area in areas:
        cell = int(stream(seed, "photos", ascii(area.name)).integers(grid.count))
        pictures.append(cut_patches(fit(area, grid).image, grid)[cell])
        captions.append("exact")
        for strength in strengths:
            for role, views in zip(ROLES, FlightConditions(strength, seed).apply([area], None, grid), strict=True):
                pictures.append(cut_patches(views[0].image, grid)[cell])
                captions.append(f"{strength:g}, {role}")
    return contact_sheet(pictures, captions, columns=1 + len(ROLES) * len(strengths), tile=tile)


def _failure(search: EpisodeRecord, grid: Grid) -> Pixels:
    """Draw the goal image, the path over the area and the last belief side by side."""
    frames = [_goal_image(search, grid, 2)]
    frames.append(draw_trajectory(search.area.image, grid, search.path, search.goal, scale=2, found=False))
    if search.last_belief is not None:
        frames.append(
            draw_belief(search.area.image, grid, search.last_belief, path=search.path, goal=search.goal, scale=2)
        )
    return belief_strip(_pad_heights(frames))


def _frames(search: EpisodeRecord, grid: Grid, scale: int, top: float | None, margin: int) -> list[Pixels]:
    """Draw one frame before every move, and one of the end."""
    image, path, goal = search.area.image, search.path, search.goal
    frames = []
    for step in range(search.moves):
        visited = path[: step + 1]
        if search.beliefs is None:
            frames.append(draw_trajectory(image, grid, visited, goal, scale=scale, dim_unvisited=True, margin=margin))
        else:
            belief = search.beliefs[step]
            frames.append(
                draw_belief(image, grid, belief, path=visited, goal=goal, top=top, scale=scale, margin=margin)
            )
    return [*frames, draw_trajectory(image, grid, path, goal, scale=scale, found=search.found, margin=margin)]


def _captions(search: EpisodeRecord) -> list[str]:
    """Return the caption of each frame: the move and the belief at the goal, and the end."""
    moves = f"{search.moves} move{'' if search.moves == 1 else 's'}"
    captions = []
    for step in range(search.moves):
        belief = "" if search.beliefs is None else f", goal at {percent(float(search.beliefs[step][search.goal]))}"
        captions.append(("start" if step == 0 else f"move {step}") + belief)
    return [*captions, f"found after {moves}" if search.found else f"not found in {moves}"]


def _goal_image(search: EpisodeRecord, grid: Grid, scale: int) -> Pixels:
    """Return the goal image, enlarged to two cells and the gap between them."""
    side = scale * (2 * grid.cell + grid.gap)
    return np.asarray(Image.fromarray(search.goal_patch).resize((side, side), Image.Resampling.BICUBIC))


def _top(searches: Sequence[EpisodeRecord], grid: Grid) -> float | None:
    """Return the upper end of the colour scale, low enough to show the maxima of an early, flat belief."""
    largest = [float(search.beliefs.max()) for search in searches if search.beliefs is not None]
    return min(1.0, *largest, 10 / grid.count) if largest else None


def _margin(searches: Sequence[EpisodeRecord], grid: Grid) -> int:
    """Return the cells of margin that the paths need, equal on all sides so that all frames have one size."""
    over = [
        max(-row, -col, row - grid.rows + 1, col - grid.cols + 1) for search in searches for row, col in search.path
    ]
    return min(max(0, *over), max(grid.shape))


def _pad_heights(frames: Sequence[Pixels]) -> list[Pixels]:
    """Pad frames with white at the bottom to the height of the highest one."""
    highest = max(frame.shape[0] for frame in frames)
    return [np.pad(frame, ((0, highest - frame.shape[0]), (0, 0), (0, 0)), constant_values=255) for frame in frames]


def _add_border(picture: Pixels) -> Pixels:
    """Add a white border."""
    return np.pad(picture, ((16, 16), (16, 16), (0, 0)), constant_values=255)
