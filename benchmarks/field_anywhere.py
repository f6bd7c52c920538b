"""Searches for goals that lie anywhere: `python -m benchmarks.field_anywhere`.

Prints the table of `docs/field.md`. A goal is a square of ground anywhere in an area of 8 x 8 cells (5 x 5 for the
small NAIP tiles), of any heading, up to 1.5 times as wide or narrow as a cell. Goal and photos have their own light and
compression. A search has twice the side of the grid in moves and a cost of false alarms of 4.

    --fit          print the calibration of the judge, fitted to Massachusetts training windows, NAIP places that the
                   locator was not trained on, without Claremont, and hurricane Michael
    --validation   play on the images that the judge is fitted to, to choose settings
    --curves DIR   draw the share of declared finds over the goal's cell by offset, turn, scale and years
    --pod          print the probability of detection: the share of goals declared in the photo of their own cell
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
from airloc.agents.belief import BeliefAgent
from airloc.agents.best_path import best_paths
from airloc.agents.matching import comparison, declaration_threshold
from airloc.agents.registry import make_agent
from airloc.areas.area import Pixels
from airloc.areas.changes import adjust_colours, photometric
from airloc.areas.dataset import Dataset
from airloc.areas.records import ImageRecord
from airloc.areas.registry import load_dataset
from airloc.drawing.charts import Series, line_chart
from airloc.grid import Cell, Grid
from airloc.missions.photos import Goal, PhotoPose, View, crop_to_cell, crop_to_view, make_goal
from airloc.missions.plan import SearchPlan, nearest_cell
from airloc.missions.searcher import Find, Glimpse, Searcher
from airloc.missions.session import AgentSession
from airloc.vision.locator import LOWEST_LOG, NOWHERE

COST = 4.0
POD_COSTS = (1.0, 4.0, 19.0)
"""Costs of false alarms for which the probability of detection is measured."""
LIGHT = 0.4
"""Strength of the differences of light between goal and photos."""
COLUMNS = (
    "case",
    "agent",
    "correct declarations",
    "false alarms",
    "flown over",
    "error",
    "missed, in the first three",
    "a photo",
)
CELL_M = 100.0
"""Assumed side of a cell: errors of position are reported at this size."""


class Pair(NamedTuple):
    """Images of an area: on the day of the flight, and on the day of the goal."""

    flight: Pixels
    goal: Pixels
    source: str = ""
    """Name of the dataset."""


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

    def __init__(
        self,
        pair: Pair,
        side: int,
        known_heading: bool,
        rng: np.random.Generator,
        *,
        offset: float | None = None,
        turn: float | None = None,
        scale: float | None = None,
    ) -> None:
        self.grid, self.rng, self.plan, self.image = Grid(side, side), rng, SearchPlan(), pair.flight
        self.pitch = CELL_M * self.grid.pitch / self.grid.cell
        self.width = self.pitch * side - (self.pitch - CELL_M)
        fixed = (offset, turn, scale) != (None, None, None)
        turn = (0.0 if fixed else rng.uniform(-180, 180)) if turn is None else turn
        goal_m = CELL_M * ((1.0 if fixed else 1.5 ** rng.uniform(-1, 1)) if scale is None else scale)
        down, right = rng.uniform(*_centres(goal_m, side), size=2)
        if fixed:
            angle = rng.uniform(0, 2 * math.pi)
            away = (offset or 0.0) / max(abs(math.cos(angle)), abs(math.sin(angle))) * CELL_M / self.pitch
            down, right = round(down) + away * math.sin(angle), round(right) + away * math.cos(angle)
        self.truth = float(down), float(right)
        pose = self._pose(self.truth)
        distance, angle = math.hypot(pose.right_m, pose.up_m), math.atan2(pose.up_m, pose.right_m) + math.radians(turn)
        turned = PhotoPose(pose.width_m, distance * math.cos(angle), distance * math.sin(angle), -turn)
        self.as_it_is = self._photograph(crop_to_cell(pair.goal, goal_m, turned)[0])
        """The picture of the goal as it was taken."""
        self.goal = make_goal(self.as_it_is, CELL_M, (goal_m, goal_m), turn if known_heading else None)

    def photo(self, cell: Cell) -> Glimpse:
        """Photograph a cell."""
        pose = self._pose(cell)
        view = crop_to_view(self.image, CELL_M, pose)
        pixels = self._photograph(view.pixels)
        away = np.abs(np.arange(96) + 0.5 - 48) / 24
        seen = (away <= self.plan.footprint)[:, None] & (away <= self.plan.footprint * self.plan.camera.aspect)
        return Glimpse(pixels[24:72, 24:72], 1.0, View(pixels, view.seen & seen))

    def _pose(self, place: tuple[float, float]) -> PhotoPose:
        """Return the pose of the whole image relative to a place on the grid."""
        down, right = (number * self.pitch + CELL_M / 2 - self.width / 2 for number in place)
        return PhotoPose(self.width, -right, down)

    def _photograph(self, pixels: Pixels) -> Pixels:
        """Give an image its own light and compression."""
        lit = adjust_colours(pixels, photometric(self.rng, LIGHT))
        file = io.BytesIO()
        Image.fromarray(lit).save(file, "JPEG", quality=int(self.rng.uniform(60, 90)))
        return np.asarray(Image.open(file))


def _centres(goal_m: float, side: int) -> tuple[float, float]:
    """Return the smallest and largest row of a goal's centre: the whole goal lies in the area, however it is turned."""
    pitch = CELL_M * Grid().pitch / Grid().cell
    width = pitch * side - (pitch - CELL_M)
    reach, edge = min(goal_m / math.sqrt(2), width / 3) / pitch, CELL_M / pitch / 2
    return reach - edge, side - 1 + edge - reach


