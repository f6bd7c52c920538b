"""Searches for goals that lie anywhere: `python -m benchmarks.field_anywhere [--agents NAME ...] [--searches N] [--fit]`.

Prints the table of `docs/field.md`. A goal is a square of ground anywhere in an area of 8 x 8 cells (5 x 5 for the small
NAIP tiles), of any heading, up to 1.5 times as wide or narrow as a cell. Goal and photos have their own light and
compression. A search has twice the side of the grid in moves and a cost of false alarms of 4. With `--fit`, prints the
calibration of the locator, fitted to Massachusetts training windows and NAIP years without Claremont.
"""

import argparse
import io
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from airloc.agents.agent import Agent
from airloc.agents.matching import declaration_threshold
from airloc.agents.registry import make_agent
from airloc.areas.area import Pixels
from airloc.areas.changes import adjust_colours, photometric
from airloc.areas.registry import load_dataset
from airloc.grid import Cell, Grid
from airloc.missions.photos import PhotoPose, View, crop_to_cell, crop_to_view, make_goal
from airloc.missions.plan import SearchPlan, nearest_cell
from airloc.missions.searcher import Find, Glimpse, Searcher

COST = 4.0
LIGHT = 0.4
"""Strength of the differences of light between goal and photos."""
CELL_M = 100.0
"""Assumed side of a cell: errors of position are reported at this size."""


class Pair(NamedTuple):
    """Images of an area: on the day of the flight, and on the day of the goal."""

    flight: Pixels
    goal: Pixels


@dataclass(frozen=True)
class Case:
    """A line of the table."""

    title: str
    pairs: Sequence[Pair]
    known_heading: bool
    side: int = 8


class Outcome(NamedTuple):
    """The end of a search."""

    declared: bool
    right: bool
    error: float
    """Distance of the declared position from the goal's centre in cells."""
    flown_over: bool
    """The cell of the goal was photographed."""
    rank: int
    """Rank of the photo of the goal's cell by match probability, from 1."""


class World:
    """An area, a goal in it, and photos of its cells."""

    def __init__(self, pair: Pair, side: int, known_heading: bool, rng: np.random.Generator) -> None:
        self.grid, self.rng, self.plan = Grid(side, side), rng, SearchPlan()
        self.image = pair.flight
        self.pitch = CELL_M * self.grid.pitch / self.grid.cell
        self.width = self.pitch * side - (self.pitch - CELL_M)
        self.turn, level = rng.uniform(-180, 180), rng.uniform(-1, 1)
        goal_width = CELL_M * 1.5**level
        reach = min(goal_width / 2 * (math.sqrt(2)), self.width / 3) / self.pitch  # the whole goal lies in the area
        edge = CELL_M / self.pitch / 2
        self.truth: tuple[float, float] = tuple(rng.uniform(-edge + reach, side - 1 + edge - reach, size=2))  # type: ignore[assignment]
        pose = self._pose(self.truth, pair.goal)
        away = math.hypot(pose.right_m, pose.up_m), math.atan2(pose.up_m, pose.right_m) + math.radians(self.turn)
        turned = PhotoPose(pose.width_m, away[0] * math.cos(away[1]), away[0] * math.sin(away[1]), -self.turn)
        picture = self._photograph(crop_to_cell(pair.goal, goal_width, turned)[0])
        self.goal = make_goal(picture, CELL_M, (goal_width, goal_width), self.turn if known_heading else None)

    def photo(self, cell: Cell) -> Glimpse:
        """Photograph a cell."""
        pose = self._pose(cell, self.image)
        view = crop_to_view(self.image, CELL_M, pose)
        pixels = self._photograph(view.pixels)
        away = np.abs(np.arange(96) + 0.5 - 48) / 24
        seen = (away <= self.plan.footprint)[:, None] & (away <= self.plan.footprint * self.plan.camera.aspect)
        return Glimpse(pixels[24:72, 24:72], 1.0, View(pixels, view.seen & seen))

    def _pose(self, place: tuple[float, float], image: Pixels) -> PhotoPose:
        """Return the pose of the whole image relative to a place on the grid."""
        down, right = (number * self.pitch + CELL_M / 2 - self.width / 2 for number in place)
        del image
        return PhotoPose(self.width, -right, down)

    def _photograph(self, pixels: Pixels) -> Pixels:
        """Give an image its own light and compression."""
        lit = adjust_colours(pixels, photometric(self.rng, LIGHT))
        file = io.BytesIO()
        Image.fromarray(lit).save(file, "JPEG", quality=int(self.rng.uniform(60, 90)))
        return np.asarray(Image.open(file))


def search(agent: Agent, world: World) -> tuple[Outcome, list[float]]:
    """Play a search to its end; return its outcome and the seconds of every photo."""
    grid, start = world.grid, (world.grid.rows // 2, world.grid.cols // 2)
    searcher = Searcher(
        agent, world.goal, grid, start=start, budget=2 * max(grid.shape), threshold=declaration_threshold(COST)
    )
    seconds, matches = [], {}
    advice = searcher.advice()
    while (cell := advice.next_cell) is not None:
        glimpse = world.photo(cell)
        began = time.perf_counter()
        advice = searcher.observe(cell, glimpse)
        seconds.append(time.perf_counter() - began)
        matches[cell] = advice.match_probability or 0.0
    return _outcome(advice.declared, world, matches), seconds


def _outcome(find: Find | None, world: World, matches: dict[Cell, float]) -> Outcome:
    truth = nearest_cell(world.truth)
    flown_over = truth in matches
    rank = 1 + sum(value > matches[truth] for value in matches.values()) if flown_over else 0
    if find is None:
        return Outcome(False, False, math.nan, flown_over, rank)
    error = math.dist(find.position, world.truth) * world.pitch / CELL_M
    return Outcome(True, find.cell == truth or error <= 0.5, error, flown_over, rank)


def cases(root: Path) -> list[Case]:
    """Return the lines of the table."""
    masa = load_dataset("masa", root=root / "masa")
    dubai = load_dataset("dubai", root=root / "dubai")
    xbd = load_dataset(root / "xbd" / "images", without=("hurricane-michael_*",))
    naip = load_dataset("naip", root=root / "naip", only=("claremont_*",))
    same = [_square(masa.read(record).image) for record in masa.scan() if record.split == "val"]
    same += [_square(dubai.read(record).image) for record in dubai.scan()]
    storms = [Pair(_square(xbd.read(after).image), _square(xbd.read(before).image)) for before, after in xbd.record_pairs()]
    same += [pair.flight for pair in storms]
    years = [Pair(_square(naip.read(a).image), _square(naip.read(b).image)) for a, b in naip.record_pairs()]
    days = [Pair(image, image) for image in same]
    return [
        Case("same day, heading known", days, True),
        Case("same day, heading unknown", days, False),
        Case("another year (Claremont), heading known", years, True, side=5),
        Case("before a disaster (xBD), heading known", storms, True),
    ]


def _square(image: Pixels) -> Pixels:
    """Return the central square of an image."""
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(image[top : top + side, left : left + side])


def report(case: Case, name: str, searches: int, seed: int = 0) -> str:
    """Play the searches of a line; return the line."""
    agent = make_agent(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(case.pairs))
    outcomes, seconds = [], []
    for number in range(searches):
        world = World(case.pairs[order[number % len(order)]], case.side, case.known_heading, rng)
        outcome, times = search(agent, world)
        outcomes.append(outcome)
        seconds += times
    right = np.array([outcome.right for outcome in outcomes])
    wrong = np.array([outcome.declared and not outcome.right for outcome in outcomes])
    missed = [outcome for outcome in outcomes if outcome.flown_over and not outcome.declared]
    errors = [outcome.error for outcome in outcomes if outcome.right]
    low, high = _interval(right)
    top3 = f"{100 * np.mean([outcome.rank <= 3 for outcome in missed]):.0f} % of {len(missed)}" if missed else "- (0)"
    over = np.mean([outcome.flown_over for outcome in outcomes])
    return (
        f"| {case.title}, {case.side} x {case.side} | {name} | {100 * right.mean():.1f} % [{low:.1f}, {high:.1f}] | "
        f"{100 * wrong.mean():.1f} % | {100 * over:.1f} % | {CELL_M * np.median(errors) if errors else math.nan:.1f} m | "
        f"{top3} | {1000 * np.median(seconds):.0f} ms |"
    )


def _interval(values: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of a share in percent (Wilson)."""
    count, share, z = len(values), float(values.mean()), 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return 100 * (middle - half), 100 * (middle + half)


def fit(root: Path, count: int, seed: int = 1) -> None:
    """Fit the calibration of sightings by logistic regression, at one photo of the goal in ten."""
    masa, naip = load_dataset("masa", root=root / "masa"), load_dataset("naip", root=root / "naip", without=("claremont_*",))
    days = [Pair(*(2 * [_square(masa.read(record).image)])) for record in masa.scan() if record.split == "train"]
    records = naip.record_pairs()
    chosen = np.random.default_rng(seed).permutation(len(records))[:80]
    years = [Pair(_square(naip.read(a).image), _square(naip.read(b).image)) for a, b in (records[n] for n in chosen)]
    rng = np.random.default_rng(seed)
    rows, labels, kinds = [], [], []
    for number in range(count):
        kind = number % 4
        pairs, side = (days, 8) if kind < 2 else (years, 5)
        world = World(pairs[int(rng.integers(len(pairs)))], side, kind % 2 == 0, rng)
        views = world.goal.views()
        true = nearest_cell(world.truth)
        cells = [cell for cell in world.grid.cells() if max(abs(cell[0] - world.truth[0]), abs(cell[1] - world.truth[1])) > 1.6]
        for cell in [true, *(cells[int(n)] for n in rng.permutation(len(cells))[:2])]:
            sighting = views.locate(*world.photo(cell).whole_view())
            place = [at + offset * 48 / 52 for at, offset in zip(cell, (sighting.down, sighting.right), strict=True)]
            rows.append([sighting.score, sighting.margin, 1.0])
            labels.append(math.dist(place, world.truth) < 0.5)
            kinds.append(kind)
    inputs, targets = np.array(rows), np.array(labels, dtype=float)
    share = targets.mean()
    weight = np.where(targets > 0, 0.1 / share, 0.9 / (1 - share))
    theta = np.zeros(3)
    for _ in range(100):
        odds = inputs @ theta
        chance = 1 / (1 + np.exp(-odds))
        gradient = inputs.T @ (weight * (targets - chance)) - 1e-3 * theta
        hessian = (inputs * (weight * chance * (1 - chance))[:, None]).T @ inputs + 1e-3 * np.eye(3)
        theta = theta + np.linalg.solve(hessian, gradient)
    print(f"SightingCalibration(score={theta[0]:.1f}, margin={theta[1]:.1f}, constant={theta[2]:.2f}), {len(rows)} photos")
    chance = 1 / (1 + np.exp(-(inputs @ theta)))
    for kind, title in enumerate(("same day, known", "same day, unknown", "years, known", "years, unknown")):
        chosen = np.array(kinds) == kind
        positive, negative = chance[chosen & (targets > 0)], chance[chosen & (targets == 0)]
        print(f"{title}: above 0.8: {100 * np.mean(positive > 0.8):.1f} % of {len(positive)} goals, "
              f"{100 * np.mean(negative > 0.8):.2f} % of {len(negative)} others")
    np.savez("/tmp/field_anywhere.npz", inputs=inputs, targets=targets, kinds=np.array(kinds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", nargs="+", default=["belief"])
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--lines", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    root = Path(os.environ["AIRLOC_DATA"])
    if options.fit:
        fit(root, options.searches)
        return
    print("| case | agent | declared rightly | false alarms | flown over | error, median | missed: among the three | a photo |")
    print("|---|---|---|---|---|---|---|---|")
    table = cases(root)
    for number in options.lines:
        for name in options.agents:
            print(report(table[number], name, options.searches), flush=True)


if __name__ == "__main__":
    main()