def blind_optimum(side: int, draws: int = 20_000) -> float:
    """Return the share of goals whose cell lies on the best path that looks at nothing, for the goals of `World`."""
    rng, grid = np.random.default_rng(0), Grid(side, side)
    weights = np.zeros(grid.count)
    for _ in range(draws):
        down, right = rng.uniform(*_centres(CELL_M * 1.5 ** rng.uniform(-1, 1), side), size=2)
        weights[grid.index(nearest_cell((float(down), float(right))))] += 1 / draws
    start = (side // 2, side // 2)
    elsewhere = weights.copy()
    elsewhere[grid.index(start)] = 0
    return best_paths(grid, 2 * side, start, elsewhere).value + float(weights[grid.index(start)])


def search(agent: Agent, world: World) -> tuple[Outcome, list[float]]:
    """Play a search to its end; return its outcome and the CPU seconds of every photo."""
    grid, start = world.grid, (world.grid.rows // 2, world.grid.cols // 2)
    searcher = Searcher(
        agent, world.goal, grid, start=start, budget=2 * max(grid.shape), threshold=declaration_threshold(COST)
    )
    seconds, matches = [], {}
    advice = searcher.advice()
    while (cell := advice.next_cell) is not None:
        glimpse = world.photo(cell)
        began = time.process_time()
        advice = searcher.observe(cell, glimpse, check=False)  # some images have black borders
        seconds.append(time.process_time() - began)
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
    storms, years = _pairs(xbd), _pairs(naip)
    days = [Pair(image, image, "Massachusetts") for image in _windows(masa, "val")]
    cities = [_square(dubai.read(record).image) for record in dubai.scan()]
    days += [Pair(image, image, "Dubai") for image in cities]
    days += [Pair(pair.flight, pair.flight, "xBD") for pair in storms]
    return [
        Case("same day, heading known", days, True),
        Case("same day, heading unknown", days, False),
        Case("another year (Claremont), heading known", years, True, side=5),
        Case("before a disaster (xBD), heading known", storms, True),
    ]


def validation_cases(root: Path) -> list[Case]:
    """Return lines on other images, to fit and to choose on: the locator was trained on none of these places."""
    masa, naip = (load_dataset(name, root=root / name) for name in ("masa", "naip"))
    michael = load_dataset("xbd", root=root / "xbd", only=("hurricane-michael_*",))
    places = [pair for pair in naip.record_pairs() if pair[0].name.endswith("7.jpg")]
    years = _pairs(naip, [pair for pair in places if not pair[0].name.startswith("claremont")])
    return [
        Case("same day (Massachusetts, training)", [Pair(image, image) for image in _windows(masa, "train")], True),
        Case("another year (NAIP without Claremont)", years, True, side=5),
        Case("before hurricane Michael", _pairs(michael, michael.record_pairs()[::2]), True),
    ]


def _windows(dataset: Dataset, split: str) -> list[Pixels]:
    """Read the images of a split."""
    return [_square(dataset.read(record).image) for record in dataset.scan() if record.split == split]


def _pairs(dataset: Dataset, records: Sequence[tuple[ImageRecord, ImageRecord]] | None = None) -> list[Pair]:
    """Read pairs of images: the flight on the later day, the goal from the earlier one."""
    chosen = dataset.record_pairs() if records is None else records
    return [Pair(_square(dataset.read(later).image), _square(dataset.read(earlier).image)) for earlier, later in chosen]


def _square(image: Pixels) -> Pixels:
    """Return the central square of an image."""
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(image[top : top + side, left : left + side])


def report(case: Case, name: str, searches: int, seed: int = 0) -> str:
    """Play the searches of a line; return the line."""
    agent = make_agent(name)
    order = np.random.default_rng(seed).permutation(len(case.pairs))
    outcomes, seconds, sources = [], [], []
    for number in range(searches):
        rng = np.random.default_rng([seed, number])  # goals do not depend on the agent and its photos
        pair = case.pairs[order[number % len(order)]]
        outcome, times = search(agent, World(pair, case.side, case.known_heading, rng))
        sources.append(pair.source)
        outcomes.append(outcome)
        seconds += times
    right = np.array([outcome.right for outcome in outcomes])
    wrong = np.array([outcome.declared and not outcome.right for outcome in outcomes])
    missed = [outcome for outcome in outcomes if outcome.flown_over and not outcome.declared]
    errors = [outcome.error for outcome in outcomes if outcome.right]
    low, high = _interval(right)
    top3 = f"{100 * np.mean([outcome.rank <= 3 for outcome in missed]):.0f} % of {len(missed)}" if missed else "- (0)"
    over = np.mean([outcome.flown_over for outcome in outcomes])
    error = f"{CELL_M * np.median(errors):.1f} m" if errors else "-"
    columns = (
        f"{case.title}, {case.side} x {case.side}",
        name,
        f"{100 * right.mean():.1f} % [{low:.1f}, {high:.1f}]",
        f"{100 * wrong.mean():.1f} %",
        f"{100 * over:.1f} %",
        error,
        top3,
        f"{1000 * np.median(seconds):.0f} ms",
    )
    by_source = [
        f"{100 * right[chosen].mean():.0f} % of {chosen.sum()} in {name}"
        for name in dict.fromkeys(sources)
        if name and (chosen := np.array(sources) == name).any()
    ]
    return "\n".join([f"| {' | '.join(columns)} |", *([f"    declared: {', '.join(by_source)}"] if by_source else [])])


def _interval(values: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of a share in percent (Wilson)."""
    count, share, z = len(values), float(values.mean()), 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return 100 * (middle - half), 100 * (middle + half)


def fit(root: Path, count: int, seed: int = 1) -> None:
    """Fit the calibration of sightings by logistic regression, as if one photo in ten showed the goal."""
    rng = np.random.default_rng(seed)
    sets = validation_cases(root)
    agent = make_agent("belief")
    assert isinstance(agent, BeliefAgent)
    compare = comparison(agent.network)
    rows, labels, kinds = [], [], []
    for number in range(count):
        case, known = sets[number % len(sets)], number % 2 == 0
        world = World(case.pairs[int(rng.integers(len(case.pairs)))], case.side, known, rng)
        views, true = world.goal.views(), nearest_cell(world.truth)
        far = [cell for cell in world.grid.cells() if max(abs(np.subtract(cell, world.truth))) > 1.6]
        for cell in [true, *(far[int(other)] for other in rng.permutation(len(far))[:3])]:
            view = world.photo(cell).whole_view()
            sighting = views.locate(*view)
            if sighting.score <= NOWHERE or sighting.beyond:
                continue  # the judge does not use it
            place = np.array(cell) + np.array([sighting.down, sighting.right]) * CELL_M / world.pitch
            network = max(compare(*views.align(*view, sighting)), LOWEST_LOG)
            rows.append([sighting.score, sighting.margin, sighting.verified, network, 1.0])
            labels.append(math.dist(place, world.truth) < 0.5)
            kinds.append(f"{case.title}, {'known' if known else 'unknown'}")
    inputs, targets, groups = np.array(rows), np.array(labels), np.array(kinds)
    for columns in ((0, 1, 2, 3, 4), (0, 1, 2, 4)):  # with the network, and without
        theta = _logistic(inputs[:, columns], targets, share=0.1)
        print(("with" if len(columns) == 5 else "without") + " the network:", *(f"{weight:.2f}" for weight in theta))
        chance = 1 / (1 + np.exp(-(inputs[:, columns] @ theta)))
        for kind in dict.fromkeys(kinds):
            goals, others = chance[(groups == kind) & targets], chance[(groups == kind) & ~targets]
            print(
                f"  {kind}: {100 * np.mean(goals > 0.8):.1f} % of {len(goals)} located goals and "
                f"{100 * np.mean(others > 0.8):.2f} % of {len(others)} others are above 0.8"
            )


def _logistic(inputs: np.ndarray, targets: np.ndarray, share: float) -> np.ndarray:
    """Fit a logistic regression by Newton's method, with weights as if a share of the targets were true."""
    weight = np.where(targets, share / targets.mean(), (1 - share) / (1 - targets.mean()))
    theta, ridge = np.zeros(inputs.shape[1]), 1e-3 * np.eye(inputs.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-(inputs @ theta)))
        gradient = inputs.T @ (weight * (targets - chance)) - ridge @ theta
        theta += np.linalg.solve((inputs * (weight * chance * (1 - chance))[:, None]).T @ inputs + ridge, gradient)
    return theta


def curves(root: Path, folder: Path, count: int) -> None:
    """Draw the share of declared finds over the goal's cell: by the glimpse alone, and by the whole photo."""
    masa, naip = (load_dataset(name, root=root / name) for name in ("masa", "naip"))
    days = [Pair(image, image) for image in _windows(masa, "val")]
    records = [pair for pair in naip.record_pairs() if pair[0].name.startswith("claremont")]
    years = _pairs(naip, records[::4])
    axes = {
        "offset": ("Offset of the goal from the middle of the cell, in cells", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        "turn": ("Turn of the goal's picture, in degrees", (0.0, 10.0, 20.0, 45.0, 90.0, 180.0)),
        "scale": ("Width of the goal's picture, in cells", (0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)),
    }
    for name, (label, values) in axes.items():
        series = []
        for title, pairs, known, whole in (
            ("glimpse alone", days, True, False),
            ("photo, heading known", days, True, True),
            ("photo, heading unknown", days, False, True),
            ("photo, another year", years, True, True),
        ):
            shares = [_declared(pairs, known, whole, {name: value}, count) for value in values]
            series.append(_print_series(name, title, values, shares))
        _draw(folder, name, label, series)
    apart = {gap: [pair for pair in records if pair[1].day - pair[0].day == gap] for gap in (2, 4)}
    images = {0: [Pair(pair.flight, pair.flight) for pair in _pairs(naip, apart[4])]}
    images |= {gap: _pairs(naip, chosen) for gap, chosen in apart.items()}
    series = []
    for title, known, whole in (
        ("glimpse alone", True, False),
        ("photo, heading known", True, True),
        ("photo, heading unknown", False, True),
    ):
        shares = [_declared(pairs, known, whole, {}, count) for pairs in images.values()]
        series.append(_print_series("years", title, tuple(map(float, images)), shares))
    _draw(folder, "years", "Years between the goal's picture and the flight (goals anywhere, Claremont)", series)


def _print_series(name: str, title: str, values: Sequence[float], shares: Sequence[float]) -> Series:
    print(name, title, *(f"{100 * share:.0f}" for share in shares), flush=True)
    return Series(title, values, shares)


def _draw(folder: Path, name: str, label: str, series: Sequence[Series]) -> None:
    chart = line_chart(series, title=f"Declared by {name}", x_label=label, y_label="declared", y_percent=True)
    (folder / f"field-{name}.svg").write_text(chart, encoding="utf-8")


def _declared(pairs: Sequence[Pair], known: bool, whole: bool, place: dict[str, float], count: int) -> float:
    """Return the share of goals that are declared in the photo of their cell at a cost of 4."""
    rng, agent, declared = np.random.default_rng(0), make_agent("belief"), 0
    for number in range(count):
        world = World(pairs[number % len(pairs)], 8 if len(pairs[0].flight) > 400 else 5, known, rng, **place)
        cell = nearest_cell(world.truth)
        glimpse = world.photo(cell)
        if whole:
            goal, glimpse = world.goal, glimpse
        else:  # the picture as it is, compared with the glimpse
            goal, glimpse = Goal(world.as_it_is, world.as_it_is), glimpse._replace(view=None)
        start = Searcher(agent, goal, world.grid, start=cell, budget=1, threshold=declaration_threshold(COST))
        if whole:
            declared += start.observe(cell, glimpse, check=False).declared is not None
        else:
            declared += AgentSession(agent, goal, world.grid, cell, 1, 0).match(cell, glimpse.pixels) >= start.threshold
    return declared / count


def measure_pod(root: Path, name: str, count: int, seed: int = 2) -> None:
    """Print the PODs of `airloc.missions.detection`, and those by the distance of the goal from the cell's middle."""
    table, agent = cases(root), make_agent(name)
    thresholds = [declaration_threshold(cost) for cost in POD_COSTS]
    print(f"POD at costs of {', '.join(f'{cost:g}' for cost in POD_COSTS)}; at a cost of {COST:g} by distance in cells")
    for same_day, lines in ((True, table[:1]), (False, table[2:])):
        for known in (True, False):
            rng = np.random.default_rng(seed)
            matches, away = [], []
            for number in range(count):
                case = lines[number % len(lines)]
                world = World(case.pairs[int(rng.integers(len(case.pairs)))], case.side, known, rng)
                cell = nearest_cell(world.truth)
                searcher = Searcher(agent, world.goal, world.grid, start=cell, budget=1)
                matches.append(searcher.observe(cell, world.photo(cell), check=False).match_probability or 0.0)
                away.append(math.dist(cell, world.truth) * world.pitch / CELL_M)
            probability, distance = np.array(matches), np.array(away)
            shares = ", ".join(f"{np.mean(probability >= threshold):.2f}" for threshold in thresholds)
            near = [(low, (distance >= low) & (distance < high)) for low, high in ((0, 0.25), (0.25, 0.5), (0.5, 1))]
            by_distance = ", ".join(
                f"from {low:g}: {np.mean(probability[chosen] >= declaration_threshold(COST)):.2f} of {chosen.sum()}"
                for low, chosen in near
            )
            day, heading = "same day" if same_day else "another day", "known" if known else "unknown"
            print(f"{day}, heading {heading}: {shares}; {by_distance}; {count} photos", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", nargs="+", default=["belief"])
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--lines", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--pod", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    root = Path(os.environ["AIRLOC_DATA"])
    if options.fit:
        fit(root, options.searches)
        return
    if options.curves is not None:
        options.curves.mkdir(parents=True, exist_ok=True)
        curves(root, options.curves, options.searches)
        return
    if options.pod:
        measure_pod(root, options.agents[0], options.searches)
        return
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    table = validation_cases(root) if options.validation else cases(root)
    lines = [number for number in options.lines if number < len(table)]
    for side in sorted({table[number].side for number in lines}):
        print(f"blind optimum on {side} x {side}: {100 * blind_optimum(side):.1f} % of the goals' cells flown over")
    for number in lines:
        for name in options.agents:
            print(report(table[number], name, options.searches), flush=True)


if __name__ == "__main__":
    main()
